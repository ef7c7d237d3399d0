"""The files of a tokenizer beside the weights, as transformers names them."""

import os

from absl import logging

from official_bert.io import files, json_files

VOCAB = "vocab.txt"
CONFIG = "tokenizer_config.json"
FAST = "tokenizer.json"

# {setting in `tokenizer_config.json`: in the normalizer of `tokenizer.json`}.
_NORMALIZER = {
    "do_lower_case": "lowercase",
    "strip_accents": "strip_accents",
    "tokenize_chinese_chars": "handle_chinese_chars",
}


def read_casing(directory: str) -> bool | None:
    """Returns `do_lower_case`, by default true; None if there are no settings.

    Settings in `tokenizer_config.json` override those in `tokenizer.json`.
    Warns of settings that are not supported. Raises `InputError` for settings
    that are neither true nor false.
    """
    fast_path = os.path.join(directory, FAST)
    path = os.path.join(directory, CONFIG)
    config = json_files.read_if_exists(path)
    fast = json_files.read_if_exists(fast_path)
    normalizer = json_files.get(fast, "normalizer", dict | None, fast_path)
    settings = {}
    for name, fast_name in _NORMALIZER.items():
        if name in config:
            settings[name] = json_files.get(config, name, bool | None, path)
        elif normalizer and fast_name in normalizer:
            settings[name] = json_files.get(
                normalizer, fast_name, bool | None, fast_path
            )
    if not settings and not config:
        return None
    lower: bool = settings.get("do_lower_case") is not False
    strips = settings.get("strip_accents")
    if strips is not None:
        warn_of_accents(directory, strips, "do_lower_case", lower)
    if settings.get("tokenize_chinese_chars") is False:
        logging.warning(
            f"{directory}: `tokenize_chinese_chars` is false. In this "
            "project, every Chinese character is a word, so some tokens will "
            "differ.",
        )
    return lower


def warn_of_accents(
    where: str, strip_accents: bool, setting: str, lower: bool
) -> None:
    """Warns of a tokenizer whose `strip_accents` has no counterpart here."""
    if strip_accents != lower:
        logging.warning(
            f"{where}: `strip_accents` is {strip_accents} with `{setting}` "
            f"{lower}. This project strips accents if and only if it "
            "lower-cases text, so some tokens will differ.",
        )


def write(
    directory: str, vocab: str | None, do_lower_case: bool | None, length: int
) -> None:
    """Writes the vocabulary and the casing of a model of `length` positions.

    Nothing is written without a vocabulary.
    """
    if vocab is None:
        return
    files.write_text(os.path.join(directory, VOCAB), vocab)
    config = {
        "tokenizer_class": "BertTokenizer",
        "do_lower_case": do_lower_case,
        "strip_accents": None,
        "tokenize_chinese_chars": True,
        "model_max_length": length,
    }
    json_files.write(os.path.join(directory, CONFIG), config, sort_keys=True)
