"""The activations a `bert_config.json` can name."""

from collections.abc import Callable
from typing import Any

from keras import ops


def gelu(x: Any) -> Any:
    """The Gaussian error linear unit, in the tanh form of the 2018 release.

    See Hendrycks and Gimpel, 2016. The exact (erf) form, which the release
    used before February 2019, differs by up to 5e-4.
    """
    return ops.gelu(x, approximate=True)


_ACTIVATIONS: dict[str, Callable[[Any], Any] | None] = {
    "": None,
    "linear": None,
    "relu": ops.relu,
    "gelu": gelu,
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
