"""Predictions, feature vectors and attention of trained models."""
