"""Encoder, heads and losses. They use only `keras` and `keras.ops`."""
