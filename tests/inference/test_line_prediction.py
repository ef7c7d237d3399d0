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
    stream = Parts(b"a\nb\n\n\xff", b"c\n", b"d", b"e", b"\nf")
    monkeypatch.setattr(sys, "stdin", types.SimpleNamespace(buffer=stream))
    options = types.SimpleNamespace(
        input_file="-", resolved_format="text", chunk_size=2, output_file=None
    )
    chunks = list(line_prediction.read_chunks(options, None))
    assert chunks == [
        [("<stdin>:1", "a"), ("<stdin>:2", "b")],
        [("<stdin>:4", "\udcffc")],
        [("<stdin>:5", "de")],
        [("<stdin>:6", "f")],
    ]
    [(where, line)] = chunks[1]
    with pytest.raises(InputError, match=r"<stdin>:4: .* the byte 0xff"):
        line_prediction.parse(line, where, "text")
