"""What is read at once of a stream that others still write."""

import sys
import types

import pytest

from official_bert.errors import InputError
from official_bert.inference import line_prediction


class Parts:
    """A stream of which so much is there whenever somebody reads."""

    def __init__(self, *parts):
        self.parts = [*parts, b""]

    def read1(self, size):
        return self.parts.pop(0)


def test_what_comes_together_is_read_together(monkeypatch):
    """But for what a chunk may hold; a part of a line waits for its rest."""
    stream = Parts(b"a\nb\n\nc", b"c\n", b"d", b"e", b"\nf")
    monkeypatch.setattr(sys, "stdin", types.SimpleNamespace(buffer=stream))
    assert list(line_prediction.read_chunks("-", 2, show_progress=False)) == [
        [("<stdin>:1", "a"), ("<stdin>:2", "b")],
        [("<stdin>:4", "cc")],
        [("<stdin>:5", "de")],
        [("<stdin>:6", "f")],
    ]


def test_a_line_that_is_no_text_does_not_end_the_others(monkeypatch):
    stream = Parts(b"a\n", b"\xff\n", b"b\n")
    monkeypatch.setattr(sys, "stdin", types.SimpleNamespace(buffer=stream))
    chunks = line_prediction.read_chunks("-", 2, show_progress=False)
    (first,), (wrong,), (last,) = chunks
    first.require_text()
    with pytest.raises(InputError, match=r"<stdin>:2: .* the byte 0xff"):
        wrong.require_text()
    assert last == ("<stdin>:3", "b")
