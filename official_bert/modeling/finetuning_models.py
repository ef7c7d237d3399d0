"""BERT with a linear layer for a task: section 4 and figure 4 of the paper.

Between them there may be a BiLSTM, and BERT may be frozen: see `PoolingHead`.
"""

import contextlib
from collections.abc import Sequence
from typing import Any

import keras
from keras import ops

from official_bert.config import BertConfig
from official_bert.modeling.bilstm import BiLstm
from official_bert.modeling.dropout import Dropout
from official_bert.modeling.encoder import Bert, BertOutput
from official_bert.modeling.pooling_head import (
    NO_POOLING_HEAD,
    FeatureMix,
    PoolingHead,
    means,
)


class FinetuningModel(keras.Model):
    """BERT, dropout and a linear layer; what the layer reads is a subclass's.

    The layer's weights are `output_weights` [C, H] and `output_bias` [C], as in
    the checkpoints of 2018; they and the dropout of 0.1 do not depend on the
    config's `initializer_range` and dropout, as in its code. With a `top`, it
    reads vectors of another size than H.

    Args:
        config: Of BERT.
        num_outputs: C.
        top: What stands between BERT and the layer.
        scope: What stands before the names of the layer's weights.
        dropout: Of what the layer reads, in training.
        bert: What is called like `Bert`, in its place.
    """

    reads_pooler = True

    def __init__(
        self,
        config: BertConfig,
        num_outputs: int,
        pooling_head: PoolingHead = NO_POOLING_HEAD,
        *,
        scope: Sequence[str] = (),
        dropout: float = 0.1,
        bert: Any = None,
    ) -> None:
        super().__init__()
        self.config = config
        self.bert = bert or Bert(config)
        self.bert.build()
        self.pooling_head = pooling_head
        size = self._build_top()
        # Variables rather than a layer, whose name would precede theirs.
        with contextlib.ExitStack() as scopes:
            for name in scope:
                scopes.enter_context(keras.name_scope(name))
            self.output_weights = keras.Variable(
                keras.initializers.TruncatedNormal(stddev=0.02),
                shape=(num_outputs, size),
                name="output_weights",
            )
            self.output_bias = keras.Variable(
                "zeros", shape=(num_outputs,), name="output_bias"
            )
        self.dropout = Dropout(dropout, name="output_dropout")
        self.dropout.build((None, size))
        self.built = True

    def _build_top(self) -> int:
        """Makes what `top` says; returns the size of its vectors."""
        size = self.config.hidden_size
        self.features = self.bilstm = None
        if self.pooling_head.freezes_bert:
            num_layers = self.config.num_hidden_layers
            self.features = FeatureMix(self.pooling_head.feature_layers)
            self.features.build(num_layers)
            if self.pooling_head.feature_layers == "concat_last_4":
                size *= min(4, num_layers)
        if self.pooling_head.bilstm_size:
            self.bilstm = BiLstm(self.pooling_head.bilstm_size)
            self.bilstm.build((None, None, size))
            size = 2 * self.pooling_head.bilstm_size
        return size

    @property
    def learning_variables(self) -> list[Any]:
        """The weights that outputs depend on and that are not frozen.

        Without those of the pooler, if it is not read.
        """
        fixed: tuple[str, ...] = ()
        if self.pooling_head.freezes_bert:
            fixed = ("bert/",)
        elif not self.reads_pooler or self.bilstm:
            fixed = ("bert/pooler/",)
        return [
            weight
            for weight in self.trainable_variables
            if not weight.path.startswith(fixed)
        ]

    def encode(
        self, batch: dict[str, Any], training: bool, **options: Any
    ) -> BertOutput:
        """Runs BERT on `input_ids`, `input_mask`, `segment_ids` [B, S]."""
        output: BertOutput = self.bert(
            batch["input_ids"],
            batch["input_mask"],
            batch["segment_ids"],
            training=training,
            **options,
        )
        return output

    def vectors(self, batch: dict[str, Any], training: bool) -> Any:
        """Returns a vector for every piece, [B, S, H] or of the top's size."""
        x = self._vectors_of_bert(batch, training)
        return self.bilstm(x, batch["input_mask"])[0] if self.bilstm else x

    def pooled(self, batch: dict[str, Any], training: bool) -> Any:
        """Returns one for all pieces, [B, H] or of the top's size.

        That is the pooler's; of a BiLSTM, the last states of both directions;
        of features without one, their mean.
        """
        if self.pooling_head == NO_POOLING_HEAD:
            no_positions = batch["input_ids"][:, :0]
            output = self.encode(batch, training, output_positions=no_positions)
            return output.pooled_output
        x, mask = self._vectors_of_bert(batch, training), batch["input_mask"]
        return self.bilstm(x, mask)[1] if self.bilstm else means(x, mask)

    def _vectors_of_bert(self, batch: dict[str, Any], training: bool) -> Any:
        """Returns what the top reads, or if there is none, the task's layer."""
        if not self.features:
            return self.encode(batch, training).sequence_output
        output = self.encode(batch, training=False)
        return self.features(
            output._replace(
                embedding_output=ops.stop_gradient(output.embedding_output),
                encoder_outputs=[
                    ops.stop_gradient(layer) for layer in output.encoder_outputs
                ],
            )
        )

    def project(self, x: Any, training: bool) -> Any:
        """Maps [..., H] to logits [..., C]."""
        x = self.dropout(x, training=training)
        logits = ops.matmul(x, ops.transpose(self.output_weights))
        return ops.cast(logits + self.output_bias, "float32")


