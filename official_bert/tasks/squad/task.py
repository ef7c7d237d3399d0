"""SQuAD as a task: spans of a passage that answer a question."""

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
import tensorflow as tf
from absl import logging

from official_bert import json_files
from official_bert.config import BertConfig
from official_bert.errors import InputError
from official_bert.inputs.schemas import Feature, Schema, text_schema
from official_bert.metrics import squad
from official_bert.modeling import losses
from official_bert.modeling.finetuning_models import SpanModel
from official_bert.modeling.pooling_head import NO_POOLING_HEAD, PoolingHead
from official_bert.options.run_squad import RunSquad
from official_bert.tasks.shuffling import shuffled
from official_bert.tasks.squad import answers, decoding, features
from official_bert.tasks.squad.decoding import DecodingOptions, Predictions
from official_bert.tasks.squad.examples import (
    Paragraph,
    SquadExample,
    find_unanswered,
    read_examples,
)
from official_bert.tasks.squad.windows import WindowOptions
from official_bert.tasks.task import FeatureRow, Output
from official_bert.tokenization import BatchTokenizer


class SquadAnswer(NamedTuple):
    """What is predicted for a question.

    Attributes:
        text: The answer; "" for none. (In SQuAD 1.1, which has an answer to
            every question, "empty" if none was found, as in 2018.)
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
        pad_to: max: the best starts and ends are chosen among all positions,
            padding too, as in 2018. bucket: not among padding.
        pooling_head: The layers between BERT and the output layer.
        show_progress: Whether to show how far tokenizing and decoding are. A
            command's own; what `from_json` makes, for a `Predictor`, is silent.
    """

    train_file: str | None = None
    predict_file: str | None = None
    doc_stride: int = 128
    max_query_length: int = 64
    decoding: DecodingOptions = decoding.DEFAULT
    pad_to: str = "max"
    pooling_head: PoolingHead = NO_POOLING_HEAD
    show_progress: bool = False

    epoch_has_all_rows: ClassVar[bool] = False

    @property
    def main_metric(self) -> str:
        """The overlap of words, from 0 to 100."""
        return "f1"

    def splits(self, mode: str) -> Sequence[str]:
        """Returns what there is for train, dev or test."""
        return [mode]

    def examples(self, split: str) -> Sequence[SquadExample]:
        """Reads the file to train on, or the one to predict.

        Raises:
            InputError: It cannot be used, or what is to be evaluated lacks
                answers.
        """
        path = self.train_file if split == "train" else self.predict_file
        assert path is not None
        examples = read_examples(
            path,
            is_training=split == "train",
            version_2_with_negative=self.decoding.version_2_with_negative,
        )
        place = None if split != "dev" else find_unanswered(path)
        if place is not None:
            raise InputError(
                f"{place}: must have `answers`, each with a `text`, to be "
                "evaluated. Received: a question without. Add them, an empty "
                "list where there is no answer; or predict this file with "
                "--do_predict, and neither --do_eval nor --eval_every."
            )
        return shuffled(examples) if split == "train" else examples

    def schema(self, max_seq_length: int, *, is_training: bool) -> Schema:
        """Returns the features of a window, as in 2018."""
        single = ["start_positions", "end_positions", "is_impossible"]
        return {
            "unique_ids": Feature(1),
            **text_schema(max_seq_length),
            **(dict.fromkeys(single, Feature(1)) if is_training else {}),
        }

    def featurize(
        self,
        examples: Iterable[SquadExample],
        tokenizer: BatchTokenizer,
        max_seq_length: int,
        *,
        is_training: bool,
    ) -> Iterator[FeatureRow]:
        """Yields a row for each window of each example's passage."""
        examples = list(examples)
        if not examples:
            return
        made = features.make_features(
            examples,
            tokenizer,
            WindowOptions(
                max_seq_length=max_seq_length,
                doc_stride=self.doc_stride,
                max_query_length=self.max_query_length,
            ),
            show_progress=self.show_progress,
        )
        positions = None
        if is_training:
            positions = answers.positions(examples, made, tokenizer)
        numbers = iter(made.windows.example.tolist())
        for block in features.rows(made, positions):
            lengths = block["input_mask"].sum(axis=1).tolist()
            for index, length in enumerate(lengths):
                row = {
                    name: values[index, :length]
                    for name, values in block.items()
                }
                yield FeatureRow(next(numbers), row, (made, tokenizer))

    def build_model(self, config: BertConfig, bert: Any = None) -> SpanModel:
        """Returns BERT with the logits of starts and ends."""
        return SpanModel(config, pooling_head=self.pooling_head, bert=bert)

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

    def answers(
        self,
        examples: Sequence[SquadExample],
        rows: Sequence[FeatureRow],
        outputs: Sequence[Output],
    ) -> list[SquadAnswer]:
        """Chooses an answer to each question, out of all its windows."""
        if rows:
            predictions = self._decoded(examples, rows, outputs)
        else:
            predictions = decoding.predict_without_windows(
                examples, self.decoding
            )
        return [
            SquadAnswer(
                predictions.answers[e.qas_id],
                predictions.n_best[e.qas_id],
                predictions.null_odds.get(e.qas_id),
            )
            for e in examples
        ]

    def _decoded(
        self,
        examples: Sequence[SquadExample],
        rows: Sequence[FeatureRow],
        outputs: Sequence[Output],
    ) -> Predictions:
        made, tokenizer = rows[0].made_of
        shape = (len(rows), made.max_seq_length, 2)
        logits = np.full(shape, -np.inf, np.float32)
        for chosen, (_, row, _), output in zip(
            logits, rows, outputs, strict=True
        ):
            length = len(row["input_ids"])
            if self.pad_to == "max":
                length = len(output.logits)
            chosen[:length] = output.logits[:length]
        return decoding.predict(
            examples,
            made,
            tokenizer,
            logits[..., 0],
            logits[..., 1],
            self.decoding,
            show_progress=self.show_progress,
        )

    def metrics(
        self, examples: Sequence[SquadExample], answers: Sequence[SquadAnswer]
    ) -> dict[str, Any]:
        """Returns what the official scripts return.

        Nothing, unless the file has the answers to all questions: half a test
        set's score would be taken for the whole one's.
        """
        assert self.predict_file is not None
        if (place := find_unanswered(self.predict_file)) is not None:
            logging.info("%s has no answers: nothing is scored", place)
            return {}
        dataset = json_files.read_object(self.predict_file)["data"]
        predictions = _predictions(examples, answers)
        return squad.evaluate(
            dataset, predictions.answers, predictions.null_odds or None
        )

    def write_predictions(
        self,
        folder: str,
        split: str,
        examples: Sequence[SquadExample],
        answers: Sequence[SquadAnswer],
    ) -> None:
        """Writes the JSON files of 2018."""
        decoding.write_predictions(folder, _predictions(examples, answers))

    def to_json(self) -> dict[str, Any]:
        """Returns what `from_json` takes."""
        return {
            "kind": "squad",
            "doc_stride": self.doc_stride,
            "max_query_length": self.max_query_length,
            "decoding": self.decoding._asdict(),
            "pad_to": self.pad_to,
            **self.pooling_head.to_json(),
        }

    @classmethod
    def from_json(cls, given: dict[str, Any]) -> "SquadTask":
        """Makes a task that can predict."""
        return cls(
            doc_stride=given["doc_stride"],
            max_query_length=given["max_query_length"],
            decoding=DecodingOptions(**given["decoding"]),
            pad_to=given.get("pad_to", "max"),
            pooling_head=PoolingHead.from_json(given),
        )

    def parse(self, given: Any, where: str) -> SquadExample:
        """Takes an object with question and context, or a list of both."""
        texts = given
        if isinstance(given, dict):
            texts = [given.get("question"), given.get("context")]
        if (
            not isinstance(texts, list | tuple)
            or len(texts) != 2
            or not all(isinstance(text, str) for text in texts)
        ):
            raise InputError(
                f"{where}: must be a question and a context, as an object with "
                f"these keys or a pair. Received: {given!r}."
            )
        question, context = texts
        return SquadExample(where, question, Paragraph.from_text(context))

    def answer_to_json(
        self, example: SquadExample, answer: SquadAnswer
    ) -> dict[str, Any]:
        """Returns the answer, "" for none, its probability, and others."""
        return {
            "answer": answer.text,
            "probability": next(
                candidate["probability"]
                for candidate in answer.n_best
                if candidate["text"] == answer.text
            ),
            "n_best": answer.n_best,
            **(
                {}
                if answer.null_odds is None
                else {"null_odds": answer.null_odds}
            ),
        }


