"""The activations a `bert_config.json` can name."""

import contextlib
import math
import threading
from collections.abc import Callable, Iterator
from typing import Any

from keras import ops

# A function of Tensors -> the same, compiled.
Compile = Callable[[Callable[..., Any]], Callable[..., Any]]

# Replicas of one step are traced in threads of their own.
_active = threading.local()


@contextlib.contextmanager
def compiling(compile_function: Compile | None) -> Iterator[None]:
    """Makes every `gelu` called inside compiled, and so its gradient.

    Otherwise their twenty operations each go over a layer's largest array.

    Args:
        compile_function: None leaves them as they are, which is better outside
            training: TensorFlow then joins `gelu` to the product before it.
    """
    outer = getattr(_active, "compile", None)
    _active.compile = compile_function
    try:
        yield
    finally:
        _active.compile = outer


def gelu(x: Any) -> Any:
    """The Gaussian error linear unit, in the tanh form of the 2018 release.

    See Hendrycks and Gimpel, 2016. The exact (erf) form, which the release
    used before February 2019, differs by up to 5e-4.
    """
    compile_function: Compile | None = getattr(_active, "compile", None)
    if compile_function is None:
        return _gelu(x)
    value = compile_function(_gelu)
    derivative = compile_function(_gelu_gradient)

    @ops.custom_gradient
    def compiled(x: Any) -> Any:
        return value(x), lambda upstream: derivative(x, upstream)

    return compiled(x)


def _gelu(x: Any) -> Any:
    return ops.gelu(x, approximate=True)


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


def exact_gelu(x: Any) -> Any:
    """The exact (erf) form, that of most models of transformers."""
    return ops.gelu(x, approximate=False)


_ACTIVATIONS: dict[str, Callable[[Any], Any] | None] = {
    "": None,
    "linear": None,
    "relu": ops.relu,
    "gelu": gelu,
    "gelu_erf": exact_gelu,
    "tanh": ops.tanh,
}


def get_activation(name: Any) -> Callable[[Any], Any] | None:
    """Returns the function called `name`, or None for the identity.

    Args:
        name: A name in any case, None, or a function, which is returned.

    Raises:
        ValueError: There is no such activation.
    """
    if name is not None and not isinstance(name, str):
        return name  # type: ignore[no-any-return]
    key = (name or "").lower()
    if key not in _ACTIVATIONS:
        raise ValueError(f"Unsupported activation: {key}")
    return _ACTIVATIONS[key]
