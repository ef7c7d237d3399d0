"""Checkpoints of the TensorFlow Model Garden."""
