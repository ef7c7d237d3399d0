"""Building blocks of BERT: dense layers, dropout, layer normalization.

Every layer is registered with Keras under the package `official_bert`, so that
models made of them save to `.keras` files and load again.
"""

import contextlib
import contextvars
import dataclasses
import os
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

import keras
from keras import ops

from official_bert.config import BertConfig
from official_bert.errors import listed, quoted
from official_bert.modeling import gradients

_Layer = TypeVar("_Layer", bound="PretrainedLayer")

serializable = keras.saving.register_keras_serializable("official_bert")


@dataclasses.dataclass(frozen=True)
class StepContext:
    """How one training step draws dropout masks, compiles and recomputes.

    Models take it as `training`, which Keras passes on to nested layers. With
    `training=True`, as under `model.fit`, Keras' random state draws the masks.

    Attributes:
        random_bits: (layer number, x) -> uniform uint16 Tensor in the shape of
            x, which should differ between layers, steps and replicas.
        compile_function: Compiles a function of Tensors; used for gelu.
        recompute: Wraps a Transformer layer, a function of Tensors, so that its
            activations are recomputed in the backward pass, not stored.
        removes_padding: Whether most layers skip padding, where the outputs are
            then arbitrary. Shapes depend on the number of tokens.
    """

    random_bits: Callable[[int, Any], Any]
    compile_function: Callable[..., Any] | None = None
    recompute: Callable[..., Any] | None = None
    removes_padding: bool = False

    def with_other_masks(self) -> "StepContext":
        """Returns the context of a second part of the batch."""

        def random_bits(layer: int, x: Any) -> Any:
            # Numbers are hashes, so this is not the number of another layer.
            return self.random_bits(layer ^ 1, x)

        return dataclasses.replace(self, random_bits=random_bits)


Training = bool | StepContext

_ACTIVATIONS: dict[str, Callable[[Any], Any] | None] = {
    "": None,
    "linear": None,
    "relu": keras.activations.relu,
    "gelu": gradients.gelu,
    "gelu_erf": keras.activations.gelu,
    "tanh": keras.activations.tanh,
}


def get_activation(name: str | None) -> Callable[[Any], Any] | None:
    """Returns the activation of a name, ignoring case; None: the identity."""
    key = (name or "").lower()
    if key not in _ACTIVATIONS:
        raise ValueError(f"Unsupported activation: {key}")
    return _ACTIVATIONS[key]


_skips_initialization = contextvars.ContextVar(
    "skips_initialization", default=False
)


@contextlib.contextmanager
def to_be_loaded() -> Iterator[None]:
    """Creates layers in float32, with zeros as matrices, to be loaded later.

    Drawing the initial values of BERT-Base takes two seconds.
    """
    token = _skips_initialization.set(True)
    try:
        with default_policy("float32"):
            yield
    finally:
        _skips_initialization.reset(token)


def truncated_normal(config: BertConfig) -> keras.initializers.Initializer:
    """Returns a new initializer; using one twice would repeat its values."""
    if _skips_initialization.get():
        return keras.initializers.Zeros()
    return keras.initializers.TruncatedNormal(stddev=config.initializer_range)


@serializable
class Bfloat16Matmul(keras.dtype_policies.DTypePolicy):
    """A dtype policy: float32, except that matrices are multiplied in bfloat16.

    Pass it as the argument `dtype` of a model, or to
    `keras.config.set_dtype_policy`. Other layers compute in float32.
    """

    def __init__(self, name: str = "float32") -> None:
        super().__init__(name)


def shape_of(x: Any) -> tuple[Any, ...]:
    """Returns the shape of `x` for `ops.reshape`: -1 for one unknown size.

    Two unknown sizes are read from `x`, which adds many operations to a graph.
    """
    shape = tuple(-1 if size is None else size for size in x.shape)
    return shape if shape.count(-1) < 2 else ops.shape(x)


