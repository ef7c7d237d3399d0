"""Google's 2018 BERT for current TensorFlow and Keras 3.

The most common classes and functions can be imported from here::

    from official_bert import Bert, Tokenizer, encode
"""

import importlib
import os
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from official_bert.commands.finetune import finetune
    from official_bert.config import BertConfig
    from official_bert.export.text_encoder import TextEncoder
    from official_bert.inference.embedder import Embedder
    from official_bert.inference.predictor import Predictor
    from official_bert.inputs.text_inputs import encode
    from official_bert.modeling.encoder import Bert
    from official_bert.modeling.pretraining_model import PretrainingModel
    from official_bert.tokenization import Tokenizer

__all__ = [
    "Bert",
    "BertConfig",
    "Embedder",
    "Predictor",
    "PretrainingModel",
    "TextEncoder",
    "Tokenizer",
    "encode",
    "finetune",
]

_MODULES = {
    "Bert": "modeling.encoder",
    "BertConfig": "config",
    "Embedder": "inference.embedder",
    "Predictor": "inference.predictor",
    "PretrainingModel": "modeling.pretraining_model",
    "TextEncoder": "export.text_encoder",
    "Tokenizer": "tokenization",
    "encode": "inputs.text_inputs",
    "finetune": "commands.finetune",
}


def __getattr__(name: str) -> Any:
    """Imports a name on first use, so that `--help` needs no TensorFlow."""
    if name == "__version__":
        return _version()
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = importlib.import_module(f"{__name__}.{_MODULES[name]}")
    return getattr(module, name)


def _version() -> str:
    """Returns the version in pyproject.toml, from the package's metadata."""
    from importlib import metadata

    try:
        return metadata.version("official_bert")
    except metadata.PackageNotFoundError:  # A clone that is not installed.
        path = os.path.join(os.path.dirname(__path__[0]), "pyproject.toml")
        with open(path, encoding="utf-8") as file:
            return re.findall('^version = "(.+)"', file.read(), re.MULTILINE)[0]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
