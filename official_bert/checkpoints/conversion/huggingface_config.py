"""The files beside the weights in a Hugging Face directory."""

import dataclasses
import json
import os
from typing import Any

from absl import logging

from official_bert import json_files, task_file
from official_bert.checkpoints.conversion import bert_tokenizer_files
from official_bert.checkpoints.conversion.model import Description, Model
from official_bert.checkpoints.weights import HEADS
from official_bert.config import BertConfig
from official_bert.errors import InputError

_CONFIG = "config.json"

# Keys with the same name in both configs.
_SIZES = {
    field.name
    for field in dataclasses.fields(BertConfig)
    if field.name not in ("hidden_act", "is_left_to_right")
}

# Not used by either, but in the released Chinese and multilingual configs.
_EXTRAS = (
    "directionality",
    "pooler_fc_size",
    "pooler_num_attention_heads",
    "pooler_num_fc_layers",
    "pooler_size_per_head",
    "pooler_type",
)

# bert_config.json <-> config.json. "gelu" is the tanh approximation in the
# former and the exact form in the latter.
_SAME = {name: name for name in ("relu", "tanh", "linear")}
_ACTIVATIONS = {
    **_SAME,
    "gelu": "gelu_pytorch_tanh",
    "gelu_erf": "gelu",
    "": "linear",
}
_OURS = {
    **dict.fromkeys(("gelu", "gelu_python"), "gelu_erf"),
    **dict.fromkeys(
        ("gelu_pytorch_tanh", "gelu_new", "gelu_fast", "gelu_accurate"), "gelu"
    ),
    **_SAME,
}

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

    Raises:
        InputError: Files are missing or damaged, or the model is not the
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
    known = {n: given[n] for n in (*_SIZES, *_EXTRAS) if n in given}
    # Defaults of transformers that differ from ours.
    known = {"type_vocab_size": 2, "vocab_size": 30522, **known}
    known["hidden_act"] = _activation(path, given.get("hidden_act", "gelu"))
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
        vocab=bert_tokenizer_files.read_vocab(directory),
        do_lower_case=bert_tokenizer_files.read_casing(directory),
        task=task if "kind" in task else None,
        labels=_read_labels(path, given),
        problem_type=given.get("problem_type"),
        head=next(
            (h.name for h in HEADS if h.architecture == architectures[0]), None
        ),
    )


def _activation(path: str, theirs: Any) -> str:
    if theirs not in _OURS:
        raise InputError(
            f"{path}: `hidden_act` must be one of "
            f"{', '.join(_OURS)}. Received: {theirs!r}."
        )
    return _OURS[theirs]


def _read_labels(path: str, given: dict[str, Any]) -> tuple[str, ...]:
    labels = given.get("id2label")
    if labels is None:
        return ()
    try:
        by_id = {int(number): str(label) for number, label in labels.items()}
    except (AttributeError, ValueError) as error:
        raise InputError(
            f'{path}: `id2label` must be like {{"0": "no", "1": "yes"}}. '
            f"Received: {labels!r}."
        ) from error
    if sorted(by_id) != list(range(len(by_id))):
        raise InputError(
            f"{path}: `id2label` must number labels from 0 without gaps. "
            f"Received: {sorted(by_id)}."
        )
    return tuple(by_id[number] for number in range(len(by_id)))


def write(model: Model, directory: str) -> None:
    """Writes everything but the weights.

    Raises:
        InputError: transformers has no such model.
    """
    description = model.description
    if description.task is not None and "top" in description.task:
        raise InputError(
            "transformers has no model with a pooling head (frozen BERT, "
            f"BiLSTM). Received: task.json with `top` {description.task['top']}"
            ". To convert the encoder alone, pass "
            "--skip='^(cls/squad/)?output_|^(bilstm|features)/'."
        )
    path = os.path.join(directory, _CONFIG)
    json_files.write(path, _config(model), sort_keys=True)
    if description.vocab is not None:
        bert_tokenizer_files.write(description, directory)
    if description.task is not None:
        # For converting back, and for predict.py.
        json_files.write(task_file.path_in(directory), description.task)


def _config(model: Model) -> dict[str, Any]:
    config = model.description.config
    if config.is_left_to_right:
        raise InputError(
            "A model with `is_left_to_right` has no counterpart in "
            "transformers. Use it here, or export it."
        )
    activation = str(config.hidden_act or "").lower()
    found = {
        **config.to_dict(),
        "architectures": [model.head.architecture],
        "model_type": "bert",
        "hidden_act": _ACTIVATIONS[activation],
        "hidden_dropout_prob": config.hidden_dropout_prob or 0.0,
        "attention_probs_dropout_prob": config.attention_probs_dropout_prob
        or 0.0,
        "layer_norm_eps": 1e-12,
        "pad_token_id": 0,
    }
    labels = model.labels
    if not labels:
        return found
    found |= {
        "classifier_dropout": _CLASSIFIER_DROPOUT,
        "id2label": dict(enumerate(labels)),
        "label2id": {label: number for number, label in enumerate(labels)},
    }
    if model.description.problem_type:
        found["problem_type"] = model.description.problem_type
    return found


def labels_of_task(
    task: dict[str, Any],
) -> tuple[tuple[str, ...], str | None, str | None]:
    """Returns labels, `problem_type` and head for a `task.json`."""
    return (
        tuple(task.get("labels", ())),
        _PROBLEM_TYPES.get(task.get("task_type", "")),
        _CLASSIFIERS.get(task.get("kind", "")),
    )
