"""What is read at once of a stream that others still write."""

import sys
import types

from official_bert.inference import lines


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
    assert list(lines.read_chunks("-", 2, show_progress=False)) == [
        [("<stdin>:1", "a"), ("<stdin>:2", "b")],
        [("<stdin>:4", "cc")],
        [("<stdin>:5", "de")],
        [("<stdin>:6", "f")],
    ]
