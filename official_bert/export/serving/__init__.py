"""Fine-tuned models as TensorFlow Serving loads them."""

from official_bert.export.serving.exporting import export, next_version

__all__ = ["export", "next_version"]
