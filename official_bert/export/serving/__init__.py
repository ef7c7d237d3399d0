"""Fine-tuned models as SavedModels for TensorFlow Serving."""

from official_bert.export.serving.exporting import export, next_version

__all__ = ["export", "next_version"]
