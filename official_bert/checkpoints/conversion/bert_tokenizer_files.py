"""The tokenizer files of a Hugging Face directory: vocabulary and casing."""

import os
from typing import Any

from absl import logging

from official_bert import files, json_files
from official_bert.checkpoints.conversion.model import Description
from official_bert.errors import InputError

CONFIG = "tokenizer_config.json"
_FAST = "tokenizer.json"
_ADDED = "added_tokens.json"
_VOCAB = "vocab.txt"

# Setting in CONFIG -> in the normalizer of `tokenizer.json`.
_NORMALIZER = {
    "do_lower_case": "lowercase",
    "strip_accents": "strip_accents",
    "tokenize_chinese_chars": "handle_chinese_chars",
}


def read_vocab(directory: str) -> str | None:
    """Returns the text of `vocab.txt`, or the same made of `tokenizer.json`.

    Tokens added later follow at the end.

    Raises:
        InputError: It is not a WordPiece vocabulary, or its ids have gaps.
    """
    text = _read_learned(directory)
    if text is None:
        return None
    learned = text.removesuffix("\n")
    num_learned = len(learned.split("\n"))
    added = {
        number: token
        for token, number in _read_added(directory).items()
        if number >= num_learned
    }
    if sorted(added) != list(range(num_learned, num_learned + len(added))):
        raise InputError(
            f"{directory}: the ids of added tokens must follow those of the "
            f"{num_learned} others. Received: {sorted(added)}. Pass "
            "--vocab_file."
        )
    if not added:
        return text
    logging.warning(
        "%s: %d added tokens, such as %r, are ordinary tokens here: matched "
        "inside words only, after text is normalized.",
        directory,
        len(added),
        added[num_learned],
    )
    tokens = [added[number] for number in sorted(added)]
    return "".join(f"{token}\n" for token in (learned, *tokens))


def _read_added(directory: str) -> dict[str, int]:
    """Returns {token: id} of added and special tokens."""
    found = _read_json(directory, _ADDED)
    for token in _read_json(directory, _FAST).get("added_tokens") or []:
        token = token if isinstance(token, dict) else {}
        found[token.get("content", "")] = token.get("id")
    for token, number in found.items():
        if not isinstance(number, int):
            raise InputError(
                f"{directory}: an added token must have a number as its id. "
                f"Received: {number!r} of {token!r}. Save the tokenizer again."
            )
    return found


def _read_learned(directory: str) -> str | None:
    path = os.path.join(directory, _VOCAB)
    if os.path.exists(path):
        return files.read_text(path)
    path = os.path.join(directory, _FAST)
    if not os.path.exists(path):
        return None
    model = _read_json(directory, _FAST).get("model") or {}
    kind, vocab = model.get("type", "WordPiece"), model.get("vocab")
    if kind != "WordPiece" or not isinstance(vocab, dict):
        raise InputError(
            f"{path}: must be a WordPiece tokenizer. Received: {kind!r}."
        )
    tokens = sorted(vocab, key=vocab.__getitem__)
    if [vocab[token] for token in tokens] != list(range(len(tokens))):
        raise InputError(
            f"{path}: the vocabulary's ids must be 0, 1, 2, ... without gaps, "
            "as the lines of vocab.txt. Pass --vocab_file."
        )
    return "".join(f"{token}\n" for token in tokens)


def read_casing(directory: str) -> bool | None:
    """Returns `do_lower_case`; warns of settings not supported here."""
    normalizer = _read_json(directory, _FAST).get("normalizer") or {}
    given = {
        name: normalizer[fast_name]
        for name, fast_name in _NORMALIZER.items()
        if fast_name in normalizer
    } | _read_json(directory, CONFIG)
    if not given:
        return None
    lower = given.get("do_lower_case")
    lower = True if lower is None else bool(lower)
    strips = given.get("strip_accents")
    if strips is not None and strips != lower:
        logging.warning(
            "%s: `strip_accents` is %s with `do_lower_case` %s. Here accents "
            "are stripped if and only if text is lower-cased: other tokens.",
            directory,
            strips,
            lower,
        )
    if given.get("tokenize_chinese_chars") is False:
        logging.warning(
            "%s: `tokenize_chinese_chars` is false. Here every Chinese "
            "character is a word: other tokens.",
            directory,
        )
    return lower


def _read_json(directory: str, name: str) -> dict[str, Any]:
    """Returns the content of a JSON file; {} if there is none."""
    path = os.path.join(directory, name)
    return json_files.read_object(path) if os.path.exists(path) else {}


def write(description: Description, directory: str) -> None:
    """Writes `vocab.txt` and `tokenizer_config.json`."""
    assert description.vocab is not None
    files.write_text(os.path.join(directory, _VOCAB), description.vocab)
    config = {
        "tokenizer_class": "BertTokenizer",
        "do_lower_case": description.do_lower_case,
        "strip_accents": None,
        "tokenize_chinese_chars": True,
        "model_max_length": description.config.max_position_embeddings,
    }
    json_files.write(os.path.join(directory, CONFIG), config, sort_keys=True)