def make(options: RunSquad) -> SquadTask:
    """Returns the task on the files that the options name."""
    return SquadTask(
        train_file=options.train_file,
        predict_file=options.predict_file,
        doc_stride=options.doc_stride,
        max_query_length=options.max_query_length,
        decoding=DecodingOptions(
            options.n_best_size,
            options.max_answer_length,
            options.version_2_with_negative,
            options.null_score_diff_threshold,
        ),
        pad_to=options.eval_pad_to,
        pooling_head=PoolingHead(options.feature_layers, options.bilstm_units),
        show_progress=True,
    )


def told_again(trained: Any, options: RunSquad) -> SquadTask:
    """Returns a trained task that chooses answers as options say now.

    Raises:
        InputError: It is of another kind.
    """
    if not isinstance(trained, SquadTask):
        raise InputError(
            f"{options.output_dir}: must be what run_squad.py trained. "
            f"Received: a {type(trained).__name__}. Use the command of its own."
        )
    return dataclasses.replace(trained, decoding=make(options).decoding)


def _predictions(
    examples: Sequence[SquadExample], answers: Sequence[SquadAnswer]
) -> Predictions:
    """Returns the answers by question."""
    names = [example.qas_id for example in examples]
    pairs = list(zip(names, answers, strict=True))
    return Predictions(
        {name: answer.text for name, answer in pairs},
        {name: answer.n_best for name, answer in pairs},
        {
            name: answer.null_odds
            for name, answer in pairs
            if answer.null_odds is not None
        },
    )
