"""Packed rows, from text to a trained model."""

import json

import numpy as np
import pytest
from support import pretraining_records, pretraining_runs, recorded

from official_bert.errors import InputError

SIZES = {"max_seq_length": 64, "max_predictions_per_seq": 12}
WORDS = ["the", "cat", "sat", "on", "mat", ".", "it", "was", "warm"]
CONFIG = recorded.SMALL_CONFIG.to_dict() | {"max_position_embeddings": 64}


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


def test_packing_keeps_all_instances_in_fewer_rows(folder):
    packed = pretraining_records.parse(folder / "packed", 64, 12, packed=16)
    plain = pretraining_records.parse(folder / "plain", 64, 12)
    assert len(packed["input_ids"]) < len(plain["input_ids"]) / 2
    assert packed["next_sentence_weights"].sum() == len(plain["input_ids"])
    for name in ("input_ids", "masked_lm_ids"):
        # 0 is padding.
        found, expected = (
            np.sort(rows[name], None) for rows in (packed, plain)
        )
        np.testing.assert_array_equal(found[found > 0], expected[expected > 0])


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
