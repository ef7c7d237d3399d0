"""Texts and pairs: classes, several labels, or a number."""

from typing import Any

import tensorflow as tf

from official_bert.export.serving import packing
from official_bert.export.serving.signatures import (
    Served,
    Signature,
    Tensors,
    strings,
)
from official_bert.tasks.text import TextTask


class TextKind:
    """Signatures of a `tasks.text.TextTask`.

    Outputs, for each text: `score` [B] in regression; else `classes` [B, C],
    the names, and `probabilities` [B, C]; and of one class `label` [B], of
    several `labels` [B, C], those of at least one half, followed by "".
    """

    num_choices = 1

    def __init__(self, served: Served) -> None:
        self.served = served
        self.task: TextTask = served.task

    def outputs(self, logits: Any) -> Tensors:
        """Returns what is said of texts with these logits [B, C]."""
        if self.task.task_type == "regression":
            return {"score": logits[:, 0]}
        names = tf.constant(self.task.labels)
        classes = tf.broadcast_to(names, tf.shape(logits))
        if self.task.task_type == "multilabel":
            probabilities = tf.sigmoid(logits)
            answer = {"labels": _chosen(classes, probabilities >= 0.5)}
        else:
            probabilities = tf.nn.softmax(logits)
            best = tf.argmax(probabilities, axis=1)
            answer = {"label": tf.gather(names, best)}
        return {**answer, "classes": classes, "probabilities": probabilities}

    def of_pairs(self, text_a: Any, text_b: Any) -> Tensors:
        """`serving_default`: [B] texts; `text_b` is "" where there is none."""
        tokenize = self.served.tokenizer.tokenize
        how = self.task.long_documents
        pairs = packing.cut(
            tokenize(text_a), tokenize(text_b), self.served.max_seq_length, how
        )
        rows = packing.pack(pairs.ids_a, pairs.ids_b, self.served.marks)
        logits = packing.logits_in_blocks(self.served.model, rows)
        if how.mode == "windows":
            pool = tf.math.segment_mean
            if how.pooling == "max":
                pool = tf.math.segment_max
            logits = pool(logits, pairs.example)
        return self.outputs(logits)

    def of_texts(self, text: Any) -> Tensors:
        """`text`: the same for single texts."""
        return self.of_pairs(text, tf.zeros_like(text))

    def text_signatures(self) -> dict[str, Signature]:
        """Returns `serving_default` and `text`."""
        return {
            "serving_default": Signature(
                self.of_pairs, strings("text_a", "text_b")
            ),
            "text": Signature(self.of_texts, strings("text")),
        }


def _chosen(classes: Any, is_chosen: Any) -> Any:
    """Moves what is chosen to the left, and puts "" behind it."""
    chosen = tf.ragged.boolean_mask(classes, is_chosen)
    return chosen.to_tensor("", shape=classes.shape)
