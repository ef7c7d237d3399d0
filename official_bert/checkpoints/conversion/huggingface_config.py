"""The files beside the weights in a Hugging Face directory."""

import dataclasses
import json
import os
from collections.abc import Iterable
from typing import Any

from absl import logging

from official_bert import files, json_files, task_file
from official_bert.checkpoints.conversion.model import (
    ABOVE_BERT,
    Description,
    Model,
)
from official_bert.checkpoints.weights import HEADS
from official_bert.config import BertConfig
from official_bert.errors import InputError

TOKENIZER_CONFIG = "tokenizer_config.json"
_CONFIG = "config.json"
_FAST = "tokenizer.json"
_ADDED = "added_tokens.json"
_VOCAB = "vocab.txt"

# Setting in `tokenizer_config.json` -> in the normalizer of `tokenizer.json`.
_NORMALIZER = {
    "do_lower_case": "lowercase",
    "strip_accents": "strip_accents",
    "tokenize_chinese_chars": "handle_chinese_chars",
}

# Keys with the same name in both configs.
_SIZES = {
    field.name
    for field in dataclasses.fields(BertConfig)
    if field.name not in ("hidden_act", "is_left_to_right")
}

# Not used by either, but in the released Chinese and multilingual configs.
_EXTRAS = ("directionality", "pooler_")

# bert_config.json <-> config.json. "gelu" is the tanh approximation in the
# former and the exact form in the latter.
_THEIRS = {"gelu": "gelu_pytorch_tanh", "gelu_erf": "gelu", "": "linear"}
_OURS = {"gelu": "gelu_erf", "gelu_python": "gelu_erf"}
for _name in ("gelu_pytorch_tanh", "gelu_new", "gelu_fast", "gelu_accurate"):
    _OURS[_name] = "gelu"
for _name in ("relu", "tanh", "linear"):
    _OURS[_name] = _THEIRS[_name] = _name

# Keys that, if present, must have these values in the original BERT.
_FIXED = {
    "model_type": "bert",
    "layer_norm_eps": 1e-12,
    "position_embedding_type": "absolute",
    "is_decoder": False,
    "add_cross_attention": False,
    "tie_word_embeddings": True,
}

# Fixed in the heads of the original implementation.
_CLASSIFIER_DROPOUT = 0.1

# task.json -> `problem_type`, and the type of the classifier.
_PROBLEM_TYPES = {
    "classification": "single_label_classification",
    "multilabel": "multi_label_classification",
    "regression": "regression",
}
_CLASSIFIERS = {
    "text": "sequence_classification",
    "choice": "multiple_choice",
    "tagging": "token_classification",
}


def read(directory: str) -> Description:
    """Reads everything but the weights.

    Raises `InputError` if files are missing or damaged, or the model is not the
    original BERT.
    """
    path = os.path.join(directory, _CONFIG)
    given = json_files.read_object(path)
    for name, fixed in _FIXED.items():
        if given.get(name, fixed) != fixed:
            raise InputError(
                f"{path}: `{name}` must be {json.dumps(fixed)}, as in the "
                f"original BERT. Received: {json.dumps(given[name])}. Other "
                "models cannot be converted."
            )
    known = {
        name: value
        for name, value in given.items()
        if name in _SIZES or name.startswith(_EXTRAS)
    }
    # Defaults of transformers that differ from ours.
    known = {"type_vocab_size": 2, "vocab_size": 30522, **known}
    activation = given.get("hidden_act", "gelu")
    if activation not in _OURS:
        raise InputError(
            f"{path}: `hidden_act` must be one of {', '.join(_OURS)}. "
            f"Received: {activation!r}."
        )
    known["hidden_act"] = _OURS[activation]
    config = BertConfig.from_dict(known)
    try:
        config.validate()
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    architectures = given.get("architectures") or [""]
    task = task_file.read(directory) if task_file.is_in(directory) else {}
    if given.get("classifier_dropout") not in (None, _CLASSIFIER_DROPOUT):
        logging.warning(
            "%s: `classifier_dropout` is %s. Here it is always %s.",
            path,
            given["classifier_dropout"],
            _CLASSIFIER_DROPOUT,
        )
    return Description(
        config=config,
        vocab=read_vocab(directory),
        do_lower_case=read_casing(directory),
        task=task if "kind" in task else None,
        labels=_read_labels(path, given),
        problem_type=given.get("problem_type"),
        head={h.architecture: h.name for h in HEADS}.get(architectures[0]),
    )


def _read_labels(path: str, given: dict[str, Any]) -> tuple[str, ...]:
    labels = given.get("id2label") or {}
    try:
        by_id = {int(number): str(label) for number, label in labels.items()}
        return tuple(by_id[number] for number in range(len(by_id)))
    except (AttributeError, KeyError, ValueError) as error:
        raise InputError(
            f"{path}: `id2label` must number labels from 0 without gaps, like "
            f'{{"0": "no", "1": "yes"}}. Received: {labels!r}.'
        ) from error


def write(model: Model, directory: str) -> None:
    """Writes everything but the weights.

    Raises `InputError` if transformers has no such model.
    """
    description = model.description
    if description.task is not None and "top" in description.task:
        raise InputError(
            "transformers has no model with a pooling head (frozen BERT, "
            f"BiLSTM). Received: task.json with `top` {description.task['top']}"
            f". To convert the encoder alone, pass --skip='{ABOVE_BERT}'."
        )
    path = os.path.join(directory, _CONFIG)
    json_files.write(path, _config(model), sort_keys=True)
    write_tokenizer_and_task(description, directory)


