"""TF1 checkpoints, the format of the 2018 release."""
