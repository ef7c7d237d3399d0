"""Checkpoints of other formats: each says where it has a weight of 2018."""

from official_bert.checkpoints.conversion.formats import convert, read, strip

__all__ = ["convert", "read", "strip"]
