"""The functions by which a fine-tuned model is served, whatever its task."""

import abc
from collections.abc import Callable
from typing import Any, NamedTuple

import tensorflow as tf

from official_bert.export import graph_packing
from official_bert.export.graph_tokenizer import GraphTokenizer
from official_bert.inputs import records, text_inputs
from official_bert.inputs.schemas import Schema, text_schema
from official_bert.tasks.task import FinetunedModel

Tensors = dict[str, Any]

# The whitespace of Python's `str.split` and `str.strip`, for RE2.
SPACE = (
    r"[\t-\r\x1c- \x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}"
    r"\x{202f}\x{205f}\x{3000}]"
)

# A long text can have hundreds of windows. This many are in memory at a time.
_ROWS_AT_ONCE = 32


class Signature(NamedTuple):
    """A function from named Tensors to named Tensors, and what it takes."""

    function: Callable[..., Tensors]
    inputs: dict[str, tf.TensorSpec]


class TaskSignatures(abc.ABC):
    """The signatures of a fine-tuned model; one subclass for a kind of task.

    The signatures `ids` and `examples` need no tokenizer. A text that is read
    in several windows is several rows there, and combining the outputs is left
    to the client.

    Args:
        finetuned: The model.
        tokenizer: For signatures that take text; None to have none of them.
    """

    num_choices = 1

    def __init__(
        self, finetuned: FinetunedModel, tokenizer: GraphTokenizer | None
    ) -> None:
        self.task: Any = finetuned.task
        self.model = finetuned.model
        self.max_seq_length = finetuned.max_seq_length
        self.special_ids = text_inputs.special_ids(finetuned.tokenizer.vocab)
        self.tokenizer: Any = tokenizer

    @abc.abstractmethod
    def outputs(self, logits: Any) -> Tensors:
        """Returns the outputs of rows with these logits [B, ...]."""

    @abc.abstractmethod
    def text_signatures(self) -> dict[str, Signature]:
        """Returns the signatures that take text."""

    def all(self) -> dict[str, Signature]:
        """Returns all signatures by name."""
        ids = Signature(self.from_ids, self.ids_inputs())
        examples = Signature(self.from_examples, string_inputs("examples"))
        texts = self.text_signatures() if self.tokenizer else {}
        named = {"serving_default": ids, "ids": ids, "examples": examples}
        return {**named, **texts}

    def from_ids(
        self, input_ids: Any, input_mask: Any, segment_ids: Any
    ) -> Tensors:
        """`ids`: int32 [B, S], or [B, C, S] if there are C choices."""
        return self.outputs(self.logits(input_ids, input_mask, segment_ids))

    def from_examples(self, examples: Any) -> Tensors:
        """`examples`: serialized `tf.train.Example`s, string [B].

        They are records as written in fine-tuning, padded to `max_seq_length`.
        Of their features only the three inputs of the model are read.
        """
        return self.from_ids(**records.parse(self._schema(), examples))

    def ids_inputs(self) -> dict[str, tf.TensorSpec]:
        """Returns the inputs of `from_ids`, of any batch size and length."""
        choices = [self.num_choices] if self.num_choices > 1 else []
        shape = [None, *choices, None]
        return {
            name: tf.TensorSpec(shape, tf.int32, name)
            for name in self._schema()
        }

    def _schema(self) -> Schema:
        return text_schema(self.max_seq_length, self.num_choices)

    def logits(self, input_ids: Any, input_mask: Any, segment_ids: Any) -> Any:
        """Runs the model."""
        inputs = (input_ids, input_mask, segment_ids)
        batch = dict(zip(self._schema(), inputs, strict=True))
        return self.model(batch, training=False)

    def features(
        self, ids_a: Any, ids_b: Any, seq_length: Any = None
    ) -> Tensors:
        """Returns the model's inputs, int32 [R, S].

        Args:
            ids_a: int32 RaggedTensor [R, (tokens)], which fit into a sequence.
            ids_b: Likewise; empty rows for single texts.
            seq_length: S; default: the length of the longest row.
        """
        if seq_length is None:
            a, b = ids_a.row_lengths(), ids_b.row_lengths()
            longest = tf.reduce_max(a + b + 2 + tf.minimum(b, 1))
            seq_length = tf.maximum(longest, 2)  # If there are no rows.
        packed = graph_packing.pack(
            [ids_a, ids_b], seq_length, self.special_ids, ends_empty=False
        )
        return dict(zip(self._schema(), packed.values(), strict=True))

    def tokenize(self, *texts: Any) -> list[Any]:
        """Returns the token ids [B, (tokens)] of several batches of texts.

        They are tokenized together, which keeps the graph small.
        """
        ids = self.tokenizer.tokenize(tf.concat(texts, axis=0))
        return tf.split(ids, [tf.size(batch) for batch in texts])

    def logits_in_blocks(self, rows: Tensors) -> Any:
        """Returns the logits [R, ...] of `features`, some rows at a time."""
        number = tf.shape(rows["input_ids"])[0]

        def block(begin: Any) -> tuple[Any, Any]:
            end = tf.minimum(begin + _ROWS_AT_ONCE, number)
            part = {name: values[begin:end] for name, values in rows.items()}
            return end, self.logits(**part)

        def add_block(begin: Any, logits: Any) -> tuple[Any, Any]:
            end, more = block(begin)
            return end, tf.concat([logits, more], axis=0)

        end, logits = block(tf.constant(0))
        shape = tf.TensorShape([None, *logits.shape[1:]])
        return tf.while_loop(
            lambda begin, _: begin < number,
            add_block,
            (end, logits),
            shape_invariants=(end.shape, shape),
        )[1]


def string_inputs(*names: str) -> dict[str, tf.TensorSpec]:
    """Returns inputs that are one string for each item, [B]."""
    return {name: tf.TensorSpec([None], tf.string, name) for name in names}
