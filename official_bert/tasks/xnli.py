"""XNLI: natural language inference in 15 languages (Conneau et al., 2018).

The data directory holds the unpacked archives XNLI-1.0 and XNLI-MT-1.0::

    xnli.dev.tsv, xnli.test.tsv       all languages, human translations
    multinli/multinli.train.LANG.tsv  training data, machine translations
    xnli/xnli.dev.en.tsv, xnli/xnli.test.en.tsv
                                      all languages, machine-translated into
                                      English; `language` is the original's

Each split needs its file only if it is used: `--do_eval` evaluates the
development set, `--do_predict` predicts and evaluates the test set. The
original implementation supports only the default, training on machine
translations into the evaluated language.
"""

import dataclasses
from collections.abc import Iterator

from official_bert.errors import InputError, listed
from official_bert.io.rows import Row
from official_bert.options import RunClassifier
from official_bert.tasks import glue
from official_bert.tasks.text import TextTask

_TRAIN = glue.Layout(0, 1, label=2)
_EVALUATION = glue.Layout(6, 7, label=1)


def make(options: RunClassifier) -> TextTask:
    """Returns the task in the languages of the options."""
    language, evaluation_file = options.language, "xnli.{}.tsv"
    train_language = options.train_language or language
    if options.translate_test:
        evaluation_file = "xnli/xnli.{}.en.tsv"
        train_language = options.train_language or "en"
    paths = {
        "train": f"multinli/multinli.train.{train_language}.tsv",
        "dev": evaluation_file.format("dev"),
        "test": evaluation_file.format("test"),
    }
    variant = f"{language}_translated" if options.translate_test else language
    row = glue.GlueTask(
        glue.INFERENCE, _TRAIN, _EVALUATION, f"XNLI-{variant}", files=paths
    )
    return glue.task_on(XnliData(row, options.data_dir, language, variant))


@dataclasses.dataclass(frozen=True)
class XnliData(glue.GlueData):
    """The files that the docstring of the module describes."""

    language: str
    variant: str

    def columns(self, split: str) -> glue.Layout:
        return _TRAIN if split == "train" else _EVALUATION

    def rows(self, split: str) -> Iterator[Row]:
        """Yields the lines in the language, with the labels of MNLI."""
        label_column = str(self.columns(split).label)
        languages = set()
        for row in super().rows(split):
            language = self.language if split == "train" else row.text("0")
            languages.add(language)
            if language != self.language:
                continue
            cells = dict(row.cells)
            if cells[label_column] == "contradictory":
                cells[label_column] = "contradiction"
            yield row._replace(cells=cells)
        if self.language not in languages:
            raise InputError(
                f"{self.path(split)}: must have examples in {self.language!r}. "
                f"Received: {listed(sorted(languages))}. Check --language."
            )
