"""The files of a tokenizer beside the weights, as transformers names them.

In the directories that this project writes, except those for Hugging Face,
`vocab.txt` includes the added tokens. `tokenizer_config.json` then has the key
`num_wordpieces`.
"""

import dataclasses
import itertools
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from absl import logging

from official_bert.errors import InputError, log_once, quoted
from official_bert.io import files, json_files
from official_bert.io.json_files import JsonObject
from official_bert.runs import file_names
from official_bert.tokenization.settings import AddedToken, TokenizerSettings
from official_bert.tokenization.vocab import SPECIAL_TOKENS

CONFIG = "tokenizer_config.json"
FAST = "tokenizer.json"
_ADDED, _SPECIAL = "added_tokens.json", "special_tokens_map.json"

# All files that this module reads, except config.json.
NAMES = (file_names.VOCAB, CONFIG, FAST, _ADDED, _SPECIAL)

# As in the original implementation, texts do not contain these tokens: "[MASK]"
# is split into "[", "MASK" and "]". Our files list those that are kept whole.
_OF_BERT, _KEPT = {*SPECIAL_TOKENS}, "kept_special_tokens"

# {setting in `tokenizer_config.json`: in the normalizer of `tokenizer.json`}.
_NORMALIZER = {
    "do_lower_case": "lowercase",
    "strip_accents": "strip_accents",
    "tokenize_chinese_chars": "handle_chinese_chars",
}

# {setting: its values in BERT's tokenizer}; "a.b" is the key b of the object a.
# Other values change token ids. Missing settings are None.
_CLASS = {
    "tokenizer_class": [
        *("BertTokenizer", "BertTokenizerFast", "BertTokenizerLegacy", None),
        *("DistilBertTokenizer", "DistilBertTokenizerFast"),
        *("ElectraTokenizer", "ElectraTokenizerFast"),
    ]
}
_FIXED: dict[str, Sequence[Any]] = {
    "word_tokenizer_type": ["basic", None],
    "subword_tokenizer_type": ["wordpiece", None],
    "do_basic_tokenize": [True, None],
    "do_word_tokenize": [True, None],
    "do_subword_tokenize": [True, None],
    "never_split": [[], None],
    "unk_token": ["[UNK]", None],
    "cls_token": ["[CLS]", None],
    "sep_token": ["[SEP]", None],
    "mask_token": ["[MASK]", None],
}
_FIXED_FAST: dict[str, Sequence[Any]] = {
    "model.type": ["WordPiece", None],
    "model.unk_token": ["[UNK]", None],
    "model.continuing_subword_prefix": ["##", None],
    "model.max_input_chars_per_word": [100, 200, None],
    "normalizer.type": ["BertNormalizer"],
    "normalizer.clean_text": [True, None],
    "pre_tokenizer.type": ["BertPreTokenizer"],
}

# The keys of added tokens that are special, in transformers 4 and 5.
_SPECIAL_KEYS = ("additional_special_tokens", "extra_special_tokens")

# The fields of `AddedToken` besides its content.
_FLAGS = {"single_word", "lstrip", "rstrip", "normalized", "special"}

# These classes do what `tokenizer.json` says.
_ANY_CLASS = ("PreTrainedTokenizerFast", "TokenizersBackend")

# BERT's sequences of two texts in `tokenizer.json`: [CLS] A [SEP] B [SEP].
_PAIR = [
    {kind: {"id": name, "type_id": segment}}
    for kind, name, segment in (
        ("SpecialToken", "[CLS]", 0),
        ("Sequence", "A", 0),
        ("SpecialToken", "[SEP]", 0),
        ("Sequence", "B", 1),
        ("SpecialToken", "[SEP]", 1),
    )
]

# In transformers 5, the tokenizers of these classes return no segments, unless
# `model_input_names` has them.
_WITHOUT_SEGMENTS = (
    *_ANY_CLASS,
    *("DistilBertTokenizer", "DistilBertTokenizerFast"),
)


def read(directory: str) -> TokenizerSettings:
    """Returns the settings in the files of a directory, or the defaults.

    Settings in `tokenizer_config.json` override those in `tokenizer.json`.
    Raises `InputError` for damaged files, and for tokenizers other than BERT's.
    """
    return _read(directory)[0]


def read_with_vocab(directory: str) -> tuple[str | None, TokenizerSettings]:
    """Returns the vocabulary and the settings in a Hugging Face directory.

    The vocabulary is `vocab.txt`, or the same text from `tokenizer.json`, with
    the added tokens at the end; None if there is neither file. Raises
    `InputError` as `read` does, if ids have gaps, and if the files differ.
    """
    settings, ids = _read(directory)
    path = os.path.join(directory, file_names.VOCAB)
    fast = json_files.load(directory, FAST)
    if files.exists(path):
        text = files.read_text(path)
        _require_same_tokens(path, text, fast)
    elif fast.content:
        text = "\n".join([*_learned_tokens(fast), ""])
    else:
        return None, settings
    learned = text.removesuffix("\n")
    first = learned.count("\n") + 1
    added = {token: number for token, number in ids.items() if number >= first}
    if not added:
        return text, settings
    lines = _in_order(added, first, f"{directory}: the ids of added tokens")
    settings = dataclasses.replace(settings, num_wordpieces=first)
    return "\n".join([learned, *lines, ""]), settings


