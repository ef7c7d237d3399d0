"""BERT with its two pre-training heads."""

from typing import Any, NamedTuple

import keras
from keras import ops

from official_bert.config import BertConfig
from official_bert.modeling.encoder import Bert
from official_bert.modeling.heads import PretrainingHeads


class PretrainingOutput(NamedTuple):
    """Logits of both tasks.

    Attributes:
        masked_lm_logits: float Tensor [B, P, V].
        next_sentence_logits: float Tensor [B, 2]; [B, K, 2] of packed rows.
    """

    masked_lm_logits: Any
    next_sentence_logits: Any


class PretrainingModel(keras.Model):
    """What `run_pretraining.py` trains: `bert/*` and `cls/*`.

    Its weights exist from the start. They are built here rather than on the
    first call so that their paths begin at `bert` and `cls`, not at the model.

    Call arguments:
        batch: A dict with int Tensors `input_ids`, `input_mask`, `segment_ids`
            [B, S] and `masked_lm_positions` [B, P]; of packed rows, as
            `schemas.packed_schema` has them, `next_sentence_positions` [B, K]
            as well. Other entries are ignored.

    Returns:
        A `PretrainingOutput`.
    """

    def __init__(self, config: BertConfig, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.config = config
        self.bert = Bert(config)
        self.cls = PretrainingHeads(config)
        self.bert.build()
        self.cls.build()
        self.built = True

    def call(
        self, batch: dict[str, Any], training: bool = False
    ) -> PretrainingOutput:
        """See the class."""
        output = self.bert(
            batch["input_ids"],
            batch["input_mask"],
            batch["segment_ids"],
            batch.get("next_sentence_positions"),
            batch["masked_lm_positions"],
            training=training,
        )
        logits = self.cls(
            output.sequence_output,
            output.pooled_output,
            ops.convert_to_tensor(self.bert.embeddings.word_embeddings),
        )
        return PretrainingOutput(*logits)
