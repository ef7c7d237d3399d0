"""Computes predictions, feature vectors and attention with trained models."""
