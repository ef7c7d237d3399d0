"""Pre-training data: text to masked LM and next sentence instances."""
