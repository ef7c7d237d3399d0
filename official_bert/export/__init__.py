"""Exports models as SavedModels, for TF Hub and TensorFlow Serving."""
