"""Predictions for lines of a file, as JSON lines or CSV (`predict.py`)."""

import contextlib
import itertools
import json
import operator
import re
import sys
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO

from absl import logging

from official_bert import pages, tasks
from official_bert.errors import (
    InputError,
    listed,
    quoted,
    suppress_broken_pipe,
)
from official_bert.inference import engine_choice
from official_bert.inference.masked_lm import FillMask, Scorer
from official_bert.inference.predictor import Predictor
from official_bert.io import files, json_files, progress, tables
from official_bert.io.rows import label_cell
from official_bert.options import Predict
from official_bert.tasks.predict_inputs import Input
from official_bert.tasks.text import warn_of_empty_texts

_READ_SIZE = 1 << 20  # Bytes of standard input.
_MAX_ON_PAGE = 500  # Examples on a page of explanations.

Answerer = Predictor | FillMask | Scorer
Item = tuple[Any, Any]  # An example, and how the output shows its input.
Answered = tuple[Any, dict[str, Any]]  # How the input is shown; the answer.
Chunks = Iterable[list[Answered]]


def load(options: Predict) -> Answerer:
    """Loads the model that the flags name."""
    size = options.batch_size
    if not options.is_masked_lm:
        return Predictor.from_options(options, size, options.explain)
    options.download_weights()
    model, tokenizer, engine = engine_choice.load_masked_lm(
        options.model_files, options
    )
    if options.score:
        return Scorer(model, tokenizer, size, engine)
    return FillMask(model, tokenizer, options.top_k, size, engine)


def run(options: Predict) -> None:
    """Answers all lines of the input.

    Raises `InputError` if a line is invalid. An output file is then unchanged;
    on standard output, earlier chunks have been written. At a terminal, the
    error is shown and the next line is read.
    """
    early_chunks = _read_early(options)
    answerer = load(options)
    parser = answerer.task if isinstance(answerer, Predictor) else answerer
    chunks = early_chunks or read_chunks(parser, options)
    answered = _answer_chunks(answerer, chunks, options)
    write = _to_lines
    if options.writes_csv:
        write = _to_csv
    elif options.writes_page:
        write = _to_page
    num_written = 0
    with _open_output(options.output_file) as file:
        for text, number in write(answered, options):
            file.write(text.encode("utf-8"))
            file.flush()
            num_written += number
    if options.output_file:
        print(f"Wrote {num_written:,} predictions to {options.output_file}")


def _read_early(options: Predict) -> Iterator[list[Item]] | None:
    """Reads the first chunk of a file before TensorFlow is imported.

    So its errors do not wait. Returns all chunks, or None for standard input,
    and if only the model itself can parse the input.
    """
    has_task = options.model_dir and not options.is_masked_lm
    if not has_task or options.input_file == "-":
        return None
    task, _ = tasks.load(options.task, str(options.model_dir))
    chunks = read_chunks(task.with_answer_options(options), options)
    first = [*itertools.islice(chunks, 1)]
    return itertools.chain(first, chunks)


def _answer_chunks(
    answerer: Answerer, chunks: Iterable[list[Item]], options: Predict
) -> Iterator[list[Answered]]:
    """Yields the inputs and answers of each chunk; if sorted, all at once."""
    everything: list[Answered] = []
    for chunk in chunks:
        answers: list[dict[str, Any]] = []
        with _errors_shown(options):
            answers = answerer.answer([example for example, _ in chunk])
        if answers:
            shown = (shown for _, shown in chunk)
            answered = [*zip(shown, answers, strict=True)]
            if options.sort_by == "input":
                yield answered
            else:
                everything += answered
    if everything:
        assert isinstance(answerer, Predictor)
        yield sorted(everything, key=lambda pair: answerer.task.margin(pair[1]))


@contextlib.contextmanager
def _errors_shown(options: Predict) -> Iterator[None]:
    """Shows an `InputError` and continues, if the input is a terminal."""
    try:
        yield
    except InputError as error:
        if options.input_file != "-" or not sys.stdin.isatty():
            raise
        print(error, file=sys.stderr)


@contextlib.contextmanager
def _open_output(path: str | None) -> Iterator[Any]:
    """Yields a binary file that is renamed at the end, or standard output."""
    if path:
        with files.writing(path) as file:
            yield file
    else:
        with suppress_broken_pipe():
            yield sys.stdout.buffer


