"""The functions of served models; SQuAD and tagging are in other modules."""

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from official_bert.export import graph_packing
from official_bert.export.graph_tokenizer import GraphTokenizer
from official_bert.export.saved_model import signature
from official_bert.inputs import records, text_inputs
from official_bert.inputs.schemas import TEXT_INPUTS
from official_bert.modeling.losses import mask_missing_choices
from official_bert.tasks.long_texts import TRUNCATE_TAIL
from official_bert.tasks.task import FinetunedModel

Tensors = dict[str, Any]

# The whitespace of Python's `str.strip`, for RE2.
_SPACE = r"[\pZ\t-\r\x1c-\x1f\x{85}]"

# A long text can have hundreds of windows. The model runs on this many at a
# time, to limit memory.
_ROWS_AT_ONCE = 32


def strings(name: str) -> tf.TensorSpec:
    """Returns the spec of an input with one string for each item, [B]."""
    return tf.TensorSpec([None], tf.string, name)


class TaskSignatures:
    """The signatures of a fine-tuned model, whose output is `logits`.

    Subclasses, named by `Task.serving`, have other outputs and take text.
    The signatures `ids` and `examples` need no tokenizer. With them, a text
    that is divided into several windows takes several rows, and the client
    combines their outputs.

    Attributes:
        texts: The inputs of `from_text`, which needs a tokenizer; (): there is
            no such function.
        from_text: `serving_default`, if there is a tokenizer.
    """

    texts: tuple[tf.TensorSpec, ...] = ()
    from_text: Callable[..., Tensors]

    def __init__(
        self, finetuned: FinetunedModel, tokenizer: GraphTokenizer | None
    ) -> None:
        self.task: Any = finetuned.task
        self.model = finetuned.model
        self.max_seq_length = finetuned.max_seq_length
        schema = self.task.schema(self.max_seq_length)
        self.schema = {name: schema[name] for name in TEXT_INPUTS}
        self.special_ids = text_inputs.special_ids(finetuned.tokenizer.vocab)
        self.tokenizer: Any = tokenizer

    def _outputs(self, logits: Any) -> Tensors:
        """Returns the outputs of rows with these logits [B, ...]."""
        return {"logits": logits}

    def all(self) -> dict[str, Any]:
        """Returns all signatures by name."""
        ids = default = signature(self.from_ids, *self.ids_inputs())
        if self.texts and self.tokenizer:
            default = signature(self.from_text, *self.texts)
        return {
            "serving_default": default,
            "ids": ids,
            "examples": signature(self.from_examples, strings("examples")),
        }

    def from_ids(
        self, input_ids: Any, input_mask: Any, segment_ids: Any
    ) -> Tensors:
        """`ids`: int32 [B, S], or [B, C, S] if there are C choices."""
        return self._outputs(self.logits(input_ids, input_mask, segment_ids))

    def from_examples(self, examples: Any) -> Tensors:
        """`examples`: serialized `tf.train.Example`s, string [B].

        These are records as fine-tuning writes them, padded to
        `max_seq_length`. Only the features that are inputs of the model are
        read.
        """
        return self.from_ids(**records.parse(self.schema, examples))

    def ids_inputs(self) -> list[tf.TensorSpec]:
        """Returns the inputs of `from_ids`, of any batch size and length."""
        return [
            tf.TensorSpec([None, *feature.shape[:-1], None], tf.int32, name)
            for name, feature in self.schema.items()
        ]

    def logits(self, *inputs: Any) -> Any:
        """Runs the model on `input_ids`, `input_mask` and `segment_ids`."""
        batch = dict(zip(self.schema, inputs, strict=True))
        return self.task.unscale(self.model(batch, training=False))

    def features(
        self, ids_a: Any, ids_b: Any, seq_length: Any = None
    ) -> list[Any]:
        """Packs token ids, already cut to fit, into the model's inputs.

        These are int32 [R, S]; the default of S is the length of the longest
        row. The rows of `ids_b` are empty for single texts.
        """
        if seq_length is None:
            a, b = ids_a.row_lengths(), ids_b.row_lengths()
            longest = tf.reduce_max(a + b + 2 + tf.minimum(b, 1))
            seq_length = tf.maximum(longest, 2)  # 2 if there are no rows.
        packed = graph_packing.pack(
            [ids_a, ids_b], seq_length, self.special_ids, ends_empty=False
        )
        return list(packed.values())

    def tokenize(self, *texts: Any) -> list[Any]:
        """Tokenizes batches of texts at once, which keeps the graph small."""
        ids = self.tokenizer.tokenize(tf.concat(texts, axis=0))
        return tf.split(ids, [tf.size(batch) for batch in texts])

    def logits_in_blocks(
        self, inputs: Sequence[Any], shape: Sequence[int | None]
    ) -> Any:
        """Returns the logits, of the given shape [R, ...], block by block."""

        def logits_from(begin: Any) -> Any:
            end = begin + _ROWS_AT_ONCE
            return self.logits(*(values[begin:end] for values in inputs))

        # One block, without rows, if there are none.
        num_rows = tf.maximum(tf.shape(inputs[0])[0], 1)
        spec = tf.RaggedTensorSpec(shape, tf.float32, ragged_rank=0)
        return tf.map_fn(
            logits_from,
            tf.range(0, num_rows, _ROWS_AT_ONCE),
            fn_output_signature=spec,
            parallel_iterations=1,
        ).values


