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

import dataclasses
import os
from collections.abc import Mapping, Sequence
from typing import Any

from official_bert.errors import InputError, listed, quoted
from official_bert.io import files, json_files
from official_bert.runs import file_names
from official_bert.sources import checkpoint_paths, task_file, tokenizer_files

MODULES = "modules.json"
_TEXTS = "sentence_bert_config.json"
_MODEL = "config_sentence_transformers.json"
_DENSE_WEIGHTS = "model.safetensors"
_UNLIMITED = 10**9  # transformers stores 10**30.
_TYPES = ("Transformer", "Pooling", "Dense", "Normalize")

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
ACTIVATIONS = ("Identity", "Tanh", "ReLU", "Sigmoid")
# The key of `config.json` by which logits of a cross-encoder are its answers.
WITHOUT_ACTIVATION = {
    "sentence_transformers": {
        "activation_fn": "torch.nn.modules.linear.Identity"
    }
}
SIMILARITIES = ("cosine", "dot", "euclidean", "manhattan")


@dataclasses.dataclass(frozen=True)
class Dense:
    """A dense layer on pooled vectors."""

    in_features: int  # 0 for a training run.
    out_features: int
    activation: str  # One of `ACTIVATIONS`.
    # A safetensors file: `linear.weight` [out, in] and, optionally,
    # `linear.bias` [out]. Empty for a training run, which has checkpoints.
    weights: bytes = dataclasses.field(repr=False)


@dataclasses.dataclass(frozen=True)
class EmbeddingSettings:
    """How a text becomes a vector.

    The default is that of sentence-transformers for a model without these
    files.
    """

    pooling: Sequence[str] = ("mean",)  # Concatenated.
    dense: Sequence[Dense] = ()  # Applied to the pooled vector, in order.
    normalize: bool = False  # Whether the result is scaled to length 1.
    max_seq_length: int | None = None  # None: the model's positions.
    lowercases_text: bool = False  # Before the tokenizer, which keeps accents.
    prompts: Mapping[str, str] = dataclasses.field(default_factory=dict)
    default_prompt_name: str | None = None
    truncate_dim: int | None = None  # The number of dimensions to keep.
    similarity: str = "cosine"  # One of `SIMILARITIES`.
    # Whether pooling, dense layer and normalization are parts of the model: a
    # training run, or its export.
    in_model: bool = False

    def length(self, num_positions: int) -> int:
        """Returns the maximum number of tokens for a model's positions."""
        return min(self.max_seq_length or num_positions, num_positions)

    def prompt(self, name: str | None = None) -> str:
        """Returns a prompt, which precedes a text; None: the default prompt."""
        name = name or self.default_prompt_name
        if name is None:
            return ""
        if name not in self.prompts:
            raise InputError(
                "`prompt_name` must be one of the model's prompts, "
                f"{listed(self.prompts) or 'but it has none'}. Received: "
                f"{name!r}."
            )
        return self.prompts[name]


def transformer_directory(directory: str) -> str:
    """Returns the directory of BERT's files in the directory of a model.

    In former releases, it is a folder such as `0_Transformer`.
    """
    path = os.path.join(directory, MODULES)
    if not files.exists(path):
        return directory
    folders = [path for kind, path in _modules(directory) if kind == _TYPES[0]]
    return folders[0] if folders else directory