def read_chunks(parser: Any, options: Predict) -> Iterator[list[Item]]:
    """Yields the examples of the input, which `parser` parses, in chunks.

    `parser` is a task or a `MaskedLanguageModel`. On standard input, a chunk
    has only lines that have arrived, so that no line waits for the next. Raises
    `InputError` if an input is invalid.
    """
    is_stdin = options.input_file == "-"
    reads_lines = is_stdin or options.is_masked_lm
    inputs = None if reads_lines else parser.read_inputs(options)
    blocks = _line_blocks(options) if inputs is None else [inputs]
    with progress.bar(
        description="Predicting",
        unit=" lines" if inputs is None else " rows",
        disable=not (options.output_file and (inputs or is_stdin)),
    ) as bar:
        for block in blocks:
            items = warn_of_empty_texts(
                (_item(parser, options, line) for line in block),
                operator.itemgetter(0),
            )
            with _errors_shown(options):
                while chunk := [*itertools.islice(items, options.chunk_size)]:
                    yield chunk
                    bar.update(len(chunk))


def _item(parser: Any, options: Predict, line: Input) -> Item:
    if options.writes_csv and not isinstance(line.shown, dict):
        raise InputError(
            f"{line.where}: must be an object, so that {options.output_file} "
            f"has columns. Received: {quoted(line.shown)}. Write a .jsonl file."
        )
    if line.where.endswith(":1") and options.input_format == "auto":
        _warn_of_rows(line, options)
    try:
        return parser.parse(line.value, line.where), line.shown
    except InputError as error:
        raise InputError(f"{error}{_advice(options, line.value)}") from error


def _warn_of_rows(line: Input, options: Predict) -> None:
    """Warns if a first line that is read as a text is an object or a header."""
    if options.resolved_format != "text":
        return
    columns = options.task.get("columns") or {}
    names = columns.get("names") if columns.get("has_header") else None
    cells = re.split("[,;\t]", line.value.replace('"', ""))
    if json_files.looks_like_object(line.value):
        logging.warning(
            f"{line.where} is read as a text, but is a JSON object. For JSON "
            "lines, add --input_format=jsonl"
        )
    elif names and {*names} <= {*map(str.strip, cells)}:
        logging.warning(
            f"{line.where} is read as a text, but has the names of the columns "
            "of the training data. For a table, add --input_format=csv or tsv "
            "and, on standard input, --input_file=/dev/stdin"
        )


def _advice(options: Predict, value: Any) -> str:
    """Returns flags that may help if the task does not accept a value."""
    if options.is_masked_lm:
        return ""
    if options.resolved_format == "text":
        return (
            " Each line was read as one text. For pairs separated by a tab, "
            "add --input_format=tsv; for JSON, --input_format=jsonl."
        )
    if options.resolved_format == "tsv" and isinstance(value, list):
        return " If texts contain tabs, use --input_format=lines."
    is_row = isinstance(value, dict) and options.text_a_column in value
    if is_row and not options.text_b_column:
        return " For pairs of texts, add --text_b_column."
    return ""


def _line_blocks(options: Predict) -> Iterator[Iterator[Input]]:
    """Yields the inputs on lines, in blocks that have arrived together."""
    path, numbers = options.input_file, itertools.count(1)
    blocks: Iterable[Iterable[str]]
    # As in tables, a carriage return within a text separates words.
    if path == "-":
        path, blocks = "<stdin>", _arrived_lines(sys.stdin.buffer)
    elif options.output_file:  # A progress bar counts the bytes.
        blocks = progress.read_files([path], "Predicting", carriage_return=" ")
    else:
        blocks = [files.read_lines(path, carriage_return=" ")]
    file_format = options.resolved_format
    for block in blocks:
        yield _inputs(file_format, path, zip(block, numbers, strict=False))


def _inputs(
    file_format: str, name: str, numbered: Iterable[tuple[str, int]]
) -> Iterator[Input]:
    """Yields the inputs on lines that are not blank."""
    for text, number in numbered:
        text = text.removeprefix("\ufeff")  # Joined files may have several.
        if text.strip():
            yield _decode_line(file_format, f"{name}:{number}", text)


def _arrived_lines(stream: BinaryIO) -> Iterator[list[str]]:
    """Yields lists of lines, as soon as the lines have arrived."""
    incomplete = b""
    # `read1` returns the bytes that have arrived; `read` would wait for more.
    while data := stream.read1(_READ_SIZE):  # type: ignore[attr-defined]
        *lines, incomplete = (incomplete + data).split(b"\n")
        yield [_decode(line) for line in lines]
    if incomplete:
        yield [_decode(incomplete)]


