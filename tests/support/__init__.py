"""Helpers that several test files share."""

import json
import pathlib
import tarfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def unpack(archive, directory):
    """Unpacks a tar file; Python before 3.11.4 has no filters."""
    options = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
    with tarfile.open(archive) as file:
        file.extractall(directory, **options)


def write_vocab(directory, tokens):
    """Writes `vocab.txt` with one token per line; returns its path."""
    path = directory / "vocab.txt"
    path.write_text("".join(f"{token}\n" for token in tokens), "utf-8")
    return str(path)


def write_json(path, content):
    """Writes a file; makes its directory."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content))


def write_json_lines(path, rows):
    """Writes a line per row."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