def write(
    directory: str,
    vocab: str | None,
    settings: TokenizerSettings,
    length: int | None = None,
) -> None:
    """Writes the vocabulary and the settings of a model of `length` positions.

    Nothing is written without a vocabulary.
    """
    if vocab is not None:
        config = config_text(vocab, settings, length)
        files.write_texts(directory, {file_names.VOCAB: vocab, CONFIG: config})


def config_text(
    vocab: str, settings: TokenizerSettings, length: int | None = None
) -> str:
    """Returns the content of `tokenizer_config.json`."""
    tokens = tokens_of(vocab)
    settings.require_in(tokens, "vocab.txt")
    ids = {token: number for number, token in enumerate(tokens)}
    config = {
        "tokenizer_class": "BertTokenizer",
        "do_lower_case": settings.do_lower_case,
        "strip_accents": settings.strip_accents,
        "tokenize_chinese_chars": settings.tokenize_chinese_chars,
        "model_max_length": length,
        "added_tokens_decoder": {
            ids[token.content]: dataclasses.asdict(token)
            for token in settings.added_tokens
        },
        "num_wordpieces": settings.num_wordpieces,
        _KEPT: sorted(
            _OF_BERT & {token.content for token in settings.added_tokens}
        ),
    }
    written = {k: v for k, v in config.items() if v or k in _NORMALIZER}
    return json_files.to_text(written, sort_keys=True)


def tokens_of(vocab: str) -> list[str]:
    """Returns the tokens in the text of a vocabulary, in order of their ids."""
    return [line.strip() for line in vocab.removesuffix("\n").split("\n")]


def special_tokens(vocab: str) -> tuple[str, ...]:
    """Returns BERT's own tokens in the text of a vocabulary.

    In transformers, texts may contain them, such as "title [SEP] text".
    """
    return tuple(sorted(_OF_BERT.intersection(tokens_of(vocab))))


def require_values(
    settings: JsonObject, fixed: Mapping[str, Sequence[Any]]
) -> None:
    """Raises `InputError` if a setting is not as in BERT's tokenizer."""
    if not settings.content:  # There is no such file.
        return
    for name, allowed in fixed.items():
        value: Any = settings.content
        for key in name.split("."):
            value = value.get(key) if isinstance(value, dict) else None
        if isinstance(value, dict):  # An `AddedToken`.
            value = value.get("content")
        if value not in allowed:
            raise InputError(
                f"{settings.path}: `{name}` must be {json.dumps(allowed[0])}, "
                f"as in BERT's tokenizer. Received: {json.dumps(value)}. "
                "Other tokenizers are not supported. Choose another model."
            )


def _read(directory: str) -> tuple[TokenizerSettings, dict[str, int]]:
    """Returns the settings, and the ids that the files give to tokens."""
    config, fast, special = (
        json_files.load(directory, name) for name in (CONFIG, FAST, _SPECIAL)
    )
    named = config
    if not config.content.get("tokenizer_class"):
        named = json_files.load(directory, "config.json")
    class_name = named.content.get("tokenizer_class")
    if fast.content and class_name in _ANY_CLASS:
        _require_sequences(fast)
    else:
        require_values(named, _CLASS)
    require_values(config, _FIXED)
    require_values(special, _FIXED)
    require_values(fast, _FIXED_FAST)
    normalizer = fast.nested("normalizer")
    lower, strips, has_chinese_words = (
        config.get(name, bool | None)
        if name in config.content
        else normalizer.get(fast_name, bool | None)
        for name, fast_name in _NORMALIZER.items()
    )
    if lower is None and (config.content or normalizer.content):
        lower = True  # The default of transformers.
    _warn_of_other_inputs(config, class_name)
    entries = _described_tokens(directory, config, fast, special)
    kept = config.get(_KEPT, tuple[str, ...] | None) or ()
    tokens, ids = _added_tokens(entries, directory, kept)
    limit = config.get("num_wordpieces", int | None)
    settings = TokenizerSettings(
        lower, strips, has_chinese_words is not False, tokens, limit
    )
    return settings, ids


