"""BERT itself: embeddings (`embeddings.py`), Transformer layers, pooler.

Shape letters, here and wherever a docstring does not give its own:

    B  batch size           S  sequence length (F from, T to inside attention)
    H  hidden size          A  attention heads         D  head size, H / A
    P  masked positions     V  vocabulary size         L  layers
    C  choices or classes   K  sequences packed into a row

Layers are called what the weights of the 2018 checkpoints are called, so every
`variable.path` *is* its name in a checkpoint.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import keras
from keras import ops

from official_bert.config import BertConfig
from official_bert.modeling.attention import (
    Attention,
    attention_bias,
    bias_from,
)
from official_bert.modeling.embeddings import Embeddings, packed_position_ids
from official_bert.modeling.layers import (
    ActivatedDense,
    ResidualOutput,
    gather_positions,
)


class TransformerLayer(keras.layers.Layer):
    """Attention, then feed-forward, each with residual and normalization.

    See section 3.1 of Vaswani et al., 2017.
    """

    def __init__(self, config: BertConfig, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.attention = Attention(config, name="attention")
        self.intermediate = ActivatedDense(
            config,
            config.intermediate_size,
            config.hidden_act,
            name="intermediate",
        )
        self.residual_output = ResidualOutput(config, name="output")
        self.intermediate_size = config.intermediate_size

    def build(self, x_shape: Any) -> None:
        """Makes the weights."""
        self.attention.build(x_shape)
        self.intermediate.build(x_shape)
        inner_shape = (*x_shape[:-1], self.intermediate_size)
        self.residual_output.build(inner_shape, x_shape)

    def call(
        self,
        from_tensor: Any,
        to_tensor: Any,
        bias: Any,
        training: bool = False,
    ) -> tuple[Any, Any]:
        """Maps [B, F, H], and [B, T, H] that they attend to, to [B, F, H].

        Returns attention's probabilities [B, A, F, T] as well.
        """
        x, probabilities = self.attention(
            from_tensor, to_tensor, bias, training=training
        )
        inner = self.intermediate(x)
        return self.residual_output(inner, x, training=training), probabilities


class Encoder(keras.layers.Layer):
    """The L Transformer layers, one after the other.

    What the last layer makes of a position, no other position reads. So where
    few are asked for it makes those alone, which saves a classifier of Base's
    size 7% of all products, and one of two layers some 40%.

    Attributes:
        recomputed: Makes of a function one that is computed again for its
            gradient. If there is one, training does not remember what is
            inside of a layer, and gives no attention probabilities.
    """

    def __init__(self, config: BertConfig, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.recomputed: Callable[..., Any] | None = None
        # A tuple: layers in a list escape TensorFlow's checkpoints.
        self.layers = tuple(
            TransformerLayer(config, name=f"layer_{i}")
            for i in range(config.num_hidden_layers)
        )

    def build(self, x_shape: Any) -> None:
        """Makes the weights."""
        for layer in self.layers:
            layer.build(x_shape)

    def call(
        self,
        x: Any,
        bias: Any,
        last_positions: Any = None,
        training: bool = False,
    ) -> tuple[list[Any], list[Any]]:
        """Returns the outputs and the attention probabilities of all layers.

        Args:
            x: float Tensor [B, S, H].
            bias: As `attention_bias` makes it.
            last_positions: int Tensor [B, P], those that the last layer is to
                make; all if None.
            training: Whether to drop out.
        """
        outputs, probabilities = [], []
        for layer in self.layers:
            from_tensor = x
            if layer is self.layers[-1] and last_positions is not None:
                from_tensor = gather_positions(x, last_positions)
                bias = bias_from(bias, last_positions)
            if training and self.recomputed:
                output = functools.partial(_output, layer)
                x = self.recomputed(output)(from_tensor, x, bias)
                attention = None
            else:
                x, attention = layer(from_tensor, x, bias, training=training)
            outputs.append(x)
            probabilities.append(attention)
        return outputs, probabilities


def _output(
    layer: TransformerLayer, from_tensor: Any, to_tensor: Any, bias: Any
) -> Any:
    """Returns a layer's output in training, and nothing of its inside."""
    return layer(from_tensor, to_tensor, bias, training=True)[0]


class BertOutput(NamedTuple):
    """What BERT says about a batch.

    Attributes:
        sequence_output: A vector for every token, [B, S, H] (the paper's T_i),
            or for those that are asked for, [B, P, H].
        pooled_output: One for the whole sequence, [B, H] (the paper's C); where
            sequences are packed, one for each, [B, K, H]. From left to right it
            is made of the last token, the only one that has seen all.
        embedding_output: What the first layer reads, [B, S, H].
        encoder_outputs: The outputs of all layers, the last of them
            `sequence_output`.
        attention_probs: [B, A, S, S] of every layer, before dropout; empty
            unless asked for.
    """

    sequence_output: Any
    pooled_output: Any
    embedding_output: Any
    encoder_outputs: list[Any]
    attention_probs: list[Any]


