"""Tagging: a label for every word, such as names and parts of speech."""
