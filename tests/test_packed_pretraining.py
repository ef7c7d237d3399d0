"""Packed rows, from text to a trained model."""

import json

import numpy as np
import pytest
from support import pretraining_records, pretraining_runs

from official_bert.errors import InputError

SIZES = {"max_seq_length": 64, "max_predictions_per_seq": 12}
WORDS = ["the", "cat", "sat", "on", "mat", ".", "it", "was", "warm"]
CONFIG = pretraining_runs.CONFIG | {"max_position_embeddings": 64}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A directory with a config, and the same text packed and not packed."""
    document = "the cat sat on the mat .\nit was warm .\nthe cat sat .\n\n"
    folder = tmp_path_factory.mktemp("packed")
    pretraining_records.write_inputs(folder, document * 6, WORDS)
    (folder / "bert_config.json").write_text(json.dumps(CONFIG))
    for name, is_packed in (("packed", True), ("plain", False)):
        pretraining_records.make(
            folder, folder / name, pack_sequences=is_packed, **SIZES
        )
    return folder


def instances(rows):
    """Returns ids, masked positions and their labels of each, sorted."""
    found = []
    for row in range(len(rows["input_ids"])):
        numbers, ids = rows["input_mask"][row], rows["input_ids"][row]
        is_used = rows["masked_lm_weights"][row] > 0
        places = rows["masked_lm_positions"][row][is_used]
        labels = rows["masked_lm_ids"][row][is_used]
        for number in range(1, numbers.max() + 1):
            start = np.argmax(numbers == number)
            is_here = numbers[places] == number
            masked = places[is_here] - start, labels[is_here]
            parts = ids[numbers == number], *masked
            found.append([part.tolist() for part in parts])
    return sorted(found)


def test_packing_keeps_all_instances_in_fewer_rows(folder):
    packed = pretraining_records.parse(folder / "packed", 64, 12, packed=16)
    plain = pretraining_records.parse(folder / "plain", 64, 12)
    assert len(packed["input_ids"]) < len(plain["input_ids"]) / 2
    assert packed["next_sentence_weights"].sum() == len(plain["input_ids"])
    assert instances(packed) == instances(plain)


def run(folder, tmp_path, records, **changes):
    settings = {"do_train": True, "pack_sequences": True} | SIZES | changes
    input_file = str(folder / records)
    return pretraining_runs.run(
        folder, tmp_path, input_file=input_file, **settings
    )


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
