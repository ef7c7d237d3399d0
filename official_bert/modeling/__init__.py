"""Encoder, heads and losses, on `keras` and `keras.ops` alone."""
