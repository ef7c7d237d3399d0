"""`FullTokenizer` as TensorFlow operations, to be saved with a model."""

from official_bert.export.graph_tokenizer.tokenizer import GraphTokenizer

__all__ = ["GraphTokenizer"]
