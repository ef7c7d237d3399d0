"""Layers between BERT and the output layer of a task (section 5.3)."""

from collections.abc import Sequence
from typing import Any

import keras
from keras import ops

from official_bert.modeling.layers import serializable

# Indices into the embeddings and the outputs of all layers.
_LAYERS = {"embeddings": 0, "second_to_last": -2, "last": -1}


@serializable
class LayerPooling(keras.layers.Layer):
    """Combines the outputs of BERT's layers into one vector per token.

    The weighted sums are the scalar mix of ELMo (Peters et al., 2018, equation
    1), whose weights are trained and initially equal, with scale 1::

        scale * sum_j softmax(layer_weights)_j layer_j

    Models with fewer than four layers use all of them as the "last 4". For
    `feature_layers` see `sources.heads.PoolingHead`.

    Call arguments:
        embedding_output: float Tensor [B, S, H].
        encoder_outputs: L float Tensors [B, S, H].

    Returns:
        float Tensor [B, S, H]; [B, S, min(4, L) H] for concat_last_4.
    """

    def __init__(
        self,
        feature_layers: str,
        num_hidden_layers: int,
        name: str = "features",
        **kwargs: Any,
    ) -> None:
        super().__init__(name=name, **kwargs)
        self.feature_layers = feature_layers
        self.num_hidden_layers = num_hidden_layers

    def build(self, embedding_output_shape: Any) -> None:
        if not self.feature_layers.startswith("weighted_sum"):
            return
        num_summed = self.num_hidden_layers
        if self.feature_layers == "weighted_sum_last_4":
            num_summed = min(4, num_summed)
        self.layer_weights = self.add_weight(
            name="layer_weights", shape=(num_summed,), initializer="zeros"
        )
        self.scale = self.add_weight(
            name="scale", shape=(1,), initializer="ones"
        )

    def call(
        self, embedding_output: Any, encoder_outputs: Sequence[Any]
    ) -> Any:
        if self.feature_layers in _LAYERS:
            outputs = [embedding_output, *encoder_outputs]
            return outputs[_LAYERS[self.feature_layers]]
        if self.feature_layers == "concat_last_4":
            return ops.concatenate(encoder_outputs[-4:], axis=-1)
        # `ops.softmax` would warn about models of one layer.
        shares = ops.exp(self.layer_weights - ops.max(self.layer_weights))
        shares = shares / ops.sum(shares)
        layers = encoder_outputs[-shares.shape[0] :]
        total = sum(shares[j] * layer for j, layer in enumerate(layers))
        return self.scale * total


@serializable
class BiLstm(keras.layers.Layer):
    """A two-layer bidirectional LSTM (sections 5.1 and 5.3).

    Each layer has N = `size` units in each direction.

    Call arguments:
        x: float Tensor [B, S, any].
        input_mask: int Tensor [B, S], 1 for tokens and 0 for padding, which is
            skipped.

    Returns:
        The upper layer's outputs [B, S, 2 N], 0 for padding, and the final
        states of its two directions, [B, 2 N].
    """

    def __init__(self, size: int, name: str = "bilstm", **kwargs: Any) -> None:
        super().__init__(name=name, **kwargs)
        self.size = size
        self.layer_0, self.layer_1 = (
            keras.layers.Bidirectional(
                keras.layers.LSTM(
                    size,
                    return_sequences=True,
                    return_state=True,
                    use_cudnn=False,  # cuDNN needs a token in every row.
                    name="lstm",
                ),
                name=f"layer_{j}",
            )
            for j in range(2)
        )

    def build(self, x_shape: Any) -> None:
        self.layer_0.build(x_shape)
        self.layer_1.build((*x_shape[:-1], 2 * self.size))

    def call(self, x: Any, input_mask: Any) -> tuple[Any, Any]:
        mask = ops.cast(input_mask, "bool")
        x = self.layer_0(x, mask=mask)[0]
        x, forward_state, _, backward_state, _ = self.layer_1(x, mask=mask)
        # Creates a new Tensor, because Keras attached the mask to `x`, where
        # later layers would find it.
        x = ops.where(mask[..., None], x, 0)
        return x, ops.concatenate([forward_state, backward_state], axis=-1)


def mean_pooling(x: Any, input_mask: Any) -> Any:
    """Returns the float32 mean [B, any] of [B, S, any] where the mask is 1."""
    x = ops.cast(x, "float32")
    mask = ops.cast(ops.expand_dims(input_mask, -1), "float32")
    count = ops.maximum(ops.sum(mask, axis=1), 1)
    return ops.sum(x * mask, axis=1) / count


def unit_vectors(x: Any) -> Any:
    """Scales vectors [..., any] to length 1; a zero vector stays zero."""
    # Not by `ops.norm`, whose gradient is NaN for a text without tokens.
    squares = ops.sum(ops.square(x), axis=-1, keepdims=True)
    return x * ops.rsqrt(ops.maximum(squares, 1e-24))
