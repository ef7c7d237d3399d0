"""Predicts with a fine-tuned model."""

import contextlib
import itertools
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from official_bert.errors import InputError, listed, quoted, require_count
from official_bert.inference import (
    engine_choice,
    engines,
    explanations,
    keras_engine,
)
from official_bert.inference.engines import Engine
from official_bert.io import frames
from official_bert.options import AnswerOptions
from official_bert.tasks.calibration import NO_CALIBRATION
from official_bert.tasks.long_texts import (
    MAX_SHARE_TRUNCATED,
    warn_of_truncation,
)
from official_bert.tasks.task import FinetunedModel
from official_bert.tasks.text import warn_of_empty_texts


class Predictor(engines.EngineUser):
    """Predicts with a fine-tuned model.

    ```
    predictor = Predictor.from_dir("/tmp/mrpc_output")
    predictor([["He laughed.", "He did laugh."]])
    # [{"label": "1", "probabilities": {"0": 0.08, "1": 0.92}}]
    ```

    The numbers equal the output of `--do_predict`, up to rounding. If given, an
    `engine` computes the logits instead of `finetuned.model`; TensorFlow is
    then not imported. With `explain`, "integrated_gradients" or "occlusion",
    every answer has an `explanation`: a score for each word.
    """

    def __init__(
        self,
        finetuned: FinetunedModel,
        *,
        batch_size: int = 32,
        engine: Engine | None = None,
        explain: str | None = None,
    ) -> None:
        if isinstance(finetuned, str | os.PathLike):
            raise TypeError(
                "`finetuned` must be a FinetunedModel. Received: "
                f"{finetuned!r}. For a directory, use `from_dir` or "
                "`from_pretrained`."
            )
        require_count("batch_size", batch_size)
        self.task = finetuned.task.with_tokenizer(finetuned.tokenizer)
        self.tokenizer = finetuned.tokenizer
        self.max_seq_length = finetuned.max_seq_length
        self.output_dir = ""  # The run directory, if `from_dir` loaded one.
        # About truncated texts, and about unknown words.
        self._has_warned = self._has_warned_of_unknown = False
        self._batch_size = batch_size
        model = finetuned.model
        self._engine = engine or keras_engine.make(
            lambda batch: [model(batch, training=False)]
        )
        self._explainer = None
        if explain:
            self._explainer = explanations.make(
                explain, finetuned, self._engine, batch_size
            )

    @classmethod
    def from_dir(
        cls,
        output_dir: str | os.PathLike[str],
        *,
        batch_size: int = 32,
        engine: str = "auto",
        precision: str = "auto",
        explain: str | None = None,
    ) -> "Predictor":
        """Loads the best checkpoint of a fine-tuning run, or the newest.

        Args:
            output_dir: A run directory, or a model exported for OpenVINO.
            batch_size: Sequences per step.
            engine: "tensorflow", "openvino" or "auto", like `--engine` of
                `predict.py`.
            precision: "float32", "bfloat16" or "auto", like `--precision`.
            explain: "integrated_gradients" or "occlusion", like `--explain`.

        Raises:
            InputError: A file is missing or damaged.
        """
        options = AnswerOptions(
            model_dir=os.fspath(output_dir), engine=engine, precision=precision
        )
        return cls.from_options(options, batch_size, explain)

    @classmethod
    def from_pretrained(
        cls,
        model: str | os.PathLike[str],
        *,
        batch_size: int = 32,
        engine: str = "auto",
        precision: str = "auto",
        explain: str | None = None,
    ) -> "Predictor":
        """Loads a model that was fine-tuned with transformers, or a run.

        `model` is OWNER/NAME on the Hugging Face Hub, or a directory, like
        `--model` of `predict.py`; for the other arguments, see `from_dir`.
        Raises `InputError` if the model is not fine-tuned or not supported.
        """
        options = AnswerOptions(
            model=os.fspath(model), engine=engine, precision=precision
        )
        return cls.from_options(options, batch_size, explain)

    @classmethod
    def from_options(
        cls, options: AnswerOptions, batch_size: int, explain: str | None
    ) -> "Predictor":
        """Loads the model that the flags of a command name."""
        options = options.resolve()
        options.download_weights()
        finetuned, engine = engine_choice.load_finetuned(
            options.model_files, options, options.model_dir, explain
        )
        task = finetuned.task.with_answer_options(options)
        predictor = cls(
            finetuned._replace(task=task),
            batch_size=batch_size,
            engine=engine,
            explain=explain,
        )
        predictor.output_dir = options.model_dir or ""
        return predictor

    def __call__(self, items: Iterable[Any]) -> list[dict[str, Any]]:
        """Returns an answer for each item; its values have JSON types.

        Items are texts, pairs as lists or tuples of two, or dicts; see the
        task's `parse` and `answer_to_json`. Raises `InputError` with the index
        of the item if an item is invalid.
        """
        return list(self.stream(items, chunk_size=sys.maxsize))

    def stream(
        self, items: Iterable[Any], *, chunk_size: int = 256
    ) -> Iterator[dict[str, Any]]:
        """Yields the answers of `__call__`, with one chunk of items in memory.

        A chunk is read when its first answer is requested. If an item is
        invalid, `InputError` is raised after the answers of earlier chunks.
        """
        require_count("chunk_size", chunk_size)
        if self._is_row(items):
            raise InputError(
                "`items` must not be a single row of a DataFrame. Pass "
                "[row.to_dict()]."
            )
        examples = (
            self.parse(item, f"items[{n}]")
            for n, item in enumerate(_plain_items(items, "items"))
        )
        checked = warn_of_empty_texts(examples)
        while chunk := list(itertools.islice(checked, chunk_size)):
            yield from self.answer(chunk)

    def frame(self, df: Any, prefix: str = "") -> Any:
        """Returns a copy of a DataFrame with a column for each part of answers.

        ```
        predictor.frame(df)  # df, label and its probability
        ```

        Args:
            df: A pandas or polars DataFrame with the columns of the training
                data. Missing texts are empty.
            prefix: The start of the names of the new columns.

        Raises:
            InputError: A row is invalid, or `df` has a new column already.
        """
        if not frames.is_frame(df):
            raise InputError(
                f"`df` must be a pandas or polars DataFrame. Received: "
                f"{quoted(df)}. Call the predictor with a list."
            )
        columns: dict[str, list[Any]] = {}
        rows = frames.rows_of(df, "df")
        # A frame without rows gets the columns of the answer to this row.
        placeholder = dict.fromkeys(map(str, df.columns), "a")
        for answer in self.stream(rows or [placeholder]):
            for name in answer.keys() & {"label", "choice"}:
                scores = answer.pop("probabilities")
                answer["probability"] = scores[answer[name]]
            for name, value in answer.items():
                columns.setdefault(prefix + name, []).append(value)
            if taken := sorted(columns.keys() & {*map(str, df.columns)}):
                raise InputError(
                    f"`df` has the columns {listed(taken)} already. Rename "
                    'them, or pass a prefix, such as prefix="predicted_".'
                )
        return frames.with_columns(df, columns)

    def _is_row(self, items: Any) -> bool:
        """Whether items are a row of a DataFrame.

        Rows and columns are Series. Only a row can be parsed as an object.
        """
        if not (hasattr(items, "to_dict") and hasattr(items, "index")):
            return False
        row = items.to_dict()
        if not all(isinstance(name, str) for name in row):
            return False  # The numbers of rows.
        with contextlib.suppress(InputError):
            return self.parse(row, "row") is not None
        return False

    def parse(self, given: Any, where: str) -> Any:
        """Returns the example for an item; messages start with `where`."""
        if isinstance(given, dict):
            given = {str(name): _to_json(cell) for name, cell in given.items()}
        return self.task.parse(_to_json(given), where)

    def rank(
        self, query: str, documents: Iterable[str], k: int | None = None
    ) -> list[dict[str, Any]]:
        """Returns the `k` documents that fit a query best, best first.

        The model is for classification or regression of pairs of texts. Each
        result has the `index` of a document and its `score`: the predicted
        number; with two labels, the probability of the second one; with more,
        the mean of their ids, without calibration, as in the metrics. Equal
        scores keep the order of the documents. Without `k`, all documents are
        ranked.
        """
        if not self.task.ranks_pairs:
            raise InputError(
                "`rank` needs a model for classification or regression of "
                "pairs of texts. This one has another task, or single texts."
            )
        if k is not None:
            require_count("k", k)
        items = enumerate(_plain_items(documents, "documents"))
        texts = {f"documents[{number}]": text for number, text in items}
        for where, text in {"query": query, **texts}.items():
            if not isinstance(text, str):
                raise InputError(
                    f"{where}: must be a text. Received: {quoted(text)}."
                )
        examples = [self.parse([query, texts[n]], n) for n in texts]
        if not examples:
            return []
        task: Any = self.task
        if len(task.labels) > 2:
            task = task.with_calibration(NO_CALIBRATION)
        answers = [
            answer
            for features, logits in self._run(examples)
            for answer in task.answers(features, logits)
        ]
        scores = task.relevance(answers)
        order = np.argsort(-scores, kind="stable")[:k]
        return [{"index": int(i), "score": float(scores[i])} for i in order]

    def answer(self, examples: Sequence[Any]) -> list[dict[str, Any]]:
        """Returns the answers for examples from `parse`."""
        answers, explained = [], list[Any]()
        for features, logits in self._run(examples):
            found = self.task.answers(features, logits)
            answers += found
            if self._explainer:
                explained += self._explainer(
                    features, self.task.outputs(features, logits, found)
                )
        results = [
            self.task.answer_to_json(example, answer)
            for example, answer in zip(examples, answers, strict=True)
        ]
        for result, explanation in zip(results, explained, strict=False):
            result["explanation"] = explanation
        return results

    def soft_answers(
        self, examples: Sequence[Any], description: str
    ) -> list[Any]:
        """Returns the `Task.soft_answers`, with a progress bar."""
        return [
            answer
            for features, logits in self._run(examples, description)
            for answer in self.task.soft_answers(features, logits)
        ]

    def _run(
        self, examples: Sequence[Any], description: str | None = None
    ) -> Iterator[tuple[Any, Any]]:
        """Yields features and their logits."""
        for features in self.task.featurize(
            examples, self.tokenizer, self.max_seq_length
        ):
            self._warn_if_truncated(features.lengths)
            if not self._has_warned_of_unknown:
                self._has_warned_of_unknown = features.warn_if_unknown(
                    self.tokenizer
                )
            outputs = engines.run(
                self._engine,
                features,
                max_seq_length=self.max_seq_length,
                batch_size=engines.batch_size_for(
                    len(features.lengths), self._batch_size
                ),
                pad_to=self.task.pad_to,
                description=description,
            )
            logits = [logits for logits, *_ in outputs]
            yield features, engines.require_finite(logits)

    def _warn_if_truncated(self, lengths: Sequence[int]) -> None:
        """Warns once if many texts are as long as the maximum, or longer."""
        if self._has_warned or not self.task.truncates:
            return
        num_full = sum(length >= self.max_seq_length for length in lengths)
        if num_full > MAX_SHARE_TRUNCATED * len(lengths):
            self._has_warned = True
            warn_of_truncation(
                f"Up to {num_full} of {len(lengths)}",
                self.max_seq_length,
                ", the --max_seq_length used in training. For longer texts, "
                "train with a larger one or, for texts with labels, with "
                "--long_document=windows",
            )


def _to_json(value: Any) -> Any:
    """Returns arrays and tuples as lists, which are JSON types, as tasks need.

    Other values are unchanged.
    """
    if isinstance(value, np.ndarray):
        return value.tolist()
    return list(value) if isinstance(value, tuple) else value


def _plain_items(items: Any, name: str) -> Iterable[Any]:
    """Returns the items of a list, an iterator or a column.

    Raises `InputError`, which calls the items `name`, for something else.
    """
    if frames.is_frame(items):
        raise InputError(
            f"`{name}` must not be a DataFrame. Pass a column, such as "
            'df["text"], or call `frame(df)` for a model with columns.'
        )
    if not frames.is_list(items):
        raise InputError(
            f"`{name}` must be a list of inputs, such as [text]. Received: "
            f"{quoted(items)}."
        )
    return map(frames.plain, items) if frames.is_column(items) else items
