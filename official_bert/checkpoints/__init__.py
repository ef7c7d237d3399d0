"""Weights on disk: {name of 2018: array} <-> TF1 checkpoints."""
