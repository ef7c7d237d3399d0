"""BERT with an output layer for a task (section 4 and figure 4).

There may be a `PoolingHead` between the two.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

import keras
from keras import ops

from official_bert.config import BertConfig
from official_bert.inputs.schemas import TEXT_INPUTS
from official_bert.modeling import layers
from official_bert.modeling.encoder import Bert, BertOutput
from official_bert.modeling.layers import StepContext, Training
from official_bert.modeling.pooling_head import (
    BiLstm,
    LayerPooling,
    mean_pooling,
    unit_vectors,
)
from official_bert.sources import heads
from official_bert.sources.heads import NO_POOLING_HEAD, Head, PoolingHead

# The standard deviation of initial output weights in the original.
_OUTPUT_RANGE = 0.02

_EMBEDDINGS = "embedding_output"  # Optional; see `Bert`.


class FinetuningModel(layers.ConfiguredLayer, layers.BatchModel):
    """Base of the models: BERT, an optional pooling head, an output layer.

    The output layer has the weights `output_weights` [C, H] and `output_bias`
    [C]; C is `num_outputs`. With a pooling head, H is the size of the head's
    output. As in the original implementation, the initial values of these
    weights and the dropout before them do not depend on the config. `bert` is a
    layer to use instead of `Bert(config)`, or its serialized form.

    Call arguments:
        batch: A dict with int Tensors `input_ids`, `input_mask`, `segment_ids`
            [B, S], and optionally `embedding_output`, see `Bert`; other entries
            are ignored.
        training: Whether to apply dropout, or a `StepContext`.
    """

    kind: heads.HeadKind

    def __init__(
        self,
        config: BertConfig,
        num_outputs: int = 2,
        pooling_head: PoolingHead | Mapping[str, Any] = NO_POOLING_HEAD,
        bert: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(config, **kwargs)
        self.num_outputs = num_outputs
        if not isinstance(pooling_head, PoolingHead):
            pooling_head = PoolingHead(**pooling_head)
        self.pooling_head = pooling_head
        if isinstance(bert, Mapping):
            bert = keras.saving.deserialize_keras_object(bert)
        with layers.default_policy(self.dtype_policy):
            self.bert = bert or Bert(self.config)
            self.dropout = layers.Dropout(
                self.kind.dropout, name="output_dropout"
            )
        # The pooling head computes in float32 under any policy, because it sums
        # over tokens and layers.
        with layers.default_policy("float32"):
            size = self._build_pooling_head()
        if not self.bert.built:
            self.bert.build()
        self._build_output_layer(size)
        self.built = True

    def _build_output_layer(self, size: int) -> None:
        """Creates the weights of the output layer on vectors [size]."""
        # Not a Dense layer, whose name would become part of the weights' names.
        with layers.name_scopes(self.kind.output_scope):
            self.output_weights = keras.Variable(
                keras.initializers.TruncatedNormal(stddev=_OUTPUT_RANGE),
                shape=(self.num_outputs, size),
                dtype="float32",
                name="output_weights",
            )
            self.output_bias = keras.Variable(
                "zeros",
                shape=(self.num_outputs,),
                dtype="float32",
                autocast=False,
                name="output_bias",
            )
        self.dropout.build((None, size))

    def use_initializer_range(self) -> None:
        """Gives initial output weights the standard deviation of the config."""
        scale = self.config.initializer_range / _OUTPUT_RANGE
        self.output_weights.assign(self.output_weights * scale)

    def get_config(self) -> dict[str, Any]:
        config = {
            **super().get_config(),
            "num_outputs": self.num_outputs,
            "pooling_head": dataclasses.asdict(self.pooling_head),
        }
        if not isinstance(self.bert, Bert):
            config["bert"] = keras.saving.serialize_keras_object(self.bert)
        return config

    def _build_pooling_head(self) -> int:
        """Builds the pooling head; returns the size of its output vectors."""
        head, size = self.pooling_head, self.config.hidden_size
        self.features = self.bilstm = None
        if head.freezes_bert:
            num_layers = self.config.num_hidden_layers
            self.features = LayerPooling(head.feature_layers, num_layers)
            self.features.build((None, None, size))
            if head.feature_layers == "concat_last_4":
                size *= min(4, num_layers)
        if head.bilstm_size:
            self.bilstm = BiLstm(head.bilstm_size)
            self.bilstm.build((None, None, size))
            size = 2 * head.bilstm_size
        return size

    @property
    def learning_variables(self) -> list[Any]:
        """The weights to train: all except frozen and unused ones."""
        untrained: tuple[str, ...] = ()
        if self.pooling_head.freezes_bert:
            untrained = ("bert/",)
        elif not self.kind.has_pooler or self.bilstm:
            untrained = ("bert/pooler/",)
        return [
            weight
            for weight in self.trainable_variables
            if not weight.path.startswith(untrained)
        ]

    def encode(self, batch: dict[str, Any], **arguments: Any) -> BertOutput:
        """Runs BERT on a batch; for the arguments see `Bert`."""
        inputs = (batch[name] for name in TEXT_INPUTS)
        if _EMBEDDINGS in batch:
            arguments[_EMBEDDINGS] = batch[_EMBEDDINGS]
        return self.bert(*inputs, **arguments)

    def call(self, batch: dict[str, Any], training: Training = False) -> Any:
        if self.kind.has_pooler:
            return self.project(self.text_vector(batch))
        return self.project(self.token_vectors(batch))

    def token_vectors(self, batch: dict[str, Any]) -> Any:
        """Returns a vector for every token, [B, S, any]."""
        x = self._head_inputs(batch)
        return self.bilstm(x, batch["input_mask"])[0] if self.bilstm else x

    def text_vector(self, batch: dict[str, Any]) -> Any:
        """Returns one vector for the text, [B, any].

        It is the pooled output, the final states of a BiLSTM, or the mean of
        features over the tokens.
        """
        if self.pooling_head == NO_POOLING_HEAD:
            no_positions = batch["input_ids"][:, :0]
            output = self.encode(batch, output_positions=no_positions)
            return output.pooled_output
        x, mask = self._head_inputs(batch), batch["input_mask"]
        return self.bilstm(x, mask)[1] if self.bilstm else mean_pooling(x, mask)

    def _head_inputs(self, batch: dict[str, Any]) -> Any:
        """Returns the input of the BiLSTM or of the output layer."""
        if not self.features:
            return self.encode(batch).sequence_output
        # A frozen BERT runs without dropout.
        output = self.encode(batch, training=False)
        return self.features(
            ops.stop_gradient(output.embedding_output),
            [ops.stop_gradient(layer) for layer in output.encoder_outputs],
        )

    def project(self, x: Any) -> Any:
        """Maps [..., any] to logits [..., C]."""
        logits = ops.matmul(self.dropout(x), ops.transpose(self.output_weights))
        return ops.cast(logits, "float32") + self.output_bias


@layers.serializable
class SequenceClassifier(FinetuningModel):
    """Classifies texts or pairs (C = 1: regression). Returns logits [B, C]."""

    kind = heads.KINDS["sequence_classification"]


@layers.serializable
class ChoiceClassifier(SequenceClassifier):
    """Multiple choice (section 4.4): inputs [B, C, S], logits [B, C].

    Every choice is scored independently; the softmax is over the choices.
    """

    kind = heads.KINDS["multiple_choice"]

    def __init__(
        self, config: BertConfig, num_outputs: int = 1, **kwargs: Any
    ) -> None:
        super().__init__(config, num_outputs, **kwargs)

    def call(self, batch: dict[str, Any], training: Training = False) -> Any:
        _, num_choices, length = ops.shape(batch["input_ids"])
        flat = {
            name: ops.reshape(batch[name], (-1, length)) for name in TEXT_INPUTS
        }
        if _EMBEDDINGS in batch:  # [B * C, S, H]
            flat[_EMBEDDINGS] = batch[_EMBEDDINGS]
        return ops.reshape(super().call(flat), (-1, num_choices))


@layers.serializable
class TokenClassifier(FinetuningModel):
    """Classifies every token (section 5.3). Returns logits [B, S, C]."""

    kind = heads.KINDS["token_classification"]


@layers.serializable
class SpanModel(TokenClassifier):
    """Predicts the start and the end of an answer (section 4.2).

    Its weights are `cls/squad/output_weights` and `cls/squad/output_bias`.
    Returns logits [B, S, 2] of start and end at all positions, including the
    question and padding.
    """

    kind = heads.KINDS["question_answering"]


@layers.serializable
class SentenceEncoder(FinetuningModel):
    """Turns texts into vectors (Reimers and Gurevych, 2019).

    Inputs are [B, S], or [B, C, S] with C texts in each example. Returns
    float32 [B, D] or [B, C, D]. Unless S is static, padding that all first
    texts or all other texts have is cut off. `pooling` is "mean", over all
    tokens including [CLS] and [SEP], or "cls", the vector of [CLS]. With
    `embedding_size`, D, a dense layer with tanh follows; otherwise, D is H.
    `normalize` scales vectors to length 1.
    """

    kind = heads.KINDS["encoder"]

    def __init__(
        self,
        config: BertConfig,
        pooling: str = "mean",
        embedding_size: int = 0,
        normalize: bool = True,
        **kwargs: Any,
    ) -> None:
        self.pooling = pooling
        self.embedding_size = embedding_size
        self.normalize = normalize
        super().__init__(config, 0, **kwargs)

    def get_config(self) -> dict[str, Any]:
        config = super().get_config()
        del config["num_outputs"], config["pooling_head"]
        names = ("pooling", "embedding_size", "normalize")
        return config | {name: getattr(self, name) for name in names}

    def _build_output_layer(self, size: int) -> None:
        self.dense = None
        if self.embedding_size:
            self.dense = keras.layers.Dense(
                self.embedding_size,
                activation="tanh",
                dtype="float32",
                name=heads.EMBEDDING_LAYER,
            )
            self.dense.build((None, size))

    def call(self, batch: dict[str, Any], training: Training = False) -> Any:
        texts = {name: batch[name] for name in TEXT_INPUTS}
        shape = ops.shape(texts["input_ids"])
        if len(shape) == 2:
            return self._vectors(texts, training)
        if isinstance(shape[-1], int):  # Must be static, as for XLA.
            return self._vectors_of_columns(texts, shape[-1], training)
        # Queries may be much shorter than the other texts, which are usually of
        # one kind. Each part is traced, which takes seconds.
        other = training
        if isinstance(training, StepContext):
            other = training.with_other_masks()
        vectors = []
        for part, context in ((slice(1), training), (slice(1, None), other)):
            columns = {name: x[:, part] for name, x in texts.items()}
            longest = ops.max(ops.sum(columns["input_mask"], axis=-1))
            length = ops.maximum(longest, 1)  # 0 if all texts are missing.
            vectors.append(self._vectors_of_columns(columns, length, context))
        return ops.concatenate(vectors, axis=1)

    def _vectors_of_columns(
        self, texts: dict[str, Any], length: Any, training: Training
    ) -> Any:
        """Returns [B, C, D] for texts [B, C, S] of at most `length` tokens."""
        flat = {
            name: ops.reshape(x[..., :length], (-1, length))
            for name, x in texts.items()
        }
        vectors = self._vectors(flat, training)
        num_texts = ops.shape(texts["input_ids"])[1]
        return ops.reshape(vectors, (-1, num_texts, vectors.shape[-1]))

    def _vectors(self, texts: dict[str, Any], training: Training) -> Any:
        """Returns [B, D] for [B, S]."""
        output = self.encode(texts, training=training)
        x = ops.cast(output.sequence_output, "float32")
        if self.pooling == "cls":
            vectors = x[:, 0]
        else:
            vectors = mean_pooling(x, texts["input_mask"])
        if self.dense:
            vectors = self.dense(vectors)
        return unit_vectors(vectors) if self.normalize else vectors


_MODELS: dict[str, type[FinetuningModel]] = {
    model.kind.name: model
    for model in (
        SequenceClassifier,
        ChoiceClassifier,
        TokenClassifier,
        SpanModel,
        SentenceEncoder,
    )
}


def build_model(
    head: Head, config: BertConfig, bert: Any = None
) -> FinetuningModel:
    """Returns BERT with the head of a task.

    `bert` is a layer to use instead of `Bert`, with the same arguments and
    outputs.
    """
    if head.kind == SentenceEncoder.kind.name:
        settings = head.pooling, head.embedding_size, head.normalize
        return SentenceEncoder(config, *settings, bert=bert)
    return _MODELS[head.kind](
        config, head.num_outputs, pooling_head=head.pooling_head, bert=bert
    )
