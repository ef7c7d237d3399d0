"""Multi-head self-attention (Vaswani et al., 2017, section 3.2)."""

import math
from typing import Any

from keras import ops

from official_bert.config import BertConfig
from official_bert.modeling import layers


def attention_bias(
    input_mask: Any, dtype: str, is_packed: bool, is_left_to_right: bool
) -> Any:
    """Returns 0 where attention is allowed and -10000 where it is not.

    Minus infinity would give NaN in rows that are all padding.

    Args:
        input_mask: int Tensor [B, S], 1 for tokens and 0 for padding. No token
            attends to padding.
        dtype: The dtype of the result.
        is_packed: Whether the mask numbers the sequences packed into each row.
            A token then attends only to tokens with the same number.
        is_left_to_right: Whether a token attends only to itself and earlier
            tokens.

    Returns:
        float Tensor [B, 1, 1, T]; [B, 1, F, T] if packed or left-to-right.
    """
    mask = ops.expand_dims(ops.expand_dims(input_mask, 1), 1)
    if is_packed:
        mask = ops.equal(mask, ops.transpose(mask, (0, 1, 3, 2)))
    if is_left_to_right:
        positions = ops.arange(ops.shape(input_mask)[1])
        is_later = ops.expand_dims(positions, 1) < positions  # [F, T]
        mask = ops.where(is_later, 0, ops.cast(mask, "int32"))
    return (1.0 - ops.cast(mask, dtype)) * -10000.0


@layers.serializable
class SelfAttention(layers.ConfiguredLayer):
    """Multi-head self-attention.

    Call arguments:
        from_tensor: float Tensor [B, F, H], the positions that attend.
        to_tensor: float Tensor [B, T, H], the positions attended to.
        bias: float Tensor [B, 1, 1, T] or [B, 1, F, T] from `attention_bias`,
            added to the attention scores.
        unpadding: An `Unpadding`, if tensors [B, S, H] are given as [N, H].

    Returns:
        The attended vectors, in the shape of `from_tensor`, and the attention
        probabilities [B, A, F, T], before dropout.
    """

    def __init__(self, config: BertConfig, **kwargs: Any) -> None:
        super().__init__(config, **kwargs)
        config = self.config
        self.head_size = config.hidden_size // config.num_attention_heads
        self.query = layers.dense(config, config.hidden_size, name="query")
        self.key = layers.dense(config, config.hidden_size, name="key")
        self.value = layers.dense(config, config.hidden_size, name="value")
        self.dropout = layers.Dropout(
            config.attention_probs_dropout_prob, name="dropout"
        )

    def build(self, from_tensor_shape: Any) -> None:
        for layer in (self.query, self.key, self.value, self.dropout):
            layer.build(from_tensor_shape)

    def call(
        self, from_tensor: Any, to_tensor: Any, bias: Any, unpadding: Any = None
    ) -> tuple[Any, Any]:
        # Scaling the queries takes D / T of the time of scaling the scores.
        query = self.query(from_tensor) * (1.0 / math.sqrt(self.head_size))
        query = self._split_heads(query, unpadding)  # [B, A, F, D]
        key = self._split_heads(self.key(to_tensor), unpadding)  # [B, A, T, D]
        value = self._split_heads(self.value(to_tensor), unpadding)

        scores = layers.matmul(self, query, ops.transpose(key, (0, 1, 3, 2)))
        # The softmax is computed in float32, also under a 16-bit policy.
        scores = ops.cast(scores, "float32") + ops.cast(bias, "float32")
        probabilities = ops.softmax(scores)  # [B, A, F, T]
        attended = layers.matmul(self, self.dropout(probabilities), value)
        attended = ops.transpose(attended, (0, 2, 1, 3))
        batch, length, *_ = layers.shape_of(attended)
        size = self.config.hidden_size
        attended = ops.reshape(attended, (batch, length, size))
        if len(from_tensor.shape) == 2:
            attended = unpadding.remove(attended)
        return attended, probabilities

    def _split_heads(self, x: Any, unpadding: Any) -> Any:
        """Reshapes [B, S, H] or, unpadded, [N, H] to [B, A, S, D]."""
        if len(x.shape) == 2:
            x = unpadding.restore(x)
        batch, length, _ = layers.shape_of(x)
        heads = (self.config.num_attention_heads, self.head_size)
        x = ops.reshape(x, (batch, length, *heads))
        return ops.transpose(x, (0, 2, 1, 3))
