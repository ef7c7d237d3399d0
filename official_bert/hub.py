"""TF Hub modules as Keras layers whose weights can be trained."""

import collections
import os
import sys
from typing import Any

import keras
import tensorflow as tf

from official_bert.config import BertConfig
from official_bert.errors import InputError, require_package, short_reason
from official_bert.io import files
from official_bert.modeling.encoder import BertOutput
from official_bert.modeling.layers import name_scopes, serializable
from official_bert.sources.pretrained import ModelFiles
from official_bert.tokenization import Tokenizer, load_vocab, num_tokens

# Inputs, and their names in the signature `tokens` of TF1 Hub modules.
INPUTS = {
    "input_word_ids": "input_ids",
    "input_mask": "input_mask",
    "input_type_ids": "segment_ids",
}

# A file that only TF1 modules contain. Of their graphs, the one without tags,
# which has no dropout, is loaded.
_TF1_FORMAT = "tfhub_module.pb"

# A file that only modules from `export_tfhub.py` contain.
CONFIG = os.path.join("assets.extra", "bert_config.json")


@serializable
class HubEncoder(keras.layers.Layer):
    """A TF Hub text encoder, in the TF2 or TF1 format.

    A Keras layer that merely stores a SavedModel in an attribute does not train
    it. The weights of this layer are the module's variables, under the names
    that they have there, so that any optimizer updates them. If `trainable` is
    False, the weights are frozen and there is no dropout.

    TF1 modules have one graph with dropout and one without. Training uses the
    graph without dropout too.

    Args:
        handle: The module's directory, or an address that `tensorflow_hub`
            supports.

    Call arguments:
        inputs: A dict of int Tensors [B, S]: `input_word_ids`, `input_mask`,
            `input_type_ids`.

    Returns:
        A dict: `pooled_output` [B, H], `sequence_output` [B, S, H], and any
        other outputs of the module, such as a list `encoder_outputs`.

    Raises:
        InputError: There is no such module, or it is not a text encoder.
    """

    def __init__(self, handle: str | os.PathLike[str], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.handle = handle = os.fspath(handle)
        self.directory = _download(handle)
        self.module = _load(self.directory)
        self._is_tf1 = not callable(self.module)
        if self._is_tf1 and "tokens" not in self.module.signatures:
            raise InputError(
                f"{handle}: must be a text encoder, which can be called or has "
                "a signature `tokens`. Received: a module with the signatures "
                f"{sorted(self.module.signatures)}."
            )
        # A tuple: Keras finds variables in it.
        self.module_weights = tuple(_as_weights(self.module, handle))
        self.built = True
        if not self.trainable:
            for weight in self.module_weights:
                weight.trainable = False

    @property
    def text_info(self) -> ModelFiles:
        """The vocabulary and the casing; `InputError` if they are missing."""
        module = self.module
        if hasattr(module, "vocab_file") and hasattr(module, "do_lower_case"):
            vocab_file = module.vocab_file.asset_path
            do_lower_case = module.do_lower_case
        elif "tokenization_info" in module.signatures:
            info = module.signatures["tokenization_info"]()
            vocab_file = info["vocab_file"]
            do_lower_case = info["do_lower_case"]
        else:
            raise InputError(
                f"{self.handle}: must contain its vocabulary, as `vocab_file` "
                "and `do_lower_case` or in the signature `tokenization_info`. "
                "Use a module for BERT's WordPiece tokens."
            )
        return ModelFiles(
            vocab_file=vocab_file.numpy().decode(),
            do_lower_case=bool(do_lower_case.numpy()),
        )

    @property
    def tokenizer(self) -> Tokenizer:
        """The module's tokenizer; errors as in `text_info`."""
        return self.text_info.tokenizer

    def call(self, inputs: dict[str, Any], training: bool = False) -> Any:
        """Runs the module; for inputs and outputs see the class."""
        inputs = {name: tf.cast(inputs[name], tf.int32) for name in INPUTS}
        if not self._is_tf1:
            is_training = bool(training and self.trainable)
            return dict(self.module(inputs, training=is_training))
        return self.module.signatures["tokens"](
            **{INPUTS[name]: value for name, value in inputs.items()}
        )

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments of the constructor."""
        return {**super().get_config(), "handle": self.handle}


@serializable
class HubBert(keras.layers.Layer):
    """A `HubEncoder` with the interface of `modeling.encoder.Bert`.

    Attributes:
        config: The module's config if `is_ours`; otherwise, a config with the
            sizes that a run of the module shows.
        is_ours: Whether `export_tfhub.py` wrote the module. Then its weights
            have the original implementation's names.
    """

    def __init__(self, handle: str, name: str = "bert", **kwargs: Any) -> None:
        super().__init__(name=name, **kwargs)
        self.encoder = HubEncoder(handle, trainable=self.trainable)
        self.built = True
        path = os.path.join(self.encoder.directory, CONFIG)
        self.is_ours = files.exists(path)
        if self.is_ours:
            self.config = BertConfig.from_json_file(path)
        else:
            self.config = self._measured_sizes()

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments of the constructor."""
        return {**super().get_config(), "handle": self.encoder.handle}

    def _measured_sizes(self) -> BertConfig:
        """Runs the module on three tokens; returns a config with its sizes.

        If the number of positions is unknown, sequences may have any length.
        """
        ids = tf.zeros([1, 3], tf.int32)
        output = self(ids, tf.ones_like(ids), ids)
        positions = [
            weight.shape[0]
            for weight in self.encoder.weights
            if "position_embedding" in weight.path
        ]
        vocab = load_vocab(self.encoder.text_info.vocab_file)
        return BertConfig(
            vocab_size=num_tokens(vocab),
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
    ) -> BertOutput:
        """Runs the module on int Tensors [B, S].

        `output_positions` selects vectors; all vectors are computed anyway. A
        module has no `embedding_output`, and may have no `encoder_outputs`.
        """
        inputs = (input_ids, input_mask, segment_ids)
        outputs = self.encoder(
            dict(zip(INPUTS, inputs, strict=True)), training=training
        )
        sequence_output = outputs["sequence_output"]
        if output_positions is not None:
            sequence_output = tf.gather(
                sequence_output, output_positions, batch_dims=1
            )
        return BertOutput(
            sequence_output,
            outputs["pooled_output"],
            embedding_output=None,
            encoder_outputs=list(outputs.get("encoder_outputs", ())),
            attention_probs=[],
        )


def _download(handle: str) -> str:
    """Returns the directory of a module, which is downloaded if necessary."""
    if os.path.isdir(handle):
        return handle
    reason = "there is no such directory"
    if files.is_remote(handle):
        require_package("tensorflow_hub", handle)
        try:
            # The import takes a second, and directories do not need it.
            import tensorflow_hub

            return str(tensorflow_hub.resolve(handle))
        except Exception as error:  # Errors of networks, servers and archives.
            reason = short_reason(error)
    raise InputError(
        f"{handle}: must be the directory of a TF Hub module or an address "
        f"that can be reached ({reason}). Check it, or download and unpack the "
        "module and pass its directory."
    )


def _load(path: str) -> Any:
    """Loads a module in the SavedModel format or in the TF1 format."""
    is_tf1 = files.exists(os.path.join(path, _TF1_FORMAT))
    try:
        return tf.saved_model.load(path, tags=[] if is_tf1 else None)
    except (OSError, ValueError, RuntimeError, tf.errors.OpError) as error:
        raise InputError(
            f"{path}: must be a TF Hub module that encodes text, in a format "
            "that TensorFlow can load without other packages "
            f"({short_reason(error)}). Use another module."
        ) from error


def _as_weights(module: Any, handle: str) -> list[keras.Variable]:
    """Returns Keras variables that wrap a module's variables, not copies."""
    variables = list(getattr(module, "variables", ()))
    trainable = getattr(
        module, "trainable_variables", [v for v in variables if v.trainable]
    )
    if not trainable:
        raise InputError(
            f"{handle}: must have trainable variables. TensorFlow 2 finds none "
            "in TF1 modules with reference variables. Use a TF2 module."
        )
    trainable_ids = {id(variable) for variable in trainable}
    # Some modules list only their trainable variables.
    frozen = [v for v in variables if id(v) not in trainable_ids]
    weights = []
    seen: collections.Counter[str] = collections.Counter()
    for variable in [*trainable, *frozen]:
        name = variable.name.partition(":")[0]
        suffix = f"_{seen[name]}" if seen[name] else ""  # Makes names unique.
        seen[name] += 1
        scopes, _, own_name = name.rpartition("/")
        with name_scopes(scopes):
            weight = keras.Variable(
                variable,
                shape=variable.shape,
                dtype=variable.dtype.name,
                trainable=id(variable) in trainable_ids,
                name=own_name + suffix,
            )
        weights.append(weight)
    return weights
