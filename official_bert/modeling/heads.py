"""What stands on top of BERT: the two pre-training heads."""

from typing import Any

import keras
from keras import ops

from official_bert.config import BertConfig
from official_bert.modeling.activations import get_activation
from official_bert.modeling.layers import dense, initializer
from official_bert.modeling.normalization import LayerNorm


class Transform(keras.layers.Layer):
    """One more dense layer and normalization before the vocabulary."""

    def __init__(self, config: BertConfig, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.dense = dense(
            config,
            config.hidden_size,
            activation=get_activation(config.hidden_act),
        )
        self.layer_norm = LayerNorm()

    def build(self, x_shape: Any) -> None:
        """Makes the weights."""
        self.dense.build(x_shape)
        self.layer_norm.build(x_shape)

    def call(self, x: Any) -> Any:
        """Maps [B, P, H] to [B, P, H]."""
        return self.layer_norm(self.dense(x))


class MaskedLM(keras.layers.Layer):
    """Guesses the pieces that were masked: section 3.1, task 1 of the paper.

    Logits exist at the masked positions only: at all S of them they would cost
    as much as all of Base's layers.

    Call arguments:
        x: float Tensor [B, P, H], BERT's vectors at these positions.
        word_embeddings: float Tensor [V, H], shared with the encoder's input.

    Returns:
        Logits over the vocabulary, [B, P, V].
    """

    def __init__(self, config: BertConfig, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.vocab_size = config.vocab_size
        self.transform = Transform(config, name="transform")

    def build(self, x_shape: Any) -> None:
        """Makes the weights."""
        self.transform.build(x_shape)
        self.output_bias = self.add_weight(
            name="output_bias", shape=(self.vocab_size,), initializer="zeros"
        )

    def call(self, x: Any, word_embeddings: Any) -> Any:
        """See the class."""
        *outer, hidden_size = ops.shape(x)
        rows = ops.reshape(self.transform(x), (-1, hidden_size))
        logits = _word_logits(
            rows,
            # Made tensors: a gradient by formula takes no variables.
            ops.reshape(word_embeddings, (-1, hidden_size)),
            ops.reshape(self.output_bias, (-1,)),
        )
        return ops.reshape(logits, (*outer, self.vocab_size))  # [B, P, V]


@ops.custom_gradient
def _word_logits(rows: Any, words: Any, bias: Any) -> Any:
    """Returns the logits [N, V] of [N, H], for words [V, H] and their biases.

    Left to itself, the gradient of `words` would be made transposed, and then
    turned: as long a way as a pass over the logits.
    """

    def gradient(upstream: Any) -> tuple[Any, Any, Any]:
        return (
            ops.matmul(upstream, words),
            ops.matmul(ops.transpose(upstream), rows),
            ops.sum(upstream, axis=0),
        )

    return ops.matmul(rows, ops.transpose(words)) + bias, gradient


class NextSentence(keras.layers.Layer):
    """Tells whether B follows A: section 3.1, task 2 of the paper.

    Returns:
        Logits [..., 2] of IsNext (0) and NotNext (1).
    """

    def __init__(self, config: BertConfig, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.config = config

    def build(self, pooled_output_shape: Any) -> None:
        """Makes the weights; they are stored transposed, [2, H]."""
        self.output_weights = self.add_weight(
            name="output_weights",
            shape=(2, self.config.hidden_size),
            initializer=initializer(self.config),
        )
        self.output_bias = self.add_weight(
            name="output_bias", shape=(2,), initializer="zeros"
        )

    def call(self, pooled_output: Any) -> Any:
        """Maps [..., H] to [..., 2]."""
        weights = ops.transpose(self.output_weights)
        return ops.matmul(pooled_output, weights) + self.output_bias


class PretrainingHeads(keras.layers.Layer):
    """Both heads, under the name that their weights have: `cls`."""

    def __init__(self, config: BertConfig, name: str = "cls") -> None:
        super().__init__(name=name)
        self.config = config
        self.predictions = MaskedLM(config, name="predictions")
        self.seq_relationship = NextSentence(config, name="seq_relationship")

    def build(self, masked_output_shape: Any = (None, None)) -> None:
        """Makes all weights; they depend on the config alone."""
        hidden_size = self.config.hidden_size
        self.predictions.build((None, None, hidden_size))
        self.seq_relationship.build((None, hidden_size))

    def call(
        self, masked_output: Any, pooled_output: Any, word_embeddings: Any
    ) -> tuple[Any, Any]:
        """Returns masked-LM [B, P, V] and next-sentence [..., 2] logits.

        Args:
            masked_output: float Tensor [B, P, H], of the masked tokens.
            pooled_output: float Tensor [..., H].
            word_embeddings: float Tensor [V, H].
        """
        masked_lm_logits = self.predictions(masked_output, word_embeddings)
        return masked_lm_logits, self.seq_relationship(pooled_output)
