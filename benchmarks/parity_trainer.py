"""The part of `finetuning_parity.py` that runs Hugging Face's Trainer.

`finetuning_parity.py` runs this program with a Python that has torch,
transformers and accelerate: MODEL is trained on FOLDER/train.json with the
arguments in FOLDER/settings.json. The logits of FOLDER/dev.json are written to
FOLDER/logits.npy.
"""

import json
import os
import sys
from typing import Any

import numpy as np
import transformers

from benchmarks.padding_trainer import collate


def main(model: str, folder: str) -> None:
    def read(name: str) -> Any:
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            return json.load(file)

    rows, settings = read("train.json"), read("settings.json")
    suffix, num_labels = settings.pop("suffix"), settings.pop("num_labels")
    transformers.set_seed(settings["seed"])  # Draws the output layer.
    model_class = getattr(transformers, f"BertFor{suffix}")
    trainer = transformers.Trainer(
        model=model_class.from_pretrained(model, num_labels=num_labels),
        args=transformers.TrainingArguments(
            output_dir=os.path.join(folder, "trainer"),
            # As in BERT's optimizer.
            weight_decay=0.01,
            adam_epsilon=1e-6,
            max_grad_norm=1.0,
            save_strategy="no",
            report_to=[],
            use_cpu=True,
            disable_tqdm=True,
            **settings,
        ),
        train_dataset=rows,
        data_collator=lambda batch: collate(batch, 0),
    )
    trainer.train()
    logits = trainer.predict(read("dev.json")).predictions
    if suffix == "QuestionAnswering":  # Starts and ends.
        logits = np.stack(logits, axis=-1)
    np.save(os.path.join(folder, "logits.npy"), logits)


if __name__ == "__main__":
    main(*sys.argv[1:])
