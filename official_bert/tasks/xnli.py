"""XNLI: inference in 15 languages (Conneau et al., 2018).

The folder holds what the archives XNLI-1.0 and XNLI-MT-1.0 hold, unpacked into
one another::

    xnli.dev.tsv, xnli.test.tsv       all languages, translated by people
    multinli/multinli.train.LANG.tsv  for training, translated by machine
    xnli/xnli.dev.en.tsv, xnli/xnli.test.en.tsv
                                      all languages, by machine into English

Training data have the columns premise, hypo, label. The others begin with
language, gold_label, and have the sentences in the seventh and the eighth;
those in English are taken to name the language that they were translated from.
There are no quotes.

* The language's own training data, or *translate-train*, the default and all
  that the 2018 release knew, for Chinese: `--language=zh`.
* *Zero-shot*: `--language=zh --train_language=en`.
* *Translate-test*: `--language=zh --translate_test`, trained on English.

The test set has labels. Where it is there, it is evaluated with the
development set, whose results stand first and choose the best checkpoint.
"""

import dataclasses
import os
from collections.abc import Sequence
from typing import Any

from official_bert import files
from official_bert.errors import InputError
from official_bert.options import RunClassifier
from official_bert.tasks import glue, tables
from official_bert.tasks.columns import Columns, predictions_table
from official_bert.tasks.documents import LongDocuments
from official_bert.tasks.text import TextTask
from official_bert.tasks.text_data import TextExample

_TRAIN = Columns(0, 1, label=2)
_EVALUATION = Columns(6, 7, label=1)
_LANGUAGE = 0


def make(options: RunClassifier, long_documents: LongDocuments) -> TextTask:
    """Returns the task, in the languages that the options say."""
    train_language = options.train_language or (
        "en" if options.translate_test else options.language
    )
    data = XnliData(
        options.data_dir,
        options.language,
        train_language,
        options.translate_test,
    )
    return TextTask(
        is_pair=True,
        task_type="classification",
        labels=glue.INFERENCE,
        data=data,
        long_documents=long_documents,
    )


@dataclasses.dataclass(frozen=True)
class XnliData:
    """The files: a `text_data.TextData`; see the module."""

    data_dir: str
    language: str
    train_language: str
    translate_test: bool

    def splits(self, mode: str) -> Sequence[str]:
        """Returns `train`, `test`, or `dev` with the test set beside it."""
        if mode == "dev" and files.exists(self._path("test")):
            return ["dev", "test"]
        return [mode]

    def _path(self, split: str) -> str:
        if split == "train":
            name = f"multinli/multinli.train.{self.train_language}.tsv"
        elif self.translate_test:
            name = f"xnli/xnli.{split}.en.tsv"
        else:
            name = f"xnli.{split}.tsv"
        return os.path.join(self.data_dir, *name.split("/"))

    def read(self, split: str) -> list[TextExample]:
        """Reads a file, and of those in all languages one of them."""
        path = self._path(split)
        files.require(path, f"The {split} data")
        columns = _TRAIN if split == "train" else _EVALUATION
        assert columns.label is not None
        examples: list[TextExample] = []
        others: set[str] = set()
        for number, cells in enumerate(tables.tab_separated(path)):
            if number == 0:
                continue
            where = f"{path}:{number + 1}"
            columns.require(cells, where)
            if split != "train" and cells[_LANGUAGE] != self.language:
                others.add(cells[_LANGUAGE])
                continue
            if cells[columns.label] == "contradictory":
                cells[columns.label] = "contradiction"
            guid = f"{split}-{number}"
            examples.append(columns.example(cells, glue.INFERENCE, where, guid))
        if not examples:
            raise InputError(
                f"{path}: must hold examples in the language "
                f"{self.language!r}. Received: {', '.join(sorted(others))}. "
                "Check --language."
            )
        return examples

    def submission(
        self,
        split: str,
        examples: Sequence[TextExample],
        predictions: Sequence[Any],
    ) -> tuple[str, str]:
        """Returns the labels, in the layout that GLUE has."""
        numbers = range(len(predictions))
        text = predictions_table(numbers, predictions)
        return f"XNLI-{self.language}.tsv", text