class TextSignatures(TaskSignatures):
    """Signatures of a `tasks.text.TextTask`.

    For each text or pair, classifiers return the names of the `classes`,
    [B, C], their `probabilities`, [B, C], and the prediction.
    """

    texts = strings("text_a"), strings("text_b")

    def _classes(self, logits: Any) -> Any:
        return tf.broadcast_to(tf.constant(self.task.labels), tf.shape(logits))

    def from_text(self, text_a: Any, text_b: Any) -> Tensors:
        """`serving_default`: strings [B]; `text_b` is "" for single texts."""
        long_documents = self.task.long_documents
        ids_a, ids_b = self.tokenize(text_a, text_b)
        ids_a, ids_b, example = graph_packing.cut(
            ids_a, ids_b, self.max_seq_length, long_documents
        )
        inputs = self.features(ids_a, ids_b)
        num_outputs = self.task.head.num_outputs
        logits = self.logits_in_blocks(inputs, [None, num_outputs])
        if long_documents.mode == "windows":
            is_max = long_documents.pooling == "max"
            pool = tf.math.segment_max if is_max else tf.math.segment_mean
            logits = pool(logits, example)
        return self._outputs(logits)

    def from_single(self, text: Any) -> Tensors:
        """`text`: strings [B]."""
        return self.from_text(text, tf.zeros_like(text))

    def all(self) -> dict[str, Any]:
        """Returns all signatures, with `text` for single texts."""
        single = signature(self.from_single, strings("text"))
        return super().all() | ({"text": single} if self.tokenizer else {})


class ClassificationSignatures(TextSignatures):
    """The prediction is `label`, [B]: the most probable class."""

    def _outputs(self, logits: Any) -> Tensors:
        temperature = self.task.calibration.temperature
        probabilities = tf.nn.softmax(logits / temperature)
        best = tf.argmax(probabilities, axis=1)
        return {
            "label": tf.gather(tf.constant(self.task.labels), best),
            "classes": self._classes(logits),
            "probabilities": probabilities,
        }


class MultilabelSignatures(TextSignatures):
    """The prediction is `labels`, [B, C].

    These are the classes whose probability reaches their threshold, then "".
    """

    def _outputs(self, logits: Any) -> Tensors:
        classes, probabilities = self._classes(logits), tf.sigmoid(logits)
        thresholds = tf.constant(self.task.thresholds, tf.float32)
        chosen = tf.ragged.boolean_mask(classes, probabilities >= thresholds)
        return {
            "labels": chosen.to_tensor("", shape=classes.shape),
            "classes": classes,
            "probabilities": probabilities,
        }


class RegressionSignatures(TextSignatures):
    """The output is `score`, [B]."""

    def _outputs(self, logits: Any) -> Tensors:
        is_sigmoid = self.task.activation == "sigmoid"
        scores = tf.sigmoid(logits) if is_sigmoid else logits
        return {"score": scores[:, 0]}


class EmbeddingSignatures(TaskSignatures):
    """Signatures of a `tasks.embedding.EmbeddingTask`.

    The output is `vector`, [B, D].
    """

    texts = (strings("text"),)

    def _outputs(self, logits: Any) -> Tensors:
        return {"vector": logits}

    def from_text(self, text: Any) -> Tensors:
        """`serving_default`: strings [B]."""
        [ids] = self.tokenize(text)
        ids, nothing, _ = graph_packing.cut(
            ids, ids[:, :0], self.max_seq_length, TRUNCATE_TAIL
        )
        size = self.task.embedding_size or self.model.config.hidden_size
        inputs = self.features(ids, nothing)
        return self._outputs(self.logits_in_blocks(inputs, [None, size]))


class ChoiceSignatures(TaskSignatures):
    """Signatures of a `tasks.choice.ChoiceTask`.

    Outputs for each item:
        choice: int32 [B], the index of the best choice.
        probabilities: [B, C], 0 for missing choices.
        text: [B], the text of the best choice; only in `serving_default`.
    """

    texts = (
        strings("context"),
        tf.TensorSpec([None, None], tf.string, "choices"),
    )

    def logits(self, *inputs: Any) -> Any:
        """Runs the model; choices without tokens have low logits."""
        _, input_mask, _ = inputs
        return mask_missing_choices(super().logits(*inputs), input_mask)

    def _outputs(self, logits: Any) -> Tensors:
        probabilities = tf.nn.softmax(logits)
        best = tf.argmax(probabilities, axis=1, output_type=tf.int32)
        return {"choice": best, "probabilities": probabilities}

    def from_text(self, context: Any, choices: Any) -> Tensors:
        """`serving_default`: strings `context` [B] and `choices` [B, N].

        N is at most C. If the context is not the question itself, each choice
        must start with the question and a space.
        """
        num_choices = tf.shape(choices)[1]
        max_choices = self.task.num_choices
        message = f"There must be at most {max_choices} choices."
        tf.debugging.assert_less_equal(num_choices, max_choices, message)
        contexts = tf.repeat(tf.range(tf.size(context)), num_choices)
        ids_a, ids_b = self.tokenize(context, tf.reshape(choices, [-1]))
        ids_a = tf.gather(ids_a, contexts)
        ids_a, ids_b, _ = graph_packing.cut(
            ids_a, ids_b, self.max_seq_length, self.task.long_documents
        )
        inputs = self.features(ids_a, ids_b)
        length = tf.shape(inputs[0])[1]
        missing = [[0, 0], [0, max_choices - num_choices], [0, 0]]
        padded = []
        for rows in inputs:
            rows = tf.pad(tf.reshape(rows, [-1, num_choices, length]), missing)
            padded.append(tf.reshape(rows, [-1, max_choices, length]))
        outputs = self.from_ids(*padded)
        text = tf.gather(choices, outputs["choice"], batch_dims=1)
        text = tf.strings.regex_replace(text, f"^{_SPACE}+|{_SPACE}+$", "")
        return {**outputs, "text": text}
