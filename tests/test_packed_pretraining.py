"""Packed rows, from text to a trained model."""

import json

import pytest
import tensorflow as tf
from support import pretraining_records, pretraining_runs, recorded

from official_bert.errors import InputError

SIZES = {"max_seq_length": 64, "max_predictions_per_seq": 12}
CONFIG = pretraining_runs.CONFIG | {
    "vocab_size": 14,
    "max_position_embeddings": 64,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A directory with a config, and the same text packed and not packed."""
    document = "the cat sat on the mat .\nit was warm .\nthe cat sat .\n\n"
    folder = pretraining_records.write_inputs(
        tmp_path_factory.mktemp("packed"),
        document * 6,
        ["the", "cat", "sat", "on", "mat", ".", "it", "was", "warm"],
    )
    (folder / "bert_config.json").write_text(json.dumps(CONFIG))
    for name, is_packed in (("packed", True), ("plain", False)):
        pretraining_records.make(
            folder, folder / name, pack_sequences=is_packed, **SIZES
        )
    return folder


def read(path):
    dataset = tf.data.TFRecordDataset(str(path)).as_numpy_iterator()
    return list(map(recorded.decode, dataset))


def instances(row):
    """Yields token ids, masked positions and label of each instance."""
    for number, start in enumerate(row["next_sentence_positions"], 1):
        size = row["input_mask"].count(number)
        predictions = zip(
            row["masked_lm_positions"],
            row["masked_lm_ids"],
            row["masked_lm_weights"],
            strict=True,
        )
        masked = [
            (position - start, label)
            for position, label, weight in predictions
            if weight and start <= position < start + size
        ]
        label = row["next_sentence_labels"][number - 1]
        yield row["input_ids"][start : start + size], masked, label


def test_packing_keeps_all_instances_in_fewer_rows(folder):
    packed, plain = read(folder / "packed"), read(folder / "plain")
    assert len(packed) < len(plain) / 2
    unpacked = [i for row in packed for i in instances(row) if i[0]]
    expected = [
        next(instances({**row, "next_sentence_positions": [0]}))
        for row in plain
    ]
    assert sorted(unpacked) == sorted(expected)
    weights = [sum(row["next_sentence_weights"]) for row in packed]
    assert sum(weights) == len(unpacked)


def run(folder, tmp_path, records, **changes):
    settings = {
        "input_file": str(folder / records),
        **SIZES,
        "do_train": True,
        "pack_sequences": True,
    }
    return pretraining_runs.run(folder, tmp_path, **(settings | changes))


def test_packed_records_train_and_evaluate_both_tasks(folder, tmp_path):
    output = run(folder, tmp_path, "packed", do_eval=True)
    found = pretraining_runs.results(output)
    assert {"masked_lm_loss", "next_sentence_accuracy"} <= set(found)


@pytest.mark.parametrize(
    ("records", "changes", "message"),
    [
        ("packed", {"pack_sequences": False}, "--pack_sequences"),
        ("plain", {}, "--pack_sequences"),
        ("packed", {"max_sequences_per_row": 8}, "--max_sequences_per_row=16"),
        ("packed", {"max_seq_length": 32}, "--max_seq_length=64"),
    ],
)
def test_records_that_do_not_fit_the_flags_are_an_error(
    folder, tmp_path, records, changes, message
):
    with pytest.raises(InputError, match=message):
        run(folder, tmp_path, records, **changes)
    assert not list(tmp_path.glob("model.ckpt*"))
