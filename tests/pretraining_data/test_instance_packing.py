import random

import numpy as np
import pytest
from support.pretraining_records import packing

from official_bert.inputs import schemas
from official_bert.pretraining_data import instance_packing


def test_two_instances_are_packed_into_one_row():
    columns = {
        "input_ids": [[1, 2, 3, 4, 5, 6], [51, 52, 53, 54, 55, 0]],
        "input_mask": [[1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 1, 0]],
        "segment_ids": [[0, 0, 0, 0, 1, 1], [0, 0, 0, 1, 1, 0]],
        "masked_lm_positions": [[1, 2, 0], [1, 0, 0]],
        "masked_lm_ids": [[7, 8, 0], [9, 0, 0]],
        "masked_lm_weights": [[1.0, 1.0, 0.0], [1.0, 0.0, 0.0]],
        "next_sentence_labels": [[1], [0]],
    }
    packed = instance_packing.pack(
        {name: np.array(rows) for name, rows in columns.items()},
        packing(13, 4, 3),
    )
    assert {name: column.tolist() for name, column in packed.items()} == {
        "input_ids": [[1, 2, 3, 4, 5, 6, 51, 52, 53, 54, 55, 0, 0]],
        "input_mask": [[1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 0, 0]],
        "segment_ids": [[0, 0, 0, 0, 1, 1, 0, 0, 0, 1, 1, 0, 0]],
        "masked_lm_positions": [[1, 2, 7, 0]],
        "masked_lm_ids": [[7, 8, 9, 0]],
        "masked_lm_weights": [[1, 1, 1, 0]],
        "next_sentence_labels": [[1, 0, 0]],
        "next_sentence_positions": [[0, 6, 0]],
        "next_sentence_weights": [[1, 1, 0]],
    }
    single = schemas.pretraining_schema(13, 4)
    for name, feature in schemas.packed_schema(single, 3).items():
        assert packed[name].shape == (1, feature.length)
        assert (packed[name].dtype == np.float32) == feature.is_float


@pytest.mark.parametrize(
    ("lengths", "limits", "expected"),
    [
        ([10, 20, 8, 12, 10], packing(20, 9, 9), [[0, 4], [1], [2, 3]]),
        # The 5 joins the 14, because it leaves less room there than at the 12.
        ([12, 5, 14], packing(20, 9, 9), [[0], [1, 2]]),
        # One masked token each.
        ([5, 5, 5, 5], packing(20, 2, 9), [[0, 1], [2, 3]]),
        ([5, 5, 5, 5], packing(20, 9, 3), [[0, 1, 2], [3]]),
    ],
    ids=["full rows", "best fit", "predictions", "sequences"],
)
def test_instances_go_into_the_fullest_row_with_room(lengths, limits, expected):
    counts = [1] * len(lengths)
    assert instance_packing.best_fit(lengths, counts, limits) == expected


@pytest.mark.parametrize(
    "limits", [packing(512, 77, 16), packing(512, 80, 2), packing(512, 80, 16)]
)
def test_every_instance_is_in_exactly_one_row_within_the_limits(limits):
    draw = random.Random(0)  # As in long articles, 75% of them are full.
    lengths = [
        512 if draw.random() < 0.75 else draw.randint(5, 511)
        for _ in range(3000)
    ]
    counts = [max(1, round(0.15 * length)) for length in lengths]
    rows = instance_packing.best_fit(lengths, counts, limits)
    assert sorted(i for row in rows for i in row) == list(range(3000))
    for row in rows:
        assert sum(lengths[i] for i in row) <= 512
        assert sum(counts[i] for i in row) <= limits.max_predictions_per_seq
        assert len(row) <= limits.max_sequences_per_row
    assert rows == sorted(rows)
    # Less than one percent is padding if the limits allow it.
    if limits == packing(512, 80, 16):
        assert sum(lengths) > 0.99 * 512 * len(rows)


def test_batches_are_packed_before_all_of_them_are_read():
    names = schemas.pretraining_schema(16, 2)
    taken = []

    def endless():
        while True:
            taken.append({n: np.ones((4, f.length)) for n, f in names.items()})
            yield taken[-1]

    batches = instance_packing.pack_batches(endless(), packing(32, 4, 2))
    for number in range(1, 40):
        batch = next(batches)
        assert len(batch["input_ids"]) == 4
        assert len(taken) <= 2 * number + 8