class SequenceClassifier(FinetuningModel):
    """One label for a text or a pair; one number where C is 1.

    Call arguments:
        batch: A dict with int Tensors `input_ids`, `input_mask`, `segment_ids`
            [B, S]; other entries are ignored.

    Returns:
        Logits [B, C].
    """

    def call(self, batch: dict[str, Any], training: bool = False) -> Any:
        """See the class."""
        return self.project(self.pooled(batch, training), training)


class ChoiceClassifier(FinetuningModel):
    """One of several continuations: section 4.4 of the paper.

    Every choice is scored by itself; the softmax is over the choices.

    Call arguments:
        batch: A dict with int Tensors `input_ids`, `input_mask`, `segment_ids`
            [B, C, S]; other entries are ignored.

    Returns:
        Logits [B, C].
    """

    def __init__(
        self,
        config: BertConfig,
        pooling_head: PoolingHead = NO_POOLING_HEAD,
        bert: Any = None,
    ) -> None:
        super().__init__(config, 1, pooling_head, bert=bert)

    def call(self, batch: dict[str, Any], training: bool = False) -> Any:
        """See the class."""
        _, num_choices, length = batch["input_ids"].shape
        if length is None:
            length = ops.shape(batch["input_ids"])[2]
        flat = {
            name: ops.reshape(batch[name], (-1, length))
            for name in ("input_ids", "input_mask", "segment_ids")
        }
        pooled = self.pooled(flat, training)
        scores = self.project(pooled, training)  # [B * C, 1]
        return ops.reshape(scores, (-1, num_choices))


class TokenClassifier(FinetuningModel):
    """One label for every piece: section 5.3 of the paper.

    Call arguments:
        batch: As for `SequenceClassifier`.

    Returns:
        Logits [B, S, C].
    """

    reads_pooler = False

    def call(self, batch: dict[str, Any], training: bool = False) -> Any:
        """See the class."""
        return self.project(self.vectors(batch, training), training)


class SpanModel(FinetuningModel):
    """Where an answer starts and where it ends: section 4.2 of the paper.

    Call arguments:
        batch: As for `SequenceClassifier`.

    Returns:
        Logits [B, S, 2], of the start and of the end. Question and padding have
        logits as well.
    """

    reads_pooler = False

    def __init__(
        self,
        config: BertConfig,
        pooling_head: PoolingHead = NO_POOLING_HEAD,
        bert: Any = None,
    ) -> None:
        scope = ("cls", "squad")
        super().__init__(
            config, 2, pooling_head, scope=scope, dropout=0.0, bert=bert
        )

    def call(self, batch: dict[str, Any], training: bool = False) -> Any:
        """See the class."""
        return self.project(self.vectors(batch, training), training)
