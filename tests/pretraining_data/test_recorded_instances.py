"""Instances and records equal those of the original, draw by draw."""

import hashlib
import json
import random

import pytest
from support import recorded, recorded_texts

from official_bert.inputs import tfrecords
from official_bert.options import CreatePretrainingData
from official_bert.pretraining_data import generator, instance_records
from official_bert.pretraining_data.job import Job

CONFIGURATIONS = (
    "large large_wwm onedoc prob0 sample sample_2out sample_short sample_wwm "
    "twofiles wwm_tight"
)


@pytest.mark.parametrize("name", CONFIGURATIONS.split())
def test_instances_equal_the_original(golden, shared_data, tmp_path, name):
    directory = golden / "pretraining_data"
    recorded_run = json.loads((directory / name / "stats.json").read_text())
    config, stats = recorded_run["config"], recorded_run["stats"]
    inputs = [str(directory / file) for file in config.pop("input_files")]
    count = config.pop("n_output_files")
    outputs = [str(tmp_path / f"out{i}") for i in range(count)]
    del config["name"]
    options = CreatePretrainingData(
        input_file=",".join(inputs),
        output_file=",".join(outputs),
        vocab_file=str(shared_data / "vocab" / "uncased.txt"),
        **config,
    )
    job = Job(options)
    rng = random.Random(options.random_seed)

    text, summary = generator.read_corpus(job, inputs)
    instances = generator.create_instances(text, job, rng)
    batches = generator.feature_batches(instances, text, job)
    records = instance_records.encode(batches, job)
    instance_records.write(records, job, summary)

    expected = recorded_texts.lines(directory / name / "instances.jsonl.gz")
    for instance, values in zip(instances, expected, strict=True):
        assert as_recorded(instance, text, job) == values
    assert rng.random() == stats["rng_next_random_after_run"]
    assert digest(outputs) == stats["tfrecord_parsed_sha256"]


def as_recorded(instance, text, job):
    """Returns an instance in the form of the original implementation."""
    pair, positions, replacements = instance
    start_a, end_a, start_b, end_b, is_random_next = pair
    spell = job.tokenizer.convert_ids_to_tokens
    tokens_a = spell(text.ids[start_a:end_a].tolist())
    tokens_b = spell(text.ids[start_b:end_b].tolist())
    tokens = ["[CLS]", *tokens_a, "[SEP]", *tokens_b, "[SEP]"]
    labels = [tokens[position] for position in positions]
    for position, replacement in zip(positions, replacements, strict=True):
        if replacement >= 0:
            [tokens[position]] = spell([replacement])
    segment_ids = [0] * (len(tokens_a) + 2) + [1] * (len(tokens_b) + 1)
    return [tokens, segment_ids, positions, labels, is_random_next]


def digest(names):
    """Returns the recorded checksum, of the parsed records in order."""
    sha = hashlib.sha256()
    for name in names:
        for parsed in map(recorded.decode, tfrecords.read(name)):
            sha.update(json.dumps(parsed, sort_keys=True).encode())
    return sha.hexdigest()
