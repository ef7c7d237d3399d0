"""Files of sentence-transformers: how a model turns a text into a vector.

modules.json                               the modules, in order
1_Pooling/config.json                      how vectors of tokens are pooled
2_Dense/config.json, model.safetensors     a layer on the pooled vector
3_Normalize/                               scales the vector to length 1
sentence_bert_config.json                  the maximum number of tokens
config_sentence_transformers.json          prompts, the similarity of vectors

They are beside the weights of any format; training runs have their `task.json`.
Releases 2 to 6 are supported.
"""

import os
from collections.abc import Sequence
from typing import Any

from official_bert.errors import InputError, listed, quoted
from official_bert.io import files, json_files
from official_bert.io.json_files import JsonObject
from official_bert.runs import file_names
from official_bert.sources import checkpoint_paths, task_file, tokenizer_files
from official_bert.sources.embedding_settings import (
    ACTIVATIONS,
    SIMILARITIES,
    Dense,
    EmbeddingSettings,
)

MODULES = "modules.json"
_TEXTS = "sentence_bert_config.json"
_MODEL = "config_sentence_transformers.json"
_DENSE_WEIGHTS = "model.safetensors"
_UNLIMITED = 10**9  # transformers stores 10**30.

# {name of a pooling: its key in former releases}, in the order in which those
# concatenate several.
_POOLING_KEYS = {
    "cls": "pooling_mode_cls_token",
    "max": "pooling_mode_max_tokens",
    "mean": "pooling_mode_mean_tokens",
    "mean_sqrt_len_tokens": "pooling_mode_mean_sqrt_len_tokens",
    "weightedmean": "pooling_mode_weightedmean_tokens",
    "lasttoken": "pooling_mode_lasttoken",
}
# {`problem_type`: what a cross-encoder applies to logits, for `config.json`}
SCORE_ACTIVATIONS = {
    "regression": "torch.nn.modules.linear.Identity",
    "multi_label_classification": "torch.nn.modules.activation.Sigmoid",
}


def transformer_directory(directory: str) -> str:
    """Returns the directory of BERT's files in the directory of a model.

    In former releases, it is a folder such as `0_Transformer`.
    """
    folders = (p for kind, p in _modules(directory) if kind == "Transformer")
    return next(folders, directory)


def read(checkpoint: str) -> EmbeddingSettings | None:
    """Reads the settings beside a checkpoint.

    Those of a training run are in its `task.json`. Returns None if there are
    none. Raises `InputError` if they are damaged or not supported.
    """
    folder = checkpoint_paths.directory(checkpoint)
    directory, modules = _find_modules(folder)
    if not modules:
        task = task_file.read_beside(checkpoint)
        is_trained = task.get("kind") == "embedding"
        return EmbeddingSettings.of_task(task) if is_trained else None
    kinds = [kind for kind, _ in modules]
    if "Pooling" not in kinds:
        return None  # A cross-encoder, which computes no vectors.
    dense = ["Dense"] * kinds.count("Dense")
    normalize = ["Normalize"] if "Normalize" in kinds else []
    if kinds != ["Transformer", "Pooling", *dense, *normalize]:
        raise InputError(
            f"{os.path.join(directory, MODULES)}: the modules must be "
            "Transformer, Pooling and, optionally, Dense and Normalize, in "
            f"this order. Received: {', '.join(kinds)}. Without {MODULES}, the "
            "model is an ordinary BERT."
        )
    pooling = json_files.load(modules[1][1], "config.json", must_exist=True)
    return EmbeddingSettings(
        pooling=_read_pooling(pooling),
        dense=tuple(_read_dense(path) for _, path in modules[2:][: len(dense)]),
        normalize=bool(normalize),
        **_read_texts(folder),
        **_read_model(directory, pooling),
    )


def input_files(checkpoint: str) -> list[str]:
    """Returns the existing files on which vectors or scores depend.

    The files of BERT, such as its weights, are not among them.
    """
    names = (_TEXTS, _MODEL, tokenizer_files.CONFIG, file_names.TASK)
    paths = [checkpoint_paths.beside(checkpoint, name) for name in names]
    directory, modules = _find_modules(checkpoint_paths.directory(checkpoint))
    paths += [os.path.join(directory, name) for name in (MODULES, _MODEL)]
    paths += [
        os.path.join(path, name)
        for kind, path in modules
        if kind != "Transformer"
        for name in ("config.json", _DENSE_WEIGHTS)
    ]
    found = dict.fromkeys(filter(None, paths))
    return [path for path in found if files.exists(path)]


