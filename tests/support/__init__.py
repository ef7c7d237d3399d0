"""Helpers that several test files share."""

import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def write_vocab(directory, tokens):
    """Writes `vocab.txt` with one token per line; returns its path."""
    path = directory / "vocab.txt"
    path.write_text("".join(f"{token}\n" for token in tokens), "utf-8")
    return str(path)
