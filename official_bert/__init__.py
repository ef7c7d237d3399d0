"""Google's 2018 BERT on today's TensorFlow and Keras 3."""
