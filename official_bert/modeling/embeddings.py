"""What BERT reads: the vectors of words, segments and positions."""

from typing import Any

import keras
from keras import ops

from official_bert.config import BertConfig
from official_bert.modeling.dropout import Dropout
from official_bert.modeling.layers import initializer
from official_bert.modeling.normalization import LayerNorm


class Embeddings(keras.layers.Layer):
    """Word, segment and position embeddings, summed and normalized.

    Call arguments:
        input_ids: int Tensor [B, S].
        segment_ids: int Tensor [B, S]; an id outside the table adds nothing.
        position_ids: int Tensor [B, S]; 0, 1, 2, ... in every row if None.

    Returns:
        float Tensor [B, S, H].
    """

    def __init__(self, config: BertConfig, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.config = config
        self.layer_norm = LayerNorm()
        self.dropout = Dropout(config.hidden_dropout_prob, name="dropout")

    def build(self, input_ids_shape: Any) -> None:
        """Makes the three tables."""
        self.word_embeddings = self._table(
            "word_embeddings", self.config.vocab_size
        )
        self.token_type_embeddings = self._table(
            "token_type_embeddings", self.config.type_vocab_size
        )
        self.position_embeddings = self._table(
            "position_embeddings", self.config.max_position_embeddings
        )
        output_shape = (*input_ids_shape, self.config.hidden_size)
        self.layer_norm.build(output_shape)
        self.dropout.build(output_shape)

    def _table(self, name: str, rows: int | None) -> Any:
        return self.add_weight(
            name=name,
            shape=(rows, self.config.hidden_size),
            initializer=initializer(self.config),
        )

    def call(
        self,
        input_ids: Any,
        segment_ids: Any,
        position_ids: Any = None,
        training: bool = False,
    ) -> Any:
        """See the class."""
        words = ops.take(self.word_embeddings, input_ids, axis=0)
        # A product with so small a table beats gathering, whose gradient would
        # have to add up thousands of rows into two.
        one_hot = ops.one_hot(
            segment_ids, self.config.type_vocab_size, dtype=self.compute_dtype
        )
        segments = ops.matmul(one_hot, self.token_type_embeddings)
        if position_ids is None:
            positions = self.position_embeddings[: ops.shape(input_ids)[1]]
        else:
            positions = ops.take(self.position_embeddings, position_ids, axis=0)
        x = self.layer_norm(words + segments + positions)
        return self.dropout(x, training=training)


def packed_position_ids(input_mask: Any, cls_positions: Any) -> Any:
    """Counts from 0 in each of the packed sequences.

    Args:
        input_mask: int Tensor [B, S], the number of each token's sequence.
        cls_positions: int Tensor [B, K], where these begin.

    Returns:
        int Tensor [B, S].
    """
    index = ops.maximum(input_mask - 1, 0)
    starts = ops.take_along_axis(cls_positions, index, axis=1)
    return ops.arange(ops.shape(input_mask)[1], dtype=starts.dtype) - starts
