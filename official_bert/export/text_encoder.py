"""Text to the inputs of `Bert`, as a Keras layer."""

import dataclasses
import os
import tempfile
from typing import Any

import keras
import tensorflow as tf

from official_bert.errors import require_package
from official_bert.export import graph_packing
from official_bert.export.graph_tokenizer import GraphTokenizer
from official_bert.inputs import text_inputs
from official_bert.inputs.schemas import TEXT_INPUTS
from official_bert.io import files, json_files
from official_bert.modeling.layers import serializable
from official_bert.tokenization import FullTokenizer, TokenizerSettings


@serializable
class TextEncoder(keras.layers.Layer):
    """Makes the inputs of `Bert` from strings, in models and in `Dataset.map`.

    ```
    text = keras.Input([], dtype="string")
    pooled = bert(**TextEncoder("bert_tiny_demo", 64)(text)).pooled_output
    ```

    The ids are those of `encode`, with `padding="max_length"`. A saved model
    contains the vocabulary. The layer needs TensorFlow as the backend of Keras.

    Args:
        model: A name or a directory, as for `Tokenizer.from_pretrained`, or a
            tokenizer.
        max_seq_length: S, the number of tokens, including [CLS] and [SEP]; at
            least 3. Longer sequences are truncated, shorter ones are padded.

    Call arguments:
        text_a: string Tensor of any shape, such as [B].
        text_b: the second texts of pairs, if any, of the same shape.

    Returns:
        `input_ids`, `input_mask` and `segment_ids`, int32 [B, S].

    Raises:
        InputError: There is no such model, `tensorflow_text` is not installed,
            or the tokenizer cannot run in a graph (see `GraphTokenizer`).
    """

    def __init__(
        self,
        model: str | os.PathLike[str] | FullTokenizer,
        max_seq_length: int,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        require_package("tensorflow_text", "`TextEncoder`")
        text_inputs.require_length(max_seq_length)
        if not isinstance(model, FullTokenizer):
            model = FullTokenizer.from_pretrained(model)
        self.max_seq_length = max_seq_length
        self._vocab = files.read_text(model.vocab_file)
        self._settings = model.settings
        self._special_ids = text_inputs.special_ids(model.vocab)
        with tf.init_scope():
            self._tokenizer = GraphTokenizer(model)
        # As in the layers of Keras that take strings.
        self.supports_jit = self._convert_input_args = False
        self._allow_non_tensor_positional_args = True

    def call(self, text_a: Any, text_b: Any = None) -> dict[str, Any]:
        """Returns the inputs of `Bert`."""
        texts = [text_a] if text_b is None else [text_a, text_b]
        texts = [tf.convert_to_tensor(text, tf.string) for text in texts]
        length = self.max_seq_length
        packed = graph_packing.pack(
            [self._tokenizer.tokenize(tf.reshape(t, [-1])) for t in texts],
            length,
            self._special_ids,
            ends_empty=False,
        )
        shape = tf.concat([tf.shape(texts[0]), [length]], axis=0)
        static_shape = texts[0].shape.concatenate([length])
        return {
            name: tf.ensure_shape(tf.reshape(ids, shape), static_shape)
            for name, ids in zip(TEXT_INPUTS, packed.values(), strict=True)
        }

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments, with the tokenizer as JSON."""
        settings = dataclasses.asdict(self._settings)
        settings["added_tokens"] = [*settings["added_tokens"]]
        return {
            **super().get_config(),
            "model": {"vocab": self._vocab, "settings": settings},
            "max_seq_length": self.max_seq_length,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "TextEncoder":
        """Returns the layer that `get_config` described."""
        model = config["model"]
        settings = json_files.decode(
            model["settings"], TokenizerSettings, "settings"
        )
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "vocab.txt")
            files.write_text(path, model["vocab"])
            tokenizer = FullTokenizer(path, settings=settings)
            return cls(**{**config, "model": tokenizer})
