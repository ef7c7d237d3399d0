"""How good predictions are: pure functions of targets and predictions.

All return plain Python numbers under names, ready for JSON. Where a score would
be a division by zero (a class that never occurs, a constant prediction), it is
0.0, without a warning.
"""