def read(checkpoint: str) -> EmbeddingSettings | None:
    """Reads the settings beside a checkpoint.

    Those of a training run are in its `task.json`. Returns None if there are
    none. Raises `InputError` if they are damaged or not supported.
    """
    folder = checkpoint_paths.directory(checkpoint)
    directory = _find_modules(folder)
    if directory is None:
        task = task_file.read_beside(checkpoint)
        return of_task(task) if task.get("kind") == "embedding" else None
    modules = _modules(directory)
    kinds = [kind for kind, _ in modules]
    if "Pooling" not in kinds:
        return None  # A cross-encoder, which computes no vectors.
    dense = ["Dense"] * kinds.count("Dense")
    normalize = ["Normalize"] * ("Normalize" in kinds)
    if kinds != ["Transformer", "Pooling", *dense, *normalize]:
        raise InputError(
            f"{os.path.join(directory, MODULES)}: the modules must be "
            "Transformer, Pooling and, optionally, Dense and Normalize, in "
            f"this order. Received: {', '.join(kinds)}. Without {MODULES}, the "
            "model is an ordinary BERT."
        )
    pooling = os.path.join(modules[1][1], "config.json")
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
    if directory := _find_modules(checkpoint_paths.directory(checkpoint)):
        paths += [os.path.join(directory, name) for name in (MODULES, _MODEL)]
        paths += [
            os.path.join(path, name)
            for kind, path in _modules(directory)
            if kind != _TYPES[0]
            for name in ("config.json", _DENSE_WEIGHTS)
        ]
    found = dict.fromkeys(filter(None, paths))
    return [path for path in found if files.exists(path)]


def _find_modules(folder: str) -> str | None:
    """Returns the directory of `modules.json` for that of BERT's files."""
    for directory in (folder, os.path.dirname(folder)):
        if (
            files.exists(os.path.join(directory, MODULES))
            and transformer_directory(directory) == folder
        ):
            return directory
    return None


def of_task(task: Mapping[str, Any]) -> EmbeddingSettings:
    """Returns the settings in the `task.json` of a training run."""
    size = task.get("embedding_size", 0)
    return EmbeddingSettings(
        (task.get("pooling", "mean"),),
        dense=(Dense(0, size, "Tanh", b""),) if size else (),
        normalize=task.get("normalize", True),
        max_seq_length=task.get("max_seq_length"),
        prompts=task.get("prompts", {}),
        similarity=task.get("similarity", "cosine"),
        in_model=True,
    )


def _modules(directory: str) -> list[tuple[str, str]]:
    """Returns the type and the directory of each module, in order."""
    path = os.path.join(directory, MODULES)
    modules = json_files.read(path)
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


def _read_pooling(path: str) -> tuple[str, ...]:
    content = json_files.read_object(path)
    names = content.get("pooling_mode")
    if names is None:
        keys = _POOLING_KEYS.items()
        names = [name for name, key in keys if content.get(key)] or ["mean"]
    if isinstance(names, str):
        names = [names]
    if not isinstance(names, list) or not names:
        names = [names]
    if any(name not in list(_POOLING_KEYS) for name in names):
        raise InputError(
            f"{path}: `pooling_mode` must be of {', '.join(_POOLING_KEYS)}. "
            f"Received: {quoted(names)}."
        )
    return tuple(names)