def _find_modules(folder: str) -> tuple[str, list[tuple[str, str]]]:
    """Returns the directory of `modules.json`, and the modules.

    `folder` is the directory of BERT's files. Without modules, it is returned.
    """
    for directory in (folder, os.path.dirname(folder)):
        modules = _modules(directory)
        if modules and transformer_directory(directory) == folder:
            return directory, modules
    return folder, []


def _modules(directory: str) -> list[tuple[str, str]]:
    """Returns the type and the directory of each module, in order.

    There are none without `modules.json`.
    """
    path = os.path.join(directory, MODULES)
    modules = json_files.read(path) if files.exists(path) else []
    if not isinstance(modules, list) or not all(
        isinstance(module, dict)
        and isinstance(module.get("type"), str)
        and isinstance(module.get("path"), str)
        for module in modules
    ):
        raise InputError(
            f"{path}: must be a list of modules with `type` and `path`. "
            f"Received: {quoted(modules)}."
        )
    return [
        (
            module["type"].rpartition(".")[-1],
            os.path.join(directory, module["path"]).rstrip("/"),
        )
        for module in modules
    ]


def _read_pooling(settings: JsonObject) -> tuple[str, ...]:
    path, content = settings
    names = content.get("pooling_mode")
    if names is None:
        keys = _POOLING_KEYS.items()
        names = [name for name, key in keys if content.get(key)]
        names = names or ("mean" if content else None)
    if not isinstance(names, list) or not names:
        names = [names]
    if any(name not in list(_POOLING_KEYS) for name in names):
        raise InputError(
            f"{path}: `pooling_mode` must be of {', '.join(_POOLING_KEYS)}. "
            f"Received: {quoted(names)}."
        )
    return tuple(names)


def _read_dense(folder: str) -> Dense:
    settings = json_files.load(folder, "config.json", must_exist=True)
    content = settings.content
    activation = str(content.get("activation_function")).rpartition(".")[-1]
    _require(settings, "activation_function", activation, ACTIVATIONS)
    name = "sentence_embedding"
    for key in ("module_input_name", "module_output_name"):
        _require(settings, key, content.get(key) or name, [name])
    residual = content.get("use_residual", False)
    _require(settings, "use_residual", residual, [False])
    size_in, size_out = (
        settings.get(key, json_files.Count)
        for key in ("in_features", "out_features")
    )
    weights = os.path.join(folder, _DENSE_WEIGHTS)
    if not files.exists(weights):
        raise InputError(
            f"{weights} is missing. Received: "
            f"{listed(files.list_directory(folder))}. A pytorch_model.bin is "
            "never opened, because it can run code. If you trust it, save the "
            "model again with a current sentence-transformers."
        )
    with files.open_binary(weights) as file:
        return Dense(size_in, size_out, activation, file.read())


def _read_texts(folder: str) -> dict[str, Any]:
    settings = json_files.load(folder, _TEXTS)
    output = "last_hidden_state"
    text = settings.nested("modality_config").nested("text").content
    found = text.get("method_output_name", output)
    _require(settings, "method_output_name", found, [output])
    lower = settings.get("do_lower_case", bool | None)
    length = read_length(folder)
    return {"max_seq_length": length, "lowercases_text": bool(lower)}


def read_length(folder: str) -> int | None:
    """Returns the maximum number of tokens; None: the model's positions."""
    texts = json_files.load(folder, _TEXTS)
    length: int | None = texts.get("max_seq_length", json_files.Count | None)
    if length is None:  # Since release 6, the tokenizer has the length.
        tokenizer = json_files.load(folder, tokenizer_files.CONFIG)
        length = tokenizer.get("model_max_length", int | None)
    return None if length and length >= _UNLIMITED else length


