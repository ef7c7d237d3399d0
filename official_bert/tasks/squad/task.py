"""SQuAD as a task: spans of a passage that answer a question."""

import dataclasses
import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from official_bert import files
from official_bert.config import BertConfig
from official_bert.errors import InputError
from official_bert.inputs.records import Schema
from official_bert.metrics import squad
from official_bert.modeling import losses
from official_bert.modeling.finetuning import SpanModel
from official_bert.options.squad import RunSquad
from official_bert.tasks.squad import answers, decoding, features
from official_bert.tasks.squad.decoding import DecodingOptions, Predictions
from official_bert.tasks.squad.examples import (
    Paragraph,
    SquadExample,
    read_examples,
    shuffled,
)
from official_bert.tasks.squad.schema import schema
from official_bert.tasks.squad.windows import WindowOptions
from official_bert.tasks.task import Features, Output
from official_bert.tokenization import BatchTokenizer


class SquadAnswer(NamedTuple):
    """What is predicted for a question.

    Attributes:
        text: The answer; "" for none.
        n_best: Texts with probabilities and logits, best first.
        null_odds: By how much "no answer" scores better than the best text;
            None where every question has one.
    """

    text: str
    n_best: list[dict[str, Any]]
    null_odds: float | None


@dataclasses.dataclass(frozen=True, kw_only=True)
class SquadTask:
    """SQuAD 1.1 and 2.0. Methods are those of `task.Task`.

    Attributes:
        train_file: To train on; not needed to predict.
        predict_file: To predict, and to evaluate on.
        doc_stride: As `windows.WindowOptions` has it.
        max_query_length: Likewise.
        decoding: How answers are chosen.
    """

    train_file: str | None = None
    predict_file: str | None = None
    doc_stride: int = 128
    max_query_length: int = 64
    decoding: DecodingOptions = decoding.DEFAULT

    @property
    def main_metric(self) -> str:
        """The overlap of words, from 0 to 100."""
        return "f1"

    def splits(self, mode: str) -> Sequence[str]:
        """Returns what there is for train, dev or test."""
        return [mode]

    def examples(self, split: str) -> Sequence[SquadExample]:
        """Reads the file to train on, or the one to predict."""
        path = self.train_file if split == "train" else self.predict_file
        assert path is not None
        examples = read_examples(
            path,
            is_training=split == "train",
            version_2_with_negative=self.decoding.version_2_with_negative,
        )
        if not examples:
            raise InputError(f"{path}: must hold questions. Received: none.")
        return shuffled(examples) if split == "train" else examples

    def schema(self, max_seq_length: int, *, is_training: bool) -> Schema:
        """Returns the features of 2018."""
        return schema(max_seq_length, is_training=is_training)

    def featurize(
        self,
        examples: Iterable[SquadExample],
        tokenizer: BatchTokenizer,
        max_seq_length: int,
        *,
        is_training: bool,
    ) -> Iterator[Features]:
        """Yields a row for each window of each example's passage."""
        examples = list(examples)
        made = features.make_features(
            examples,
            tokenizer,
            WindowOptions(
                max_seq_length=max_seq_length,
                doc_stride=self.doc_stride,
                max_query_length=self.max_query_length,
            ),
        )
        positions = None
        if is_training:
            positions = answers.positions(examples, made, tokenizer)
        numbers = iter(made.windows.example.tolist())
        for block in features.rows(made, positions):
            lengths = block["input_mask"].sum(axis=1).tolist()
            for index, length in enumerate(lengths):
                row = {
                    name: values[index, :length].tolist()
                    for name, values in block.items()
                }
                yield Features(next(numbers), row, made)

    def build_model(self, config: BertConfig) -> SpanModel:
        """Returns BERT with the logits of starts and ends."""
        return SpanModel(config)

    def losses(self, logits: Any, batch: dict[str, Any]) -> Any:
        """Returns [B], the mean loss of start and end; 0 if not known."""
        if "start_positions" not in batch:
            return tf.zeros(tf.shape(logits)[:1])
        start = losses.cross_entropy(
            logits[..., 0], batch["start_positions"][:, 0]
        )
        end = losses.cross_entropy(logits[..., 1], batch["end_positions"][:, 0])
        return (start + end) / 2.0

    def weights(self, batch: dict[str, Any]) -> Any:
        """Returns [B]: all windows count the same, if answers are known."""
        shape = tf.shape(batch["input_ids"])[:1]
        return tf.cast(tf.fill(shape, "start_positions" in batch), tf.float32)
