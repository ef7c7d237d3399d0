"""Converts text to instances of masked LM and next sentence prediction."""
