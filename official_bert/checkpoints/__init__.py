"""Finds, loads, writes and converts checkpoints."""
