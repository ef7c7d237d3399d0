"""`bert_config.json`: the sizes of a BERT model.

Fields have the names and defaults of the original `BertConfig`.
"""

import copy
import dataclasses
import json
import os
from collections.abc import Iterator, Mapping
from typing import Any

from absl import logging

from official_bert.errors import InputError
from official_bert.io import files, json_files
from official_bert.sources import checkpoint_paths
from official_bert.tokenization.vocab import num_tokens, require_tokens

# A damaged config may have thousands of layers, which Keras takes minutes to
# build.
_MAX_LAYERS = 256

# Models may round `vocab_size` up to a multiple of at most this number.
MAX_PADDING = 256

# Keys of the `config.json` of transformers, in which "gelu" is "gelu_erf".
_OF_TRANSFORMERS = {"architectures", "model_type", "transformers_version"}

# The empty name, None and "linear" all mean the identity.
ACTIVATIONS = ("", "linear", "relu", "gelu", "tanh", "gelu_erf")


@dataclasses.dataclass
class BertConfig:
    """The sizes of a BERT model.

    Attributes:
        vocab_size: V, the number of tokens.
        hidden_size: H, the size of the outputs of each layer.
        num_hidden_layers: L, the number of Transformer layers.
        num_attention_heads: A, a divisor of H.
        intermediate_size: The inner size of the feed-forward sublayers.
        hidden_act: The activation in these sublayers, one of `ACTIVATIONS` in
            upper or lower case. gelu_erf, the exact gelu, is not in the
            original.
        hidden_dropout_prob: Dropout of embeddings and of the outputs of layers.
        attention_probs_dropout_prob: Dropout of attention probabilities.
        max_position_embeddings: The maximum sequence length.
        type_vocab_size: The number of segments. The default for files without
            it is 16, as in the original; every released file has 2.
        initializer_range: Standard deviation of the initial weights, which are
            truncated at two standard deviations.
        is_left_to_right: Whether a token attends only to itself and earlier
            tokens, and the last token is pooled instead of the first. Not in
            the original; written to files only if true.
    """

    vocab_size: int
    hidden_size: int = 768
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    intermediate_size: int = 3072
    hidden_act: str | None = "gelu"
    hidden_dropout_prob: float | None = 0.1
    attention_probs_dropout_prob: float | None = 0.1
    max_position_embeddings: int = 512
    type_vocab_size: int = 16
    initializer_range: float = 0.02
    is_left_to_right: bool = False

    @classmethod
    def from_dict(cls, json_object: dict[str, Any]) -> "BertConfig":
        """Returns a config from a dict; unknown keys become attributes."""
        config = cls(vocab_size=None)  # type: ignore[arg-type]
        vars(config).update(json_object)
        return config

    @classmethod
    def from_json_file(cls, json_file: str | os.PathLike[str]) -> "BertConfig":
        """Reads and checks a `bert_config.json`.

        Raises `InputError` if the file is missing, is not a JSON object, has
        invalid values, or is a config of transformers.
        """
        json_file = os.fspath(json_file)
        try:
            config = cls.from_dict(json_files.read_object(json_file))
        except InputError as error:
            if next(files.read_lines(json_file), "") != "[PAD]":
                raise
            raise InputError(
                f"{json_file} is a vocabulary, not a config. Are the two files "
                "swapped?"
            ) from error
        # Files with the original name are read as in the original.
        is_original = os.path.basename(json_file) == "bert_config.json"
        if not is_original and _OF_TRANSFORMERS & vars(config).keys():
            raise InputError(
                f"{json_file} is a config of transformers, in which `gelu` is "
                "another function. Use --model, or `from_pretrained`, with its "
                "directory. To change the config, first convert the model with "
                "convert_checkpoint.py --to=tf1."
            )
        config.validate(f"{json_file}: ")
        return config

    def to_dict(self) -> dict[str, Any]:
        """Returns all fields, including unknown keys of `from_dict`."""
        values = copy.deepcopy(vars(self))
        if not self.is_left_to_right:
            del values["is_left_to_right"]
        return values

    def to_json_string(self) -> str:
        """Returns the same JSON text as the original, byte for byte."""
        return json.dumps(self.to_dict(), indent=2, sort_keys=True) + "\n"

    def validate(self, where: str = "") -> None:
        """Raises `InputError` if no model can have these values.

        The message starts with `where`.
        """
        for name, must_be in self._invalid_values():
            value = getattr(self, name)
            raise InputError(
                f"{where}`{name}` must be {must_be}. Received: {value!r}."
            )

    def _invalid_values(self) -> Iterator[tuple[str, str]]:
        """Yields the names of invalid values, and what they must be."""
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            is_count = type(value) is int and 0 < value < 2**31
            if field.type in (int, int | None) and not is_count:
                yield field.name, "a positive integer below 2**31"
        for name in ("hidden_dropout_prob", "attention_probs_dropout_prob"):
            value = getattr(self, name)
            is_share = isinstance(value, (int, float)) and 0 <= value < 1
            if value is not None and not is_share:  # None is the same as 0.
                yield name, "a number in [0, 1)"
        if not isinstance(self.is_left_to_right, bool):
            yield "is_left_to_right", "true or false"
        value = self.initializer_range
        if not (isinstance(value, (int, float)) and value >= 0):
            yield "initializer_range", "a number, 0 or more"
        if str(self.hidden_act or "").lower() not in ACTIVATIONS:
            yield "hidden_act", f"one of {', '.join(ACTIVATIONS[1:])}"
        if self.num_hidden_layers > _MAX_LAYERS:
            yield "num_hidden_layers", f"at most {_MAX_LAYERS}"
        heads = self.num_attention_heads
        if self.hidden_size % heads != 0:
            yield "hidden_size", f"a multiple of num_attention_heads={heads}"

    def require_vocabulary(
        self, vocab: Mapping[str, int], vocab_file: str
    ) -> None:
        """Raises `InputError` if the model cannot use a vocabulary.

        A vocabulary must have [UNK], [CLS] and [SEP], and at most `vocab_size`
        tokens. It may have fewer, because some models pad their embeddings.
        Many fewer are a warning.
        """
        require_tokens(vocab, vocab_file)
        size = num_tokens(vocab)
        if size > self.vocab_size:
            raise InputError(
                f"{vocab_file}: {size} tokens exceed the model's "
                f"vocab_size={self.vocab_size}. Use the model's vocabulary. If "
                "tokens were added in transformers, call "
                f"`model.resize_token_embeddings({size})` and save it again."
            )
        if size < self.vocab_size - MAX_PADDING:
            logging.warning(
                f"{vocab_file}: has {size} tokens, but the model has "
                f"{self.vocab_size}. Check that it is the model's vocabulary."
            )

    def require_length(self, max_seq_length: int) -> None:
        """Raises `InputError` for sequences longer than the model supports."""
        if max_seq_length > self.max_position_embeddings:
            raise InputError(
                f"--max_seq_length={max_seq_length} exceeds the model's "
                f"{self.max_position_embeddings} positions. Use a shorter "
                "length or a model with more positions."
            )

    def config_of_other_direction(self, checkpoint: str) -> str | None:
        """Returns the path of a checkpoint's config if its direction differs.

        Only `is_left_to_right` in the config shows the direction: the weights
        have the same names and shapes. Other keys may differ. `checkpoint` is a
        checkpoint prefix or a run directory.
        """
        path = checkpoint_paths.beside(checkpoint, "bert_config.json")
        if path is None:
            return None
        config = json_files.read_object(path)
        is_left_to_right = config.get("is_left_to_right", False)
        return path if is_left_to_right != self.is_left_to_right else None

    def require_same_direction(self, checkpoint: str) -> None:
        """Raises `InputError` if a checkpoint has the other direction."""
        path = self.config_of_other_direction(checkpoint)
        if path is not None:
            raise InputError(
                f"{path}: the checkpoint was trained with is_left_to_right="
                f"{not self.is_left_to_right}, which differs from the given "
                "config. Pass this file as --bert_config_file."
            )
