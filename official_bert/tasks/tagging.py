"""Tagging: one label per word, as in named entity recognition (section 5.3).

The label of a word is that of its first token; other tokens have none::

    words       Jim  Henson     was  a  puppeteer
    labels      1    2          0    0  0
    input_ids   [CLS]  Jim  Hen  ##son  was  a  puppet  ##eer  [SEP]
    label_ids     0     1    2     0     0   0    0       0      0
    label_mask    0     1    1     0     1   1    1       0      0

A sentence is read with as many words of its document on both sides as fit; if
one side has fewer, the other has more::

    document   v v v v | w w w w w w | x x x x x x
    read           v v   w w w w w w   x x             room for 10
    predicted            w w w w w w

A sentence that does not fit is predicted in parts of half the length, each in
the middle of its context. So every word is predicted once, and in context.
"""

import bisect
import dataclasses
import functools
import itertools
import os
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from official_bert import files
from official_bert.config import BertConfig
from official_bert.errors import InputError
from official_bert.inputs import text_inputs
from official_bert.inputs.schemas import Feature, Schema, text_schema
from official_bert.metrics import entities
from official_bert.modeling import losses
from official_bert.modeling.finetuning_models import TokenClassifier
from official_bert.options import RunClassifier
from official_bert.tasks import conll, own_data
from official_bert.tasks.conll import ConllData, Sentence
from official_bert.tasks.task import (
    FeatureRow,
    Outputs,
    RowFeatures,
    Task,
    saved_field,
)
from official_bert.tokenization import BatchTokenizer

# What --task_name may be. All are the same: what is measured depends on the
# tags.
NAMES = ("ner", "pos", "tagging")


def make(options: RunClassifier) -> "TaggingTask":
    """Returns the task on the files of a folder.

    Raises:
        InputError: The labels cannot be read.
    """
    data = ConllData(options.data_dir, options.token_column, options.tag_column)
    return TaggingTask(
        labels=own_data.find_labels(options, data.training_labels),
        document_context=options.document_context,
        data=data,
    )


class Window(NamedTuple):
    """Words by number, ends exclusive.

    Attributes:
        begin: The first that is read.
        first: The first that is predicted.
        last: The end of those that are predicted.
        end: The end of those that are read.
    """

    begin: int
    first: int
    last: int
    end: int


