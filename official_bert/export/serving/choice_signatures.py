"""Multiple choice."""

from typing import Any

import tensorflow as tf

from official_bert.export.serving import packing
from official_bert.export.serving.signatures import (
    SPACE,
    Served,
    Signature,
    Tensors,
    strings,
)
from official_bert.tasks.choice import ChoiceTask


class ChoiceKind:
    """Signatures of a `tasks.choice.ChoiceTask`.

    Outputs, for each item: `choice` [B], the number of the best one from 0;
    `probabilities` [B, C]; and of texts `text` [B], that choice.
    """

    def __init__(self, served: Served) -> None:
        self.served = served
        self.task: ChoiceTask = served.task
        self.num_choices = self.task.num_choices

    def outputs(self, logits: Any) -> Tensors:
        """Returns what is said of items with these logits [B, C]."""
        probabilities = tf.nn.softmax(logits)
        choice = tf.argmax(probabilities, axis=1, output_type=tf.int32)
        return {"choice": choice, "probabilities": probabilities}

    def of_choices(self, context: Any, choices: Any) -> Tensors:
        """`serving_default`: `context` [B], `choices` [B, C].

        A question belongs before each choice, with a space between.
        """
        tokenize = self.served.tokenizer.tokenize
        items = tf.repeat(tf.range(tf.size(context)), self.num_choices)
        pairs = packing.cut(
            tf.gather(tokenize(context), items),
            tokenize(tf.reshape(choices, [-1])),
            self.served.max_seq_length,
            self.task.long_documents,
        )
        rows = packing.pack(pairs.ids_a, pairs.ids_b, self.served.marks)
        length = tf.shape(rows["input_ids"])[1]
        batch = {
            name: tf.reshape(values, [-1, self.num_choices, length])
            for name, values in rows.items()
        }
        found = self.outputs(self.served.model(batch, training=False))
        text = tf.gather(choices, found["choice"], batch_dims=1)
        text = tf.strings.regex_replace(text, f"^{SPACE}+|{SPACE}+$", "")
        return {**found, "text": text}

    def text_signatures(self) -> dict[str, Signature]:
        """Returns `serving_default`."""
        shape = [None, self.num_choices]
        choices = tf.TensorSpec(shape, tf.string, "choices")
        inputs = {**strings("context"), "choices": choices}
        return {"serving_default": Signature(self.of_choices, inputs)}
