"""XNLI: natural language inference in 15 languages (Conneau et al., 2018).

The data directory holds the unpacked archives XNLI-1.0 and XNLI-MT-1.0::

    xnli.dev.tsv, xnli.test.tsv       all languages, human translations
    multinli/multinli.train.LANG.tsv  training data, machine translations
    xnli/xnli.dev.en.tsv, xnli/xnli.test.en.tsv
                                      all languages, machine-translated into
                                      English; `language` is the source

Training files have the columns premise, hypo and label. In the others, language
and gold_label are the first two columns, the sentences the seventh and eighth.
Cells are not quoted.

* Translate-train, the default: `--language=zh` trains on machine-translated
  Chinese. The original implementation supports only this.
* Zero-shot: `--language=zh --train_language=en`.
* Translate-test: `--language=zh --translate_test`, trained on English.

If the test set is present, it is evaluated in addition to the development set,
which selects the best checkpoint.
"""

import dataclasses
import os
from collections.abc import Sequence
from typing import Any

from official_bert import files
from official_bert.errors import InputError
from official_bert.options import RunClassifier
from official_bert.tasks import glue, tables
from official_bert.tasks.documents import LongDocuments
from official_bert.tasks.text import TextExample, TextTask

_TRAIN = glue.Columns(0, 1, label=2)
_EVALUATION = glue.Columns(6, 7, label=1)
_LANGUAGE = "0"


def make(options: RunClassifier) -> TextTask:
    """Returns the task in the languages of the options."""
    train_language = options.train_language or (
        "en" if options.translate_test else options.language
    )
    return TextTask(
        is_pair=True,
        task_type="classification",
        labels=glue.INFERENCE,
        data=XnliData(
            options.data_dir,
            options.language,
            train_language,
            options.translate_test,
        ),
        long_documents=LongDocuments.from_options(options),
    )


@dataclasses.dataclass(frozen=True)
class XnliData:
    """The files, as described in the module: a `text.TextData`."""

    data_dir: str
    language: str
    train_language: str
    translate_test: bool

    def splits(self, mode: str) -> Sequence[str]:
        """Returns `mode`; `dev` is followed by the test set if present."""
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
        """Reads a file's examples in the language."""
        path = self._path(split)
        files.require(path, f"The {split} data")
        columns = _TRAIN if split == "train" else _EVALUATION
        label_column = str(columns.label)
        examples: list[TextExample] = []
        other_languages: set[str] = set()
        for row in columns.rows(path):
            if split != "train" and row.text(_LANGUAGE) != self.language:
                other_languages.add(row.text(_LANGUAGE))
                continue
            if row.text(label_column) == "contradictory":
                cells = {**row.cells, label_column: "contradiction"}
                row = row._replace(cells=cells)
            guid = f"{split}-{row.line - 1}"
            examples.append(columns.example(row, glue.INFERENCE, guid))
        if not examples:
            raise InputError(
                f"{path}: must hold examples in the language "
                f"{self.language!r}. Received: "
                f"{', '.join(sorted(other_languages))}. Check --language."
            )
        return examples

    def submission(
        self,
        split: str,
        examples: Sequence[TextExample],
        predictions: Sequence[Any],
    ) -> tuple[str, str]:
        """Returns the predicted labels in the layout of GLUE."""
        ids = range(len(predictions))
        name = f"XNLI-{self.language}.tsv"
        return name, tables.predictions_table(ids, predictions, "index")
