"""BERT with the two pre-training heads: masked LM and next sentence."""

from typing import Any, NamedTuple

from keras import ops

from official_bert.config import BertConfig
from official_bert.modeling import gradients, layers
from official_bert.modeling.encoder import Bert
from official_bert.modeling.layers import Training


@layers.serializable
class MaskedLM(layers.ConfiguredLayer):
    """Predicts masked tokens (section 3.1, task 1).

    Call arguments:
        x: float Tensor [B, P, H], the sequence output at the masked positions.
        word_embeddings: float Tensor [V, H], shared with the encoder's input.

    Returns:
        Logits over the vocabulary, [B, P, V].
    """

    def __init__(self, config: BertConfig, **kwargs: Any) -> None:
        super().__init__(config, **kwargs)
        config = self.config
        self.dense = layers.dense(config, config.hidden_size, config.hidden_act)
        self.layer_norm = layers.LayerNorm()

    def build(self, x_shape: Any) -> None:
        with layers.name_scopes("transform"):
            self.dense.build(x_shape)
            self.layer_norm.build(x_shape)
        self.output_bias = self.add_weight(
            name="output_bias",
            shape=(self.config.vocab_size,),
            initializer="zeros",
        )

    def call(self, x: Any, word_embeddings: Any) -> Any:
        *outer, hidden_size = layers.shape_of(x)
        x = self.layer_norm(self.dense(x))
        dtype = layers.matmul_dtype(self)
        logits = gradients.vocabulary_logits(
            ops.cast(ops.reshape(x, (-1, hidden_size)), dtype),
            # Reshaping turns variables into tensors.
            ops.cast(ops.reshape(word_embeddings, (-1, hidden_size)), dtype),
            ops.reshape(self.output_bias, (-1,)),
        )
        return ops.reshape(logits, (*outer, self.config.vocab_size))


@layers.serializable
class NextSentence(layers.ConfiguredLayer):
    """Predicts whether B follows A (section 3.1, task 2).

    Returns logits [..., 2] of IsNext (0) and NotNext (1).
    """

    def build(self, pooled_output_shape: Any) -> None:
        """Creates the weights; the kernel is stored transposed, [2, H]."""
        self.output_weights = self.add_matrix("output_weights", 2)
        self.output_bias = self.add_weight(
            name="output_bias", shape=(2,), initializer="zeros", autocast=False
        )

    def call(self, pooled_output: Any) -> Any:
        """Maps [..., H] to [..., 2]."""
        weights = ops.transpose(self.output_weights)
        return ops.matmul(pooled_output, weights) + self.output_bias


class PretrainingOutput(NamedTuple):
    """Logits of both heads."""

    masked_lm_logits: Any  # [B, P, V]; [B, S, V] without positions
    next_sentence_logits: Any  # [B, 2]; [B, K, 2] for packed rows


@layers.serializable
class PretrainingModel(layers.PretrainedLayer, layers.BatchModel):
    """The model that `run_pretraining.py` trains: `bert/*` and `cls/*`.

    Call arguments:
        batch: A dict with the int Tensor `input_ids` [B, S] and optionally
            `input_mask`, `segment_ids` [B, S] and `masked_lm_positions` [B, P]
            (default: all positions); packed rows also have
            `next_sentence_positions` [B, K]. Other entries are ignored.
        training: Whether to apply dropout, or a `StepContext`.

    Returns:
        A `PretrainingOutput`.
    """

    def __init__(self, config: BertConfig, **kwargs: Any) -> None:
        super().__init__(config, **kwargs)
        # Built here, so that paths start at `bert` and `cls`, not at the model.
        with layers.default_policy(self.dtype_policy):
            self.bert = Bert(self.config)
            self.masked_lm = MaskedLM(self.config, name="predictions")
            self.next_sentence = NextSentence(
                self.config, name="seq_relationship"
            )
        self.bert.build()
        with layers.name_scopes("cls"):
            self.masked_lm.build((None, None, self.config.hidden_size))
            self.next_sentence.build((None, self.config.hidden_size))
        self.built = True

    def call(
        self, batch: dict[str, Any], training: Training = False
    ) -> PretrainingOutput:
        output = self.bert(
            batch["input_ids"],
            batch.get("input_mask"),
            batch.get("segment_ids"),
            cls_positions=batch.get("next_sentence_positions"),
            output_positions=batch.get("masked_lm_positions"),
        )
        embeddings = self.bert.embeddings.word_embeddings
        return PretrainingOutput(
            self.masked_lm(output.sequence_output, embeddings),
            self.next_sentence(output.pooled_output),
        )
