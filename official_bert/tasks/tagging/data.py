"""The files of a folder, and which tags there are."""

import dataclasses
import os
from collections.abc import Collection, Sequence

from official_bert import files, task_file
from official_bert.errors import InputError
from official_bert.options import RunClassifier
from official_bert.tasks import tables
from official_bert.tasks.tagging import columns
from official_bert.tasks.tagging.columns import Columns, Sentence

# The first of them that is there is read. The later ones are those of CoNLL's
# shared task of 2003.
_NAMES = {
    "train": ("train.txt", "eng.train"),
    "dev": ("dev.txt", "valid.txt", "testa.txt", "eng.testa"),
    "test": ("test.txt", "testb.txt", "eng.testb"),
}


@dataclasses.dataclass(frozen=True)
class TaggingData:
    """Column files in a folder.

    Attributes:
        data_dir: The folder.
        columns: Where in them words and tags are.
    """

    data_dir: str
    columns: Columns

    def path(self, split: str) -> str:
        """Returns the file of `train`, `dev` or `test`.

        Raises:
            InputError: There is none.
        """
        for name in _NAMES[split]:
            path = os.path.join(self.data_dir, name)
            if files.exists(path):
                return path
        raise InputError(
            f"The {split} data must be a file called "
            f"{' or '.join(_NAMES[split])}. Received: the folder "
            f"{self.data_dir!r} without it. Check --data_dir."
        )

    def read(self, split: str, labels: Collection[str]) -> list[Sentence]:
        """Reads a file. Of test data, only what is wholly tagged has tags.

        Args:
            split: train, dev or test.
            labels: What tags may be.

        Raises:
            InputError: It is missing, a line is wrong, or a tag unknown.
        """
        if split != "test":
            return columns.read_sentences(
                self.path(split), self.columns, needs_tags=True, labels=labels
            )
        sentences = columns.read_sentences(
            self.path(split), self.columns, needs_tags=False
        )
        # The last column may be anything where the tags were taken away.
        if _tags(sentences) <= set(labels):
            return sentences
        return [dataclasses.replace(s, tags=None) for s in sentences]

    def training_labels(self) -> tuple[str, ...]:
        """Returns the tags of the training data, sorted."""
        sentences = columns.read_sentences(
            self.path("train"), self.columns, needs_tags=True
        )
        return tuple(sorted(_tags(sentences)))


def _tags(sentences: Sequence[Sentence]) -> set[str]:
    return {tag for sentence in sentences for tag in sentence.tags or ()}


def find_labels(options: RunClassifier, data: TaggingData) -> tuple[str, ...]:
    """Returns all tags there are.

    They are those of `--label_file`; or, if nothing is trained, those that the
    model was trained for, from `task.json` beside it; or those of the training
    data.

    Raises:
        InputError: What they are read from is not what it should be.
    """
    if options.label_file:
        return tables.read_labels(options.label_file)
    if task_file.is_in(options.output_dir) and not options.do_train:
        return task_file.read_labels(options.output_dir)
    return data.training_labels()