def matmul_dtype(layer: keras.layers.Layer) -> str:
    """Returns the dtype in which a layer multiplies matrices."""
    if isinstance(layer.dtype_policy, Bfloat16Matmul):
        return "bfloat16"
    return str(layer.compute_dtype)


def matmul(layer: keras.layers.Layer, x: Any, y: Any) -> Any:
    """Returns x y in the dtype of x, multiplied in `matmul_dtype`.

    Gradients pass through the same casts, so they are multiplied in it, too.
    Output layers of tasks use `ops.matmul`: in bfloat16, their results would be
    rounded, and they take no time.
    """
    dtype = matmul_dtype(layer)
    product = ops.matmul(ops.cast(x, dtype), ops.cast(y, dtype))
    return ops.cast(product, x.dtype)


@serializable
class Dense(keras.layers.Dense):
    """A dense layer that treats [B, S, H] as B * S rows.

    TensorFlow then fuses product, bias and, outside training, activation.
    """

    def call(self, x: Any, training: Training = False) -> Any:
        """Maps [..., H] to [..., units]."""
        *outer, width = shape_of(x)
        rows = matmul(self, ops.reshape(x, (-1, width)), self.kernel)
        rows = gradients.add_bias(rows, self.bias)
        activation = self.activation
        if compile_function := getattr(training, "compile_function", None):
            activation = gradients.compiled(activation, compile_function)
        rows = activation(rows)
        return ops.reshape(rows, (*outer, self.units))


def dense(
    config: BertConfig,
    units: int,
    activation: str | None = None,
    name: str = "dense",
) -> Dense:
    """Returns a dense layer with BERT's initial weights."""
    return Dense(
        units,
        activation=get_activation(activation),
        kernel_initializer=truncated_normal(config),
        name=name,
    )


@serializable
class LayerNorm(keras.layers.LayerNormalization):
    """Layer normalization (Ba et al., 2016) over the last axis, in float32.

    Faster than Keras' own; epsilon is 1e-12 as in the 2018 release.
    """

    def __init__(
        self, epsilon: float = 1e-12, name: str = "LayerNorm", **kwargs: Any
    ) -> None:
        super().__init__(epsilon=epsilon, name=name, **kwargs)

    def call(self, x: Any) -> Any:
        """Maps [..., H] to [..., H] of the same dtype."""
        normalized = gradients.layer_normalization(
            ops.cast(x, "float32"),
            ops.cast(self.gamma, "float32"),
            ops.cast(self.beta, "float32"),
            self.epsilon,
        )
        return ops.cast(normalized, x.dtype)


@serializable
class Dropout(keras.layers.Layer):
    """Zeroes a fraction `rate` of its inputs in training and scales the rest.

    With a `StepContext`, masks are a function of its random bits and of the
    layer's path. Sixteen bits decide about each input: drawing them takes half
    as long as drawing a float, and the rate is off by at most 1/131072.
    """

    def __init__(self, rate: float | None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.rate = rate

    def call(self, x: Any, training: Training = False) -> Any:
        if not training or not self.rate:
            return x
        if not isinstance(training, StepContext):
            return keras.random.dropout(x, self.rate)
        number = zlib.crc32(self.path.encode()) >> 1
        bits = training.random_bits(number, x)
        threshold = ops.convert_to_tensor(round(self.rate * 65536), "uint16")
        # A product is faster than `where`, forward and backward.
        is_kept = ops.cast(ops.greater_equal(bits, threshold), x.dtype)
        return x * (is_kept * (1.0 / (1.0 - self.rate)))


class ConfiguredLayer(keras.layers.Layer):
    """Base of the layers and models whose sizes come from a `BertConfig`.

    `config` may also be its dict, as `get_config` returns it.
    """

    def __init__(
        self, config: BertConfig | Mapping[str, Any], **kwargs: Any
    ) -> None:
        if not isinstance(config, BertConfig | Mapping):
            raise TypeError(
                f"`config` must be a BertConfig. Received: {quoted(config)}. "
                "For a model by name, use `from_pretrained(name)`."
            )
        super().__init__(**kwargs)
        if not isinstance(config, BertConfig):
            config = BertConfig.from_dict(dict(config))
        self.config = config

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "config": self.config.to_dict()}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Any:
        # Keras would replace a `Bfloat16Matmul` by its name, float32.
        return cls(**config)

    def add_matrix(self, name: str, num_rows: int) -> Any:
        """Returns a new weight [num_rows, H] with BERT's initial values.

        It stays in float32 under a 16-bit policy: the gradient of an embedding
        sums one row per occurrence of a token, and in 16 bits, sums of
        thousands of rows are inexact, and slow on GPUs.
        """
        return self.add_weight(
            name=name,
            shape=(num_rows, self.config.hidden_size),
            initializer=truncated_normal(self.config),
            autocast=False,
        )


