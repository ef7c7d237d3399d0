"""Converts models between TF1, Hugging Face, KerasHub and Model Garden."""

from official_bert.checkpoints.conversion.converter import (
    convert,
    open_model,
    strip_optimizer,
)

__all__ = ["convert", "open_model", "strip_optimizer"]
