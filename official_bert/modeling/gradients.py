"""Operations with hand-written gradients.

They are faster than automatic differentiation, and equal up to rounding.
"""

import math
from collections.abc import Callable
from typing import Any

import keras
from keras import ops


@keras.saving.register_keras_serializable("official_bert")
def gelu(x: Any) -> Any:
    """The Gaussian error linear unit (Hendrycks and Gimpel, 2016).

    This is the tanh form, which the original implementation has used since
    February 2019. Its earlier, exact (erf) form differs by up to 5e-4.
    """
    # TensorFlow fuses this form with the matrix product before it. With
    # AVX-512, no other form is faster. With AVX2, a fused gelu is slow: a pass
    # takes 1.03 (Base) to 1.13 (Tiny) times as long as without fusing.
    return ops.gelu(x, approximate=True)


def compiled(
    activation: Callable[[Any], Any], compile_function: Callable[..., Any]
) -> Callable[[Any], Any]:
    """Returns an activation; each gelu with value and gradient compiled.

    Separate operations would read and write the largest array of a Transformer
    layer twenty times.
    """
    if activation not in _COMPILED:
        return activation
    value, gradient = map(compile_function, _COMPILED[activation])

    @ops.custom_gradient
    def run(x: Any) -> Any:
        return value(x), lambda upstream: gradient(x, upstream)

    return run


def _gelu_gradient(x: Any, upstream: Any) -> Any:
    r"""Returns the gradient of `gelu`.

    With s = sqrt(2 / pi) and t = tanh(s (x + 0.044715 x^3))::

        dL/dx = dL/dgelu / 2 (1 + t + x (1 - t^2) s (1 + 0.134145 x^2))
    """
    dtype = x.dtype
    # Squares overflow float16.
    x, upstream = ops.cast(x, "float32"), ops.cast(upstream, "float32")
    square = ops.square(x)
    scale = math.sqrt(2.0 / math.pi)
    t = ops.tanh(scale * x * (1.0 + 0.044715 * square))
    inner = scale * (1.0 + 0.134145 * square)
    slope = 0.5 * (1.0 + t + x * (1.0 - ops.square(t)) * inner)
    return ops.cast(upstream * slope, dtype)


def _exact_gelu(x: Any) -> Any:
    # Keras' form, with erfc, takes a third longer when it is compiled.
    wide = ops.cast(x, "float32")
    return ops.cast(wide * _normal_distribution(wide), x.dtype)


def _exact_gelu_gradient(x: Any, upstream: Any) -> Any:
    r"""Returns the gradient of the exact gelu.

    With the distribution function F of the normal distribution::

        dL/dx = dL/dgelu (F(x) + x exp(-x^2 / 2) / sqrt(2 pi))
    """
    wide, upstream = ops.cast(x, "float32"), ops.cast(upstream, "float32")
    density = ops.exp(-0.5 * ops.square(wide)) / math.sqrt(2.0 * math.pi)
    slope = _normal_distribution(wide) + wide * density
    return ops.cast(upstream * slope, x.dtype)


def _normal_distribution(x: Any) -> Any:
    return 0.5 * (1.0 + ops.erf(x * math.sqrt(0.5)))


# {activation: (value, gradient)}, to be compiled.
_COMPILED = {
    gelu: (gelu, _gelu_gradient),
    keras.activations.gelu: (_exact_gelu, _exact_gelu_gradient),
}


def add_bias(x: Any, bias: Any) -> Any:
    """Returns `x` [N, C] + `bias` [C].

    The gradient of a 16-bit bias is summed in float32. TensorFlow sums it in
    bfloat16, where thousands of rows gave errors of up to 85%.
    """
    if keras.backend.standardize_dtype(x.dtype) == "float32":
        return ops.add(x, bias)  # TensorFlow fuses it with the product.

    @ops.custom_gradient
    def add(x: Any, bias: Any) -> Any:
        def gradient(upstream: Any) -> tuple[Any, Any]:
            return upstream, _sum_rows(upstream)

        return x + bias, gradient

    return add(x, ops.reshape(bias, (-1,)))  # A tensor, not a variable.


def layer_normalization(x: Any, gamma: Any, beta: Any, epsilon: float) -> Any:
    r"""Returns n gamma + beta, where n is x with mean 0 and variance 1.

    `x` is [..., H], `gamma` and `beta` are [H]; means and the variance, to
    which `epsilon` is added, are over the last axis. With the gradient d of n::

        dL/dx = (d - mean(d) - n mean(d n)) / sqrt(variance + epsilon)
    """

    @ops.custom_gradient
    def normalize(x: Any, gamma: Any, beta: Any) -> Any:
        centered = x - _mean(x)
        scale = ops.rsqrt(_mean(ops.square(centered)) + epsilon)
        n = centered * scale

        def gradient(upstream: Any) -> tuple[Any, Any, Any]:
            d = upstream * gamma
            outer = tuple(range(len(x.shape) - 1))
            return (
                (d - _mean(d) - n * _mean(d * n)) * scale,
                ops.sum(upstream * n, axis=outer),
                ops.sum(upstream, axis=outer),
            )

        return n * gamma + beta, gradient

    return normalize(x, gamma, beta)


def _sum_rows(x: Any) -> Any:
    return ops.cast(ops.sum(ops.cast(x, "float32"), axis=0), x.dtype)


def _mean(x: Any) -> Any:
    return ops.mean(x, axis=-1, keepdims=True)


@ops.custom_gradient
def vocabulary_logits(x: Any, embeddings: Any, bias: Any) -> Any:
    """Returns the logits [N, V] of `x` [N, H].

    `embeddings` [V, H] and `bias` [V] must be Tensors, not variables. Automatic
    differentiation would compute the gradient of `embeddings` transposed, and
    transposing it takes as long as a pass over the logits.
    """

    def gradient(upstream: Any) -> tuple[Any, Any, Any]:
        rounded = ops.cast(upstream, x.dtype)
        return (
            ops.matmul(rounded, embeddings),
            ops.matmul(ops.transpose(rounded), x),
            _sum_rows(upstream),
        )

    logits = ops.matmul(x, ops.transpose(embeddings))
    return ops.cast(logits, bias.dtype) + bias, gradient


def softmax_cross_entropy(logits: Any, labels: Any) -> Any:
    """Returns the cross-entropies [N] of float32 logits [N, C].

    `labels` are int32 [N], from 0 to C - 1. For large C, this is faster than
    TensorFlow's cross-entropy: both the loss and its gradient follow from the
    softmax, which takes a fifth of the time of that cross-entropy.
    """
    rows = ops.arange(ops.shape(labels)[0], dtype="int32")
    indices = ops.stack([rows, labels], axis=-1)

    @ops.custom_gradient
    def losses(logits: Any) -> Any:
        probabilities = ops.softmax(logits)
        # The largest probability is 1 / sum(exp(logits - largest)).
        normalizer = ops.max(logits, -1) - ops.log(ops.max(probabilities, -1))
        label_probabilities = _pick(probabilities, labels)

        def gradient(upstream: Any) -> Any:
            # Updated in place, since nothing else reads the probabilities.
            difference = ops.scatter_update(
                probabilities, indices, label_probabilities - 1.0
            )
            return difference * ops.expand_dims(upstream, -1)

        return normalizer - _pick(logits, labels), gradient

    return losses(logits)


def _pick(x: Any, columns: Any) -> Any:
    """Returns x[i, columns[i]] for each row i of [N, C]."""
    return ops.take_along_axis(x, ops.expand_dims(columns, -1), axis=-1)[:, 0]