def _decode(line: bytes) -> str:
    # Bytes that are not UTF-8 become surrogates, which `_decode_line` reports.
    text = line.decode("utf-8", "surrogateescape")
    return text.rstrip("\r").replace("\r", " ")


def _to_lines(chunks: Chunks, options: Predict) -> Iterator[tuple[str, int]]:
    """Yields JSON lines, and their number, for each chunk."""
    for answered in chunks:
        objects = ({"input": shown, **answer} for shown, answer in answered)
        yield json_files.to_lines(objects), len(answered)


def _to_page(chunks: Chunks, options: Predict) -> Iterator[tuple[str, int]]:
    """Yields a page of all explanations, and their number."""
    answers = list[Any]()
    for answered in chunks:
        answers += [answer for _, answer in answered]
        if len(answers) > _MAX_ON_PAGE:
            message = (
                f"is a page, which can show at most {_MAX_ON_PAGE} examples. "
                "Shorten the input, or write a .jsonl file."
            )
            raise options.error("output_file", message)
    page = pages.render(
        "explanations.html",
        title="Explanations",
        subtitle=options.model_dir or options.model,
        method=options.explain,
        answers=answers,
    )
    yield page, len(answers)


def _to_csv(chunks: Chunks, options: Predict) -> Iterator[tuple[str, int]]:
    """Yields CSV with the cells of each row, then its answer, and the numbers.

    The columns are those of the first row.
    """
    separator, names = ",", list[str]()
    is_csv = options.resolved_format == "csv"
    if is_csv and files.can_reread(options.input_file):
        separator, byte_order_mark = tables.csv_style(options.input_file)
        yield byte_order_mark, 0
    for answered in chunks:
        rows = [_row(cells, answer) for cells, answer in answered]
        header = [] if names else [[*rows[0]]]
        names = names or [*rows[0]]
        if others := sorted({*itertools.chain.from_iterable(rows)} - {*names}):
            raise InputError(
                "The first object of the input must have all keys, which are "
                "the columns of the output. Received in a later one: "
                f"{listed(others)}. Add them to the first one, or write a "
                ".jsonl file."
            )
        lines = [[row.get(name) for name in names] for row in rows]
        yield tables.to_csv([*header, *lines], separator), len(rows)


def _row(cells: dict[str, Any], answer: dict[str, Any]) -> dict[str, Any]:
    """Returns {column: cell} of a row of the input and its answer."""
    added: dict[str, Any] = {}
    for name, value in answer.items():
        if isinstance(value, dict):  # The probabilities of labels.
            added |= {
                f"probability_{label}": round(probability, 6)
                for label, probability in value.items()
            }
        elif name == "probabilities":  # Rows have different choices.
            added["probability"] = round(max(value), 6)
        elif name != "n_best":  # Too much for a cell.
            added[f"predicted_{name}"] = label_cell(value)
    if repeated := sorted(added.keys() & cells.keys()):
        raise InputError(
            f"The input already has the columns {listed(repeated)}. Rename "
            "them, or write a .jsonl file."
        )
    return {name: _cell(value) for name, value in cells.items()} | added


def _cell(value: Any) -> Any:
    """Returns a JSON value as a cell of a table."""
    is_text = value is None or isinstance(value, str)
    return value if is_text else json.dumps(value, ensure_ascii=False)


def _decode_line(file_format: str, where: str, line: str) -> Input:
    """Returns the input on a line in the format text, tsv or jsonl.

    Raises `InputError` if the line is not UTF-8 or not in the format.
    """
    value: Any = line
    try:
        line.encode("utf-8")
    except UnicodeEncodeError as error:
        byte = line[error.start].encode("utf-8", "surrogateescape")
        raise InputError(
            f"{where}: text must be UTF-8. Received: the byte 0x{byte.hex()}. "
            "Convert it: `iconv -f ENCODING -t UTF-8`, where ENCODING is often "
            "WINDOWS-1252."
        ) from error
    if file_format == "tsv":
        cells = line.split("\t")
        if len(cells) > 2:
            raise InputError(
                f"{where}: must be a text, or two separated by a tab. "
                f"Received: {len(cells)} columns. For a table with a header, "
                "add --text_column=NAME."
            )
        value = cells if len(cells) == 2 else line
    elif file_format != "text":
        value = json_files.parse_line(line, where)
    return Input(where, value, value)