def make_windows(
    sizes: Sequence[int], first: int, last: int, room: int
) -> Iterator[Window]:
    """Yields windows that together predict the words `first` to `last`.

    Args:
        sizes: How many pieces each word of a document has, 1 to `room`.
        first: Where the sentence begins.
        last: Where it ends, exclusive.
        room: How many pieces can be read at once; only whole words are.
    """
    starts = [0, *itertools.accumulate(sizes)]
    for a, b in _parts(starts, first, last, room):
        spare = room - (starts[b] - starts[a])
        after = starts[-1] - starts[b]
        before = min(starts[a], max(spare // 2, spare - after))
        begin = bisect.bisect_left(starts, starts[a] - before)
        end = bisect.bisect_right(starts, starts[begin] + room) - 1
        yield Window(begin, a, b, end)


def _parts(
    starts: Sequence[int], first: int, last: int, room: int
) -> Iterator[tuple[int, int]]:
    """Yields a sentence, or if it is too long its parts."""
    is_short = starts[last] - starts[first] <= room
    size = room if is_short else room // 2
    while first < last:
        fits = bisect.bisect_right(starts, starts[first] + size) - 1
        # A single word may be longer than half of the room.
        end = min(max(fits, first + 1), last)
        yield first, end
        first = end


def make_row(
    ids: Sequence[list[int]],
    labels: Sequence[int],
    window: Window,
    marks: text_inputs.SpecialIds,
) -> dict[str, list[int]]:
    """Returns the features of the words in a window, not padded.

    Args:
        ids: Of the pieces of each word.
        labels: Of each word; not looked at where it is not predicted.
        window: Which words.
        marks: What to put around them.
    """
    pieces: list[int] = []
    firsts: list[int] = []  # Where in the row words begin.
    for word in range(window.begin, window.end):
        firsts.append(1 + len(pieces))
        pieces += ids[word]
    row = text_inputs.text_features(pieces, (), marks)
    row["label_ids"] = [0] * len(row["input_ids"])
    row["label_mask"] = [0] * len(row["input_ids"])
    for word in range(window.first, window.last):
        place = firsts[word - window.begin]
        row["label_ids"][place] = labels[word]
        row["label_mask"][place] = 1
    return row


@dataclasses.dataclass(frozen=True, kw_only=True)
class TaggingTask(Task):
    """A task about every word.

    Attributes:
        labels: All tags there are.
        document_context: Whether a sentence is read with the words before and
            after it in its document, as many as there is room for, half of
            them on each side if the document has them.
    """

    labels: tuple[str, ...] = saved_field(tuple)
    document_context: bool = saved_field(bool, default=False)
    data: ConllData | None = None

    kind = "tagging"

    @property
    def main_metric(self) -> str:
        """F1 of whole entities where tags say what these are."""
        return "f1" if entities.has_prefixes(self.labels) else "accuracy"

    def examples(self, split: str) -> Sequence[Sentence]:
        """Reads the data."""
        assert self.data is not None
        return self.data.read(split, self.labels)

    def schema(
        self, max_seq_length: int, *, is_training: bool = True
    ) -> Schema:
        """Returns the features of a text, and of every piece a label.

        `label_mask` is 1 where a predicted word begins, and elsewhere 0.
        """
        sequence = Feature(max_seq_length, "max_seq_length")
        return {
            **text_schema(max_seq_length),
            "label_ids": sequence,
            "label_mask": sequence,
        }

    def feature_rows(
        self,
        examples: Sequence[Sentence],
        tokenizer: BatchTokenizer,
        max_seq_length: int,
    ) -> Iterator[FeatureRow]:
        """Yields a row for each sentence, or several for a long one.

        Every word begins, with `label_mask` 1, in one row, in their order. Of
        a word with more pieces than the model reads, the first are kept.
        """
        marks = text_inputs.special_ids(tokenizer.vocab)
        room = max_seq_length - 2

        @functools.cache
        def token_ids(word: str) -> list[int]:
            # Every word needs a tag, also one of control characters only.
            tokens = tokenizer.tokenize(word) or ["[UNK]"]
            return tokenizer.convert_tokens_to_ids(tokens[:room])

        id_of_label = {label: i for i, label in enumerate(self.labels)}
        for number, sentence in enumerate(examples):
            words, first = self._words_read(sentence, room)
            last = first + len(sentence.words)
            ids = [token_ids(word) for word in words]
            labels = [0] * len(words)
            if sentence.tags is not None:
                labels[first:last] = [id_of_label[t] for t in sentence.tags]
            sizes = [len(tokens) for tokens in ids]
            for window in make_windows(sizes, first, last, room):
                yield FeatureRow(number, make_row(ids, labels, window, marks))

    def _words_read(
        self, sentence: Sentence, room: int
    ) -> tuple[Sequence[str], int]:
        """Returns all words that may be read, and where the sentence begins."""
        if not self.document_context:
            return sentence.words, 0
        # A word has at least one piece, so no more of them can matter.
        begin = max(0, sentence.start - room)
        end = sentence.start + len(sentence.words) + room
        return sentence.document[begin:end], sentence.start - begin

    def build_model(
        self, config: BertConfig, bert: Any = None
    ) -> TokenClassifier:
        """Returns BERT with as many outputs for a piece as there are labels."""
        return TokenClassifier(
            config, len(self.labels), self.pooling_head, bert=bert
        )

    def losses(self, logits: Any, batch: dict[str, Any]) -> Any:
        """Returns [B, S]: cross-entropies, also of pieces without a label."""
        return losses.cross_entropy(logits, batch["label_ids"])

    def weights(self, batch: dict[str, Any]) -> Any:
        """Returns [B, S]: all words count the same."""
        return tf.cast(batch["label_mask"], tf.float32)

    def answers(
        self, features: RowFeatures, outputs: Outputs
    ) -> list[list[str]]:
        """Returns a tag for each word of each sentence."""
        found: list[list[str]] = [[] for _ in features.examples]
        for row, logits in zip(features.rows, outputs.logits, strict=True):
            positions = np.flatnonzero(row.row["label_mask"])
            best = logits[positions].argmax(axis=-1)
            found[row.example] += [self.labels[i] for i in best]
        return found

    def metrics(
        self, examples: Sequence[Sentence], answers: Sequence[list[str]]
    ) -> dict[str, Any]:
        """Returns the scores of `metrics.entities`; none without tags."""
        targets = [s.tags for s in examples if s.tags is not None]
        if len(targets) < len(examples):
            return {}
        return entities.evaluate(targets, answers)

    def write_predictions(
        self,
        folder: str,
        split: str,
        examples: Sequence[Sentence],
        answers: Sequence[list[str]],
    ) -> None:
        """Writes `test_predictions.txt`: the data and a column of predictions.

        It is the last; if the column before it is that of the tags, `conlleval`
        reads the file.
        """
        assert self.data is not None
        text = conll.with_predictions(self.data.path(split), answers)
        files.write_text(os.path.join(folder, f"{split}_predictions.txt"), text)

    def parse(self, given: Any, where: str) -> Sentence:
        """Takes a list of words, an object with `tokens`, or a text.

        A text is divided into words at whitespace, and nowhere else. An object
        may have the words `before` and `after` it in its document, which a
        model with `document_context` reads as well.
        """
        if isinstance(given, str):
            given = given.split()
        parts = given if isinstance(given, dict) else {"tokens": given}
        words: Any = parts.get("tokens")
        before, after = parts.get("before", []), parts.get("after", [])
        if not all(map(_are_words, (before, words, after))):
            raise InputError(
                f"{where}: must be a list of words, an object with such a list "
                "as `tokens`, perhaps with `before` and `after` it, or a text. "
                f"Received: {given!r}."
            )
        return Sentence(words, None, [*before, *words, *after], len(before))

    def answer_to_json(
        self, example: Sentence, answer: list[str]
    ) -> dict[str, Any]:
        """Returns words, tags, and where tags say it the entities.

        Their `start` and `end` (exclusive) are numbers of words.
        """
        found: dict[str, Any] = {"tokens": list(example.words), "tags": answer}
        if entities.has_prefixes(self.labels):
            found["entities"] = [
                {
                    "type": entity.type,
                    "start": entity.start,
                    "end": entity.end,
                    "text": " ".join(example.words[entity.start : entity.end]),
                }
                for entity in entities.entities(answer)
            ]
        return found


def _are_words(given: Any) -> bool:
    return isinstance(given, list) and all(
        isinstance(word, str) and word for word in given
    )
