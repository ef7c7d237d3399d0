"""SQuAD as a task: questions whose answers are spans of a paragraph."""

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from absl import logging

from official_bert import json_files
from official_bert.config import BertConfig
from official_bert.errors import InputError
from official_bert.inputs.schemas import Feature, Schema, text_schema
from official_bert.metrics import squad_metrics
from official_bert.modeling import losses
from official_bert.modeling.finetuning_models import SpanModel
from official_bert.modeling.pooling_head import PoolingHead
from official_bert.options.run_squad import RunSquad
from official_bert.tasks.squad import squad_decoding
from official_bert.tasks.squad.squad_decoding import (
    DecodingOptions,
    SquadAnswer,
)
from official_bert.tasks.squad.squad_examples import (
    Paragraph,
    SquadExample,
    find_unanswered,
    read_examples,
)
from official_bert.tasks.squad.squad_features import (
    SquadFeatures,
    make_features,
)
from official_bert.tasks.task import (
    Outputs,
    Task,
    saved_field,
    shuffle_examples,
)
from official_bert.tokenization import BatchTokenizer


@dataclasses.dataclass(frozen=True, kw_only=True)
class SquadTask(Task):
    """SQuAD 1.1 and 2.0.

    Attributes:
        doc_stride: See `squad_features.make_features`.
        max_query_length: Likewise.
        decoding: How answers are chosen.
        pad_to: max: the best starts and ends are chosen among all positions,
            including padding, as in the original. bucket: not among padding.
        train_file: The JSON file for training.
        predict_file: The JSON file for predicting and evaluating.
        show_progress: Whether to show progress bars of tokenizing and decoding.
    """

    doc_stride: int = saved_field(int, default=128)
    max_query_length: int = saved_field(int, default=64)
    decoding: DecodingOptions = saved_field(
        DecodingOptions, default=squad_decoding.DEFAULT
    )
    pad_to: str = saved_field(str, default="max")
    train_file: str | None = None
    predict_file: str | None = None
    show_progress: bool = False

    kind = "squad"
    epoch_has_all_features = False

    @property
    def main_metric(self) -> str:
        """F1 of the words of answers, from 0 to 100."""
        return "f1"

    def examples(self, split: str) -> Sequence[SquadExample]:
        """Reads `train_file` or `predict_file`.

        Raises:
            InputError: The file is malformed, or split is dev and a question
                has no `answers`.
        """
        path = self.train_file if split == "train" else self.predict_file
        assert path is not None
        examples = read_examples(
            path,
            is_training=split == "train",
            version_2_with_negative=self.decoding.version_2_with_negative,
        )
        if split == "dev" and (place := find_unanswered(path)):
            raise InputError(
                f"{place}: a question must have `answers`, each with a `text`, "
                "for --do_eval and --eval_every. Add them (an empty list if "
                "there is no answer), or use --do_predict alone."
            )
        return shuffle_examples(examples) if split == "train" else examples

    def schema(self, max_seq_length: int, *, is_training: bool) -> Schema:
        """Returns the original's features of a window."""
        labels = ["start_positions", "end_positions", "is_impossible"]
        return {
            "unique_ids": Feature(1),
            **text_schema(max_seq_length),
            **(dict.fromkeys(labels, Feature(1)) if is_training else {}),
        }

    def featurize(
        self,
        examples: Sequence[SquadExample],
        tokenizer: BatchTokenizer,
        max_seq_length: int,
        *,
        is_training: bool,
    ) -> Iterator[SquadFeatures]:
        """Yields the windows of all examples, which share paragraphs."""
        if examples:
            yield make_features(
                examples,
                tokenizer,
                max_seq_length=max_seq_length,
                doc_stride=self.doc_stride,
                max_query_length=self.max_query_length,
                is_training=is_training,
                show_progress=self.show_progress,
            )

    def build_model(self, config: BertConfig, bert: Any = None) -> SpanModel:
        """Returns BERT with logits of starts and ends, [B, S, 2]."""
        return SpanModel(config, pooling_head=self.pooling_head, bert=bert)

    def losses(self, logits: Any, batch: dict[str, Any]) -> Any:
        """Returns [B], the mean loss of start and end; 0 without labels."""
        if "start_positions" not in batch:
            return tf.zeros(tf.shape(logits)[:1])
        start = losses.cross_entropy(
            logits[..., 0], batch["start_positions"][:, 0]
        )
        end = losses.cross_entropy(logits[..., 1], batch["end_positions"][:, 0])
        return (start + end) / 2.0

    def weights(self, batch: dict[str, Any]) -> Any:
        """Returns [B], 1 with labels and 0 without."""
        shape = tf.shape(batch["input_ids"])[:1]
        return tf.cast(tf.fill(shape, "start_positions" in batch), tf.float32)

    def answers(
        self, features: SquadFeatures, outputs: Outputs
    ) -> list[SquadAnswer]:
        """Chooses an answer to each question from all of its windows."""
        num_windows = len(outputs.logits)
        shape = (num_windows, features.max_seq_length, 2)
        logits = np.full(shape, -np.inf, np.float32)
        lengths = features.lengths
        if self.pad_to == "max":
            lengths = [features.max_seq_length] * num_windows
        for target, source, length in zip(
            logits, outputs.logits, lengths, strict=True
        ):
            target[:length] = source[:length]
        return squad_decoding.decode(
            features,
            logits[..., 0],
            logits[..., 1],
            self.decoding,
            show_progress=self.show_progress,
        )

    def metrics(
        self, examples: Sequence[SquadExample], answers: Sequence[SquadAnswer]
    ) -> dict[str, Any]:
        """Returns the scores of the official scripts.

        Empty unless the file has the answers to all questions: scores of a part
        would be mistaken for scores of the whole.
        """
        assert self.predict_file is not None
        if place := find_unanswered(self.predict_file):
            logging.info("%s has no answers: no metrics are computed", place)
            return {}
        dataset = json_files.read_object(self.predict_file)["data"]
        texts = {
            example.qas_id: answer.text
            for example, answer in zip(examples, answers, strict=True)
        }
        null_odds = squad_decoding.null_odds(examples, answers)
        return squad_metrics.evaluate(dataset, texts, null_odds or None)

    def write_predictions(
        self,
        folder: str,
        split: str,
        examples: Sequence[SquadExample],
        answers: Sequence[SquadAnswer],
    ) -> None:
        """Writes `predictions.json` and the original's other JSON files."""
        squad_decoding.write_predictions(folder, examples, answers)

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
                f"these keys or as a pair. Received: {given!r}."
            )
        question, context = texts
        return SquadExample(where, question, Paragraph.from_text(context))

    def answer_to_json(
        self, example: SquadExample, answer: SquadAnswer
    ) -> dict[str, Any]:
        """Returns the answer ("" for none), its probability, and the n best."""
        values = {
            "answer": answer.text,
            "probability": next(
                candidate["probability"]
                for candidate in answer.n_best
                if candidate["text"] == answer.text
            ),
            "n_best": answer.n_best,
        }
        if answer.null_odds is not None:
            values["null_odds"] = answer.null_odds
        return values


def make(options: RunSquad) -> SquadTask:
    """Returns the task that the options describe."""
    return SquadTask(
        train_file=options.train_file,
        predict_file=options.predict_file,
        doc_stride=options.doc_stride,
        max_query_length=options.max_query_length,
        decoding=_decoding_options(options),
        pad_to=options.eval_pad_to,
        pooling_head=PoolingHead(options.feature_layers, options.bilstm_units),
        show_progress=True,
    )


def with_decoding_options(trained: Any, options: RunSquad) -> SquadTask:
    """Returns a trained task with the decoding options of the command line.

    Raises:
        InputError: The task is of another kind.
    """
    if not isinstance(trained, SquadTask):
        raise InputError(
            f"{options.output_dir}: must hold a model that run_squad.py "
            f"trained. Received: a model for {trained.kind}. Export it with "
            "the command that trained it."
        )
    return dataclasses.replace(trained, decoding=_decoding_options(options))


def _decoding_options(options: RunSquad) -> DecodingOptions:
    return DecodingOptions(
        options.n_best_size,
        options.max_answer_length,
        options.version_2_with_negative,
        options.null_score_diff_threshold,
    )
