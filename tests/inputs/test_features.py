"""Packing one sequence or two."""

from official_bert.inputs import features


def test_pair():
    tokens = features.pack(["is", "this"], ["no"])
    assert tokens == ["[CLS]", "is", "this", "[SEP]", "no", "[SEP]"]
    assert features.segment_ids(len(tokens), 2) == [0, 0, 0, 0, 1, 1]


def test_single():
    tokens = features.pack(["dogs"])
    assert tokens == ["[CLS]", "dogs", "[SEP]"]
    assert features.segment_ids(len(tokens), 1) == [0, 0, 0]
