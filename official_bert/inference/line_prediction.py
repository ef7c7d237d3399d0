"""Predictions for lines of text, as JSON lines (`predict.py`)."""

import contextlib
import itertools
import json
import os
import sys
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO, NamedTuple

from official_bert import files, json_files, progress
from official_bert.errors import InputError
from official_bert.inference.masked_lm import FillMask, Scorer
from official_bert.inference.predictor import Predictor
from official_bert.inference.trained_models import ModelFiles, load_masked_lm
from official_bert.options import Predict
from official_bert.tasks import tables
from official_bert.tasks.text import TextColumns

_READ_SIZE = 1 << 20  # Bytes of standard input.


class Line(NamedTuple):
    """A line of input and its FILE:LINE.

    Bytes of standard input that are not UTF-8 are lone surrogates, so that only
    their line is an error.
    """

    where: str
    text: str


Answerer = Predictor | FillMask | Scorer


def load(options: Predict) -> Answerer:
    """Loads the model that the flags name.

    Raises:
        InputError: A file is missing or does not fit the others.
    """
    if options.is_masked_lm:
        model, tokenizer = load_masked_lm(ModelFiles.of_options(options))
        if options.score:
            return Scorer(model, tokenizer, options.batch_size)
        return FillMask(model, tokenizer, options.top_k, options.batch_size)
    assert options.model_dir
    predictor = Predictor.from_dir(
        options.model_dir, batch_size=options.batch_size
    )
    has_header = options.has_header
    if options.text_a_column is not None:
        names = (options.text_a_column, options.text_b_column)
        given = tuple(name for name in names if name is not None)
        predictor.set_columns(TextColumns(given, has_header is not False))
    elif has_header is not None:
        assert predictor.columns is not None  # The options check it.
        predictor.set_columns(predictor.columns._replace(has_header=has_header))
    return predictor


def run(answerer: Answerer, options: Predict) -> None:
    """Answers all lines of the input.

    Raises:
        InputError: A line is not valid. An output file is then left as it was;
            on standard output, earlier chunks have been written. At a terminal,
            the error is shown and the next line is read.
    """
    is_interactive = options.input_file == "-" and sys.stdin.isatty()
    with _open_output(options.output_file) as file:
        for chunk in _chunks(answerer.columns, options):
            try:
                file.write(_answer_chunk(answerer, chunk))
            except InputError as error:
                if not is_interactive:
                    raise
                print(error, file=sys.stderr)
            file.flush()


@contextlib.contextmanager
def _open_output(path: str | None) -> Iterator[Any]:
    """Yields a binary file that is renamed at the end, or standard output."""
    if path:
        with files.writing(path) as file:
            yield file
        return
    try:
        yield sys.stdout.buffer
    except BrokenPipeError:
        # The reader has seen enough, as `head` does. Without this, Python would
        # print an error when it exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _chunks(
    columns: TextColumns | None, options: Predict
) -> Iterator[Iterable[tuple[str, Any]]]:
    """Yields chunks of inputs, each with its FILE:LINE.

    Lines are parsed when a chunk is iterated over, so that errors in a line are
    raised there.
    """
    path, kind = options.input_file, options.resolved_format
    size, show_progress = options.chunk_size, bool(options.output_file)
    if columns is None or kind not in ("tsv", "csv") or path == "-":
        for chunk in read_chunks(path, size, show_progress=show_progress):
            yield ((line.where, parse(line, kind)) for line in chunk)
        return
    rows = progress.bar(
        tables.read(path, kind, has_header=columns.has_header),
        description="Predicting",
        unit="row",
        disable=not show_progress,
    )
    items = (
        (row.where, {name: row.text(name) for name in columns.names})
        for row in rows
    )
    while table := list(itertools.islice(items, size)):
        yield table


def _answer_chunk(
    answerer: Answerer, chunk: Iterable[tuple[str, Any]]
) -> bytes:
    """Returns a JSON line for each input."""
    items = list(chunk)
    examples: list[Any] = [
        answerer.parse(value, where) for where, value in items
    ]
    answers = answerer.answer(examples)
    return "".join(
        json.dumps({"input": value, **answer}, ensure_ascii=False) + "\n"
        for (_, value), answer in zip(items, answers, strict=True)
    ).encode("utf-8")


def parse(line: Line, kind: str) -> Any:
    """Returns the JSON value of a line of a format: text, tsv or jsonl.

    Raises:
        InputError: The line is not UTF-8, or not of the format.
    """
    try:
        line.text.encode("utf-8")
    except UnicodeEncodeError as error:
        byte = line.text[error.start].encode("utf-8", "surrogateescape")
        raise InputError(
            f"{line.where}: text must be UTF-8. Received: the byte "
            f"0x{byte.hex()}. Convert it, for example with `iconv -t UTF-8`."
        ) from error
    if kind == "text":
        return line.text
    if kind == "tsv":
        cells = line.text.split("\t")
        if len(cells) > 2:
            raise InputError(
                f"{line.where}: must be a text, or two separated by a tab. "
                f"Received: {len(cells)} columns."
            )
        return cells if len(cells) == 2 else line.text
    return json_files.parse_line(line.text, line.where)


def read_chunks(
    path: str, chunk_size: int, *, show_progress: bool
) -> Iterator[list[Line]]:
    """Yields the lines of a file in chunks; blank lines are skipped.

    On standard input (`path` is -), a chunk ends with the lines that have
    arrived, so that no line waits for the next.

    Raises:
        InputError: A file is not UTF-8. For standard input, `parse` raises it.
    """
    is_stdin = path == "-"
    blocks: Iterable[Iterable[str]]
    if is_stdin:
        blocks = _arrived_lines(sys.stdin.buffer)
    elif show_progress:  # A bar of bytes.
        blocks = [progress.read_lines([path], "Predicting")]
    else:
        blocks = [files.read_lines(path)]
    name = "<stdin>" if is_stdin else path
    numbers = itertools.count(1)
    with progress.bar(
        description="Predicting",
        unit="line",
        disable=not (is_stdin and show_progress),
    ) as bar:
        for block in blocks:
            lines = _nonblank(name, zip(block, numbers, strict=False))
            while chunk := list(itertools.islice(lines, chunk_size)):
                yield chunk
                bar.update(len(chunk))


def _nonblank(name: str, numbered: Iterable[tuple[str, int]]) -> Iterator[Line]:
    for text, number in numbered:
        if number == 1:
            text = text.removeprefix("\ufeff")
        if text.strip():
            yield Line(f"{name}:{number}", text)


def _arrived_lines(stream: BinaryIO) -> Iterator[list[str]]:
    """Yields the lines that have arrived, waiting for at least some bytes."""
    rest = b""
    # `read1` returns the bytes there are; `read` would wait for more.
    while data := stream.read1(_READ_SIZE):  # type: ignore[attr-defined]
        *lines, rest = (rest + data).split(b"\n")
        yield [_decode(line) for line in lines]
    if rest:
        yield [_decode(rest)]


def _decode(line: bytes) -> str:
    return line.decode("utf-8", "surrogateescape").replace("\r", "")
