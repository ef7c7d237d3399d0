"""What is beside the weights in a Hugging Face folder: sizes and labels."""

import dataclasses
import json
import os
from typing import Any

from absl import logging

from official_bert import json_files, task_file
from official_bert.checkpoints.conversion import huggingface_tokenizer
from official_bert.checkpoints.conversion.model import Described, Model
from official_bert.config import BertConfig
from official_bert.errors import InputError

_CONFIG = "config.json"

# What both configs have under the same name.
_SIZES = (
    "vocab_size",
    "hidden_size",
    "num_hidden_layers",
    "num_attention_heads",
    "intermediate_size",
    "hidden_dropout_prob",
    "attention_probs_dropout_prob",
    "max_position_embeddings",
    "type_vocab_size",
    "initializer_range",
)

# Unknown to either, but in the files released for Chinese and multilingual.
_EXTRAS = (
    "directionality",
    "pooler_fc_size",
    "pooler_num_attention_heads",
    "pooler_num_fc_layers",
    "pooler_size_per_head",
    "pooler_type",
)

# By what bert_config.json calls them. Its gelu is the tanh form, theirs the
# exact one.
_ACTIVATIONS = {
    "gelu": "gelu_pytorch_tanh",
    "gelu_erf": "gelu",
    "relu": "relu",
    "tanh": "tanh",
    "linear": "linear",
    "": "linear",
}
_OURS = {
    "gelu": "gelu_erf",
    "gelu_python": "gelu_erf",
    "gelu_pytorch_tanh": "gelu",
    "gelu_new": "gelu",
    "gelu_fast": "gelu",
    "gelu_accurate": "gelu",
    "relu": "relu",
    "tanh": "tanh",
    "linear": "linear",
}

# What a BERT of 2018 is, where a config says anything about it.
_FIXED = {
    "model_type": "bert",
    "layer_norm_eps": 1e-12,
    "position_embedding_type": "absolute",
    "is_decoder": False,
    "add_cross_attention": False,
    "tie_word_embeddings": True,
}

# That of the 2018 release's heads, whatever else a config says.
_CLASSIFIER_DROPOUT = 0.1

_HEADS = {
    "BertForSequenceClassification": "sequence_classification",
    "BertForMultipleChoice": "multiple_choice",
    "BertForTokenClassification": "token_classification",
}

_PROBLEMS = {
    "classification": "single_label_classification",
    "multilabel": "multi_label_classification",
    "regression": "regression",
}


def read(folder: str) -> Described:
    """Reads all but the weights.

    Raises:
        InputError: Files are missing or damaged, or it is no BERT as of 2018.
    """
    path = os.path.join(folder, _CONFIG)
    given = json_files.read_object(path)
    for name, fixed in _FIXED.items():
        if given.get(name, fixed) != fixed:
            raise InputError(
                f"{path}: `{name}` must be {json.dumps(fixed)}, as in every "
                f"BERT of 2018. Received: {json.dumps(given[name])}. Other "
                "models cannot be converted."
            )
    known = {n: given[n] for n in (*_SIZES, *_EXTRAS) if n in given}
    # Where transformers' defaults are others than ours.
    known = {"type_vocab_size": 2, "vocab_size": 30522, **known}
    known["hidden_act"] = _activation(path, given.get("hidden_act", "gelu"))
    config = BertConfig.from_dict(known)
    try:
        config.validate()
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    architectures = given.get("architectures") or [""]
    if given.get("classifier_dropout") not in (None, _CLASSIFIER_DROPOUT):
        logging.warning(
            "%s: `classifier_dropout` is %s. Here the heads of 2018 drop out "
            "%s, and so will what is made of it.",
            path,
            given["classifier_dropout"],
            _CLASSIFIER_DROPOUT,
        )
    return Described(
        config=config,
        vocab=huggingface_tokenizer.read_vocab(folder),
        do_lower_case=huggingface_tokenizer.read_casing(folder),
        task=_read_task(folder),
        labels=_read_labels(path, given),
        problem_type=given.get("problem_type"),
        head=_HEADS.get(architectures[0]),
    )


def _activation(path: str, theirs: Any) -> str:
    if theirs not in _OURS:
        raise InputError(
            f"{path}: `hidden_act` must be one of "
            f"{', '.join(_OURS)}. Received: {theirs!r}."
        )
    return _OURS[theirs]


def _read_task(folder: str) -> dict[str, Any] | None:
    if not task_file.is_in(folder):
        return None
    given = task_file.read(folder)
    return given if "kind" in given else None


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


def write(model: Model, folder: str) -> None:
    """Writes all but the weights.

    Raises:
        InputError: transformers has no such model.
    """
    described = model.described
    if described.task is not None and "top" in described.task:
        raise InputError(
            "transformers has no model on frozen vectors or with a BiLSTM. "
            f"Received: a task.json whose `top` is {described.task['top']}. "
            "To convert the encoder alone, leave out what is above it with "
            "--skip='^(cls/squad/)?output_|^(bilstm|features)/'."
        )
    path = os.path.join(folder, _CONFIG)
    json_files.write(path, _config(model), sort_keys=True)
    if described.vocab is not None:
        huggingface_tokenizer.write(described, folder)
    if described.task is not None:
        # For the way back, and predict.py.
        json_files.write(task_file.path_in(folder), described.task)


def _config(model: Model) -> dict[str, Any]:
    config = model.described.config
    for field in dataclasses.fields(BertConfig):
        is_known = field.name in (*_SIZES, "hidden_act")
        if not is_known and getattr(config, field.name) != field.default:
            raise InputError(
                f"A model with `{field.name}` has no counterpart among "
                "transformers' BERTs. Received: "
                f"{getattr(config, field.name)!r}. Use it here, or export it."
            )
    given = config.to_dict()
    activation = str(config.hidden_act or "").lower()
    found = {
        **given,
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
    if model.described.problem_type:
        found["problem_type"] = model.described.problem_type
    return found


def labels_of_task(
    task: dict[str, Any],
) -> tuple[tuple[str, ...], str | None, str | None]:
    """Returns labels, transformers' problem type and head of a `task.json`."""
    labels = tuple(task.get("labels", ()))
    problem = _PROBLEMS.get(task.get("task_type", ""))
    heads = {
        "text": "sequence_classification",
        "choice": "multiple_choice",
        "tagging": "token_classification",
    }
    return labels, problem, heads.get(task.get("kind", ""))
