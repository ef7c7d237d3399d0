"""Pre-training runs of a tiny model on random records."""

import json

import numpy as np
import tensorflow as tf

from official_bert.commands import run_pretraining
from official_bert.inputs import schemas
from official_bert.options import RunPretraining
from support import record_files, recorded

CONFIG = recorded.SMALL_CONFIG.to_dict()
NO_DROPOUT = dict.fromkeys(
    ("hidden_dropout_prob", "attention_probs_dropout_prob"), 0.0
)
WITHOUT_DROPOUT = CONFIG | NO_DROPOUT
SCHEMA = schemas.pretraining_schema(10, 2)


def make_examples(number):
    """Returns [{feature: values}] with 1 or 2 masked tokens."""
    random = np.random.RandomState(0)
    return [
        {
            "input_ids": random.randint(0, 30, 10).tolist(),
            "input_mask": [1] * 10,
            "segment_ids": [0] * 5 + [1] * 5,
            "masked_lm_positions": [2, 7],
            "masked_lm_ids": random.randint(0, 30, 2).tolist(),
            "masked_lm_weights": [1.0, random.randint(2)],
            "next_sentence_labels": [random.randint(2)],
        }
        for _ in range(number)
    ]


def write(folder, config=CONFIG):
    """Writes a config and 40 records."""
    (folder / "bert_config.json").write_text(json.dumps(config))
    record_files.write(folder / "train.tfrecord", make_examples(40))
    return folder


def flags(folder, output="out", **changes):
    """Returns {name: value} of a run on the files of `write`."""
    return {
        "bert_config_file": str(folder / "bert_config.json"),
        "input_file": str(folder / "train.tfrecord"),
        "output_dir": str(folder / output),
        "max_seq_length": 10,
        "max_predictions_per_seq": 2,
        "train_batch_size": 8,
        "num_train_steps": 6,
        "num_warmup_steps": 2,
        "learning_rate": 1e-2,
        "save_checkpoints_steps": 4,
        "max_eval_steps": 5,
        **changes,
    }


def run(folder, output="out", **changes):
    """Runs the command; returns the output directory."""
    run_pretraining.main(RunPretraining(**flags(folder, output, **changes)))
    return folder / output


def results(output):
    """Returns {name: number} of `eval_results.txt`."""
    lines = (output / "eval_results.txt").read_text().splitlines()
    pairs = (line.split(" = ") for line in lines)
    return {name: float(value) for name, value in pairs}


def event_values(output):
    """Returns {(step, tag): value} of the one event file of a directory."""
    (path,) = output.glob("events.out.tfevents*")
    return {
        (event.step, value.tag): tf.make_ndarray(value.tensor).item()
        for event in tf.compat.v1.train.summary_iterator(str(path))
        for value in event.summary.value
    }
