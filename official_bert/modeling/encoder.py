"""BERT without heads: embeddings, Transformer layers and pooler.

Shape letters, here and in all other modules:

    B  batch size           S  sequence length (F from, T to inside attention)
    H  hidden size          A  attention heads         D  head size, H / A
    P  selected positions   V  vocabulary size         L  layers
    C  choices or classes   K  sequences packed into a row

The names of layers make every `variable.path` equal to the weight's name in a
checkpoint of the 2018 release.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from keras import ops

from official_bert.config import BertConfig
from official_bert.errors import InputError
from official_bert.modeling import layers
from official_bert.modeling.attention import SelfAttention, attention_bias
from official_bert.modeling.layers import Training
from official_bert.modeling.unpadding import Unpadding


@layers.serializable
class Embeddings(layers.ConfiguredLayer):
    """The sum of three embeddings, normalized, with dropout.

    Call arguments:
        input_ids: int Tensor [B, S].
        segment_ids: int Tensor [B, S]; ids outside the table get a zero vector.
        position_ids: int Tensor [B, S]; None: 0, 1, 2, ... in every row.

    Returns:
        float Tensor [B, S, H].
    """

    def __init__(self, config: BertConfig, **kwargs: Any) -> None:
        super().__init__(config, **kwargs)
        self.layer_norm = layers.LayerNorm()
        self.dropout = layers.Dropout(
            self.config.hidden_dropout_prob, name="dropout"
        )

    def build(self, input_ids_shape: Any) -> None:
        config = self.config
        self.word_embeddings = self.add_matrix(
            "word_embeddings", config.vocab_size
        )
        self.token_type_embeddings = self.add_matrix(
            "token_type_embeddings", config.type_vocab_size
        )
        self.position_embeddings = self.add_matrix(
            "position_embeddings", config.max_position_embeddings
        )
        output_shape = (*input_ids_shape, config.hidden_size)
        self.layer_norm.build(output_shape)
        self.dropout.build(output_shape)

    def call(
        self, input_ids: Any, segment_ids: Any, position_ids: Any = None
    ) -> Any:
        words = layers.look_up(self.word_embeddings, input_ids)
        # Faster than a gather, whose gradient would sum thousands of rows into
        # only two.
        one_hot = ops.one_hot(
            segment_ids, self.config.type_vocab_size, dtype=words.dtype
        )
        segments = ops.matmul(one_hot, self.token_type_embeddings)
        if position_ids is None:
            positions = self.position_embeddings[: ops.shape(input_ids)[1]]
        else:
            positions = layers.look_up(self.position_embeddings, position_ids)
        x = self.layer_norm(words + segments + positions)
        return self.dropout(ops.cast(x, self.compute_dtype))


@layers.serializable
class TransformerLayer(layers.ConfiguredLayer):
    """Attention and a feed-forward network (Vaswani et al., section 3.1).

    For the call arguments see `SelfAttention`. `training` is not read here:
    Keras passes it on to the nested layers, dropout and `Dense`.

    Returns:
        The outputs, in the shape of `from_tensor`, and the attention
        probabilities [B, A, F, T].
    """

    def __init__(self, config: BertConfig, **kwargs: Any) -> None:
        super().__init__(config, **kwargs)
        config = self.config
        rate = config.hidden_dropout_prob
        self.attention = SelfAttention(config, name="self")
        self.attention_output = layers.dense(config, config.hidden_size)
        self.attention_dropout = layers.Dropout(rate, name="dropout")
        self.attention_norm = layers.LayerNorm()
        self.intermediate = layers.dense(
            config, config.intermediate_size, config.hidden_act
        )
        self.output_dense = layers.dense(config, config.hidden_size)
        self.output_dropout = layers.Dropout(rate, name="dropout")
        self.output_norm = layers.LayerNorm()

    def build(self, from_tensor_shape: Any) -> None:
        shape = from_tensor_shape
        with layers.name_scopes("attention"):
            self.attention.build(shape)
        with layers.name_scopes("attention/output"):
            self.attention_output.build(shape)
            self.attention_norm.build(shape)
            self.attention_dropout.build(shape)
        with layers.name_scopes("intermediate"):
            self.intermediate.build(shape)
        with layers.name_scopes("output"):
            self.output_dense.build(
                (*shape[:-1], self.config.intermediate_size)
            )
            self.output_norm.build(shape)
            self.output_dropout.build(shape)

    def call(
        self,
        from_tensor: Any,
        to_tensor: Any,
        bias: Any,
        unpadding: Unpadding | None = None,
        training: Training = False,
    ) -> tuple[Any, Any]:
        attended, probabilities = self.attention(
            from_tensor, to_tensor, bias, unpadding
        )
        attended = self.attention_dropout(self.attention_output(attended))
        x = self.attention_norm(attended + from_tensor)
        inner = self.output_dense(self.intermediate(x))
        outputs = self.output_norm(self.output_dropout(inner) + x)
        return outputs, probabilities


@layers.serializable
class Encoder(layers.ConfiguredLayer):
    """The L Transformer layers.

    Call arguments:
        x: float Tensor [B, S, H].
        bias: From `attention_bias`.
        last_positions: int Tensor [B, P], the positions that the last layer
            computes; None for all. In a classifier, this saves 7% of the
            operations of BERT-Base, and 40% with two layers.
        unpadding: If given, all but attention is computed without padding, and
            the outputs are arbitrary at the removed positions.

    Returns:
        The outputs and the attention probabilities of every layer. The
        probabilities are None where layers are recomputed.
    """

    def __init__(self, config: BertConfig, **kwargs: Any) -> None:
        super().__init__(config, **kwargs)
        # A tuple: `tf.train.Checkpoint` silently omits layers in lists.
        self.layers = tuple(
            TransformerLayer(self.config, name=f"layer_{i}")
            for i in range(self.config.num_hidden_layers)
        )

    def build(self, x_shape: Any) -> None:
        for layer in self.layers:
            layer.build(x_shape)

    def call(
        self,
        x: Any,
        bias: Any,
        last_positions: Any = None,
        unpadding: Unpadding | None = None,
        training: Training = False,
    ) -> tuple[list[Any], list[Any]]:
        recompute = getattr(training, "recompute", None)
        restore = unpadding.restore if unpadding else lambda x: x
        x = unpadding.remove(x) if unpadding else x
        outputs, probabilities = [], []
        for layer in self.layers:
            from_tensor = x
            if layer is self.layers[-1] and last_positions is not None:
                from_tensor = layers.gather_positions(
                    restore(x), last_positions
                )
                if bias.shape[2] != 1:  # Differs between positions.
                    rows = layers.gather_positions(bias[:, 0], last_positions)
                    bias = ops.expand_dims(rows, 1)
            if recompute:
                output = recompute(
                    lambda *xs, layer=layer: layer(
                        *xs, unpadding, training=training
                    )[0]
                )
                x, attention = output(from_tensor, x, bias), None
            else:
                x, attention = layer(from_tensor, x, bias, unpadding)
            outputs.append(restore(x) if len(x.shape) == 2 else x)
            probabilities.append(attention)
        return outputs, probabilities


class BertOutput(NamedTuple):
    """Outputs of `Bert`; the attention probabilities are before dropout."""

    sequence_output: Any  # [B, S, H] (the paper's T_i); [B, P, H] if selected
    pooled_output: Any  # [B, H] (the paper's C); [B, K, H] for packed rows
    embedding_output: Any  # [B, S, H], the input of the first layer
    encoder_outputs: list[Any]  # [B, S, H] per layer; last: `sequence_output`
    attention_probs: list[Any]  # [B, A, S, S] of each layer, or []


def _not_a_tensor(kind: str) -> TypeError:
    return TypeError(
        f"`input_ids` must be a Tensor. Received: a {kind}. Pass Tensors or "
        "arrays by name: bert(**batch), or bert(input_ids=np.array(ids))."
    )


@layers.serializable
class Bert(layers.PretrainedLayer):
    """Bidirectional Encoder Representations from Transformers.

    See Devlin et al., 2018. The pooled output is made from [CLS], or from the
    last token in left-to-right models.

    Call arguments:
        input_ids: int Tensor [B, S].
        input_mask: int Tensor [B, S], 1 (default) for tokens, 0 for padding.
        segment_ids: int Tensor [B, S], 0 (default) for text A, 1 for text B.
        cls_positions: int Tensor [B, K], the first positions of up to K
            sequences packed into each row, which do not attend to each other.
            `input_mask` is then 1 for tokens of the first sequence, 2 for the
            second, and so on. The pooled output of missing sequences is
            undefined.
        output_positions: int Tensor [B, P]. If given, the last layer computes
            only these positions and those that are pooled. P may be 0.
        return_attention: Whether to return attention probabilities.
        embedding_output: float Tensor [B, S, H] to use instead of the
            embeddings of `input_ids`.
        training: Whether to apply dropout, or a `StepContext`.

    Returns:
        A `BertOutput`.

    Raises:
        TypeError: `input_ids` is a dict or a list.
        ValueError: `input_ids` does not have two axes, S exceeds the number of
            positions of the model, or another Tensor does not fit [B, S].
    """

    def __init__(
        self, config: BertConfig, name: str = "bert", **kwargs: Any
    ) -> None:
        super().__init__(config, name=name, **kwargs)
        # float16 cannot represent ids, which Keras passes as floats when it
        # builds a loaded model.
        self.autocast = False
        self.config.validate()
        with layers.default_policy(self.dtype_policy):
            self.embeddings = Embeddings(self.config, name="embeddings")
            self.encoder = Encoder(self.config, name="encoder")
            size = self.config.hidden_size
            self.pooler = layers.dense(self.config, size, "tanh")

    def build(self, input_ids_shape: Any = (None, None)) -> None:
        """Creates all weights; their shapes depend only on the config."""
        if isinstance(input_ids_shape, Mapping):
            raise _not_a_tensor("dict")
        hidden_size = self.config.hidden_size
        self.embeddings.build(input_ids_shape)
        self.encoder.build((*input_ids_shape, hidden_size))
        with layers.name_scopes("pooler"):
            self.pooler.build((input_ids_shape[0], hidden_size))
        if not self.trainable:
            # The constructor's `trainable=False` does not reach the parts.
            for part in (self.embeddings, self.encoder, self.pooler):
                part.trainable = False

    def call(
        self,
        input_ids: Any,
        input_mask: Any = None,
        segment_ids: Any = None,
        cls_positions: Any = None,
        output_positions: Any = None,
        training: Training = False,
        return_attention: bool = False,
        embedding_output: Any = None,
    ) -> BertOutput:
        _check_input_ids(input_ids, self.config.max_position_embeddings)
        _require_shape("input_mask", input_mask, input_ids)
        _require_shape("segment_ids", segment_ids, input_ids)
        input_ids = ops.cast(input_ids, "int32")
        if input_mask is None:
            input_mask = ops.ones_like(input_ids)
        if segment_ids is None:
            segment_ids = ops.zeros_like(input_ids)
        segment_ids = ops.cast(segment_ids, "int32")
        is_packed = cls_positions is not None
        position_ids = None
        if is_packed:
            position_ids = _packed_position_ids(input_mask, cls_positions)
        if embedding_output is None:
            embedding_output = self.embeddings(
                input_ids, segment_ids, position_ids
            )
        # Computed once for all layers, because it may have S * S numbers.
        is_left_to_right = self.config.is_left_to_right
        bias = attention_bias(
            input_mask, self.compute_dtype, is_packed, is_left_to_right
        )
        pooled_positions = _pooled_positions(
            input_mask, cls_positions, is_left_to_right
        )
        last_positions = None
        if output_positions is not None:
            last_positions = ops.concatenate(
                [pooled_positions, output_positions], axis=1
            )
        unpadding = None
        if getattr(training, "removes_padding", False):
            unpadding = Unpadding.of(input_mask)
        outputs, attention_probs = self.encoder(
            embedding_output, bias, last_positions, unpadding
        )
        if output_positions is None:
            pooled = layers.gather_positions(outputs[-1], pooled_positions)
        else:
            num_pooled = ops.shape(pooled_positions)[1]
            pooled = outputs[-1][:, :num_pooled]
            outputs[-1] = outputs[-1][:, num_pooled:]
        return BertOutput(
            sequence_output=outputs[-1],
            pooled_output=self.pooler(pooled if is_packed else pooled[:, 0]),
            embedding_output=embedding_output,
            encoder_outputs=outputs,
            attention_probs=attention_probs if return_attention else [],
        )


def _check_input_ids(input_ids: Any, max_positions: int) -> None:
    if isinstance(input_ids, Mapping | list):
        raise _not_a_tensor(type(input_ids).__name__)
    if len(input_ids.shape) != 2:
        raise ValueError(
            "`input_ids` must have two axes, [batch, sequence]. "
            f"Received: input_ids.shape={tuple(input_ids.shape)}."
        )
    length = input_ids.shape[1]
    if isinstance(length, int) and length > max_positions:  # Or symbolic.
        raise InputError(
            f"`input_ids` must have at most {max_positions} columns, the "
            f"number of positions of the model. Received: {length}. Truncate "
            "the texts, such as with "
            f"`encode(..., max_seq_length={max_positions})`."
        )


def _require_shape(name: str, value: Any, input_ids: Any) -> None:
    """Raises `InputError` unless a tensor, if given, fits `input_ids`, [B, S].

    Its axes may also have size 1 (broadcasting) or be unknown.
    """
    if value is None:
        return
    shape = tuple(input_ids.shape)
    found = tuple(getattr(value, "shape", ()))
    pairs = zip(found, shape, strict=False)
    if len(found) != 2 or any(a != b for a, b in pairs if a and b and a != 1):
        raise InputError(
            f"`{name}` must have the shape of `input_ids`, {shape}. Received: "
            f"{found}."
        )


def _pooled_positions(
    input_mask: Any, cls_positions: Any, is_left_to_right: bool
) -> Any:
    """Returns the position [B, 1 or K] of each sequence that is pooled.

    It is the first one or, left-to-right, that of the last token; 0 if empty.
    """
    if not is_left_to_right:
        if cls_positions is not None:
            return cls_positions
        return ops.zeros_like(input_mask[:, :1], dtype="int32")
    mask = ops.cast(ops.expand_dims(input_mask, 1), "int32")  # [B, 1, S]
    num_sequences = 1 if cls_positions is None else ops.shape(cls_positions)[1]
    numbers = ops.expand_dims(ops.arange(1, num_sequences + 1), 1)
    positions = ops.arange(ops.shape(input_mask)[1])
    return ops.max(ops.where(ops.equal(mask, numbers), positions, 0), axis=-1)


def _packed_position_ids(input_mask: Any, cls_positions: Any) -> Any:
    """Returns positions [B, S] that start at 0 in each packed sequence."""
    index = ops.maximum(ops.cast(input_mask, "int32") - 1, 0)
    starts = ops.take_along_axis(cls_positions, index, axis=1)
    return ops.arange(ops.shape(input_mask)[1], dtype=starts.dtype) - starts
