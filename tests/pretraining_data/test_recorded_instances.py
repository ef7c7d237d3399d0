"""Instances and records equal those of the 2018 release, draw by draw."""

import gzip
import hashlib
import json
import random

import pytest
import recorded
import tensorflow as tf

from official_bert.options import CreatePretrainingData
from official_bert.pretraining_data import runner
from official_bert.pretraining_data.documents import read_documents
from official_bert.pretraining_data.instances import create_instances
from official_bert.tokenization import BatchTokenizer

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


@pytest.fixture(scope="module")
def vocab_file(shared_data):
    return str(shared_data / "vocab" / "uncased.txt")


@pytest.fixture(scope="module")
def tokenizer(vocab_file):
    return BatchTokenizer(vocab_file, do_lower_case=True)


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_equals_the_original(golden, vocab_file, tokenizer, tmp_path, name):
    folder = golden / "pretraining_data"
    told = json.loads((folder / name / "stats.json").read_text())
    config = told["config"]
    inputs = [str(folder / file) for file in config.pop("input_files")]
    outputs = [
        str(tmp_path / f"out{i}") for i in range(config.pop("n_output_files"))
    ]
    config.pop("name")
    options = CreatePretrainingData(
        input_file=",".join(inputs),
        output_file=",".join(outputs),
        vocab_file=vocab_file,
        **config,
    )
    rng = random.Random(options.random_seed)

    documents = read_documents(inputs, tokenizer.tokenize)
    instances = create_instances(documents, list(tokenizer.vocab), options, rng)
    runner.write_instances(instances, tokenizer.vocab, options)

    with gzip.open(folder / name / "instances.jsonl.gz", "rt") as lines:
        expected = [json.loads(line) for line in lines]
    assert len(instances) == len(expected)
    for instance, wanted in zip(instances, expected, strict=True):
        assert wanted == [
            instance.tokens,
            instance.segment_ids,
            instance.masked_lm_positions,
            instance.masked_lm_labels,
            instance.is_random_next,
        ]
    assert rng.random() == told["stats"]["rng_next_random_after_run"]
    assert digest(outputs) == told["stats"]["tfrecord_parsed_sha256"]


def digest(names):
    """Returns the recorded kind of checksum: of parsed records, in order."""
    sha = hashlib.sha256()
    for name in names:
        for serialized in tf.data.TFRecordDataset(name):
            parsed = recorded.decode(serialized.numpy())
            sha.update(json.dumps(parsed, sort_keys=True).encode())
    return sha.hexdigest()
