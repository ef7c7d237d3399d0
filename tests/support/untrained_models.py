"""Run directories of a fine-tuned and a pre-trained model, not trained."""

import json

from official_bert.config import BertConfig
from official_bert.modeling.pretraining_model import PretrainingModel
from official_bert.tasks.text import TextTask
from official_bert.tokenization import Tokenizer
from support import tiny

CONFIG = {**tiny.CONFIG, "hidden_size": 8, "intermediate_size": 8}


def tokenizer(folder, *more, never_split=()):
    """Writes the vocabulary and `more` tokens, and returns its tokenizer."""
    path = folder / "vocab.txt"
    path.write_text("\n".join([*tiny.VOCAB, *more]) + "\n")
    return Tokenizer(str(path), never_split=never_split)


def write(folder):
    """Writes `tuned` and `pretrained` to a directory and returns it."""
    config = BertConfig.from_dict(CONFIG)
    task = TextTask(task_type="classification", labels=("no", "yes"))
    tiny.save(folder / "tuned", task.build_model(config), CONFIG, 5)
    described = {**task.to_json(), "max_seq_length": 16, "do_lower_case": True}
    (folder / "tuned" / "task.json").write_text(json.dumps(described))
    tiny.save(folder / "pretrained", PretrainingModel(config), CONFIG, 5)
    return folder
