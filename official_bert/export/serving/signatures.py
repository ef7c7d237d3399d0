"""What every kind of task shares: its parts, and the signatures for ids."""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import tensorflow as tf

from official_bert.inputs import records
from official_bert.inputs.schemas import Schema, text_schema
from official_bert.inputs.text_inputs import SpecialIds

Tensors = dict[str, Any]

# What Python's `str.split` and `str.strip` take for a space, for RE2.
SPACE = (
    r"[\t-\r\x1c- \x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}"
    r"\x{202f}\x{205f}\x{3000}]"
)


class Served(NamedTuple):
    """A model and what is needed to ask it with text.

    Attributes:
        task: What it was trained for.
        model: As `task.build_model` makes it, with its weights.
        tokenizer: A `GraphTokenizer`; None where no texts are taken.
        pieces: The vocabulary, in the order of ids.
        marks: Ids of [CLS] and [SEP].
        max_seq_length: What it was trained with.
    """

    task: Any
    model: Any
    tokenizer: Any
    pieces: tuple[str, ...]
    marks: SpecialIds
    max_seq_length: int


class Signature(NamedTuple):
    """A function by which TensorFlow Serving asks.

    Attributes:
        function: Takes Tensors by their names, and returns some by theirs.
        inputs: The names, with shapes and dtypes.
    """

    function: Callable[..., Tensors]
    inputs: dict[str, tf.TensorSpec]


class Kind(Protocol):
    """What is particular to a kind of task."""

    num_choices: int

    def outputs(self, logits: Any) -> Tensors:
        """Returns what is said of a batch of rows."""

    def text_signatures(self) -> dict[str, Signature]:
        """Returns those that take texts."""


class RowSignatures(NamedTuple):
    """Those that take what the model reads, row by row.

    They need no tokenizer. A text that is read in several windows is several
    rows here, and whoever sends them puts the answers together.
    """

    kind: Kind
    served: Served

    def logits(self, input_ids: Any, input_mask: Any, segment_ids: Any) -> Any:
        """Runs the model."""
        batch = {
            "input_ids": input_ids,
            "input_mask": input_mask,
            "segment_ids": segment_ids,
        }
        return self.served.model(batch, training=False)

    def of_ids(
        self, input_ids: Any, input_mask: Any, segment_ids: Any
    ) -> Tensors:
        """`ids`: int32 [B, S], or [B, C, S] where there are C choices."""
        return self.kind.outputs(
            self.logits(input_ids, input_mask, segment_ids)
        )

    def of_examples(self, examples: Any) -> Tensors:
        """`examples`: serialized `tf.train.Example`s, string [B].

        They are records such as fine-tuning writes, of `max_seq_length`;
        features other than the three of a text are not looked at.
        """
        return self.of_ids(**records.parse(self._schema(), examples))

    def _schema(self) -> Schema:
        return text_schema(self.served.max_seq_length, self.kind.num_choices)

    def ids_inputs(self) -> dict[str, tf.TensorSpec]:
        """Returns what `of_ids` takes; batch and length are free."""
        choices = [self.kind.num_choices] if self.kind.num_choices > 1 else []
        shape = [None, *choices, None]
        return {
            name: tf.TensorSpec(shape, tf.int32, name)
            for name in self._schema()
        }

    def all(self) -> dict[str, Signature]:
        """Returns the signatures `ids` and `examples`."""
        examples = strings("examples")
        return {
            "ids": Signature(self.of_ids, self.ids_inputs()),
            "examples": Signature(self.of_examples, examples),
        }


def strings(*names: str) -> dict[str, tf.TensorSpec]:
    """Returns inputs that are one text for each item, string [B]."""
    return {name: tf.TensorSpec([None], tf.string, name) for name in names}
