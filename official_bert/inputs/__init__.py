"""Inputs of the model: features, record schemas, tf.data pipelines."""
