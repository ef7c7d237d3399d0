"""TF1 checkpoints: written, found, loaded strictly and converted."""