def _warn_of_other_inputs(config: JsonObject, class_name: Any) -> None:
    """Warns if transformers would truncate or mark texts differently."""
    if config.content.get("truncation_side") == "left":
        text = "`truncation_side` is left, but texts are truncated at their end"
        log_once(logging.WARNING, f"{config.path}: {text}")
    inputs = config.get("model_input_names", tuple[str, ...] | None)
    if inputs is None and class_name not in _WITHOUT_SEGMENTS:
        inputs = ("token_type_ids",)
    if "token_type_ids" not in (inputs or ()):
        text = "the second text of a pair has the segment 0 in transformers"
        log_once(logging.WARNING, f"{config.path}: {text}, and 1 here")


def _require_sequences(fast: JsonObject) -> None:
    """Raises `InputError` unless [CLS] and [SEP] are added as in BERT."""
    content = fast.nested("post_processor").content
    sequences = [content.get("single"), content.get("pair")]
    is_bert = content.get("type") == "BertProcessing"
    if not is_bert and sequences != [_PAIR[:3], _PAIR]:
        raise InputError(
            f"{fast.path}: `post_processor` must add [CLS] and [SEP] as BERT's "
            f"tokenizer does. Received: {quoted(content)}. Other tokenizers "
            "are not supported. Choose another model."
        )


def _described_tokens(
    directory: str, config: JsonObject, fast: JsonObject, special: JsonObject
) -> Iterator[dict[str, Any]]:
    """Yields added tokens as in `tokenizer.json`; the last one counts."""
    legacy = json_files.load(directory, _ADDED)
    listed: list[Any] = []
    for file, key in itertools.product((special, config), _SPECIAL_KEYS):
        is_dict = isinstance(file.content.get(key), dict)
        found = file.get(key, dict if is_dict else list | None)
        listed += found.values() if is_dict else found or ()
    names = [t.get("content") if isinstance(t, dict) else t for t in listed]
    for name in [*names, *legacy.content]:
        number = legacy.content.get(str(name))
        yield {"content": name, "special": name in names, "id": number}
    yield from fast.get("added_tokens", tuple[dict, ...] | None) or ()
    decoder = config.nested("added_tokens_decoder")
    for key in decoder.content:
        entry = decoder.get(key, dict)
        yield {**entry, "id": int(key) if key.isdecimal() else key}


def _added_tokens(
    entries: Iterable[dict[str, Any]], directory: str, kept: Sequence[str]
) -> tuple[tuple[AddedToken, ...], dict[str, int]]:
    """Returns the added tokens, and the ids of all tokens in `entries`.

    Of BERT's own, only those in `kept` are added tokens.
    """
    tokens: dict[str, AddedToken] = {}
    ids: dict[str, int] = {}
    for content in entries:
        entry = JsonObject(f"{directory}: an added token", content)
        name = entry.get("content", str)
        if content.get("id") is not None:
            ids[name] = entry.get("id", json_files.Amount)
        flags = {n: entry.get(n, bool) for n in content.keys() & _FLAGS}
        # The default of transformers.
        flags.setdefault("normalized", not flags.get("special"))
        tokens[name] = AddedToken(name, **flags)
    names = tokens.keys() - _OF_BERT.difference(kept)
    return tuple(tokens[name] for name in sorted(names)), ids


def _require_same_tokens(path: str, vocab: str, fast: JsonObject) -> None:
    """Raises `InputError` if `vocab.txt` and `tokenizer.json` differ.

    After a change of one file, transformers reads `tokenizer.json`.
    """
    lines = tokens_of(vocab)
    tokens = fast.nested("model").get("vocab", dict | None) or {}
    for token, number in tokens.items():
        is_line = type(number) is int and 0 <= number < len(lines)
        if is_line and lines[number] != token.strip():
            raise InputError(
                f"{path}:{number + 1}: must be {token!r}, as in {fast.path}. "
                f"Received: {lines[number]!r}. Remove the file that is not the "
                "model's. (transformers reads tokenizer.json.)"
            )


def _learned_tokens(fast: JsonObject) -> list[str]:
    """Returns the tokens of the model in `tokenizer.json`."""
    vocab = JsonObject(fast.path, fast.nested("model").get("vocab", dict))
    ids = {
        token: vocab.get(token, json_files.Amount) for token in vocab.content
    }
    return _in_order(ids, 0, f"{fast.path}: the ids of the vocabulary")


def _in_order(ids: dict[str, int], first: int, where: str) -> list[str]:
    """Returns tokens in the order of their ids, as lines of `vocab.txt`.

    Raises `InputError` for gaps between ids, and for line breaks in tokens.
    """
    if sorted(ids.values()) != list(range(first, first + len(ids))):
        raise InputError(
            f"{where} must be {first}, {first + 1}, ... without gaps, as the "
            f"lines of vocab.txt. Received: {quoted(ids)}. Save the tokenizer "
            "again, or pass --vocab_file."
        )
    for token in ids:
        if "\n" in token or "\r" in token:
            raise InputError(
                f"{where} must be of tokens without line breaks. Received: "
                f"{quoted(token)}."
            )
    return sorted(ids, key=ids.__getitem__)