class Bert(keras.layers.Layer):
    """Bidirectional Encoder Representations from Transformers.

    See Devlin et al., 2018.

    Call arguments:
        input_ids: int Tensor [B, S], ids of word pieces.
        input_mask: int Tensor [B, S], 1 for tokens and 0 for padding, wherever
            it stands. All ones if None.
        segment_ids: int Tensor [B, S], 0 for `text_a` and 1 for `text_b`. All
            zeros if None.
        cls_positions: int Tensor [B, K]. Given, each row is several sequences
            one behind the other, each as if it were alone: here is where they
            begin, with their [CLS], and `input_mask` is the number, from 1, of
            the sequence that a token belongs to. There are K or fewer; what is
            pooled for missing ones means nothing.
        output_positions: int Tensor [B, P]. Given, the last layer makes the
            vectors of these tokens alone, beside those that are pooled. P may
            be 0.
        return_attention: Whether to return attention probabilities.

    Returns:
        A `BertOutput`.
    """

    def __init__(
        self, config: BertConfig, name: str = "bert", **kwargs: Any
    ) -> None:
        super().__init__(name=name, **kwargs)
        config.validate()
        self.config = config
        self.embeddings = Embeddings(config, name="embeddings")
        self.encoder = Encoder(config, name="encoder")
        self.pooler = ActivatedDense(
            config, config.hidden_size, "tanh", name="pooler"
        )

    def build(self, input_ids_shape: Any = (None, None)) -> None:
        """Makes all weights; they depend on the config alone."""
        hidden_size = self.config.hidden_size
        self.embeddings.build(input_ids_shape)
        self.encoder.build((*input_ids_shape, hidden_size))
        self.pooler.build((input_ids_shape[0], hidden_size))

    def call(
        self,
        input_ids: Any,
        input_mask: Any = None,
        segment_ids: Any = None,
        cls_positions: Any = None,
        output_positions: Any = None,
        training: bool = False,
        return_attention: bool = False,
    ) -> BertOutput:
        """See the class."""
        self._check_length(input_ids)
        if input_mask is None:
            input_mask = ops.ones_like(input_ids)
        if segment_ids is None:
            segment_ids = ops.zeros_like(input_ids)
        is_packed = cls_positions is not None
        position_ids = None
        if is_packed:
            position_ids = packed_position_ids(input_mask, cls_positions)
        embedding_output = self.embeddings(
            input_ids, segment_ids, position_ids, training=training
        )
        # Here rather than in every layer, because S * S numbers take time.
        bias = attention_bias(
            input_mask,
            self.compute_dtype,
            is_packed,
            self.config.is_left_to_right,
        )
        pooled_positions = self._pooled_positions(input_mask, cls_positions)
        last_positions = None
        if output_positions is not None:
            last_positions = ops.concatenate(
                [pooled_positions, output_positions], axis=1
            )
        outputs, attention_probs = self.encoder(
            embedding_output, bias, last_positions, training=training
        )
        if output_positions is None:
            pooled = gather_positions(outputs[-1], pooled_positions)
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

    def _pooled_positions(self, input_mask: Any, cls_positions: Any) -> Any:
        """Returns whose vectors are pooled: [B, 1], or [B, K] of packed rows.

        The paper takes the first token, [CLS].
        """
        if self.config.is_left_to_right:
            return _last_tokens(input_mask, cls_positions)
        if cls_positions is not None:
            return cls_positions
        return ops.zeros_like(input_mask[:, :1], dtype="int32")

    def _check_length(self, input_ids: Any) -> None:
        if len(input_ids.shape) != 2:
            raise ValueError(
                "`input_ids` must have two axes, [batch, sequence]. "
                f"Received: input_ids.shape={tuple(input_ids.shape)}."
            )
        length = input_ids.shape[1]
        if length is not None:
            self.config.require_length(length)


def _last_tokens(input_mask: Any, cls_positions: Any) -> Any:
    """Returns where each sequence ends: [B, 1], or [B, K] of packed rows.

    A sequence of no token at all ends at the first place.
    """
    mask = ops.cast(ops.expand_dims(input_mask, 1), "int32")  # [B, 1, S]
    is_packed = cls_positions is not None
    num_sequences = ops.shape(cls_positions)[1] if is_packed else 1
    numbers = ops.expand_dims(ops.arange(1, num_sequences + 1), 1)
    places = ops.arange(ops.shape(input_mask)[1])
    return ops.max(ops.where(ops.equal(mask, numbers), places, 0), axis=-1)
