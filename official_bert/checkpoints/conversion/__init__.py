"""Converts models between TF1, Hugging Face, KerasHub and Model Garden."""
