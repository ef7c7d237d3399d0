"""Lines in, JSON lines out: what `predict.py` does around a model."""

import contextlib
import itertools
import json
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

from official_bert import files, json_files, progress
from official_bert.checkpoints import numbered
from official_bert.errors import InputError
from official_bert.inference import masked_lm
from official_bert.inference.blanks import MaskedLanguageModel
from official_bert.inference.lines import Line, read_chunks
from official_bert.inference.predictor import Predictor
from official_bert.inference.scoring import Scorer
from official_bert.options import Predict
from official_bert.tasks import tables
from official_bert.tasks.text import TextColumns


class Item(NamedTuple):
    """What is to be answered.

    Attributes:
        where: FILE:LINE.
        value: As JSON has it.
    """

    where: str
    value: Any


class Answerer(Protocol):
    """What answers: a `Predictor`, a `FillMask`, a `Scorer`."""

    @property
    def columns(self) -> TextColumns | None:
        """Where texts stand in tables; None if it reads no tables."""

    def parse(self, given: Any, where: str) -> Any:
        """Makes an example of a JSON value.

        Raises:
            InputError: It is not what it should be; begins with `where`.
        """

    def answer(self, examples: Sequence[Any]) -> list[dict[str, Any]]:
        """Returns an answer for each example, JSON-ready."""


def load(options: Predict) -> Answerer:
    """Returns the model that the options name, ready to answer.

    Raises:
        InputError: Something that is needed is not there, or does not fit.
    """
    if not options.is_masked_lm:
        assert options.model_dir
        predictor = Predictor.from_dir(
            options.model_dir, batch_size=options.batch_size
        )
        _set_columns(predictor, options)
        return predictor
    model, tokenizer = masked_lm.load_files(
        options.config_path,
        options.vocab_path,
        numbered.named_by(options),
        do_lower_case=options.is_uncased,
    )
    asked = MaskedLanguageModel(model, tokenizer, options.batch_size)
    if options.score:
        return Scorer(asked)
    return masked_lm.FillMask(asked, options.top_k)


def run(answerer: Answerer, options: Predict) -> None:
    """Answers all lines of the input.

    Args:
        answerer: The model.
        options: Where to read and to write.

    Raises:
        InputError: A line is not what it should be. A file of output is then
            as it was; of standard output, earlier chunks are written. At a
            terminal, the error is shown and the next line read.
    """
    is_typed = options.input_file == "-" and sys.stdin.isatty()
    with _writing(options.output_file) as file:
        for chunk in _chunks(answerer.columns, options):
            try:
                file.write(_answers(answerer, chunk))
            except InputError as error:
                if not is_typed:
                    raise
                print(error, file=sys.stderr)
            file.flush()


@contextlib.contextmanager
def _writing(path: str | None) -> Iterator[Any]:
    """Yields a file for bytes that appears at the end, or standard output."""
    if not path:
        try:
            yield sys.stdout.buffer
        except BrokenPipeError:
            # Whoever reads has seen enough, as `head` has. Without this,
            # Python would complain at its end.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return
    with files.writing(path) as file:
        yield file


def _set_columns(predictor: Predictor, options: Predict) -> None:
    """Tells a predictor what the options say of columns."""
    has_header = options.has_header
    if options.text_a_column is not None:
        names = (options.text_a_column, options.text_b_column)
        given = tuple(name for name in names if name is not None)
        predictor.set_columns(TextColumns(given, has_header is not False))
    elif has_header is not None:
        assert predictor.columns is not None  # The options see to it.
        predictor.set_columns(predictor.columns._replace(has_header=has_header))


def _chunks(
    columns: TextColumns | None, options: Predict
) -> Iterator[Iterable[Item]]:
    """Yields what is to be answered together.

    Lines are parsed only when a chunk is walked over.
    """
    path, kind, size = (
        options.input_file,
        options.resolved_format,
        options.chunk_size,
    )
    show_progress = bool(options.output_file)
    if columns is None or kind not in ("tsv", "csv") or path == "-":
        for chunk in read_chunks(path, size, show_progress=show_progress):
            yield (Item(line.where, parse(line, kind)) for line in chunk)
        return
    rows = progress.bar(
        tables.read(path, kind, has_header=columns.has_header),
        description="Predicting",
        unit="row",
        disable=not show_progress,
    )
    items = (
        Item(row.where, {name: row.text(name) for name in columns.names})
        for row in rows
    )
    while table := list(itertools.islice(items, size)):
        yield table


def _answers(answerer: Answerer, chunk: Iterable[Item]) -> bytes:
    """Returns a JSON line for each item of input."""
    items = list(chunk)
    examples = [answerer.parse(item.value, item.where) for item in items]
    answers = answerer.answer(examples)
    return "".join(
        json.dumps({"input": item.value, **answer}, ensure_ascii=False) + "\n"
        for item, answer in zip(items, answers, strict=True)
    ).encode("utf-8")


def parse(line: Line, kind: str) -> Any:
    """Returns the JSON value that a line stands for.

    Args:
        line: Of the input.
        kind: text, tsv or jsonl.
    """
    line.require_text()
    if kind == "text":
        return line.text
    if kind == "tsv":
        cells = line.text.split("\t")
        if len(cells) > 2:
            raise InputError(
                f"{line.where}: must be a text, or two with a tab between. "
                f"Received: {len(cells)} columns."
            )
        return cells if len(cells) == 2 else line.text
    return json_files.parse_line(line.text, line.where)
