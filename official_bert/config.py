"""`bert_config.json`: what a BERT is made of, and the sizes released.

The field names and defaults are those of the 2018 release's `BertConfig`.
"""

import copy
import dataclasses
import json
from collections.abc import Mapping
from typing import Any

from absl import logging

from official_bert import files, json_files
from official_bert.errors import InputError
from official_bert.tokenization.vocabulary import require_tokens


@dataclasses.dataclass
class BertConfig:
    """The shape of one BERT.

    Attributes:
        vocab_size: V, the number of word pieces; None until it is known.
        hidden_size: H, the width of every layer and of the outputs.
        num_hidden_layers: L, the number of Transformer layers.
        num_attention_heads: A, which must divide H.
        intermediate_size: The width inside each layer's feed-forward part.
        hidden_act: Its activation: gelu, relu, tanh or linear, in any case;
            gelu_erf, which is not of the 2018 release, is the exact form.
        hidden_dropout_prob: Dropout of embeddings and of layers' outputs.
        attention_probs_dropout_prob: Dropout of attention probabilities.
        max_position_embeddings: The longest sequence the model can read.
        type_vocab_size: The number of segments. 16 when the file is silent, as
            in the 2018 release; every released file says 2.
        initializer_range: Standard deviation of the initial weights, before
            truncation at two of them.
        is_left_to_right: Whether a token attends to itself and to those before
            it only, and the last token is pooled rather than the first. Not of
            the 2018 release: to be found in a file only if it is true.
    """

    vocab_size: int | None
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
        """Makes a config from a dict; unknown keys become attributes."""
        config = cls(vocab_size=None)
        vars(config).update(json_object)
        return config

    @classmethod
    def from_json_file(cls, json_file: str) -> "BertConfig":
        """Reads and checks a `bert_config.json`.

        Raises:
            InputError: The file is missing, no JSON object, or describes no
                BERT that could be built.
        """
        config = cls.from_dict(json_files.read_object(json_file))
        try:
            config.validate()
        except InputError as error:
            raise InputError(f"{json_file}: {error}") from error
        return config

    def to_dict(self) -> dict[str, Any]:
        """Returns all fields, and the unknown ones that came with them."""
        found = copy.deepcopy(vars(self))
        if not self.is_left_to_right:
            del found["is_left_to_right"]
        return found

    def to_json_string(self) -> str:
        """Returns the JSON text of the 2018 release, byte for byte."""
        return json.dumps(self.to_dict(), indent=2, sort_keys=True) + "\n"

    def validate(self) -> None:
        """Raises `InputError` where no model of these sizes can exist."""
        for name in _COUNTS:
            value = getattr(self, name)
            if type(value) is not int or value < 1:
                raise InputError(
                    f"`{name}` must be a positive integer. Received: {value!r}."
                )
        for name in ("hidden_dropout_prob", "attention_probs_dropout_prob"):
            value = getattr(self, name)
            if value is None:  # As good as 0.
                continue
            if not isinstance(value, (int, float)) or not 0 <= value < 1:
                raise InputError(
                    f"`{name}` must be a number from 0 to below 1. "
                    f"Received: {value!r}."
                )
        if not isinstance(self.is_left_to_right, bool):
            raise InputError(
                "`is_left_to_right` must be true or false. "
                f"Received: {self.is_left_to_right!r}."
            )
        deviation = self.initializer_range
        if not isinstance(deviation, (int, float)) or not deviation >= 0:
            raise InputError(
                "`initializer_range` must be a number from 0. "
                f"Received: {deviation!r}."
            )
        if self.hidden_size % self.num_attention_heads:
            raise InputError(
                "`hidden_size` must be a multiple of `num_attention_heads`. "
                f"Received: hidden_size={self.hidden_size}, "
                f"num_attention_heads={self.num_attention_heads}."
            )
        if str(self.hidden_act or "").lower() not in ACTIVATIONS:
            raise InputError(
                f"`hidden_act` must be one of {', '.join(ACTIVATIONS[1:])}. "
                f"Received: {self.hidden_act!r}."
            )

    def require_vocabulary(
        self, vocab: Mapping[str, int], vocab_file: str
    ) -> None:
        """Raises `InputError` if a model cannot be used with a vocabulary.

        That is, if this has more pieces, or lacks one that every text needs. A
        few less are harmless: some models pad their tables.
        """
        require_tokens(vocab, vocab_file)
        # Not how many there are: a token may stand there twice.
        num_pieces = max(vocab.values(), default=-1) + 1
        if self.vocab_size is None or num_pieces > self.vocab_size:
            raise InputError(
                "The model's `vocab_size` must not be smaller than the "
                f"vocabulary. Received: vocab_size={self.vocab_size}, and "
                f"{num_pieces} lines in {vocab_file!r}. Use the vocabulary "
                "the model was made for."
            )
        if num_pieces < self.vocab_size - _MOST_PADDING:
            logging.warning(
                "%s: has %d pieces, and the model %d. Check that it is the "
                "vocabulary the model was made for.",
                vocab_file,
                num_pieces,
                self.vocab_size,
            )

    def require_length(self, max_seq_length: int) -> None:
        """Raises `InputError` for sequences longer than the model reads."""
        if max_seq_length > self.max_position_embeddings:
            raise InputError(
                f"`max_seq_length` must not exceed the model's "
                f"{self.max_position_embeddings} positions. "
                f"Received: max_seq_length={max_seq_length}. "
                "Shorten it, or choose a model with more positions."
            )

    def config_of_other_direction(self, checkpoint: str) -> str | None:
        """Returns the path of the config beside a checkpoint, if it differs.

        In the direction that the model reads; nothing else would tell.

        Args:
            checkpoint: Its path without `.index`, or a run's folder.
        """
        path = files.beside_checkpoint(checkpoint, "bert_config.json")
        if path is None:
            return None
        # Of the other keys, others may want others.
        found = json_files.read_object(path).get("is_left_to_right", False)
        return path if found != self.is_left_to_right else None

    def require_same_direction(self, checkpoint: str) -> None:
        """Raises `InputError` if a model would read in another direction."""
        path = self.config_of_other_direction(checkpoint)
        if path is not None:
            raise InputError(
                f"{path}: the model there was trained with is_left_to_right="
                f"{not self.is_left_to_right}. Received: a config with "
                f"{self.is_left_to_right}. Use the config that lies there."
            )

    def num_parameters(self, *, with_heads: bool = False) -> int:
        """Counts the weights of the encoder with its pooler.

        Args:
            with_heads: Whether to add the two pre-training heads. The masked-LM
                output layer shares the word embeddings.
        """
        hidden, inner = self.hidden_size, self.intermediate_size
        vocab_size = self.vocab_size or 0
        layer_norm = 2 * hidden
        dense = hidden * hidden + hidden
        tables = (
            vocab_size + self.max_position_embeddings + self.type_vocab_size
        )
        embeddings = tables * hidden + layer_norm
        attention = 4 * dense + layer_norm
        feed_forward = 2 * hidden * inner + inner + hidden + layer_norm
        layers = self.num_hidden_layers * (attention + feed_forward)
        pooler = dense
        masked_lm = dense + layer_norm + vocab_size
        next_sentence = 2 * hidden + 2
        heads = masked_lm + next_sentence if with_heads else 0
        return embeddings + layers + pooler + heads


