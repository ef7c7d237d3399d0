"""Word, segment and position embeddings (section 3.2 and figure 2)."""

from typing import Any

from keras import ops

from official_bert.config import BertConfig
from official_bert.modeling.layers import (
    ConfiguredLayer,
    Dropout,
    LayerNorm,
    serializable,
    truncated_normal,
)


@serializable
class Embeddings(ConfiguredLayer):
    """The sum of three embeddings, normalized, with dropout.

    Call arguments:
        input_ids: int Tensor [B, S].
        segment_ids: int Tensor [B, S]; an id outside the table adds nothing.
        position_ids: int Tensor [B, S]; 0, 1, 2, ... in every row if None.

    Returns:
        float Tensor [B, S, H].
    """

    def __init__(self, config: BertConfig, **kwargs: Any) -> None:
        super().__init__(config, **kwargs)
        self.layer_norm = LayerNorm()
        self.dropout = Dropout(self.config.hidden_dropout_prob, name="dropout")

    def build(self, input_ids_shape: Any) -> None:
        """Creates the three tables."""
        config = self.config
        self.word_embeddings = self._add_table(
            "word_embeddings", config.vocab_size
        )
        self.token_type_embeddings = self._add_table(
            "token_type_embeddings", config.type_vocab_size
        )
        self.position_embeddings = self._add_table(
            "position_embeddings", config.max_position_embeddings
        )
        output_shape = (*input_ids_shape, config.hidden_size)
        self.layer_norm.build(output_shape)
        self.dropout.build(output_shape)

    def _add_table(self, name: str, num_rows: int | None) -> Any:
        return self.add_weight(
            name=name,
            shape=(num_rows, self.config.hidden_size),
            initializer=truncated_normal(self.config),
        )

    def call(
        self, input_ids: Any, segment_ids: Any, position_ids: Any = None
    ) -> Any:
        """See the class."""
        words = ops.take(self.word_embeddings, input_ids, axis=0)
        # With so small a table a product is faster than a gather, whose
        # gradient would add thousands of rows into two.
        one_hot = ops.one_hot(
            segment_ids, self.config.type_vocab_size, dtype=self.compute_dtype
        )
        segments = ops.matmul(one_hot, self.token_type_embeddings)
        if position_ids is None:
            positions = self.position_embeddings[: ops.shape(input_ids)[1]]
        else:
            positions = ops.take(self.position_embeddings, position_ids, axis=0)
        return self.dropout(self.layer_norm(words + segments + positions))


def packed_position_ids(input_mask: Any, cls_positions: Any) -> Any:
    """Returns positions that start at 0 in each packed sequence.

    Args:
        input_mask: int Tensor [B, S], the number of each token's sequence.
        cls_positions: int Tensor [B, K], where the sequences start.

    Returns:
        int Tensor [B, S].
    """
    index = ops.maximum(input_mask - 1, 0)
    starts = ops.take_along_axis(cls_positions, index, axis=1)
    return ops.arange(ops.shape(input_mask)[1], dtype=starts.dtype) - starts
