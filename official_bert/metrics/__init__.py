"""Metrics: plain Python numbers under names; 0.0 in place of 0 / 0."""
