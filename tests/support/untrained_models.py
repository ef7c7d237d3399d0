"""Run directories of a fine-tuned and a pre-trained model, not trained."""

import json

from official_bert import task_file
from official_bert.config import BertConfig
from official_bert.modeling.pretraining_model import PretrainingModel
from official_bert.tasks.text import TextTask
from official_bert.tokenization import Tokenizer
from support import tiny, write_vocab

CONFIG = {**tiny.CONFIG, "hidden_size": 8, "intermediate_size": 8}


def tokenizer(folder, *more, never_split=()):
    """Writes the vocabulary and `more` tokens, and returns its tokenizer."""
    vocab_file = write_vocab(folder, [*tiny.VOCAB, *more])
    return Tokenizer(vocab_file, never_split=never_split)


def finetuned(directory, task, config=CONFIG):
    """Writes the run directory of a task; returns its path as a string."""
    model = task.build_model(BertConfig.from_dict(config))
    tiny.save(directory, model, config, 5)
    described = task_file.describe(task.to_json(), 16, do_lower_case=True)
    (directory / "task.json").write_text(json.dumps(described))
    return str(directory)


def write(folder):
    """Writes `tuned` and `pretrained` to a directory and returns it."""
    task = TextTask(task_type="classification", labels=("no", "yes"))
    finetuned(folder / "tuned", task)
    model = PretrainingModel(BertConfig.from_dict(CONFIG))
    tiny.save(folder / "pretrained", model, CONFIG, 5)
    return folder
