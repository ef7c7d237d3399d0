"""How likely a text is: Salazar et al., 2020, "Masked Language Model Scoring".

BERT gives no probability of a whole text, but one of every piece, given all the
others. The sum of their logarithms is the pseudo-log-likelihood, section 2.1::

    [CLS] [MASK] cat sat [SEP]      log P(the | ...)   -0.9
    [CLS] the [MASK] sat [SEP]      log P(cat | ...)   -3.1
    [CLS] the cat [MASK] [SEP]      log P(sat | ...)   -2.0    sum: -6.0
"""

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from official_bert.errors import InputError
from official_bert.inference.blanks import (
    MASK,
    Blanks,
    MaskedLanguageModel,
    require_text,
)
from official_bert.tasks.text import TextColumns

# Sequences in memory at once, in batches: a text has one for each piece.
_BLOCK = 4096


class Score(NamedTuple):
    """How likely a model finds a text.

    Attributes:
        log_likelihood: The sum over the pieces, in nats.
        num_pieces: Without [CLS] and [SEP].
    """

    log_likelihood: float
    num_pieces: int

    @property
    def perplexity(self) -> float:
        """Among how many pieces the model hesitates, on (geometric) average."""
        return math.exp(-self.log_likelihood / self.num_pieces)


class Scorer:
    """Tells how likely texts are.

    Args:
        masked_lm: The model.
    """

    columns: TextColumns | None = None  # It reads no tables.

    def __init__(self, masked_lm: MaskedLanguageModel) -> None:
        self._masked_lm = masked_lm
        self._mask = masked_lm.tokenizer.vocab[MASK]

    def parse(self, given: Any, where: str) -> list[int]:
        """Returns the ids of a text, with [CLS] and [SEP].

        Args:
            given: The text, or an object with a `text`.
            where: What to begin an error with.

        Raises:
            InputError: It is no text, has no piece or a [MASK], or is too long.
        """
        text = require_text(given, where)
        ids = self._masked_lm.encode(text, where)
        if len(ids) == 2 or self._mask in ids:
            raise InputError(
                f"{where}: a text to score must have words, and no [MASK]. "
                f"Received: {text!r}."
            )
        return ids

    def score(self, texts: Sequence[Sequence[int]]) -> list[Score]:
        """Returns the scores of texts that `parse` made."""
        totals = [0.0] * len(texts)
        places = self._places(texts)
        while block := list(itertools.islice(places, _BLOCK)):
            blanks = [self._masked(texts[n], place) for n, place in block]
            targets = [texts[n][place] for n, place in block]
            for rows, logs in self._masked_lm.log_probabilities(blanks):
                wanted = tf.constant([targets[row] for row in rows])
                found = tf.gather(logs[:, 0], wanted, batch_dims=1)
                for row, value in zip(rows, found.numpy(), strict=True):
                    totals[block[row][0]] += float(value)
        return [
            Score(total, len(ids) - 2)
            for total, ids in zip(totals, texts, strict=True)
        ]

    def _places(
        self, texts: Sequence[Sequence[int]]
    ) -> Iterator[tuple[int, int]]:
        """Yields the text and the position of every piece."""
        for number, ids in enumerate(texts):
            for place in range(1, len(ids) - 1):
                yield number, place

    def _masked(self, ids: Sequence[int], place: int) -> Blanks:
        return Blanks([*ids[:place], self._mask, *ids[place + 1 :]], [place])

    def answer(self, examples: Sequence[Sequence[int]]) -> list[dict[str, Any]]:
        """Returns `score` as JSON."""
        return [
            {
                "pseudo_log_likelihood": score.log_likelihood,
                "num_pieces": score.num_pieces,
                "perplexity": score.perplexity,
            }
            for score in self.score(examples)
        ]
