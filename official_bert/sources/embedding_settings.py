"""How a model turns a text into a vector, read from any files."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from official_bert.errors import InputError, listed

ACTIVATIONS = ("Identity", "Tanh", "ReLU", "Sigmoid")
SIMILARITIES = ("cosine", "dot", "euclidean", "manhattan")
TRAINED_POOLINGS = ("mean", "cls")  # With `--task_type=embedding`.


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

    The default is that of sentence-transformers for a model without its files.
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

    @classmethod
    def of_task(cls, task: Mapping[str, Any]) -> "EmbeddingSettings":
        """Returns the settings in the `task.json` of a training run."""
        size = task.get("embedding_size", 0)
        return cls(
            (task.get("pooling", "mean"),),
            dense=(Dense(0, size, "Tanh", b""),) if size else (),
            normalize=task.get("normalize", True),
            max_seq_length=task.get("max_seq_length"),
            prompts=task.get("prompts", {}),
            similarity=task.get("similarity", "cosine"),
            in_model=True,
        )

    @property
    def can_be_trained(self) -> bool:
        """Whether `--task_type=embedding` supports all settings."""
        has_others = (
            self.default_prompt_name
            or self.truncate_dim
            or self.lowercases_text
            or [layer.activation for layer in self.dense] not in ([], ["Tanh"])
        )
        poolings = [[name] for name in TRAINED_POOLINGS]
        return [*self.pooling] in poolings and not has_others

    def length(self, num_positions: int) -> int:
        """Returns the maximum number of tokens for a model's positions."""
        return min(self.max_seq_length or num_positions, num_positions)

    def prompt(self, name: str | None = None) -> str:
        """Returns a prompt, which precedes a text.

        None: the default prompt, if the model has one. "": no prompt.
        """
        name = self.default_prompt_name if name is None else name
        if not name:
            return ""
        if name not in self.prompts:
            raise InputError(
                "`prompt_name` must be one of the model's prompts, "
                f"{listed(self.prompts) or 'but it has none'}. Received: "
                f"{name!r}."
            )
        return self.prompts[name]
