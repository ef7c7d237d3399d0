"""Instances and records equal those of the 2018 release, draw by draw."""

import gzip
import hashlib
import json
import random

import pytest
import tensorflow as tf
from support import recorded

from official_bert.options import CreatePretrainingData
from official_bert.pretraining_data import corpus, serial
from official_bert.pretraining_data.recipe import Recipe

CONFIGURATIONS = [
    "large",
    "large_wwm",
    "onedoc",
    "prob0",
    "sample",
    "sample_2out",
    "sample_short",
    "sample_wwm",
    "twofiles",
    "wwm_tight",
]


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_equals_the_original(golden, shared_data, tmp_path, name):
    folder = golden / "pretraining_data"
    told = json.loads((folder / name / "stats.json").read_text())
    config = told["config"]
    inputs = [str(folder / file) for file in config.pop("input_files")]
    outputs = [
        str(tmp_path / f"out{i}") for i in range(config.pop("n_output_files"))
    ]
    config.pop("name")
    recipe = Recipe(
        CreatePretrainingData(
            input_file=",".join(inputs),
            output_file=",".join(outputs),
            vocab_file=str(shared_data / "vocab" / "uncased.txt"),
            **config,
        )
    )
    rng = random.Random(recipe.options.random_seed)

    text = serial.read(recipe, inputs)
    instances = serial.create_instances(text, recipe, rng)
    serial.write(instances, text, recipe)

    with gzip.open(folder / name / "instances.jsonl.gz", "rt") as lines:
        expected = [json.loads(line) for line in lines]
    assert len(instances) == len(expected)
    for instance, wanted in zip(instances, expected, strict=True):
        assert wanted == spelled_out(instance, text, recipe)
    assert rng.random() == told["stats"]["rng_next_random_after_run"]
    assert digest(outputs) == told["stats"]["tfrecord_parsed_sha256"]


def spelled_out(instance: serial.Instance, text: corpus.Corpus, recipe: Recipe):
    """Returns an instance as the 2018 release has it in memory."""
    (start_a, end_a, start_b, end_b, is_random_next), masks = instance
    spell = recipe.tokenizer.convert_ids_to_tokens
    tokens_a = spell(text.ids[start_a:end_a].tolist())
    tokens_b = spell(text.ids[start_b:end_b].tolist())
    tokens = ["[CLS]", *tokens_a, "[SEP]", *tokens_b, "[SEP]"]
    labels = [tokens[position] for position in masks.positions]
    for position, replacement in zip(*masks, strict=True):
        if replacement >= 0:
            [tokens[position]] = spell([replacement])
    segment_ids = [0] * (len(tokens_a) + 2) + [1] * (len(tokens_b) + 1)
    return [tokens, segment_ids, masks.positions, labels, is_random_next]


def digest(names):
    """Returns the recorded kind of checksum: of parsed records, in order."""
    sha = hashlib.sha256()
    for name in names:
        for serialized in tf.data.TFRecordDataset(name):
            parsed = recorded.decode(serialized.numpy())
            sha.update(json.dumps(parsed, sort_keys=True).encode())
    return sha.hexdigest()