def _read_dense(folder: str) -> Dense:
    path = os.path.join(folder, "config.json")
    content = json_files.read_object(path)
    activation = str(content.get("activation_function")).rpartition(".")[-1]
    _require(path, "activation_function", activation, ACTIVATIONS)
    name = "sentence_embedding"
    for key in ("module_input_name", "module_output_name"):
        _require(path, key, content.get(key) or name, [name])
    _require(path, "use_residual", content.get("use_residual", False), [False])
    size_in, size_out = (
        json_files.get(content, key, json_files.Count, path)
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
    path = os.path.join(folder, _TEXTS)
    content = json_files.read_if_exists(path)
    modality = json_files.get(content, "modality_config", dict | None, path)
    text = json_files.get(modality or {}, "text", dict | None, path) or {}
    output = "last_hidden_state"
    found = text.get("method_output_name", output)
    _require(path, "method_output_name", found, [output])
    length = read_length(folder)
    lower = json_files.get(content, "do_lower_case", bool | None, path)
    return {"max_seq_length": length, "lowercases_text": bool(lower)}


def read_length(folder: str) -> int | None:
    """Returns the maximum number of tokens; None: the model's positions."""
    path = os.path.join(folder, _TEXTS)
    content = json_files.read_if_exists(path)
    kind = json_files.Count | None
    length: int | None = json_files.get(content, "max_seq_length", kind, path)
    if length is None:  # Since release 6, the tokenizer has the length.
        tokenizer = os.path.join(folder, tokenizer_files.CONFIG)
        length = json_files.get(
            json_files.read_if_exists(tokenizer),
            "model_max_length",
            int | None,
            tokenizer,
        )
    return None if length and length >= _UNLIMITED else length


def read_score_activation(folder: str, config: dict[str, Any]) -> str | None:
    """Returns what a cross-encoder applies to its logits; None if unknown.

    Release 6 stores it in its own file, earlier ones in the `config` of the
    model, a `config.json`.
    """
    key = "sentence_transformers"
    content = json_files.get(config, key, dict | None, folder) or {}
    own = json_files.read_if_exists(os.path.join(folder, _MODEL))
    names = [file.get("activation_fn") for file in (own, content)]
    names.append(config.get("sbert_ce_default_activation_function"))
    name = next(filter(None, names), None)
    prompt_key = "default_prompt_name"
    _require(folder, prompt_key, own.get(prompt_key), [None])
    if name is None:
        return None
    activation = str(name).rpartition(".")[-1]
    _require(folder, "activation_fn", activation, ("Identity", "Sigmoid"))
    return activation


def _read_model(directory: str, pooling: str) -> dict[str, Any]:
    path = os.path.join(directory, _MODEL)
    content = json_files.read_if_exists(path)
    prompts = json_files.get(content, "prompts", dict | None, path) or {}
    prompts = {
        name: json_files.get(prompts, name, str | None, path) or ""
        for name in prompts
    }
    if any(prompts.values()):
        excluded = json_files.read_object(pooling).get("include_prompt")
        _require(pooling, "include_prompt", excluded is not False, [True])
    similarity = content.get("similarity_fn_name") or "cosine"
    _require(path, "similarity_fn_name", similarity, SIMILARITIES)
    default = json_files.get(content, "default_prompt_name", str | None, path)
    if default is not None:
        _require(path, "default_prompt_name", default, list(prompts))
    return {
        "prompts": prompts,
        "default_prompt_name": default,
        "truncate_dim": json_files.get(
            content, "truncate_dim", json_files.Count | None, path
        ),
        "similarity": similarity,
    }


def _require(path: str, key: str, value: Any, allowed: Sequence[Any]) -> None:
    if value not in allowed:
        raise InputError(
            f"{path}: `{key}` must be {' or '.join(map(str, allowed))}. "
            f"Received: {quoted(value)}. Others are not supported."
        )


def write(
    settings: EmbeddingSettings, directory: str, hidden_size: int
) -> None:
    """Writes the files beside the weights of a model."""
    modules: list[tuple[str, dict[str, Any]]] = [
        ("Transformer", {}),
        ("Pooling", _pooling_config(settings.pooling, hidden_size)),
    ]
    for layer in settings.dense:
        module = "linear" if layer.activation == "Identity" else "activation"
        name = f"torch.nn.modules.{module}.{layer.activation}"
        sizes = {k: getattr(layer, k) for k in ("in_features", "out_features")}
        bias = b'"linear.bias"' in layer.weights
        modules.append(
            ("Dense", {**sizes, "bias": bias, "activation_function": name})
        )
    modules += [("Normalize", {})] * settings.normalize
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


def _pooling_config(pooling: Sequence[str], hidden_size: int) -> dict[str, Any]:
    """Returns the config of former releases, which current ones read, too."""
    if list(pooling) != [name for name in _POOLING_KEYS if name in pooling]:
        # Only release 6 has other orders.
        return {"embedding_dimension": hidden_size, "pooling_mode": pooling}
    keys = _POOLING_KEYS.items()
    return {
        "word_embedding_dimension": hidden_size,
        **{key: name in pooling for name, key in keys},
    }