# Rows of a table made a multiple of a power of two.
_MOST_PADDING = 256

# The empty name, None and "linear" all mean the identity.
ACTIVATIONS = ("", "linear", "relu", "gelu", "tanh", "gelu_erf")

_COUNTS = (
    "vocab_size",
    "hidden_size",
    "num_hidden_layers",
    "num_attention_heads",
    "intermediate_size",
    "max_position_embeddings",
    "type_vocab_size",
)


def _released(layers: int, hidden: int, vocab_size: int) -> BertConfig:
    return BertConfig(
        vocab_size=vocab_size,
        hidden_size=hidden,
        num_hidden_layers=layers,
        num_attention_heads=hidden // 64,
        intermediate_size=4 * hidden,
        type_vocab_size=2,
    )


# Every size Google released, by the name of its archive: the 24 small ones of
# Turc et al., 2019 (the last of them has the sizes of Base), Base and Large.
RELEASED: dict[str, BertConfig] = {
    f"{prefix}_L-{layers}_H-{hidden}_A-{hidden // 64}": _released(
        layers, hidden, vocab_size
    )
    for prefix, layers, hidden, vocab_size in [
        *(
            ("uncased", layers, hidden, 30522)
            for layers in (2, 4, 6, 8, 10, 12)
            for hidden in (128, 256, 512, 768)
        ),
        ("cased", 12, 768, 28996),
        ("multilingual", 12, 768, 105879),
        ("multi_cased", 12, 768, 119547),
        ("chinese", 12, 768, 21128),
        ("uncased", 24, 1024, 30522),
        ("cased", 24, 1024, 28996),
        ("wwm_uncased", 24, 1024, 30522),
        ("wwm_cased", 24, 1024, 28996),
    ]
}
