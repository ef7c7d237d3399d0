"""Tagging: one label per word, as in named entity recognition (section 5.3).

The first token of a word has the word's label; other tokens have none::

    words       Jim  Henson     was  a  puppeteer
    labels      1    2          0    0  0
    input_ids   [CLS]  Jim  Hen  ##son  was  a  puppet  ##eer  [SEP]
    label_ids     0     1    2     0     0   0    0       0      0
    label_mask    0     1    1     0     1   1    1       0      0

With `--document_context`, the model reads a sentence in its document, with as
many words on both sides as fit. A sentence that does not fit is predicted in
parts of at most half a sequence, each in the middle of its context.
"""

import bisect
import dataclasses
import functools
import itertools
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, NamedTuple

import numpy as np
from absl import logging

from official_bert.errors import InputError, listed, quoted
from official_bert.inputs import text_inputs
from official_bert.inputs.schemas import Feature, Schema, text_schema
from official_bert.io import files
from official_bert.io.json_files import Amount
from official_bert.metrics import entities
from official_bert.metrics.entities import Scheme
from official_bert.options import AnswerOptions, Predict, RunClassifier
from official_bert.runs import file_names
from official_bert.sources.heads import Head
from official_bert.tasks import own_labels, own_tags, probabilities, task
from official_bert.tasks.conll import ConllData, Sentence
from official_bert.tasks.own_tags import OwnTags
from official_bert.tasks.predict_inputs import Input
from official_bert.tasks.text_spans import split_text
from official_bert.tokenization import BasicTokenizer, Tokenizer


def make(options: RunClassifier) -> "TaggingTask":
    """Returns the task on the CoNLL files of a directory, or on own files."""
    labels = own_labels.known_labels(options)
    columns = (options.token_column, options.tag_column)
    data: ConllData
    if options.train_file:
        data = OwnTags("", *columns, labels or (), options=options)
        if options.do_train or labels is None:
            data = data.with_training_file()
    else:
        data = ConllData(options.data_dir, *columns)
        if labels is None:
            labels = data.training_labels()
        data = dataclasses.replace(data, labels=labels)
    if options.do_train:
        _warn_of_tags(data.labels, options.resolved_task)
    return TaggingTask(
        labels=tuple(data.labels),
        document_context=options.document_context,
        token_column=options.token_column,
        tag_column=options.tag_column,
        text_column=options.text_a_column if options.train_file else "",
        data=data,
    )


def _warn_of_tags(labels: Sequence[str], task_name: str) -> None:
    """Warns if tags should mark entities, but some do not."""
    scheme = entities.scheme_of(labels)
    if scheme and scheme.strays:
        logging.warning(
            f"The tags {listed(scheme.strays)} have no position, such as B- or "
            "_I: in metrics and predictions, their words are in no entity. "
            "Correct them"
        )
    is_for_entities = task_name == "ner" or "O" in labels
    if scheme is None and is_for_entities and task_name != "pos":
        logging.warning(
            f"The tags {listed(labels)} mark no entities: metrics count words, "
            "and predictions have only tags. For entities, use tags such as "
            "B-PER, I-PER and O"
        )


Examples = Sequence[Sentence]


class Tags(NamedTuple):
    """The predicted tags of a sentence's words, and their probabilities."""

    tags: list[str]
    probabilities: list[float]


class Window(NamedTuple):
    """Word positions in a document; ends are exclusive."""

    begin: int  # The first word that is read.
    first: int  # The first word that is predicted.
    stop: int  # The end of the words that are predicted.
    end: int  # The end of the words that are read.


