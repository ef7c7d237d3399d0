import datetime
import decimal
import json
from types import SimpleNamespace

import numpy as np
import polars
import pytest
import tensorflow as tf
from support.frames import NotAvailable, PandasColumn, PandasFrame

from official_bert.errors import InputError
from official_bert.io import frames

NAN = float("nan")
DAY = datetime.date(2018, 10, 11)


@pytest.mark.parametrize("kind", [polars.DataFrame, PandasFrame])
def test_rows_of_a_frame_are_dicts_of_python_values(kind):
    frame = kind({"text": ["a", None], "stars": [1.5, NAN], "day": [DAY, None]})
    assert frames.rows_of(frame, "df") == [
        {"text": "a", "stars": 1.5, "day": DAY},
        {"text": "", "stars": "", "day": ""},
    ]
    more = frames.with_columns(frame, {"label": ["x", "y"], "p": [0.5, 1.0]})
    assert frames.rows_of(more, "df")[1]["label"] == "y"
    assert [*more.columns] == ["text", "stars", "day", "label", "p"]
    assert [*frame.columns] == ["text", "stars", "day"]
    # Other values only determine the types of the columns.
    fewer = frames.with_columns(frame, {"label": ["x", "y", "z"]})
    assert [*fewer["label"]] == ["x", "y"]
    assert frames.is_column(frame["text"])
    assert not any(map(frames.is_column, (frame, ["a"], np.array(["a"]))))


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        (None, ""),
        (NAN, ""),
        (np.float32("nan"), ""),
        (np.datetime64("NaT"), ""),
        (decimal.Decimal("nan"), ""),
        (NotAvailable(), ""),
        (0, 0),
        (False, False),
        (np.int64(3), 3),
        (np.str_("a"), "a"),
        (np.array([0, 1]), [0, 1]),
        (np.array(["a", "b"]), ["a", "b"]),
        (polars.Series(["a", "b"]), ["a", "b"]),
        ({"b", "a"}, ["a", "b"]),
        ("é".encode(), "é"),
        ("é".encode("latin-1"), "\ufffd"),
        (tf.constant("é"), "é"),
        (tf.constant(2), 2),
        ([None], [None]),
    ],
)
def test_cells_become_python_values_and_missing_ones_empty(cell, expected):
    found = frames.plain(cell)
    assert found == expected
    assert type(found) is type(expected)


class Dataset(list):
    """The parts of `datasets.Dataset` that this project uses."""

    def __init__(self, rows):
        super().__init__(rows)
        labels = SimpleNamespace(names=["negative", "positive"])  # ClassLabel
        tags = SimpleNamespace(feature=SimpleNamespace(names=["O", "B-PER"]))
        self.features = {"text": object(), "label": labels, "tags": tags}


def test_ids_of_labels_in_a_dataset_become_names():
    rows = [
        {"text": 1, "label": 1, "tags": [0, 1]},
        {"text": "b", "label": np.int64(0), "tags": np.array([1])},
        {"text": "c", "label": -1, "tags": []},
        {"text": "d", "label": None, "tags": [0.0]},
        {"text": "e", "label": "positive", "tags": ["O"]},
    ]
    assert frames.rows_of(Dataset(rows), "data") == [
        {"text": 1, "label": "positive", "tags": ["O", "B-PER"]},
        {"text": "b", "label": "negative", "tags": ["B-PER"]},
        {"text": "c", "label": "", "tags": []},
        {"text": "d", "label": "", "tags": ["O"]},
        {"text": "e", "label": "positive", "tags": ["O"]},
    ]
    # A frame may have a column of this name.
    frame = PandasFrame({"features": [1]})
    frame.features = frame["features"]
    assert frames.rows_of(frame, "data") == [{"features": 1}]


def test_json_has_values_of_lists_and_texts_of_dates():
    cells = [["é".encode()], [np.int64(1)], {"a"}, DAY, decimal.Decimal("1.5")]
    found = json.loads(json.dumps(cells, default=frames.to_json))
    assert found == [["é"], [1], ["a"], "2018-10-11", "1.5"]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"text": ["a"]}, "`data` must be a pandas or polars DataFrame, or a"),
        (["a", "b"], r"list of dicts .*Received: \['a', 'b'\]"),
        ([{"text": "a"}, None], "list of dicts"),
        (5, "Received: 5"),
        (PandasColumn({0: "a"}), "list of dicts"),
    ],
)
def test_other_data_is_an_error(data, message):
    with pytest.raises(InputError, match=message):
        frames.rows_of(data, "data")


def test_columns_with_equal_names_are_an_error():
    frame = PandasFrame({0: ["a"], "0": ["b"]})
    with pytest.raises(InputError, match=r"`df` must have different .* 0, 0"):
        frames.rows_of(frame, "df")
