"""Signatures for texts, pairs of texts, and multiple choice."""

from typing import Any

import tensorflow as tf

from official_bert.export import graph_packing
from official_bert.export.serving.signatures import (
    SPACE,
    Signature,
    TaskSignatures,
    Tensors,
    string_inputs,
)


class TextSignatures(TaskSignatures):
    """Signatures of a `tasks.text.TextTask`.

    Outputs for each text or pair:
        score: [B], in regression; otherwise the following.
        classes: [B, C], the names of the classes.
        probabilities: [B, C].
        label: [B], the most probable class, in classification.
        labels: [B, C], in multi-label classification: the classes with a
            probability of at least 0.5, then "".
    """

    def outputs(self, logits: Any) -> Tensors:
        """See the class; `logits` [B, C]."""
        if self.task.task_type == "regression":
            return {"score": logits[:, 0]}
        names = tf.constant(self.task.labels)
        classes = tf.broadcast_to(names, tf.shape(logits))
        if self.task.task_type == "multilabel":
            probabilities = tf.sigmoid(logits)
            chosen = tf.ragged.boolean_mask(classes, probabilities >= 0.5)
            answer = {"labels": chosen.to_tensor("", shape=classes.shape)}
        else:
            probabilities = tf.nn.softmax(logits)
            best = tf.argmax(probabilities, axis=1)
            answer = {"label": tf.gather(names, best)}
        return {**answer, "classes": classes, "probabilities": probabilities}

    def from_pairs(self, text_a: Any, text_b: Any) -> Tensors:
        """`serving_default`: strings [B]; `text_b` is "" for single texts."""
        long_documents = self.task.long_documents
        ids_a, ids_b = self.tokenize(text_a, text_b)
        segments = graph_packing.fit(
            ids_a, ids_b, self.max_seq_length, long_documents
        )
        rows = self.features(segments.ids_a, segments.ids_b)
        logits = self.logits_in_blocks(rows)
        if long_documents.mode == "windows":
            pool = tf.math.segment_mean
            if long_documents.pooling == "max":
                pool = tf.math.segment_max
            logits = pool(logits, segments.example)
        return self.outputs(logits)

    def from_texts(self, text: Any) -> Tensors:
        """`text`: strings [B]."""
        return self.from_pairs(text, tf.zeros_like(text))

    def text_signatures(self) -> dict[str, Signature]:
        """Returns `serving_default` and `text`."""
        return {
            "serving_default": Signature(
                self.from_pairs, string_inputs("text_a", "text_b")
            ),
            "text": Signature(self.from_texts, string_inputs("text")),
        }


class ChoiceSignatures(TaskSignatures):
    """Signatures of a `tasks.choice.ChoiceTask`.

    Outputs for each item:
        choice: int32 [B], the index of the best choice.
        probabilities: [B, C].
        text: [B], that choice; of `serving_default` only.
    """

    @property
    def num_choices(self) -> int:  # type: ignore[override]
        """C."""
        return int(self.task.num_choices)

    def outputs(self, logits: Any) -> Tensors:
        """See the class; `logits` [B, C]."""
        probabilities = tf.nn.softmax(logits)
        choice = tf.argmax(probabilities, axis=1, output_type=tf.int32)
        return {"choice": choice, "probabilities": probabilities}

    def from_choices(self, context: Any, choices: Any) -> Tensors:
        """`serving_default`: strings `context` [B] and `choices` [B, C].

        A question is the beginning of each choice, followed by a space.
        """
        contexts = tf.repeat(tf.range(tf.size(context)), self.num_choices)
        ids_a, ids_b = self.tokenize(context, tf.reshape(choices, [-1]))
        segments = graph_packing.fit(
            tf.gather(ids_a, contexts),
            ids_b,
            self.max_seq_length,
            self.task.long_documents,
        )
        rows = self.features(segments.ids_a, segments.ids_b)
        shape = [-1, self.num_choices, tf.shape(rows["input_ids"])[1]]
        outputs = self.from_ids(
            **{name: tf.reshape(rows[name], shape) for name in rows}
        )
        text = tf.gather(choices, outputs["choice"], batch_dims=1)
        text = tf.strings.regex_replace(text, f"^{SPACE}+|{SPACE}+$", "")
        return {**outputs, "text": text}

    def text_signatures(self) -> dict[str, Signature]:
        """Returns `serving_default`."""
        shape = [None, self.num_choices]
        choices = tf.TensorSpec(shape, tf.string, "choices")
        inputs = {**string_inputs("context"), "choices": choices}
        return {"serving_default": Signature(self.from_choices, inputs)}
