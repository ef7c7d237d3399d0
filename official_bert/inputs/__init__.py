"""What the model reads: features, record schemas, tf.data pipelines."""
