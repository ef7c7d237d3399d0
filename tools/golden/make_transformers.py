"""Creates `transformers/`: models saved by transformers, and their outputs.

  TRANSFORMERS_PYTHON tools/golden/make_transformers.py

Run with a Python that has transformers and PyTorch; made with transformers
5.23.0. `names.json` holds the names and shapes of the arrays of each class,
`pretraining` a complete directory with tokenizer and recorded outputs.
"""

import json
import os
import pathlib
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

CLASSES = [
    "BertModel",
    "BertForPreTraining",
    "BertForMaskedLM",
    "BertForNextSentencePrediction",
    "BertForSequenceClassification",
    "BertForMultipleChoice",
    "BertForTokenClassification",
    "BertForQuestionAnswering",
]


def main() -> None:
    import numpy as np
    import transformers
    from safetensors.numpy import load_file

    from tools.golden import transformers_process as side

    directory = ROOT / "tests" / "golden" / "transformers"
    (directory / "pretraining").mkdir(parents=True, exist_ok=True)
    listed = {}
    for name in CLASSES:
        with tempfile.TemporaryDirectory() as scratch:
            side.make(name, scratch, "gelu_new")
            path = os.path.join(scratch, "model.safetensors")
            arrays = load_file(path)
            listed[name] = {key: arrays[key].shape for key in sorted(arrays)}
    (directory / "names.json").write_text(json.dumps(listed, indent=1) + "\n")
    whole = str(directory / "pretraining")
    side.make("BertForPreTraining", whole, "gelu_new")
    with tempfile.TemporaryDirectory() as scratch:
        vocab = pathlib.Path(scratch) / "vocab.txt"
        words = "[PAD] [UNK] [CLS] [SEP] [MASK] a b c d e f g h i j k l m n o p"
        vocab.write_text("\n".join([*words.split(), "q", "r", "s"]) + "\n")
        (vocab.parent / "tokenizer_config.json").write_text(
            '{"do_lower_case": false, "tokenizer_class": "BertTokenizer"}'
        )
        tokenizer = transformers.BertTokenizer.from_pretrained(scratch)
        tokenizer.save_pretrained(whole)
    found = side.outputs("BertForPreTraining", whole)
    np.savez_compressed(os.path.join(whole, "outputs.npz"), **found)
    os.remove(os.path.join(whole, "loading.json"))


if __name__ == "__main__":
    main()
