"""Self-attention: section 3.2 of Vaswani et al., 2017."""

import math
from typing import Any

import keras
from keras import ops

from official_bert.config import BertConfig
from official_bert.modeling.dropout import Dropout
from official_bert.modeling.layers import ResidualOutput, dense


def attention_bias(
    input_mask: Any,
    dtype: str,
    is_packed: bool = False,
    is_left_to_right: bool = False,
) -> Any:
    """Returns 0 for what may be attended to and -10000 for what may not.

    Not minus infinity: a row that is all padding must still give numbers.

    Args:
        input_mask: int Tensor [B, S], 1 for tokens and 0 for padding. Padding
            is never attended *to*; attending *from* it is harmless.
        dtype: Of the result.
        is_packed: Whether the mask is the number of the sequence that a token
            belongs to. Then a token attends to those of its own number only,
            and padding to padding.
        is_left_to_right: Whether a token attends to none behind it.

    Returns:
        float Tensor [B, 1, 1, T], or [B, 1, F, T] of packed sequences and from
        left to right.
    """
    mask = ops.expand_dims(ops.expand_dims(input_mask, 1), 1)
    if is_packed:
        mask = ops.equal(mask, ops.transpose(mask, (0, 1, 3, 2)))
    if is_left_to_right:
        places = ops.arange(ops.shape(input_mask)[1])
        is_behind = ops.expand_dims(places, 1) < places  # [F, T]
        mask = ops.where(is_behind, 0, ops.cast(mask, "int32"))
    return (1.0 - ops.cast(mask, dtype)) * -10000.0


class SelfAttention(keras.layers.Layer):
    """Multi-headed attention of a sequence to itself.

    Each of the A heads compares all positions with all positions and returns
    their average, weighted by how well query and key agree.

    Call arguments:
        x: float Tensor of shape [B, S, H].
        bias: float Tensor of shape [B, 1, 1, T] or [B, 1, F, T], added to how
            well query and key agree: `attention_bias`.

    Returns:
        The attended vectors [B, S, H] and the attention probabilities
        [B, A, S, S], before dropout so that they can be drawn.
    """

    def __init__(self, config: BertConfig, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.num_heads = config.num_attention_heads
        self.hidden_size = config.hidden_size
        self.head_size = self.hidden_size // self.num_heads
        self.query = dense(config, self.hidden_size, name="query")
        self.key = dense(config, self.hidden_size, name="key")
        self.value = dense(config, self.hidden_size, name="value")
        self.dropout = Dropout(
            config.attention_probs_dropout_prob, name="dropout"
        )

    def build(self, x_shape: Any) -> None:
        """Makes the weights."""
        for layer in (self.query, self.key, self.value, self.dropout):
            layer.build(x_shape)

    def call(
        self, x: Any, bias: Any, training: bool = False
    ) -> tuple[Any, Any]:
        """See the class."""
        # Queries are fewer numbers to scale than scores, by S / D.
        query = self.query(x) * (1.0 / math.sqrt(self.head_size))
        query = self._split_heads(query)  # [B, A, F, D]
        key = self._split_heads(self.key(x))  # [B, A, T, D]
        value = self._split_heads(self.value(x))  # [B, A, T, D]

        scores = ops.matmul(query, ops.transpose(key, (0, 1, 3, 2)))
        # In float32, also where layers compute in 16 bits.
        scores = ops.cast(scores, "float32") + ops.cast(bias, "float32")
        probabilities = ops.softmax(scores)
        dropped = self.dropout(probabilities, training=training)  # [B, A, F, T]

        context = ops.transpose(ops.matmul(dropped, value), (0, 2, 1, 3))
        batch, length, _ = ops.shape(x)
        context = ops.reshape(context, (batch, length, self.hidden_size))
        return context, probabilities

    def _split_heads(self, x: Any) -> Any:
        """Cuts [B, S, H] into [B, A, S, D]."""
        batch, length, _ = ops.shape(x)
        x = ops.reshape(x, (batch, length, self.num_heads, self.head_size))
        return ops.transpose(x, (0, 2, 1, 3))


class Attention(keras.layers.Layer):
    """Self-attention, then `ResidualOutput`: half a Transformer layer."""

    def __init__(self, config: BertConfig, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.self_attention = SelfAttention(config, name="self")
        self.residual_output = ResidualOutput(config, name="output")

    def build(self, x_shape: Any) -> None:
        """Makes the weights."""
        self.self_attention.build(x_shape)
        self.residual_output.build(x_shape, x_shape)

    def call(
        self, x: Any, bias: Any, training: bool = False
    ) -> tuple[Any, Any]:
        """Returns the layer's half-way vectors [B, S, H] and probabilities."""
        context, probabilities = self.self_attention(x, bias, training=training)
        return self.residual_output(
            context, x, training=training
        ), probabilities
