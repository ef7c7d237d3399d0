"""SQuAD as a task: questions whose answers are spans of a paragraph."""

import dataclasses
import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, Any

import numpy as np
from absl import logging

from official_bert.errors import InputError, quoted
from official_bert.inputs.schemas import Schema
from official_bert.io import files, tsv
from official_bert.io.json_files import Amount, Count
from official_bert.metrics import squad_metrics
from official_bert.options import AnswerOptions, Predict, RunSquad
from official_bert.runs import file_names
from official_bert.sources.heads import Head
from official_bert.tasks import probabilities, task
from official_bert.tasks.data_set import DataSet, shuffle_examples
from official_bert.tasks.predict_inputs import Input, table_inputs
from official_bert.tasks.squad.decoding import (
    DecodingOptions,
    SquadAnswer,
    decode,
)
from official_bert.tasks.squad.examples import (
    Paragraph,
    SquadExample,
    find_unanswered,
    read_examples,
)
from official_bert.tasks.squad.features import (
    NUM_SPECIAL,
    SquadFeatures,
    make_schema,
    make_windows,
    tokenize,
    tokenize_paragraphs,
)
from official_bert.tokenization import Tokenizer

_DEFAULT_DECODING = DecodingOptions()
_COLUMNS = ("question", "context")  # Of tables that `predict.py` reads.


@dataclasses.dataclass(frozen=True)
class SquadData(DataSet):
    """The files of `run_squad.py`; `dev` and `test` are both `predict_file`."""

    options: RunSquad

    def path(self, split: str) -> str:
        options = self.options
        path = options.train_file if split == "train" else options.predict_file
        assert path is not None
        return path

    def read(self, split: str) -> list[SquadExample]:
        examples = read_examples(
            self.path(split),
            is_training=split == "train",
            version_2_with_negative=self.options.version_2_with_negative,
        )
        if split == "train":
            return shuffle_examples(examples)
        if split == "dev" and (question := find_unanswered(examples)):
            raise InputError(
                f"{self.path('dev')}: question {question.qas_id!r} must have "
                "`answers`, each with a `text`, for --do_eval and --eval_every."
                " Add them (an empty list if there is no answer; in a table, "
                "the column answer_text), or use --do_predict alone."
            )
        return examples


