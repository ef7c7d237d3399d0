"""Runs transformers, in a separate Python that has it and PyTorch.

  python tools/golden/transformers_process.py make CLASS FOLDER HIDDEN_ACT
  python tools/golden/transformers_process.py run CLASS FOLDER

`make` saves a random model of CLASS. Both then load FOLDER and write the
outputs for `INPUTS` to FOLDER/outputs.npz; `run` also writes missing and
unexpected names to FOLDER/loading.json.
"""

import json
import os
import sys
from typing import Any

import numpy as np

SIZES = {
    "vocab_size": 24,
    "hidden_size": 8,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 16,
    "max_position_embeddings": 12,
    "type_vocab_size": 2,
    # Large, so that wrong weights cannot go unnoticed.
    "initializer_range": 0.5,
}

INPUTS = {
    "input_ids": [[2, 9, 8, 3, 11, 23, 3], [2, 20, 3, 0, 0, 0, 0]],
    "attention_mask": [[1, 1, 1, 1, 1, 1, 1], [1, 1, 1, 0, 0, 0, 0]],
    "token_type_ids": [[0, 0, 0, 0, 1, 1, 1], [0, 0, 0, 0, 0, 0, 0]],
}


def make(name: str, folder: str, hidden_act: str) -> None:
    import torch
    import transformers

    torch.manual_seed(1)
    num_labels = 2 if name == "BertForQuestionAnswering" else 3
    config = transformers.BertConfig(
        **SIZES, hidden_act=hidden_act, num_labels=num_labels
    )
    model = getattr(transformers, name)(config)
    with torch.no_grad():
        for key, weight in model.named_parameters():
            if key.endswith("bias"):  # Biases would be zero.
                weight.normal_(0.0, 0.3)
    model.save_pretrained(folder)


def outputs(name: str, folder: str) -> Any:
    import torch
    import transformers

    model, info = getattr(transformers, name).from_pretrained(
        folder, output_loading_info=True
    )
    with open(os.path.join(folder, "loading.json"), "w") as file:
        json.dump({key: sorted(map(str, info[key])) for key in info}, file)
    inputs = {key: torch.tensor(ids) for key, ids in INPUTS.items()}
    if name == "BertForMultipleChoice":
        inputs = {key: ids[:, None] for key, ids in inputs.items()}
    with torch.no_grad():
        found = model.eval()(**inputs)
    return {key: value.numpy() for key, value in found.items()}


def main() -> None:
    what, name, folder = sys.argv[1:4]
    if what == "make":
        make(name, folder, sys.argv[4])
    np.savez(os.path.join(folder, "outputs.npz"), **outputs(name, folder))


if __name__ == "__main__":
    main()