def read_score_activation(
    folder: str, config: JsonObject, *, has_one_label: bool
) -> str | None:
    """Returns what a cross-encoder applies to its logits; None if unknown.

    Release 6 stores it in its own file, earlier ones in the `config` of the
    model, a `config.json`.
    """
    own = json_files.load(folder, _MODEL)
    in_config = config.nested("sentence_transformers")
    names = [file.content.get("activation_fn") for file in (own, in_config)]
    names.append(config.content.get("sbert_ce_default_activation_function"))
    name = next(filter(None, names), None)
    if name is None:  # A model of vectors, or one of transformers.
        return None
    prompt_key = "default_prompt_name"
    _require(own, prompt_key, own.content.get(prompt_key), [None])
    activation = str(name).rpartition(".")[-1]
    source = own if own.content.get("activation_fn") else config
    known = ["Identity", "Sigmoid"]
    if not has_one_label:
        known.append("Softmax")
    _require(source, "activation_fn", activation, known)
    return activation


def _read_model(directory: str, pooling: JsonObject) -> dict[str, Any]:
    settings = json_files.load(directory, _MODEL)
    stored = settings.nested("prompts")
    prompts = {n: stored.get(n, str | None) or "" for n in stored.content}
    if any(prompts.values()):
        includes = pooling.content.get("include_prompt") is not False
        _require(pooling, "include_prompt", includes, [True])
    similarity = settings.content.get("similarity_fn_name") or "cosine"
    _require(settings, "similarity_fn_name", similarity, SIMILARITIES)
    default = settings.get("default_prompt_name", str | None)
    if default is not None:
        _require(settings, "default_prompt_name", default, list(prompts))
    return {
        "prompts": prompts,
        "default_prompt_name": default,
        "truncate_dim": settings.get("truncate_dim", json_files.Count | None),
        "similarity": similarity,
    }


def _require(
    settings: JsonObject, key: str, value: Any, allowed: Sequence[Any]
) -> None:
    if value not in allowed:
        names = " or ".join(map(str, allowed))
        raise InputError(
            f"{settings.path}: `{key}` must be {names}. Received: "
            f"{quoted(value)}. Others are not supported."
        )


def write(
    settings: EmbeddingSettings, directory: str, hidden_size: int
) -> None:
    """Writes the files beside the weights of a model."""
    pooling = _pooling_config(settings.pooling, hidden_size)
    dense = [("Dense", _dense_config(layer)) for layer in settings.dense]
    modules = [("Transformer", {}), ("Pooling", pooling), *dense]
    if settings.normalize:
        modules.append(("Normalize", {}))
    rows = []
    for number, (kind, content) in enumerate(modules):
        folder = f"{number}_{kind}" if number else ""
        rows.append(
            {
                "idx": number,
                "name": str(number),
                "path": folder,
                "type": f"sentence_transformers.models.{kind}",
            }
        )
        if number:
            path = os.path.join(directory, folder, "config.json")
            json_files.write(path, content)
    for number, layer in enumerate(settings.dense, start=2):
        path = os.path.join(directory, f"{number}_Dense", _DENSE_WEIGHTS)
        with files.writing(path) as file:
            file.write(layer.weights)
    texts = {
        "max_seq_length": settings.max_seq_length,
        "do_lower_case": settings.lowercases_text,
    }
    model: dict[str, Any] = {
        "prompts": dict(settings.prompts),
        "default_prompt_name": settings.default_prompt_name,
        "similarity_fn_name": settings.similarity,
    }
    if settings.truncate_dim is not None:
        model["truncate_dim"] = settings.truncate_dim
    json_files.write(os.path.join(directory, _TEXTS), texts)
    json_files.write(os.path.join(directory, _MODEL), model)
    json_files.write(os.path.join(directory, MODULES), rows)


def _dense_config(layer: Dense) -> dict[str, Any]:
    module = "linear" if layer.activation == "Identity" else "activation"
    return {
        "in_features": layer.in_features,
        "out_features": layer.out_features,
        "bias": b'"linear.bias"' in layer.weights,
        "activation_function": f"torch.nn.modules.{module}.{layer.activation}",
    }


def _pooling_config(pooling: Sequence[str], hidden_size: int) -> dict[str, Any]:
    """Returns the config of former releases, which current ones read, too."""
    if list(pooling) != [name for name in _POOLING_KEYS if name in pooling]:
        # Only release 6 has other orders.
        return {"embedding_dimension": hidden_size, "pooling_mode": pooling}
    return {
        "word_embedding_dimension": hidden_size,
        **{key: name in pooling for name, key in _POOLING_KEYS.items()},
    }
