"""The files beside the weights in a Hugging Face directory."""

import os
from typing import Any

from absl import logging

from official_bert import files, huggingface_files, json_files, task_file
from official_bert.checkpoints.conversion.model import (
    ABOVE_BERT,
    Description,
    Model,
)
from official_bert.checkpoints.weights import HEADS
from official_bert.errors import InputError, quoted

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
    config = huggingface_files.read_config(directory)
    path = os.path.join(directory, huggingface_files.CONFIG)
    given = json_files.read_object(path)
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
        vocab=huggingface_files.read_vocab(directory),
        do_lower_case=huggingface_files.read_casing(directory),
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
            f'{{"0": "no", "1": "yes"}}. Received: {quoted(labels)}.'
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
    path = os.path.join(directory, huggingface_files.CONFIG)
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
        "model_type": huggingface_files.FIXED["model_type"],
        "hidden_act": huggingface_files.THEIR_ACTIVATIONS[
            str(config.hidden_act or "").lower()
        ],
        "hidden_dropout_prob": config.hidden_dropout_prob or 0.0,
        "attention_probs_dropout_prob": config.attention_probs_dropout_prob
        or 0.0,
        "layer_norm_eps": huggingface_files.FIXED["layer_norm_eps"],
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


def write_tokenizer_and_task(description: Description, directory: str) -> None:
    """Writes `vocab.txt`, `tokenizer_config.json` and `task.json`.

    No other file of a pre-trained model has the casing.
    """
    if description.task is not None:
        json_files.write(task_file.path_in(directory), description.task)
    if description.vocab is None:
        return
    files.write_text(
        os.path.join(directory, huggingface_files.VOCAB), description.vocab
    )
    config = {
        "tokenizer_class": "BertTokenizer",
        "do_lower_case": description.do_lower_case,
        "strip_accents": None,
        "tokenize_chinese_chars": True,
        "model_max_length": description.config.max_position_embeddings,
    }
    path = os.path.join(directory, huggingface_files.TOKENIZER_CONFIG)
    json_files.write(path, config, sort_keys=True)
