"""Filling in the blanks of a text: what masked LM learned."""

import os
from collections.abc import Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from official_bert.checkpoints import loading, numbered
from official_bert.config import BertConfig
from official_bert.errors import InputError
from official_bert.inference.blanks import (
    MASK,
    Blanks,
    MaskedLanguageModel,
    require_text,
)
from official_bert.modeling.pretraining_model import PretrainingModel
from official_bert.options.model_source import (
    require_masked_lm,
    require_pretrained,
)
from official_bert.tasks.text import TextColumns
from official_bert.tokenization import BatchTokenizer


class Guess(NamedTuple):
    """A word piece, and how likely the model finds it.

    Attributes:
        piece: As it stands in the vocabulary.
        probability: Over the whole vocabulary, from 0 to 1.
    """

    piece: str
    probability: float


class FillMask:
    """Guesses what belongs in place of every [MASK] of a text.

    Args:
        masked_lm: The model.
        num_guesses: How many guesses to return for each.

    Raises:
        InputError: `num_guesses` is less than 1.
    """

    columns: TextColumns | None = None  # It reads no tables.

    def __init__(
        self, masked_lm: MaskedLanguageModel, num_guesses: int = 5
    ) -> None:
        if num_guesses < 1:
            raise InputError(
                f"`num_guesses` must be at least 1. Received: {num_guesses}. "
                "Leave it out, or say how many guesses to return."
            )
        self._masked_lm = masked_lm
        self._mask = masked_lm.tokenizer.vocab[MASK]
        self._num_guesses = min(num_guesses, len(masked_lm.tokenizer.inv_vocab))

    def parse(self, given: Any, where: str) -> Blanks:
        """Takes a text, such as "The [MASK] sat on the mat.".

        Args:
            given: The text, or an object with a `text`.
            where: What to begin an error with.

        Raises:
            InputError: It is no text, has no [MASK], or is too long.
        """
        text = require_text(given, where)
        ids = self._masked_lm.encode(text, where)
        positions = [n for n, piece in enumerate(ids) if piece == self._mask]
        if not positions:
            raise InputError(
                f"{where}: the text must hold a [MASK]. Received: {text!r}."
            )
        return Blanks(ids, positions)

    def guess(self, texts: Sequence[Blanks]) -> list[list[list[Guess]]]:
        """Returns, for each [MASK] of each text, guesses, the best first."""
        found: list[list[list[Guess]]] = [[] for _ in texts]
        for numbers, logs in self._masked_lm.log_probabilities(texts):
            best = tf.math.top_k(logs, self._num_guesses)
            chances = tf.exp(best.values).numpy().tolist()
            ids = best.indices.numpy().tolist()
            for row, number in enumerate(numbers):
                found[number] = [
                    self._guesses(ids[row][blank], chances[row][blank])
                    for blank in range(len(texts[number].positions))
                ]
        return found

    def _guesses(
        self, ids: Sequence[int], chances: Sequence[float]
    ) -> list[Guess]:
        pieces = self._masked_lm.tokenizer.convert_ids_to_tokens(ids)
        return [*map(Guess, pieces, chances)]

    def answer(self, examples: Sequence[Blanks]) -> list[dict[str, Any]]:
        """Returns `guess` as JSON: {"guesses": [[{piece, probability}]]}."""
        return [
            {"guesses": [[g._asdict() for g in blank] for blank in text]}
            for text in self.guess(examples)
        ]


def fill(
    model: PretrainingModel,
    tokenizer: BatchTokenizer,
    text: str,
    num_guesses: int = 5,
) -> list[list[Guess]]:
    """Guesses what belongs in place of every [MASK] of one text.

    `FillMask` does so for many.

    Args:
        model: With its masked-LM head.
        tokenizer: Made with `never_split=("[MASK]",)`.
        text: One segment, such as "The [MASK] sat on the mat."
        num_guesses: How many guesses to return for each.

    Returns:
        For each [MASK] in turn, the likeliest pieces, best first.

    Raises:
        InputError: The text has no [MASK], or is too long for the model, or
            `num_guesses` is less than 1.
    """
    filler = FillMask(MaskedLanguageModel(model, tokenizer), num_guesses)
    [guesses] = filler.guess([filler.parse(text, "text")])
    return guesses


def load(
    folder: str, *, do_lower_case: bool
) -> tuple[PretrainingModel, BatchTokenizer]:
    """Returns the model in an output folder of `run_pretraining.py`.

    Args:
        folder: Which holds `vocab.txt`, as `--vocab_file` makes it.
        do_lower_case: Whether the model is uncased.

    Returns:
        The model, and a tokenizer that keeps [MASK] whole.

    Raises:
        InputError: Something that is needed is not there.
    """
    require_pretrained(folder)
    return load_files(
        os.path.join(folder, "bert_config.json"),
        os.path.join(folder, "vocab.txt"),
        numbered.require(folder),
        do_lower_case=do_lower_case,
    )


def load_files(
    bert_config_file: str,
    vocab_file: str,
    init_checkpoint: str,
    *,
    do_lower_case: bool,
) -> tuple[PretrainingModel, BatchTokenizer]:
    """Returns a model as it was released, and its tokenizer.

    Args:
        bert_config_file: Its sizes.
        vocab_file: Its vocabulary.
        init_checkpoint: A TF1 checkpoint with the masked-LM head.
        do_lower_case: Whether the model is uncased.

    Raises:
        InputError: These are damaged, or not of one model.
    """
    tokenizer = BatchTokenizer(
        vocab_file, do_lower_case=do_lower_case, never_split=(MASK,)
    )
    require_masked_lm(bert_config_file)
    config = BertConfig.from_json_file(bert_config_file)
    config.require_vocabulary(tokenizer.vocab, vocab_file)
    model = PretrainingModel(config)
    loading.load(
        loading.by_name(model.trainable_variables),
        init_checkpoint,
        # Nothing is asked of it, and models of masked LM alone lack it.
        may_initialize="^cls/seq_relationship/",
        may_skip=loading.OPTIMIZER_STATE,
    )
    return model, tokenizer
