"""A bidirectional LSTM above BERT: sections 5.1 and 5.3 of the paper."""

from typing import Any

import keras
from keras import ops


class Cell(keras.layers.Layer):
    """One step of an LSTM: Hochreiter and Schmidhuber, 1997; Gers et al., 2000.

    With the gates of input, forgetting and output, i, f and o, and the
    candidate g::

        i, f, g, o = gates of the input + h R
        c <- sigmoid(f) c + sigmoid(i) tanh(g)
        h <- sigmoid(o) tanh(c)

    Args:
        recurrent_kernel: R, float [N, 4 N].
    """

    def __init__(self, recurrent_kernel: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.recurrent_kernel = recurrent_kernel
        size = recurrent_kernel.shape[0]
        self.output_size = size
        self.state_size = [size, size]
        self.built = True

    def call(
        self, gates: Any, states: tuple[Any, Any]
    ) -> tuple[Any, list[Any]]:
        """Maps gates [B, 4 N] and (h, c), each [B, N], to h and (h, c)."""
        h, c = states
        i, f, g, o = ops.split(
            gates + ops.matmul(h, self.recurrent_kernel), 4, 1
        )
        c = ops.sigmoid(f) * c + ops.sigmoid(i) * ops.tanh(g)
        h = ops.sigmoid(o) * ops.tanh(c)
        return h, [h, c]


class Lstm(keras.layers.Layer):
    """An LSTM that reads in one direction.

    What depends on the input alone is computed for all positions at once, and
    not step by step as in Keras' LSTM, whose weights these are like: names,
    shapes, the order i, f, g, o, initial values, and a bias of 1 for f.

    Args:
        size: N.
        goes_backwards: Whether it begins at the end.
    """

    def __init__(
        self, size: int, *, goes_backwards: bool, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.size = size
        self.goes_backwards = goes_backwards

    def build(self, x_shape: Any, mask_shape: Any = None) -> None:
        """Makes the weights, for inputs [B, S, any]."""
        self.kernel = self.add_weight(
            name="kernel",
            shape=(x_shape[-1], 4 * self.size),
            initializer="glorot_uniform",
        )
        self.recurrent_kernel = self.add_weight(
            name="recurrent_kernel",
            shape=(self.size, 4 * self.size),
            initializer="orthogonal",
        )
        self.bias = self.add_weight(
            name="bias",
            shape=(4 * self.size,),
            initializer=_forget_nothing,
        )
        self.steps = keras.layers.RNN(
            Cell(self.recurrent_kernel, name="cell"),
            return_sequences=True,
            return_state=True,
            go_backwards=self.goes_backwards,
            zero_output_for_mask=True,
            name="steps",
        )
        self.steps.build((*x_shape[:-1], 4 * self.size))

    def call(self, x: Any, mask: Any) -> tuple[Any, Any]:
        """Returns h at all positions [B, S, N], and the last one [B, N].

        Args:
            x: float Tensor [B, S, any].
            mask: bool Tensor [B, S]. Where it is false, the state stays as it
                is, and what is returned is 0.
        """
        gates = ops.matmul(x, self.kernel) + self.bias
        outputs, last, _ = self.steps(gates, mask=mask)
        if self.goes_backwards:
            outputs = ops.flip(outputs, axis=1)
        return outputs, last


def _forget_nothing(shape: Any, dtype: Any = None) -> Any:
    """Returns a bias of 1 for f, and 0 for the others (Jozefowicz, 2015)."""
    size = shape[0] // 4
    one, others = ops.ones((size,), dtype), ops.zeros((size,), dtype)
    return ops.concatenate([others, one, others, others])


class BiLstmLayer(keras.layers.Layer):
    """Two LSTMs, one in each direction, side by side."""

    def __init__(self, size: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.forward = Lstm(size, goes_backwards=False, name="forward")
        self.backward = Lstm(size, goes_backwards=True, name="backward")

    def build(self, x_shape: Any, mask_shape: Any = None) -> None:
        """Makes the weights, for inputs [B, S, any]."""
        self.forward.build(x_shape)
        self.backward.build(x_shape)

    def call(self, x: Any, mask: Any) -> tuple[Any, Any]:
        """Returns what `BiLstm` does."""
        pairs = zip(self.forward(x, mask), self.backward(x, mask), strict=True)
        outputs, last = (ops.concatenate(pair, -1) for pair in pairs)
        return outputs, last


class BiLstm(keras.layers.Layer):
    """A bidirectional LSTM of two layers.

    Args:
        size: N, of each layer in each direction.

    Call arguments:
        x: float Tensor [B, S, any].
        input_mask: int Tensor [B, S], 1 for tokens and 0 for padding, which
            changes nothing.

    Returns:
        The upper layer's vectors [B, S, 2 N], those of padding 0; and the last
        states of both of its directions, [B, 2 N], which have read all.
    """

    def __init__(self, size: int, name: str = "bilstm", **kwargs: Any) -> None:
        super().__init__(name=name, **kwargs)
        self.size = size
        self.layer_0 = BiLstmLayer(size, name="layer_0")
        self.layer_1 = BiLstmLayer(size, name="layer_1")

    def build(self, x_shape: Any, input_mask_shape: Any = None) -> None:
        """Makes the weights."""
        self.layer_0.build(x_shape)
        self.layer_1.build((*x_shape[:-1], 2 * self.size))

    def call(self, x: Any, input_mask: Any) -> tuple[Any, Any]:
        """See the class."""
        mask = ops.cast(input_mask, "bool")
        x, _ = self.layer_0(x, mask)
        outputs, last = self.layer_1(x, mask)
        return outputs, last