def _config(model: Model) -> dict[str, Any]:
    config = model.description.config
    if config.is_left_to_right:
        raise InputError(
            "A model with `is_left_to_right` has no counterpart in "
            "transformers. Use it here, or export it."
        )
    found = {
        **config.to_dict(),
        "architectures": [model.head.architecture],
        "model_type": _FIXED["model_type"],
        "hidden_act": _THEIRS[str(config.hidden_act or "").lower()],
        "hidden_dropout_prob": config.hidden_dropout_prob or 0.0,
        "attention_probs_dropout_prob": config.attention_probs_dropout_prob
        or 0.0,
        "layer_norm_eps": _FIXED["layer_norm_eps"],
        "pad_token_id": 0,
    }
    if labels := model.labels:
        found |= {
            "classifier_dropout": _CLASSIFIER_DROPOUT,
            "id2label": dict(enumerate(labels)),
            "label2id": {label: number for number, label in enumerate(labels)},
        }
        if model.description.problem_type:
            found["problem_type"] = model.description.problem_type
    return found


def describe_task(task: dict[str, Any]) -> dict[str, Any]:
    """Returns the fields of a `Description` that a `task.json` has."""
    return {
        "labels": tuple(task.get("labels", ())),
        "problem_type": _PROBLEM_TYPES.get(task.get("task_type", "")),
        "head": _CLASSIFIERS.get(task.get("kind", "")),
    }


def read_vocab(directory: str) -> str | None:
    """Returns `vocab.txt`, or the same text from `tokenizer.json`.

    Tokens added later follow at the end. Raises `InputError` if this is not
    a WordPiece vocabulary, or its ids have gaps.
    """
    path, fast = os.path.join(directory, _VOCAB), _read_json(directory, _FAST)
    if os.path.exists(path):
        text = files.read_text(path)
    elif fast:
        path = os.path.join(directory, _FAST)
        text = to_text(_learned_tokens(fast.get("model") or {}, path))
    else:
        return None
    learned = text.removesuffix("\n")
    first = learned.count("\n") + 1
    ids = _read_json(directory, _ADDED)
    for token in fast.get("added_tokens") or []:
        token = token if isinstance(token, dict) else {}
        ids[token.get("content", "")] = token.get("id")
    added = {
        token: number
        for token, number in ids.items()
        if not isinstance(number, int) or number >= first
    }
    numbers = range(first, first + len(added))
    if any(number not in added.values() for number in numbers):
        raise InputError(
            f"{directory}: the ids of added tokens must follow those of the "
            f"{first} others. Received: {added}. Save the tokenizer again, or "
            "pass --vocab_file."
        )
    if not added:
        return text
    tokens = sorted(added, key=added.__getitem__)
    logging.warning(
        "%s: %d added tokens, such as %r, are ordinary tokens here: matched "
        "inside words only, after text is normalized.",
        directory,
        len(tokens),
        tokens[0],
    )
    return to_text([learned, *tokens])


def to_text(tokens: Iterable[str]) -> str:
    """Returns the text of a `vocab.txt`."""
    return "".join(f"{token}\n" for token in tokens)


def _learned_tokens(model: dict[str, Any], path: str) -> list[str]:
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
    return tokens


def read_casing(directory: str) -> bool | None:
    """Returns `do_lower_case`; warns of settings not supported here."""
    normalizer = _read_json(directory, _FAST).get("normalizer") or {}
    given = {
        name: normalizer[fast_name]
        for name, fast_name in _NORMALIZER.items()
        if fast_name in normalizer
    } | _read_json(directory, TOKENIZER_CONFIG)
    if not given:
        return None
    lower = given.get("do_lower_case")
    lower = True if lower is None else bool(lower)
    strips = given.get("strip_accents")
    if strips is not None:
        warn_of_accents(directory, strips, "do_lower_case", lower)
    if given.get("tokenize_chinese_chars") is False:
        logging.warning(
            "%s: `tokenize_chinese_chars` is false. Here every Chinese "
            "character is a word: other tokens.",
            directory,
        )
    return lower


def warn_of_accents(
    where: str, strip_accents: bool, setting: str, lower: bool
) -> None:
    """Warns of a tokenizer whose `strip_accents` has no counterpart here."""
    if strip_accents != lower:
        logging.warning(
            "%s: `strip_accents` is %s with `%s` %s. Here accents are stripped "
            "if and only if text is lower-cased: other tokens.",
            where,
            strip_accents,
            setting,
            lower,
        )


def _read_json(directory: str, name: str) -> dict[str, Any]:
    """Returns the content of a JSON file; {} if there is none."""
    path = os.path.join(directory, name)
    return json_files.read_object(path) if os.path.exists(path) else {}


def write_tokenizer_and_task(description: Description, directory: str) -> None:
    """Writes `vocab.txt`, `tokenizer_config.json` and `task.json`.

    No other file of a pre-trained model has the casing.
    """
    if description.task is not None:
        json_files.write(task_file.path_in(directory), description.task)
    if description.vocab is None:
        return
    files.write_text(os.path.join(directory, _VOCAB), description.vocab)
    config = {
        "tokenizer_class": "BertTokenizer",
        "do_lower_case": description.do_lower_case,
        "strip_accents": None,
        "tokenize_chinese_chars": True,
        "model_max_length": description.config.max_position_embeddings,
    }
    path = os.path.join(directory, TOKENIZER_CONFIG)
    json_files.write(path, config, sort_keys=True)
