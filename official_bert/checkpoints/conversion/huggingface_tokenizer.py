"""The tokenizer of a Hugging Face folder: its vocabulary and casing."""

import os
from typing import Any

from absl import logging

from official_bert import files, json_files
from official_bert.checkpoints.conversion.model import Described
from official_bert.errors import InputError

CONFIG = "tokenizer_config.json"
_FAST = "tokenizer.json"
_ADDED = "added_tokens.json"
_VOCAB = "vocab.txt"


def read_vocab(folder: str) -> str | None:
    """Returns the text of a `vocab.txt`; today's folders have it inside JSON.

    Tokens that were added later stand behind all others.

    Raises:
        InputError: It is no WordPiece vocabulary, or its ids have gaps.
    """
    text = _read_learned(folder)
    if text is None:
        return None
    learned = text.removesuffix("\n")
    num_learned = len(learned.split("\n"))
    added = {
        number: token
        for token, number in _read_added(folder).items()
        if number >= num_learned
    }
    if sorted(added) != list(range(num_learned, num_learned + len(added))):
        raise InputError(
            f"{folder}: the ids of added tokens must go on where those of the "
            f"{num_learned} others end. Received: {sorted(added)}. Give a "
            "--vocab_file."
        )
    if not added:
        return text
    logging.warning(
        "%s: %d added tokens, such as %r, are pieces like others here: found "
        "in whole words only, after the text is cleaned.",
        folder,
        len(added),
        added[num_learned],
    )
    tokens = [added[number] for number in sorted(added)]
    return "".join(f"{piece}\n" for piece in (learned, *tokens))


def _read_added(folder: str) -> dict[str, int]:
    """Returns the tokens that a user added, {token: id}, and special ones."""
    path = os.path.join(folder, _ADDED)
    found = json_files.read_object(path) if os.path.exists(path) else {}
    path = os.path.join(folder, _FAST)
    if os.path.exists(path):
        for token in json_files.read_object(path).get("added_tokens") or []:
            token = token if isinstance(token, dict) else {}
            found[token.get("content", "")] = token.get("id")
    for token, number in found.items():
        if not isinstance(number, int):
            raise InputError(
                f"{folder}: an added token must have a number as its id. "
                f"Received: {number!r} of {token!r}. Save the tokenizer again."
            )
    return found


def _read_learned(folder: str) -> str | None:
    path = os.path.join(folder, _VOCAB)
    if os.path.exists(path):
        return files.read_text(path)
    path = os.path.join(folder, _FAST)
    if not os.path.exists(path):
        return None
    model = json_files.read_object(path).get("model") or {}
    vocab = model.get("vocab")
    if model.get("type", "WordPiece") != "WordPiece" or not isinstance(
        vocab, dict
    ):
        raise InputError(
            f"{path}: must be a WordPiece tokenizer, as BERT's. Received: "
            f"{model.get('type')!r}."
        )
    pieces = sorted(vocab, key=vocab.__getitem__)
    if [vocab[piece] for piece in pieces] != list(range(len(pieces))):
        raise InputError(
            f"{path}: the vocabulary's ids must be 0, 1, 2, ... without gaps, "
            "as the lines of a vocab.txt are. Give a --vocab_file."
        )
    return "".join(f"{piece}\n" for piece in pieces)


def read_casing(folder: str) -> bool | None:
    """Returns `do_lower_case`, and warns of what ours cannot do."""
    given = _normalizer(os.path.join(folder, _FAST))
    path = os.path.join(folder, CONFIG)
    if os.path.exists(path):
        given |= json_files.read_object(path)
    lower = given.get("do_lower_case")
    if not given:
        return None
    lower = True if lower is None else bool(lower)
    strips = given.get("strip_accents")
    if strips is not None and strips != lower:
        logging.warning(
            "%s: `strip_accents` is %s with `do_lower_case` %s. Here accents "
            "are dropped if and only if words are lower-cased: other pieces.",
            folder,
            strips,
            lower,
        )
    if given.get("tokenize_chinese_chars") is False:
        logging.warning(
            "%s: `tokenize_chinese_chars` is false. Here every Chinese "
            "character is a word: other pieces.",
            folder,
        )
    return lower


def _normalizer(path: str) -> dict[str, Any]:
    """Returns what `tokenizer.json` says, as tokenizer_config.json calls it."""
    if not os.path.exists(path):
        return {}
    given = json_files.read_object(path).get("normalizer") or {}
    names = {
        "do_lower_case": "lowercase",
        "strip_accents": "strip_accents",
        "tokenize_chinese_chars": "handle_chinese_chars",
    }
    return {ours: given[name] for ours, name in names.items() if name in given}


def write(described: Described, folder: str) -> None:
    """Writes `vocab.txt` and `tokenizer_config.json`."""
    assert described.vocab is not None
    files.write_text(os.path.join(folder, _VOCAB), described.vocab)
    config = {
        "tokenizer_class": "BertTokenizer",
        "do_lower_case": described.do_lower_case,
        "strip_accents": None,
        "tokenize_chinese_chars": True,
        "model_max_length": described.config.max_position_embeddings,
    }
    json_files.write(os.path.join(folder, CONFIG), config, sort_keys=True)
