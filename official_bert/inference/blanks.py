"""Texts with blanks, and what a pre-trained model makes of them."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from official_bert.errors import InputError
from official_bert.inputs import padding, text_inputs
from official_bert.modeling.pretraining_model import PretrainingModel
from official_bert.threads import parallel_map
from official_bert.tokenization import BatchTokenizer

MASK = "[MASK]"


class Blanks(NamedTuple):
    """A text with blanks, as the model reads it.

    Attributes:
        ids: Of its pieces, with [CLS] and [SEP].
        positions: Where among them is guessed.
    """

    ids: Sequence[int]
    positions: Sequence[int]


class MaskedLanguageModel:
    """A pre-trained model and its vocabulary.

    Args:
        model: With its masked-LM head.
        tokenizer: Made with `never_split=("[MASK]",)`.
        batch_size: Sequences at once.
    """

    def __init__(
        self,
        model: PretrainingModel,
        tokenizer: BatchTokenizer,
        batch_size: int = 32,
    ) -> None:
        self.model = model
        self.tokenizer = tokenizer
        self.batch_size = batch_size
        # A model may have more rows than the vocabulary has pieces.
        vocab_size = model.config.vocab_size or 0
        closed = np.full(vocab_size, -np.inf, np.float32)
        closed[list(tokenizer.inv_vocab)] = 0.0
        self._closed = tf.constant(closed)
        ids = tf.TensorSpec([None, None], tf.int32)
        self._compiled = tf.function(self._run, input_signature=[ids] * 3)

    def encode(self, text: str, where: str) -> list[int]:
        """Returns the ids of a text's pieces, with [CLS] and [SEP].

        Args:
            text: One segment.
            where: What to begin an error with.

        Raises:
            InputError: The text is too long for the model.
        """
        ids = self.tokenizer.convert_tokens_to_ids(
            text_inputs.add_special_tokens(self.tokenizer.tokenize(text))
        )
        longest = self.model.config.max_position_embeddings
        if len(ids) > longest:
            raise InputError(
                f"{where}: a text must not exceed the model's {longest} "
                f"positions. Received: {len(ids)} pieces, with [CLS] and "
                "[SEP]. Shorten it."
            )
        return ids

    def log_probabilities(
        self, blanks: Sequence[Blanks]
    ) -> Iterator[tuple[list[int], Any]]:
        """Yields what may stand in the blanks, in batches of similar length.

        Args:
            blanks: Each with at least one position.

        Yields:
            The numbers of some of the texts, the long ones first, and a float32
            Tensor [B, P, V]: of these texts, of their blanks, for every piece
            the logarithm of its probability. Texts with fewer than P blanks are
            padded.
        """
        batches = padding.batches_by_length(
            [len(text.ids) for text in blanks], self.batch_size
        )

        def find(numbers: list[int]) -> Any:
            batch = [blanks[number] for number in numbers]
            return self._compiled(
                _stack([text.ids for text in batch]),
                _stack([[1] * len(text.ids) for text in batch]),
                _stack([text.positions for text in batch]),
            )

        return zip(batches, parallel_map(find, batches), strict=True)

    def _run(self, input_ids: Any, input_mask: Any, positions: Any) -> Any:
        output = self.model(
            {
                "input_ids": input_ids,
                "input_mask": input_mask,
                "segment_ids": tf.zeros_like(input_ids),
                "masked_lm_positions": positions,
            }
        )
        return tf.nn.log_softmax(output.masked_lm_logits + self._closed)


def _stack(rows: Sequence[Sequence[int]]) -> np.ndarray:
    """Returns an int32 array of all rows, zeros after the short ones."""
    array = np.zeros((len(rows), max(map(len, rows))), np.int32)
    for number, row in enumerate(rows):
        array[number, : len(row)] = row
    return array


def require_text(given: Any, where: str) -> str:
    """Returns a text, or the `text` of an object.

    Raises:
        InputError: It is neither.
    """
    text = given.get("text") if isinstance(given, dict) else given
    if not isinstance(text, str):
        raise InputError(
            f"{where}: must be a text, or an object with a text. Received: "
            f"{given!r}."
        )
    return text
