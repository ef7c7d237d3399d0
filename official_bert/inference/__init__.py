"""What a trained model says about new text."""
