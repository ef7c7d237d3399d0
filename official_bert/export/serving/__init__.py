"""Fine-tuned models as SavedModels for TensorFlow Serving."""

from official_bert.export.serving.exporting import export

__all__ = ["export"]
