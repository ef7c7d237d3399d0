"""Metrics as plain Python numbers, ready for JSON; 0.0 instead of 0 / 0."""
