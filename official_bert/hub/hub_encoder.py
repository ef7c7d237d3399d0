"""A module of the TF Hub as a Keras layer, all of which learns."""

import collections
import contextlib
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

import keras
import tensorflow as tf

from official_bert.config import BertConfig
from official_bert.errors import InputError
from official_bert.hub import modules
from official_bert.tokenization import load_vocab

# What the signature `tokens` of 2018 calls the inputs.
_OLD_NAMES = {
    "input_word_ids": "input_ids",
    "input_mask": "input_mask",
    "input_type_ids": "segment_ids",
}


@keras.saving.register_keras_serializable("official_bert")
class HubEncoder(keras.layers.Layer):
    """A text encoder of the TF Hub: ours, a published one, or one of 2018.

    A Keras layer that merely holds a SavedModel trains nothing of it, and says
    nothing. This one has the module's variables as its weights, so that any
    optimizer finds and moves them; they are called as in the module. With
    `trainable=False`, or set so later, it is frozen, its dropout as well.

    ```
    texts = keras.Input([], dtype="string")
    encoder = HubEncoder("/tmp/hub/encoder")
    outputs = encoder(preprocessor(texts))
    logits = keras.layers.Dense(2)(outputs["pooled_output"])
    ```

    Modules of 2018 have one graph for training and another without its
    dropout. The latter is used for both, so inside of them nothing is dropped.

    Args:
        handle: The module's folder, or its address.

    Call arguments:
        inputs: A dict of int Tensors [B, S]: `input_word_ids`, `input_mask`,
            `input_type_ids`.

    Returns:
        A dict: `pooled_output` [B, H], `sequence_output` [B, S, H], and what
        else the module gives, such as a list `encoder_outputs`.

    Raises:
        InputError: There is no such module, or it is no text encoder.
    """

    def __init__(self, handle: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.handle = handle
        self.module = modules.load(handle)
        self._is_old = not callable(self.module)
        if self._is_old and "tokens" not in self.module.signatures:
            raise InputError(
                f"{handle}: must be a text encoder, which can be called or has "
                "a signature `tokens`. Received: a module with the signatures "
                f"{sorted(self.module.signatures)}."
            )
        # A tuple: Keras finds variables in it.
        self.module_weights = tuple(_as_weights(self.module, handle))
        self.built = True

    @property
    def text_info(self) -> modules.TextInfo:
        """The vocabulary, and whether text is lower-cased."""
        return modules.text_info(self.module, self.handle)

    def call(self, inputs: dict[str, Any], training: bool = False) -> Any:
        """See the class."""
        inputs = {name: tf.cast(inputs[name], tf.int32) for name in _OLD_NAMES}
        if not self._is_old:
            is_training = bool(training and self.trainable)
            return dict(self.module(inputs, training=is_training))
        return self.module.signatures["tokens"](
            **{_OLD_NAMES[name]: value for name, value in inputs.items()}
        )

    def get_config(self) -> dict[str, Any]:
        """Returns what Keras needs to make the layer again: the handle."""
        return {**super().get_config(), "handle": self.handle}


def _as_weights(module: Any, handle: str) -> list[keras.Variable]:
    """Returns a module's variables as Keras knows them, not copies of them."""
    variables = list(getattr(module, "variables", ()))
    trainable = getattr(
        module, "trainable_variables", [v for v in variables if v.trainable]
    )
    if not trainable:
        raise InputError(
            f"{handle}: must have variables to train. Received: a module "
            "without. It can only be used as it is; so can modules of 2018 "
            "with reference variables, which TensorFlow 2 does not find."
        )
    learning = {id(variable) for variable in trainable}
    # Some modules list what they train and nothing else.
    rest = [v for v in variables if id(v) not in learning]
    every = [*trainable, *rest]
    return [
        _as_weight(variable, name, id(variable) in learning)
        for variable, name in zip(every, _names(every), strict=True)
    ]


def _names(variables: Sequence[tf.Variable]) -> list[str]:
    """Returns the variables' names, each made the only one of its kind."""
    seen: collections.Counter[str] = collections.Counter()
    names = []
    for variable in variables:
        name = variable.name.partition(":")[0]
        number = seen[name]
        seen[name] += 1
        names.append(f"{name}_{number}" if number else name)
    return names


def _as_weight(
    variable: tf.Variable, name: str, trainable: bool
) -> keras.Variable:
    *scopes, own_name = name.split("/")
    with contextlib.ExitStack() as stack:
        for scope in scopes:
            stack.enter_context(keras.name_scope(scope))
        return keras.Variable(
            variable,
            shape=variable.shape,
            dtype=variable.dtype.name,
            trainable=trainable,
            name=own_name,
        )


class HubOutput(NamedTuple):
    """What a module says about a batch, named as our own BERT does.

    Attributes:
        sequence_output: [B, S, H].
        pooled_output: [B, H].
        encoder_outputs: [B, S, H] of every layer, if the module gives them.
    """

    sequence_output: Any
    pooled_output: Any
    encoder_outputs: list[Any]


class HubBert(keras.layers.Layer):
    """A `HubEncoder` that is called like `modeling.encoder.Bert`.

    Args:
        handle: The module's folder, or its address.

    Attributes:
        config: Of the module, if it is ours; else what is known of its sizes.
        is_ours: Whether `export_tfhub.py` wrote it. Then its weights have the
            names of 2018.
    """

    def __init__(self, handle: str) -> None:
        super().__init__(name="bert")
        self.encoder = HubEncoder(handle)
        self.built = True
        config = modules.read_config(handle)
        self.is_ours = config is not None
        self.config = config or self._known_sizes()

    def build(self, input_ids_shape: Any = (None, None)) -> None:
        """Does nothing: the weights are there."""

    def _known_sizes(self) -> BertConfig:
        """Runs the module on a word; what it does not tell has no limit."""
        ids = tf.zeros([1, 3], tf.int32)
        output = self(ids, tf.ones_like(ids), ids)
        positions = [
            weight.shape[0]
            for weight in self.encoder.weights
            if "position_embedding" in weight.path
        ]
        vocab = load_vocab(self.encoder.text_info.vocab_file)
        return BertConfig(
            vocab_size=max(vocab.values()) + 1,
            hidden_size=int(output.pooled_output.shape[-1]),
            num_hidden_layers=max(1, len(output.encoder_outputs)),
            num_attention_heads=1,
            max_position_embeddings=max(positions, default=sys.maxsize),
        )

    def call(
        self,
        input_ids: Any,
        input_mask: Any,
        segment_ids: Any,
        output_positions: Any = None,
        training: bool = False,
    ) -> HubOutput:
        """Runs the module on int Tensors [B, S].

        It makes the vectors of all tokens, whichever positions are asked for.
        """
        inputs = (input_ids, input_mask, segment_ids)
        outputs = self.encoder(
            dict(zip(_OLD_NAMES, inputs, strict=True)), training=training
        )
        sequence_output = outputs["sequence_output"]
        if output_positions is not None:
            sequence_output = tf.gather(
                sequence_output, output_positions, batch_dims=1
            )
        return HubOutput(
            sequence_output=sequence_output,
            pooled_output=outputs["pooled_output"],
            encoder_outputs=list(outputs.get("encoder_outputs", ())),
        )