def make_windows(
    sizes: Sequence[int], start: int, end: int, room: int
) -> Iterator[Window]:
    """Yields windows that together predict the words from `start` to `end`.

    `end` is exclusive. `sizes` are the numbers of tokens of a document's
    words, 1 to `room`; `room` is the number of tokens that fit in a window.
    Words are not divided.
    """
    offsets = [0, *itertools.accumulate(sizes)]
    is_short = offsets[end] - offsets[start] <= room
    size = room if is_short else room // 2
    first = start
    while first < end:
        fits = bisect.bisect_right(offsets, offsets[first] + size) - 1
        # A single word may be longer than half of the room.
        stop = min(max(fits, first + 1), end)
        spare = room - (offsets[stop] - offsets[first])
        after = offsets[-1] - offsets[stop]
        before = min(offsets[first], max(spare // 2, spare - after))
        begin = bisect.bisect_left(offsets, offsets[first] - before)
        window_end = bisect.bisect_right(offsets, offsets[begin] + room) - 1
        yield Window(begin, first, stop, window_end)
        first = stop


@dataclasses.dataclass(frozen=True, kw_only=True)
class TaggingTask(task.Task):
    """Tagging; `data` is a `ConllData`.

    Attributes:
        labels: The tags, in the order of their ids.
        document_context: Whether a sentence is read with the words before and
            after it in its document.
        token_column, tag_column: The CoNLL columns of the training data.
        text_column: The column of words or of the text in other files; "": one
            with a usual name.
        splitter: Splits texts into words.
    """

    labels: tuple[str, ...]
    document_context: bool = False
    token_column: Amount = 0
    tag_column: Annotated[int, range(-1, 2**31)] = -1
    text_column: str = ""
    splitter: BasicTokenizer = dataclasses.field(
        default_factory=BasicTokenizer, compare=False
    )

    kind = "tagging"
    head_kind = "token_classification"
    serving = "tagging"
    not_saved = (*task.Task.not_saved, "splitter")
    input_ending = "txt"
    baseline_name = "the most frequent tag of each word"

    @functools.cached_property
    def scheme(self) -> Scheme | None:
        """How the tags mark entities; None if they do not."""
        return entities.scheme_of(self.labels)

    def with_tokenizer(self, tokenizer: Tokenizer) -> "TaggingTask":
        return dataclasses.replace(self, splitter=tokenizer.basic_tokenizer)

    @property
    def main_metric(self) -> str:
        """F1 of whole entities if tags are like B-PER, otherwise accuracy."""
        return "f1" if self.scheme else "accuracy"

    @property
    def head(self) -> Head:
        """One output per token and label."""
        return Head(self.head_kind, len(self.labels), "tags", self.pooling_head)

    def schema(self, max_seq_length: int) -> Schema:
        """Returns the features of a text, and each token's label and mask."""
        sequence = Feature(max_seq_length, "max_seq_length")
        return {
            **text_schema(max_seq_length),
            "label_ids": sequence,
            "label_mask": sequence,
        }

    def feature_rows(
        self, examples: Examples, tokenizer: Tokenizer, max_seq_length: int
    ) -> Iterator[task.ExampleFeature]:
        """Yields the windows of each sentence; long words are truncated."""
        room = max_seq_length - 2

        @functools.cache
        def token_ids(word: str) -> list[int]:
            # A word of control characters has no tokens, but still has a label.
            tokens = tokenizer.tokenize(word) or ["[UNK]"]
            return tokenizer.convert_tokens_to_ids(tokens[:room])

        label_ids = {label: number for number, label in enumerate(self.labels)}
        for number, sentence in enumerate(examples):
            words, start = self._with_context(sentence, room)
            end = start + len(sentence.words)
            ids = [token_ids(word) for word in words]
            tokens = list(itertools.chain.from_iterable(ids))
            sizes = list(map(len, ids))
            offsets = [0, *itertools.accumulate(sizes)]
            tags = [label_ids[tag] for tag in sentence.tags or ()]
            for window in make_windows(sizes, start, end, room):
                ids_read = tokens[offsets[window.begin] : offsets[window.end]]
                row = text_inputs.text_features(ids_read, (), tokenizer.vocab)
                labels = [0] * (len(ids_read) + 2)  # With [CLS] and [SEP].
                mask = labels.copy()
                for word in range(window.first, window.stop):
                    position = 1 + offsets[word] - offsets[window.begin]
                    mask[position] = 1
                    if tags:
                        labels[position] = tags[word - start]
                row |= {"label_ids": labels, "label_mask": mask}
                yield task.ExampleFeature(number, row)

    def labels_of(self, example: Sentence) -> Sequence[str]:
        return example.tags or ()

    def predictions(self, answers: Sequence[Tags]) -> list[Any]:
        return [tag for answer in answers for tag in answer.tags]

    def _with_context(
        self, sentence: Sentence, room: int
    ) -> tuple[Sequence[str], int]:
        """Returns a sentence's words and context, and its start in them."""
        if not self.document_context:
            return sentence.words, 0
        # A word has at least one token, so `room` words suffice.
        begin = max(0, sentence.start - room)
        end = sentence.start + len(sentence.words) + room
        return sentence.document[begin:end], sentence.start - begin

    def answers(
        self, features: task.RowFeatures, logits: task.Logits
    ) -> list[Any]:
        """Returns `Tags` for each sentence."""
        return [
            Tags(
                [self.labels[i] for i in shares.argmax(axis=-1)],
                shares.max(axis=-1).tolist(),
            )
            for shares in self.soft_answers(features, logits)
        ]

    def soft_answers(
        self, features: task.RowFeatures, logits: task.Logits
    ) -> list[np.ndarray]:
        """Returns the probabilities [N, C] of each sentence's N words."""
        of_words = (
            scores[np.flatnonzero(row.values["label_mask"])]
            for row, scores in zip(features.rows, logits, strict=True)
        )
        windows = features.by_example(map(probabilities.softmax, of_words))
        # For sentences without words.
        nothing = np.zeros((0, len(self.labels)))
        return [np.concatenate([nothing, *parts]) for parts in windows]

    def divide_answers(
        self, features: task.RowFeatures, answers: Sequence[np.ndarray]
    ) -> Iterator[tuple[int, np.ndarray]]:
        """Yields probabilities [C, S], 0 where `label_mask` is 0."""
        words = itertools.chain.from_iterable(answers)
        for number, values in features.rows:
            mask = np.array(values["label_mask"]) > 0
            shares = np.zeros((len(mask), len(self.labels)), np.float32)
            shares[mask] = [*itertools.islice(words, int(mask.sum()))]
            yield number, shares.T

    def has_label(self, example: Sentence) -> bool:
        return example.tags is not None

    def outputs(
        self, features: task.RowFeatures, logits: task.Logits, answers: Any
    ) -> Iterator[task.Output]:
        """Yields the logit of the predicted tag of each word."""
        tags = iter(self.predictions(answers))
        for number, row in enumerate(features.rows):
            for position in np.flatnonzero(row.values["label_mask"]).tolist():
                tag = next(tags)
                terms = [((position, self.labels.index(tag)), 1.0)]
                yield task.Output(
                    row.example, number, tag, terms, position=position
                )

    def metrics(self, examples: Examples, answers: Any) -> dict[str, Any]:
        targets = [s.tags for s in examples if s.tags is not None]
        if len(targets) < len(examples):
            return {}
        predicted = [answer.tags for answer in answers]
        return entities.evaluate(targets, predicted, self.scheme)

    def baseline(self, training: Any, examples: Examples) -> dict[str, Any]:
        """Returns the metrics of each word's most frequent tag.

        Words that the training data lacks have the most frequent tag of all.
        """
        counts: dict[str, Counter[str]] = defaultdict(Counter)
        total: Counter[str] = Counter()
        for sentence in training:
            for word, tag in zip(sentence.words, sentence.tags, strict=True):
                counts[word][tag] += 1
                total[tag] += 1
        answers = [
            [(counts.get(w) or total).most_common(1)[0][0] for w in s.words]
            for s in examples
        ]
        return self.metrics(examples, [Tags(tags, []) for tags in answers])

    def prediction_files(
        self, split: str, examples: Examples, answers: Any
    ) -> dict[str, str]:
        """Returns `test_predictions.txt`: the data and a column of answers."""
        tags = [answer.tags for answer in answers]
        name, *_ = split.split("_")  # Without the variant.
        text = self.data.predictions_text(name, examples, tags)
        return {file_names.predictions(split, "txt"): text}

    def with_answer_options(self, options: AnswerOptions) -> "TaggingTask":
        column = options.text_a_column or self.text_column
        return dataclasses.replace(self, text_column=column)

    def read_inputs(self, options: Predict) -> Iterator[Input] | None:
        """Yields the sentences of a CoNLL file or table; None for others."""
        path = options.input_file
        if options.reads_table:
            # `OwnTags` finds columns by the flags of training.
            flags = RunClassifier(
                text_a_column=self.text_column,
                label_column="",
                has_header=options.has_header,
            )
            table = OwnTags("", labels=self.labels, options=flags)
            is_given = options.input_format != "auto"
            if is_given or table.is_table(path, needs_tags=False):
                rows, columns = table.read_table(
                    path, options.resolved_format, needs_tags=False
                )
                cells = ((row.where, row.get(columns.words)) for row in rows)
                return (Input(where, cell, cell) for where, cell in cells)
        reader = ConllData("", self.token_column, self.tag_column, self.labels)
        if not _is_conll(reader, options):
            return None
        sentences = reader.read_file(path, needs_tags=False)
        return (Input(path, s, s.words) for s in sentences)

    def parse(self, value: Any, where: str) -> Sentence:
        """Makes a sentence from a text, a list of words, or an object.

        A text is split into words and punctuation. An object has a text or a
        list of words, as in the training data or with a usual name, and
        optionally the words `before` and `after` it in the document.
        """
        if isinstance(value, Sentence):  # Its tags may be unknown to the model.
            return dataclasses.replace(value, tags=None)
        cells = value if isinstance(value, dict) else {"text": value}
        column, *_ = own_tags.word_columns(cells, self.text_column) or [""]
        words: Any = cells.get(column)
        if isinstance(words, str):
            own_tags.require_sentence(cells, column, where)
            return split_text(words, self.splitter)
        before, after = cells.get("before", []), cells.get("after", [])
        if not all(isinstance(part, list) for part in (before, words, after)):
            raise InputError(
                f"{where}: must be a text, a list of words, or an object with "
                f"`text` or such a list as `{self.text_column or 'tokens'}` "
                f"and optionally as `before` and `after`. Received: "
                f"{quoted(value)}."
            )
        for part in (words, before, after):
            own_tags.require_words(part, where)
        return Sentence(words, None, [*before, *words, *after], len(before))

    def answer_to_json(self, example: Sentence, answer: Tags) -> dict[str, Any]:
        """Returns tags, and entities if tags are like B-PER.

        `offsets` of tokens, and `start` and `end` (exclusive) of entities are
        positions in the text, or in the words joined by spaces. The probability
        of an entity is the mean probability of its tags.
        """
        words, text = list(example.words), example.text
        spans = [tuple(span) for span in example.offsets]
        if not spans:
            text = " ".join(words)
            ends = itertools.accumulate(len(word) + 1 for word in words)
            spans = [
                (end - 1 - len(word), end - 1)
                for word, end in zip(words, ends, strict=True)
            ]
        result: dict[str, Any] = {
            "tokens": words,
            **answer._asdict(),
            "offsets": [list(span) for span in spans],
        }
        if self.scheme:
            result["entities"] = []
            for start, end, name in self.scheme.entities(answer.tags):
                first, last = spans[start][0], spans[end - 1][1]
                shares = answer.probabilities[start:end]
                entity = {
                    "type": name,
                    "text": text[first:last],
                    "start": first,
                    "end": last,
                    "probability": statistics.fmean(shares),
                }
                result["entities"].append(entity)
        return result

    @classmethod
    def of_transformers(cls, model: task.TransformersModel) -> "TaggingTask":
        return cls(labels=model.labels)


def _is_conll(reader: ConllData, options: Predict) -> bool:
    """Whether `predict.py` reads CoNLL; logs what its rows look like."""
    path, file_format = options.input_file, options.resolved_format
    if file_format == "conll":
        return True
    is_known = options.input_format != "auto" or file_format == "jsonl"
    if is_known or not files.can_reread(path):
        return False
    is_conll = reader.recognizes(path)
    kind, other = "one text per line", "conll"
    if is_conll:
        kind = f"CoNLL, with words in column {reader.token_column}"
        other = "lines"
    note = f"(otherwise: --input_format={other})"
    logging.info(f"{path} is read as {kind} {note}")
    return is_conll
