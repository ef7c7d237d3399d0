"""Standard input is read in chunks as it arrives."""

import sys
import types

import pytest

from official_bert.errors import InputError
from official_bert.inference import line_prediction


class Parts:
    """A stream that returns one part per read."""

    def __init__(self, *parts):
        self.parts = [*parts, b""]

    def read1(self, size):
        return self.parts.pop(0)


def test_lines_that_arrive_together_form_chunks(monkeypatch):
    stream = Parts(b"a\nb\n\nc", b"c\n", b"d", b"e", b"\nf")
    monkeypatch.setattr(sys, "stdin", types.SimpleNamespace(buffer=stream))
    assert list(line_prediction.read_chunks("-", 2, show_progress=False)) == [
        [("<stdin>:1", "a"), ("<stdin>:2", "b")],
        [("<stdin>:4", "cc")],
        [("<stdin>:5", "de")],
        [("<stdin>:6", "f")],
    ]


def test_line_that_is_not_utf8_does_not_affect_the_others(monkeypatch):
    stream = Parts(b"a\n", b"\xff\n", b"b\n")
    monkeypatch.setattr(sys, "stdin", types.SimpleNamespace(buffer=stream))
    chunks = line_prediction.read_chunks("-", 2, show_progress=False)
    _, (wrong,), (last,) = chunks
    with pytest.raises(InputError, match=r"<stdin>:2: .* the byte 0xff"):
        line_prediction.parse(wrong, "text")
    assert last == ("<stdin>:3", "b")
