"""Masked language models: predict masked tokens, and score texts."""

import itertools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from official_bert.errors import InputError, quoted, require_count
from official_bert.inference import engines, keras_engine
from official_bert.inference.engines import Engine
from official_bert.inputs import text_inputs
from official_bert.inputs.padding import Unpadded
from official_bert.tasks import probabilities
from official_bert.tasks.predict_inputs import parse_text
from official_bert.tokenization import Tokenizer
from official_bert.tokenization.vocab import warn_if_unknown_ids

MASK = "[MASK]"

# Scoring makes a sequence for each token. This many are in memory.
_BLOCK = 4096


class MaskedLanguageModel:
    """A pre-trained model, and a tokenizer that keeps [MASK] whole.

    `model` is a `PretrainingModel`. If given, an `engine` computes the logits
    instead; then only the config of `model` is used, and TensorFlow is not
    imported.
    """

    def __init__(
        self,
        model: Any,
        tokenizer: Tokenizer,
        batch_size: int = 32,
        engine: Engine | None = None,
    ) -> None:
        if not (engine or hasattr(model, "masked_lm")):
            raise TypeError(
                "`model` must be a PretrainingModel, such as PretrainingModel."
                f"from_pretrained(name). Received: {quoted(model)}."
            )
        text_inputs.require_tokenizer(tokenizer)
        self.config = model.config
        self.tokenizer = tokenizer
        self.batch_size = batch_size
        self.mask_id = tokenizer.vocab[MASK]
        # The embedding table may have more rows than the vocabulary has tokens.
        self._token_ids = [i for token, i in tokenizer.vocab.items() if token]
        bias = np.full(self.config.vocab_size, -np.inf, np.float32)
        bias[self._token_ids] = 0.0
        self._vocabulary_bias = bias
        self._has_warned = False  # About unknown words.
        self._engine = engine or keras_engine.make(
            lambda batch: [model(batch).masked_lm_logits]
        )

    def encode(self, given: Any, where: str) -> tuple[str, list[int]]:
        """Returns a text, or the `text` of an object, and its token ids.

        Raises `InputError`, whose message starts with `where`, if there is no
        text, or it is too long.
        """
        text = parse_text(given, where)
        [words] = self.tokenizer.tokenize_lines_to_ids([text])
        vocab = self.tokenizer.vocab
        ids = text_inputs.text_features(words, (), vocab)["input_ids"]
        max_length = self.config.max_position_embeddings
        if len(ids) > max_length:
            raise InputError(
                f"{where}: {len(ids)} tokens, with [CLS] and [SEP], exceed the "
                f"model's {max_length} positions. Shorten the text."
            )
        return text, ids

    def _warn_if_unknown(self, texts: Sequence[Sequence[int]]) -> None:
        """Warns once if many tokens of texts are [UNK]."""
        if not self._has_warned:
            self._has_warned = warn_if_unknown_ids(
                texts, self.tokenizer.vocab["[UNK]"], "the first tokens"
            )

    def _row(
        self, ids: Sequence[int], positions: Sequence[int]
    ) -> dict[str, Sequence[int]]:
        """Returns the features of token ids; masks and predicts `positions`."""
        masked = [*ids]
        for position in positions:
            masked[position] = self.mask_id
        return {
            "input_ids": masked,
            "input_mask": [1] * len(ids),
            "segment_ids": [0] * len(ids),
            "masked_lm_positions": positions,
            "masked_lm_ids": [ids[position] for position in positions],
        }

    def _log_probabilities(
        self, batch: dict[str, np.ndarray]
    ) -> list[np.ndarray]:
        """Returns log-probabilities at P positions, float32 [B, P, V]."""
        [logits] = engines.require_finite(self._engine(batch))
        return [probabilities.log_softmax(logits + self._vocabulary_bias)]


class Guess(NamedTuple):
    """A prediction for a [MASK]; probabilities are over the vocabulary."""

    token: str
    probability: float


