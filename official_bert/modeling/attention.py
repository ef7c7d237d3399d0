"""Self-attention: section 3.2 of Vaswani et al., 2017."""

import math
from typing import Any

import keras
from keras import ops

from official_bert.config import BertConfig
from official_bert.modeling.dropout import Dropout
from official_bert.modeling.layers import (
    ResidualOutput,
    dense,
    gather_positions,
)


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


def bias_from(bias: Any, positions: Any) -> Any:
    """Returns the bias for the positions [B, P] that alone attend.

    Args:
        bias: float Tensor [B, 1, 1, T] or [B, 1, F, T].
        positions: int Tensor [B, P] of indices below F.

    Returns:
        float Tensor [B, 1, 1, T] or [B, 1, P, T].
    """
    if bias.shape[2] == 1:  # The same for all that attend.
        return bias
    return ops.expand_dims(gather_positions(bias[:, 0], positions), 1)


class SelfAttention(keras.layers.Layer):
    """Multi-headed attention of a sequence to itself.

    Each of the A heads compares positions with all positions and returns the
    average of these, weighted by how well query and key agree.

    Call arguments:
        from_tensor: float Tensor of shape [B, F, H]: the sequence, or those of
            its positions that attend.
        to_tensor: float Tensor of shape [B, T, H]: the sequence.
        bias: float Tensor of shape [B, 1, 1, T] or [B, 1, F, T], added to how
            well query and key agree: `attention_bias`.

    Returns:
        The attended vectors [B, F, H] and the attention probabilities
        [B, A, F, T], before dropout so that they can be drawn.
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
        self,
        from_tensor: Any,
        to_tensor: Any,
        bias: Any,
        training: bool = False,
    ) -> tuple[Any, Any]:
        """See the class."""
        # Queries are fewer numbers to scale than scores, by T / D.
        query = self.query(from_tensor) * (1.0 / math.sqrt(self.head_size))
        query = self._split_heads(query)  # [B, A, F, D]
        key = self._split_heads(self.key(to_tensor))  # [B, A, T, D]
        value = self._split_heads(self.value(to_tensor))  # [B, A, T, D]

        scores = ops.matmul(query, ops.transpose(key, (0, 1, 3, 2)))
        # In float32, also where layers compute in 16 bits.
        scores = ops.cast(scores, "float32") + ops.cast(bias, "float32")
        probabilities = ops.softmax(scores)
        dropped = self.dropout(probabilities, training=training)  # [B, A, F, T]

        context = ops.transpose(ops.matmul(dropped, value), (0, 2, 1, 3))
        batch, length, _ = ops.shape(from_tensor)
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
        self,
        from_tensor: Any,
        to_tensor: Any,
        bias: Any,
        training: bool = False,
    ) -> tuple[Any, Any]:
        """Returns the layer's half-way vectors [B, F, H] and probabilities."""
        context, probabilities = self.self_attention(
            from_tensor, to_tensor, bias, training=training
        )
        return self.residual_output(
            context, from_tensor, training=training
        ), probabilities