@dataclasses.dataclass(frozen=True, kw_only=True)
class SquadTask(task.Task):
    """SQuAD 1.1 and 2.0; `data` is a `SquadData`.

    Other fields are flags of `run_squad.py`: several are in `decoding`, and
    `pad_to` is `--eval_pad_to`. With `show_progress`, tokenizing and decoding
    show progress bars. `num_shown` limits the `n_best` of `answer_to_json`.
    """

    doc_stride: Count = 128
    max_query_length: Amount = 64
    decoding: DecodingOptions = _DEFAULT_DECODING
    pad_to: Annotated[str, ("max", "bucket")] = "max"
    show_progress: bool = False
    num_shown: int | None = None

    kind = "squad"
    head_kind = "question_answering"
    not_saved = (*task.Task.not_saved, "show_progress", "num_shown")
    serving = "squad"
    shares_features = True
    epoch_has_all_features = False
    main_metric = "f1"
    baseline_name = "always no answer"

    @property
    def head(self) -> Head:
        """Logits of starts and ends, two for each token."""
        return Head(self.head_kind, 2, "spans", self.pooling_head)

    def schema(self, max_seq_length: int) -> Schema:
        return make_schema(max_seq_length)

    def featurize(
        self,
        examples: Sequence[SquadExample],
        tokenizer: Tokenizer,
        max_seq_length: int,
    ) -> Iterator[SquadFeatures]:
        """Yields the features of all examples together."""
        minimum = self.max_query_length + NUM_SPECIAL + 1
        if max_seq_length < minimum:
            raise InputError(
                f"--max_seq_length={max_seq_length} must be at least {minimum} "
                f"for --max_query_length={self.max_query_length}: a question, "
                f"{NUM_SPECIAL} special tokens and a window of one token."
            )
        if not examples:
            return
        paragraphs = tokenize_paragraphs(
            tokenizer, [e.paragraph for e in examples], self.show_progress
        )
        texts = (example.question_text for example in examples)
        questions = [
            question[: self.max_query_length]
            for question in tokenize(tokenizer, texts)
        ]
        rooms = [max_seq_length - NUM_SPECIAL - len(ids) for ids in questions]
        lengths = [len(paragraph.ids) for paragraph in paragraphs]
        yield SquadFeatures(
            examples=examples,
            tokenizer=tokenizer,
            questions=questions,
            paragraphs=paragraphs,
            windows=make_windows(
                np.array(lengths), np.array(rooms), self.doc_stride
            ),
        )

    def answers(
        self, features: SquadFeatures, logits: task.Logits
    ) -> list[SquadAnswer]:
        """Chooses an answer to each question from all of its windows."""
        longest = max(map(len, logits), default=1)
        padded = np.full((len(logits), longest, 2), -np.inf, np.float32)
        for row, window, length in zip(
            padded, logits, features.lengths, strict=True
        ):
            end = longest if self.pad_to == "max" else length
            row[:end] = window[:end]
        return decode(
            features, padded, self.decoding, show_progress=self.show_progress
        )

    def soft_answers(
        self, features: SquadFeatures, logits: task.Logits
    ) -> list[np.ndarray]:
        """Returns the probabilities of starts and ends, [2, S], of windows."""
        return [
            probabilities.softmax(window[:length].T)
            for window, length in zip(logits, features.lengths, strict=True)
        ]

    def divide_answers(
        self, features: SquadFeatures, answers: Sequence[np.ndarray]
    ) -> Iterable[tuple[int, np.ndarray]]:
        """Returns the answers, which are those for windows."""
        return zip(features.windows.example.tolist(), answers, strict=True)

    def as_teacher(self, student: Any) -> "SquadTask":
        """Returns the task with the student's windows."""
        return dataclasses.replace(
            self,
            doc_stride=student.doc_stride,
            max_query_length=student.max_query_length,
            pad_to="bucket",
        )

    def has_label(self, example: SquadExample) -> bool:
        """Whether the question has an answer; "no answer" is one."""
        return example.answer is not None

    def outputs(
        self, features: SquadFeatures, logits: task.Logits, answers: Any
    ) -> Iterator[task.Output]:
        """Yields the sum of the logits of each answer's start and end.

        There is none for a question without any candidate.
        """
        remaining = dict(enumerate(answers))
        for window, example in enumerate(features.windows.example.tolist()):
            if not (answer := remaining.get(example)):
                continue
            by_text = {best["text"]: best for best in answer.n_best}
            own = logits[window][: features.lengths[window]]
            start, end = (
                np.flatnonzero(own[:, i] == by_text[answer.text][name])
                for i, name in enumerate(("start_logit", "end_logit"))
            )
            if start.size and end.size:  # The answer is in this window.
                del remaining[example]
                terms = [((int(start[0]), 0), 1.0), ((int(end[0]), 1), 1.0)]
                name = answer.text or "no answer"
                yield task.Output(example, window, name, terms)

    def metrics(
        self, examples: Sequence[SquadExample], answers: Sequence[SquadAnswer]
    ) -> dict[str, Any]:
        """Returns the scores of the official scripts; {} without answers."""
        if question := find_unanswered(examples):
            name = question.qas_id
            logging.info(f"Not scored: question {name!r} has no `answers`")
            return {}
        dataset = [{"paragraphs": [{"qas": [e.qa for e in examples]}]}]
        texts, _, null_odds, _ = _by_question_id(examples, answers)
        return squad_metrics.evaluate(dataset, texts, null_odds or None)

    def baseline(self, training: Any, examples: Any) -> dict[str, Any]:
        """Returns the metrics of "no answer" everywhere; {} in SQuAD 1.1."""
        if not self.decoding.version_2_with_negative:
            return {}
        no_answer = SquadAnswer("", [], null_odds=None)
        return self.metrics(examples, [no_answer] * len(examples))

    def prediction_files(
        self, split: str, examples: Any, answers: Sequence[Any]
    ) -> dict[str, str]:
        """Returns the original's JSON files, without null odds in SQuAD 1.1."""
        columns = _by_question_id(examples, answers)[: len(file_names.ANSWERS)]
        texts = [
            json.dumps(content, indent=4) + "\n" if content else ""
            for content in columns
        ]
        return dict(zip(file_names.ANSWERS, texts, strict=True))

    def with_answer_options(self, options: AnswerOptions) -> "SquadTask":
        decoding, threshold = self.decoding, options.null_score_diff_threshold
        if threshold is not None:
            decoding = decoding._replace(null_score_diff_threshold=threshold)
        return dataclasses.replace(
            self, decoding=decoding, num_shown=options.n_best_size
        )

    def read_inputs(self, options: Predict) -> Iterator[Input] | None:
        """Yields the rows of a table; None for JSON or pairs on each line."""
        is_table = options.writes_csv or (
            options.reads_table
            and (options.resolved_format != "tsv" or _has_header(options))
        )
        return table_inputs(options, _COLUMNS) if is_table else None

    def parse(self, value: Any, where: str) -> SquadExample:
        """Makes an example from an object or a list: question and context."""
        texts = value
        if isinstance(value, dict):
            texts = [value.get("question"), value.get("context")]
        is_pair = isinstance(texts, list) and len(texts) == 2
        if not is_pair or not all(isinstance(text, str) for text in texts):
            raise InputError(
                f"{where}: must be a question and a context, as an object with "
                f"these keys or as a pair. Received: {quoted(value)}."
            )
        question, context = texts
        return SquadExample(where, question, Paragraph(context))

    def answer_to_json(
        self, example: SquadExample, answer: SquadAnswer
    ) -> dict[str, Any]:
        """Returns the answer, "" for none, its probability and the n best.

        Texts stand in the context from `start` to `end`, which is exclusive;
        for no answer, both are -1. In SQuAD 1.1, where no answer is not a
        candidate, its probability is 0.
        """
        context, odds = example.paragraph.text, answer.null_odds
        best = []
        for candidate, (start, end) in zip(
            answer.n_best, answer.spans, strict=True
        ):
            place = {"text": context[start:end], "start": start, "end": end}
            best.append(candidate | place)
        texts = [candidate["text"] for candidate in answer.n_best]
        chosen = best[texts.index(answer.text)]
        if odds is None and chosen["start"] < 0:
            best, chosen = [], chosen | {"probability": 0.0}
        values = {
            "answer": chosen["text"],
            "start": chosen["start"],
            "end": chosen["end"],
            "probability": chosen["probability"],
            "n_best": best[: self.num_shown],
        }
        return values if odds is None else {**values, "null_odds": odds}

    @classmethod
    def of_transformers(cls, model: task.TransformersModel) -> "SquadTask":
        """Returns the task, with default values of the flags.

        --doc_stride and --max_query_length are lower for models with few
        positions. As in transformers, padding is never chosen as an answer.
        """
        return cls(
            pad_to="bucket",
            doc_stride=min(128, model.num_positions // 4),
            max_query_length=min(64, model.num_positions // 4),
        )


def _by_question_id(
    examples: Sequence[SquadExample], answers: Sequence[SquadAnswer]
) -> list[dict[str, Any]]:
    """Returns {question id: value} for each field, without None values."""
    ids = [example.qas_id for example in examples]
    return [
        {i: v for i, v in zip(ids, column, strict=True) if v is not None}
        for column in zip(*answers, strict=True)
    ]


def make(options: RunSquad) -> SquadTask:
    """Returns the task that the options describe."""
    decoding = (getattr(options, name) for name in DecodingOptions._fields)
    return SquadTask(
        data=SquadData(options),
        doc_stride=options.doc_stride,
        max_query_length=options.max_query_length,
        decoding=DecodingOptions(*decoding),
        pad_to=options.eval_pad_to,
        pooling_head=options.pooling_head,
        show_progress=True,
    )


def with_decoding_options(trained: Any, options: RunSquad) -> SquadTask:
    """Returns a trained SQuAD task with the command line's decoding options."""
    if not isinstance(trained, SquadTask):
        raise InputError(
            f"{options.output_dir}: must contain a model that run_squad.py "
            f"trained. Received: a model for {trained.kind}. Export it with "
            "the command that trained it."
        )
    return dataclasses.replace(trained, decoding=make(options).decoding)


def _has_header(options: Predict) -> bool:
    """Whether the first line names the columns; pipes are not read."""
    if not files.can_reread(options.input_file):
        return False
    return {*_COLUMNS} <= {*tsv.first_cells(options.input_file)}