class FillMask(MaskedLanguageModel):
    """Predicts the `num_guesses` most likely tokens for every [MASK].

    Raises `InputError` if `num_guesses` is less than 1.
    """

    def __init__(
        self,
        model: Any,
        tokenizer: Tokenizer,
        num_guesses: int = 5,
        batch_size: int = 32,
        engine: Engine | None = None,
    ) -> None:
        super().__init__(model, tokenizer, batch_size, engine)
        require_count("num_guesses", num_guesses)
        self._num_guesses = min(num_guesses, len(self._token_ids))

    def parse(self, given: Any, where: str) -> Unpadded:
        """Returns the input for a text; raises `InputError` without [MASK]."""
        text, ids = self.encode(given, where)
        positions = [n for n, token in enumerate(ids) if token == self.mask_id]
        if not positions:
            advice = ""
            if "[MASK]" in text:
                advice = " Create the tokenizer with `never_split=['[MASK]']`."
            raise InputError(
                f"{where}: the text must contain [MASK]. Received: "
                f"{quoted(text)}.{advice}"
            )
        return self._row(ids, positions)

    def guess(self, examples: Sequence[Unpadded]) -> list[list[list[Guess]]]:
        """Returns guesses, best first, for each [MASK] of each text."""
        self._warn_if_unknown([row["input_ids"] for row in examples])

        def finish(outputs: Sequence[np.ndarray], batch: Any) -> Any:
            counts = np.count_nonzero(batch["masked_lm_positions"], axis=1)
            rows = zip(outputs[0], counts, strict=True)
            return [[*map(self._best, row[:count])] for row, count in rows]

        return engines.run_rows(
            self._log_probabilities, examples, self.batch_size, finish
        )

    def _best(self, scores: np.ndarray) -> list[Guess]:
        """Returns the best guesses of the log-probabilities [V]."""
        best = probabilities.largest(scores, self._num_guesses)
        tokens = self.tokenizer.convert_ids_to_tokens(best.tolist())
        return list(map(Guess, tokens, np.exp(scores[best]).tolist()))

    def answer(self, examples: Sequence[Unpadded]) -> list[dict[str, Any]]:
        """Returns {"guesses": [[{"token", "probability"}, ...], ...]}."""
        return [
            {"guesses": [[g._asdict() for g in blank] for blank in text]}
            for text in self.guess(examples)
        ]


class Scorer(MaskedLanguageModel):
    """Scores texts with their pseudo-log-likelihood.

    Each token is masked in turn (Salazar et al., 2020, "Masked Language Model
    Scoring", section 2.1)::

        [CLS] [MASK] cat sat [SEP]      log P(the | ...)   -0.9
        [CLS] the [MASK] sat [SEP]      log P(cat | ...)   -3.1
        [CLS] the cat [MASK] [SEP]      log P(sat | ...)   -2.0    sum: -6.0
    """

    def parse(self, given: Any, where: str) -> list[int]:
        """Returns token ids.

        Raises `InputError` if the text has no words, or contains [MASK].
        """
        text, ids = self.encode(given, where)
        if len(ids) == 2 or self.mask_id in ids:
            raise InputError(
                f"{where}: a text to score must have words, and no [MASK]. "
                f"Received: {quoted(text)}."
            )
        return ids

    def answer(self, examples: Sequence[Sequence[int]]) -> list[dict[str, Any]]:
        """Returns the sum of the log-probabilities of each text's tokens.

        It is in nats. [CLS] and [SEP] are not scored and not counted.
        """
        self._warn_if_unknown(examples)
        totals = [0.0] * len(examples)
        tokens = (
            (example, position)
            for example, ids in enumerate(examples)
            for position in range(1, len(ids) - 1)
        )
        while block := list(itertools.islice(tokens, _BLOCK)):
            rows = [self._row(examples[n], [position]) for n, position in block]
            scores = engines.run_rows(
                self._log_probabilities, rows, self.batch_size, _of_tokens
            )
            for (n, _), score in zip(block, scores, strict=True):
                totals[n] += score
        lengths = [len(ids) - 2 for ids in examples]
        return [
            {
                "pseudo_log_likelihood": total,
                "num_tokens": length,
                "perplexity": math.exp(-total / length),
            }
            for total, length in zip(totals, lengths, strict=True)
        ]


def _of_tokens(outputs: Sequence[np.ndarray], batch: Any) -> Any:
    """Returns the log-probability of the token at the only position."""
    [scores], ids = outputs, batch["masked_lm_ids"]
    return np.take_along_axis(scores[:, 0], ids, 1)[:, 0].tolist()


def fill(
    model: Any, tokenizer: Tokenizer, text: str, num_guesses: int = 5
) -> list[list[Guess]]:
    """Returns the most likely tokens for each [MASK] of a text, best first.

    `FillMask` takes many texts. Raises `InputError` if the text has no [MASK]
    or is too long for the model, or if `num_guesses` is less than 1.
    """
    filler = FillMask(model, tokenizer, num_guesses)
    [guesses] = filler.guess([filler.parse(text, "text")])
    return guesses
