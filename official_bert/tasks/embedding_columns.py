"""The columns of tables for sentence embeddings: similar texts, and scores."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from absl import logging

from official_bert.errors import InputError, listed
from official_bert.io.rows import Row, separator_advice, to_number
from official_bert.options import RunClassifier
from official_bert.tasks.columns import ID_NAME, SAMPLE_SIZE, are_ids, is_text

# Columns of similar texts, of texts that are not similar, and of similarities.
_PAIRS = (
    ("query", "positive"),
    ("anchor", "positive"),
    ("question", "answer"),
    ("sentence1", "sentence2"),
    ("text_a", "text_b"),
)
_NEGATIVE = re.compile(r"(hard_)?negative([ _-]?\d+)?", re.IGNORECASE)
_SCORES = ("score", "similarity", "label")


class EmbeddingColumns(NamedTuple):
    """The columns of a table for sentence embeddings."""

    text: str
    match: str | None  # A similar text; None: there are only single texts.
    negatives: tuple[str, ...] = ()  # Texts that are not similar.
    score: str = ""  # The similarity of the two texts; "": there is none.

    @property
    def texts(self) -> tuple[str, ...]:
        """All columns of texts."""
        return (self.text, *filter(None, [self.match]), *self.negatives)


def find(options: RunClassifier, rows: Sequence[Row]) -> EmbeddingColumns:
    """Returns the columns of a file: those of the flags, or detected ones."""
    first, columns = rows[0], _all_columns(rows)
    names = {name.lower(): name for name in columns}
    # Only the training file must have the columns of the flags.
    given = (options.text_a_column, options.text_b_column, options.label_column)
    known = {*first.cells, *columns} - {""}
    text, match, score = (name if name in known else None for name in given)
    score = score or next((names[n] for n in _SCORES if n in names), "")
    negatives = tuple(filter(_NEGATIVE.fullmatch, columns))
    pairs = [pair for pair in _PAIRS if names.keys() >= {*pair}]
    if not text and pairs:
        text, match = (names[name] for name in pairs[0])
    elif not text:
        others = (score, options.id_column, *negatives)
        text, match = _find_texts(rows[:SAMPLE_SIZE], columns, others)
    if match is None and options.teacher:
        score = ""
    elif match is None and (score or negatives):
        raise InputError(
            f"{first.path}: column {score or negatives[0]!r} needs a second "
            "text in each row. Add --text_b_column."
        )
    return EmbeddingColumns(text, match, () if score else negatives, score)


def _find_texts(
    sample: Sequence[Row], columns: Sequence[str], others: Sequence[str | None]
) -> tuple[str, str | None]:
    """Detects one or two columns of texts, the query first.

    The columns in `others` have another use. Raises `InputError` if more
    columns than two have texts, or none.
    """
    texts = [
        name
        for name in columns
        if not (name in others or ID_NAME.fullmatch(name))
        and is_text(sample, name)
    ]
    advice = separator_advice(columns)
    if advice or len(texts) not in (1, 2):
        raise InputError(
            f"{sample[0].path}: the columns of similar texts cannot be "
            "detected. Add --text_column and --text_b_column. The columns are "
            f"{listed(columns)}. {advice}".rstrip()
        )
    queries = {query for query, _ in _PAIRS}
    texts.sort(key=lambda name: name.lower() not in queries)
    return texts[0], texts[1] if len(texts) > 1 else None


def _all_columns(rows: Sequence[Row]) -> list[str]:
    """Returns the columns of all rows; JSON objects may have different keys."""
    return [*dict.fromkeys(name for row in rows for name in row.columns)]


def detect(
    options: RunClassifier, rows: list[Row], split: str
) -> RunClassifier:
    """Finds the columns of texts for sentence embeddings, and of scores.

    Other files than the training file may have other columns.
    """
    if options.text_b_column and not options.text_a_column:
        raise options.error("text_b_column", "needs --text_column. Add it.")
    given = (*options.own_columns, options.label_column)
    for column in filter(None, given if split == "train" else ()):
        rows[0].get(column)  # Raises an `InputError` if it is missing.
    columns = find(options, rows)
    if columns.score and not options.label_column:
        scores = {to_number(row.get(columns.score)) for row in rows}
        if scores <= {-1, 0, 1, 2} and 2 in scores:
            logging.warning(
                f"{rows[0].path}: column {columns.score!r} is used as the "
                "similarity of the texts, larger for more similar ones. If it "
                "has the classes of NLI, where 0 is entailment, keep the rows "
                "with 0, and remove the column. Otherwise, set --label_column"
            )
    options = options.replace(
        text_a_column=columns.text,
        text_b_column=columns.match,
        label_column=columns.score,
    )
    used = (*columns.texts, columns.score, options.id_column)
    unused = [name for name in _all_columns(rows) if name not in used]
    shown = f"texts: {listed(columns.texts)}"
    if columns.score:
        shown += f"; scores: {columns.score}"
    if unused:
        shown += f"; not used: {listed(unused)}"
    logging.info(f"Columns of {rows[0].path}: {shown}")
    has_pairs = columns.match is not None and not columns.score
    _warn_of_unused(rows[:SAMPLE_SIZE], unused, may_have_scores=has_pairs)
    return options


def _warn_of_unused(
    sample: Sequence[Row], unused: Sequence[str], *, may_have_scores: bool
) -> None:
    """Warns if columns that are not used may have texts or scores of pairs."""
    for name in unused:
        cells = [row.cells.get(name) for row in sample]
        numbers = {*map(to_number, cells)}
        are_numbers = None not in numbers and len(numbers) > 1
        if (
            isinstance(cells[0], list)
            or name.lower().startswith("neg")
            or (may_have_scores and are_numbers and not are_ids(cells))
            or (may_have_scores and "label" in name.lower())
        ):
            logging.warning(
                f"{sample[0].path}: column {name!r} is not used. If it has "
                "scores of the pairs, set --label_column; if it says which "
                "texts are similar, keep only their rows. Texts must be in "
                "columns with one text each, such as positive, negative and "
                "negative_2"
            )
