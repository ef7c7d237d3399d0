"""How pre-training records were created, above all their tokenizer.

A file beside the records describes it, `NAME.tokenizer.json`, because the
records are those of the original implementation::

    {"vocab_file": "/data/vocab.txt", "num_tokens": 4000,
     "tokenizer": {"vocabulary": "0123456789abcdef", "do_lower_case": true},
     "nsp": "next", "share_unknown": 0.0012, "num_bytes": 81920}

All files of a run must have the same `tokenizer`; a model that is trained from
scratch gets these settings. `vocabulary` is a hash of the tokens and their ids,
so line ends do not matter. If `num_bytes` is not the size of the records,
another program replaced them, and the file is ignored.
"""

import hashlib
import os
from collections.abc import Mapping, Sequence
from typing import Any

from official_bert.errors import InputError
from official_bert.io import files, json_files
from official_bert.tokenization.settings import TokenizerSettings
from official_bert.tokenization.vocab import num_tokens

SUFFIX = ".tokenizer.json"


def describe(
    vocab: Mapping[str, int], vocab_file: str, **settings: Any
) -> dict[str, Any]:
    """Returns the description of a vocabulary and of other settings."""
    ids = sorted((index, token) for token, index in vocab.items() if token)
    digest = hashlib.sha256(repr(ids).encode()).hexdigest()
    is_remote = files.is_remote(vocab_file)
    return {
        "vocab_file": vocab_file if is_remote else os.path.abspath(vocab_file),
        "num_tokens": num_tokens(vocab),
        "tokenizer": {"vocabulary": digest[:16], **settings},
    }


def write(
    name: str, description: Mapping[str, Any], share_unknown: float
) -> None:
    """Writes the description of a file of records, beside it."""
    content = {"share_unknown": share_unknown, "num_bytes": files.size(name)}
    json_files.write(name + SUFFIX, {**description, **content})


def read_all(names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Returns the descriptions of files of records, without missing ones.

    Raises `InputError` if files were tokenized in different ways.
    """
    found: dict[str, dict[str, Any]] = {}
    for name in names:
        content = json_files.load(name + SUFFIX).content
        if content.get("num_bytes") != files.size(name):
            continue
        found[name] = content
        first, *_ = found
        if content["tokenizer"] != found[first]["tokenizer"]:
            raise InputError(
                f"The files of records must have the same vocabulary and "
                f"casing. Received: {first}, created with "
                f"{text(found[first])}, and {name}, created with "
                f"{text(content)}. Create them with the same flags."
            )
    return found


def read_settings(names: Sequence[str]) -> TokenizerSettings | None:
    """Returns the tokenizer settings of records, if they are described."""
    for name, content in read_all(names).items():
        values = {**content["tokenizer"]}
        del values["vocabulary"]
        settings = json_files.JsonObject(name + SUFFIX, {"tokenizer": values})
        return settings.get("tokenizer", TokenizerSettings)
    return None


def text(description: Mapping[str, Any]) -> str:
    """Returns a description for messages."""
    settings = ", ".join(
        f"{name} {value}" for name, value in description["tokenizer"].items()
    )
    return (
        f"{description['vocab_file']} ({description['num_tokens']:,} tokens, "
        f"{settings})"
    )
