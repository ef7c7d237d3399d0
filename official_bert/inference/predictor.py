"""A fine-tuned model, loaded once and asked often."""

import dataclasses
import itertools
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from official_bert.errors import InputError
from official_bert.inference import finetuned
from official_bert.tasks.forward import Forward
from official_bert.tasks.task import Task
from official_bert.tasks.text import TextColumns, TextTask
from official_bert.tokenization import BatchTokenizer


class Predictor:
    """Answers what a fine-tuned model was trained for.

    ```
    predictor = Predictor.from_dir("/tmp/mrpc_output")
    predictor([["He laughed.", "He did laugh."]])
    # [{"label": "1", "probabilities": {"0": 0.08, "1": 0.92}}]
    ```

    The numbers are those of `--do_predict`, but for rounding.

    Args:
        task: What the model was trained for.
        model: As `task.build_model` makes it, with its weights.
        tokenizer: Of the model.
        max_seq_length: What the model was trained with.
        batch_size: Sequences at once.
    """

    def __init__(
        self,
        task: Task,
        model: Any,
        tokenizer: BatchTokenizer,
        *,
        max_seq_length: int,
        batch_size: int = 32,
    ) -> None:
        self.task = task
        self.tokenizer = tokenizer
        self.max_seq_length = max_seq_length
        # Batches are always full; a single row shall not pay for others.
        self._of_one, self._of_many = (
            Forward(
                task,
                model,
                max_seq_length=max_seq_length,
                batch_size=size,
                pad_to=task.pad_to,
            )
            for size in (1, batch_size)
        )

    @property
    def columns(self) -> TextColumns | None:
        """Where texts stand in the user's own tables, if the task has any."""
        return self.task.columns if isinstance(self.task, TextTask) else None

    def set_columns(self, columns: TextColumns) -> None:
        """Says where texts stand from now on, in tables and objects.

        Raises:
            InputError: The task is not about texts.
        """
        if not isinstance(self.task, TextTask):
            raise InputError(
                "Columns go with models of one or two texts. Received: "
                f"{', '.join(columns.names)}, and a model that was trained for "
                f"{self.task.kind}."
            )
        self.task = dataclasses.replace(self.task, columns=columns)

    @classmethod
    def from_dir(cls, output_dir: str, *, batch_size: int = 32) -> "Predictor":
        """Loads what fine-tuning left: the best checkpoint, or the newest.

        Args:
            output_dir: Of `run_classifier.py` or its like.
            batch_size: Sequences at once.

        Raises:
            InputError: Something that is needed is missing or damaged.
        """
        found = finetuned.load(output_dir)
        return cls(
            found.task,
            found.model,
            found.tokenizer,
            max_seq_length=found.max_seq_length,
            batch_size=batch_size,
        )

    def __call__(self, items: Iterable[Any]) -> list[dict[str, Any]]:
        """Answers all items at once.

        Args:
            items: What the task's `parse` takes: texts, pairs as lists or
                tuples of two, or dicts.

        Returns:
            For each item, in their order, what the task's `answer_to_json`
            gives: of JSON's types only.

        Raises:
            InputError: An item is not what the task is about; it is named by
                its number from 0.
        """
        return list(self.stream(items, chunk_size=sys.maxsize))

    def stream(
        self, items: Iterable[Any], *, chunk_size: int = 256
    ) -> Iterator[dict[str, Any]]:
        """Yields what `__call__` returns, holding one chunk in memory.

        Args:
            items: As for `__call__`, and as many as there may be. A chunk is
                read when its first answer is wanted.
            chunk_size: How many are answered at once.

        Raises:
            InputError: As of `__call__`; earlier chunks are answered by then.
                Or `chunk_size` is less than 1.
        """
        if chunk_size < 1:
            raise InputError(
                f"`chunk_size` must be at least 1. Received: {chunk_size}. "
                "Leave it out, or say how many items to answer at once."
            )
        is_one = isinstance(items, str | bytes | dict)
        if is_one or not isinstance(items, Iterable):
            raise InputError(
                "The items must be a list of what is to be answered. Received: "
                f"{items!r}. Put it into a list."
            )
        remaining = enumerate(items)
        while chunk := list(itertools.islice(remaining, chunk_size)):
            yield from self.answer(
                [self.parse(item, f"items[{n}]") for n, item in chunk]
            )

    def parse(self, given: Any, where: str) -> Any:
        """Makes an example of a JSON value.

        Args:
            given: As for `__call__`.
            where: What to begin an error with.
        """
        # JSON has no tuples, and so tasks need not know them.
        is_tuple = isinstance(given, tuple)
        return self.task.parse(list(given) if is_tuple else given, where)

    def answer(self, examples: Sequence[Any]) -> list[dict[str, Any]]:
        """Answers examples that `parse` made, all at once."""
        answers = []
        for features in self.task.featurize(
            examples, self.tokenizer, self.max_seq_length, is_training=False
        ):
            is_one = len(features.lengths) == 1
            forward = self._of_one if is_one else self._of_many
            answers += self.task.answers(features, forward.run(features))
        return [
            self.task.answer_to_json(example, answer)
            for example, answer in zip(examples, answers, strict=True)
        ]
