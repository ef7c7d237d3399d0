"""SST-2 files with a task that a tiny model learns, and runs on them."""

import json

import numpy as np

from official_bert.commands import run_classifier
from official_bert.options import RunClassifier
from support import SPECIAL, command_lines, recorded, write_vocab

WORDS = ["good", "fine", "nice", "bad", "poor", "sad", "film", "a", "the", "is"]
CONFIG = recorded.SMALL_CONFIG.to_dict() | {
    "vocab_size": 20,
    "hidden_size": 16,
    "intermediate_size": 32,
    "max_position_embeddings": 64,
}


def sentences(number, seed):
    """Yields sentences with one positive or negative word, and their label."""
    random = np.random.RandomState(seed)
    for _ in range(number):
        sentiment = random.randint(6)
        words = [WORDS[6 + i] for i in random.randint(0, 4, random.randint(24))]
        words.insert(random.randint(len(words) + 1), WORDS[sentiment])
        yield " ".join(words), int(sentiment < 3)


def write(folder, config=CONFIG):
    """Writes SST-2's files, a vocabulary and a config; returns `folder`."""
    write_vocab(folder, SPECIAL + WORDS)
    (folder / "bert_config.json").write_text(json.dumps(config))
    data = folder / "SST-2"
    data.mkdir()
    for split, number in (("train", 160), ("dev", 50)):
        rows = [f"{a}\t{b}" for a, b in sentences(number, number)]
        text = "\n".join(["sentence\tlabel", *rows]) + "\n"
        (data / f"{split}.tsv").write_text(text)
    rows = [f"{i}\t{a}" for i, (a, _) in enumerate(sentences(30, 30))]
    (data / "test.tsv").write_text("\n".join(["index\tsentence", *rows]))
    return folder


def flags(folder, output="out", **changes):
    """Returns {name: value} of a run on the files of `write`."""
    return {
        "task_name": "SST-2",
        "data_dir": str(folder / "SST-2"),
        **command_lines.files_of_run(folder, output),
        "max_seq_length": 32,
        "train_batch_size": 16,
        "num_train_epochs": 2.0,
        "learning_rate": 1e-2,
        "save_checkpoints_steps": 8,
        **changes,
    }


def run(folder, output="out", **changes):
    """Runs the command on the files; returns the output directory."""
    run_classifier.main(RunClassifier(**flags(folder, output, **changes)))
    return folder / output