class BatchModel(keras.Model):
    """Base of the models that take a batch as a dict."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Requires a dict, in place of its Tensors by name."""
        if not (args or "batch" in kwargs):
            raise TypeError(
                f"`batch` must be a dict. Received: {listed(kwargs)}. Call "
                "model(batch), not model(**batch)."
            )
        return super().__call__(*args, **kwargs)


class PretrainedLayer(ConfiguredLayer):
    """Base of `Bert` and `PretrainingModel`: reads and writes weights."""

    @classmethod
    def from_pretrained(
        cls: type[_Layer], model: str | os.PathLike[str], **kwargs: Any
    ) -> _Layer:
        """Returns a model with pre-trained or fine-tuned weights.

        Warns if the weights of a head are missing.

        Args:
            model: A directory, the name of a released model, or OWNER/NAME on
                the Hugging Face Hub; see `sources.pretrained.find`.
            kwargs: Arguments of the constructor, such as `name`.

        Raises:
            InputError: There is no such model, it is damaged, or it is not a
                BERT model.
        """
        from official_bert.sources import loading

        return loading.from_pretrained(cls, model, **kwargs)

    def save_pretrained(
        self, directory: str | os.PathLike[str], tokenizer: Any = None
    ) -> None:
        """Writes the model, and its tokenizer if given, in the TF1 format.

        `from_pretrained` and `--model` accept the directory. Raises
        `InputError` if it cannot be written, or if it is a run directory.
        """
        from official_bert.sources import loading

        loading.save_pretrained(self, directory, tokenizer)


@contextlib.contextmanager
def default_policy(policy: Any) -> Iterator[None]:
    """Sets the dtype policy of layers that are created in the context."""
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy(policy)
    try:
        yield
    finally:
        keras.config.set_dtype_policy(before)


@contextlib.contextmanager
def name_scopes(path: str) -> Iterator[None]:
    """Opens nested Keras name scopes, such as `attention/output`."""
    with contextlib.ExitStack() as stack:
        for name in filter(None, path.split("/")):
            stack.enter_context(keras.name_scope(name))
        yield


def look_up(table: Any, ids: Any) -> Any:
    """Returns the rows [B, S, H] of an embedding table [V, H] at ids [B, S].

    The gradient of the table is dense. In a sparse gradient, a token has a row
    for each occurrence, and Keras' optimizers square each row instead of their
    sum.
    """
    # The gradient of a reshape is dense.
    return ops.take(ops.reshape(table, table.shape), ids, axis=0)


def gather_positions(x: Any, positions: Any) -> Any:
    """Returns the vectors [B, P, H] of `x` [B, S, H] at positions [B, P]."""
    batch, length, hidden_size = ops.shape(x)
    first = ops.expand_dims(ops.arange(batch, dtype=positions.dtype), 1)
    flat_positions = ops.reshape(positions + first * length, (-1,))
    rows = ops.take(ops.reshape(x, (-1, hidden_size)), flat_positions, axis=0)
    return ops.reshape(rows, (batch, ops.shape(positions)[1], hidden_size))
