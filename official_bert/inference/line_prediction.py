"""Predictions for lines of a file, as JSON lines or CSV (`predict.py`)."""

import contextlib
import csv
import dataclasses
import io
import itertools
import json
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, BinaryIO, NamedTuple

from absl import logging

from official_bert.errors import InputError, listed, suppress_broken_pipe
from official_bert.inference.masked_lm import FillMask, Scorer
from official_bert.inference.predictor import Predictor
from official_bert.inference.trained_models import (
    load_finetuned,
    load_huggingface,
    load_masked_lm,
)
from official_bert.io import files, json_files, progress, tables
from official_bert.options import Predict
from official_bert.tasks.choice import ChoiceTask
from official_bert.tasks.squad.task import SquadTask
from official_bert.tasks.tagging import TaggingTask
from official_bert.tasks.text import TextColumns, TextTask

_READ_SIZE = 1 << 20  # Bytes of standard input.

Answerer = Predictor | FillMask | Scorer


class Item(NamedTuple):
    """An input: the value to parse, and how the output shows it.

    For a row of a table, `shown` has all cells; for a sentence, its words.
    """

    value: Any
    shown: Any


def load(options: Predict) -> Answerer:
    """Loads the model that the flags name."""
    if options.is_masked_lm:
        model, tokenizer = load_masked_lm(options.model_files)
        if options.score:
            return Scorer(model, tokenizer, options.batch_size)
        return FillMask(model, tokenizer, options.top_k, options.batch_size)
    if options.model_dir:
        finetuned = load_finetuned(options.model_dir)
    else:
        finetuned = load_huggingface(options.model_files)
    task = _override(finetuned.task, options)
    finetuned = finetuned._replace(task=task)
    return Predictor(finetuned, batch_size=options.batch_size)


def _override(task: Any, options: Predict) -> Any:
    """Returns the task with the columns and the threshold of the flags."""
    if isinstance(task, TextTask) and options.text_a_column:
        pair = (options.text_a_column, options.text_b_column)
        names = tuple(name for name in pair if name)
        columns = (task.columns or TextColumns(names))._replace(names=names)
        task = dataclasses.replace(task, columns=columns)
    has_columns = isinstance(task, TextTask | ChoiceTask) and task.columns
    if has_columns and options.has_header is not None:
        columns = task.columns._replace(has_header=options.has_header)
        task = dataclasses.replace(task, columns=columns)
    threshold = options.null_score_diff_threshold
    if isinstance(task, SquadTask) and threshold is not None:
        decoding = task.decoding._replace(null_score_diff_threshold=threshold)
        task = dataclasses.replace(task, decoding=decoding)
    return task


def run(answerer: Answerer, options: Predict) -> None:
    """Answers all lines of the input.

    Raises `InputError` if a line is invalid. An output file is then unchanged;
    on standard output, earlier chunks have been written. At a terminal, the
    error is shown and the next line is read.
    """
    file_format = options.resolved_format
    rows = _rows(answerer, options)
    separator, byte_order_mark = ",", ""
    reads_csv = file_format == "csv" and _can_reread(options.input_file)
    if options.writes_csv and reads_csv:
        separator, byte_order_mark = tables.csv_style(options.input_file)
    is_interactive = options.input_file == "-" and sys.stdin.isatty()
    with _open_output(options.output_file) as file:
        num_written = 0
        for chunk in read_chunks(options, rows):
            try:
                answered = _answer_chunk(answerer, chunk, file_format)
            except InputError as error:
                if not is_interactive:
                    raise
                print(error, file=sys.stderr)
                continue
            if options.writes_csv:
                is_first = num_written == 0
                text = byte_order_mark if is_first else ""
                text += _to_csv(answered, separator, has_header=is_first)
            else:
                text = _to_json_lines(answered)
            file.write(text.encode("utf-8"))
            file.flush()
            num_written += len(answered)
    if options.output_file:
        print(f"Wrote {num_written:,} predictions to {options.output_file}")


@contextlib.contextmanager
def _open_output(path: str | None) -> Iterator[Any]:
    """Yields a binary file that is renamed at the end, or standard output."""
    if path:
        with files.writing(path) as file:
            yield file
    else:
        with suppress_broken_pipe():
            yield sys.stdout.buffer


def _rows(
    answerer: Answerer, options: Predict
) -> Iterator[tuple[str, Item]] | None:
    """Returns the rows of a table or the sentences of a CoNLL file.

    Each comes with FILE:LINE or FILE. Returns None if the input has one example
    per line.
    """
    path, file_format = options.input_file, options.resolved_format
    if path == "-" or not isinstance(answerer, Predictor):
        return None
    task = answerer.task
    if isinstance(task, TaggingTask) and _is_conll(task, options):
        sentences = task.columns.read_file(path, needs_tags=False)
        return ((path, Item(s, s.words)) for s in sentences)
    has_columns = file_format != "jsonl" or options.text_a_column
    if file_format == "text" or not has_columns:
        return None
    if isinstance(task, TextTask) and task.columns:
        names, has_header = task.columns
        flag_names = ("--text_column", "--text_b_column")
        flags = dict(zip(names, flag_names, strict=False))
    elif isinstance(task, ChoiceTask):
        names, has_header = task.columns.required, task.columns.has_header
        flags = {}
    else:
        return None
    rows = tables.read(path, file_format, has_header=has_header, flags=flags)
    return _table_rows(rows, names)


def _table_rows(
    rows: Iterable[tables.Row], names: Sequence[str]
) -> Iterator[tuple[str, Item]]:
    """Yields FILE:LINE and row. The task parses the columns `names`, or all.

    Warns at the end if texts are empty.
    """
    empty = []
    for row in rows:
        texts = {name: row.text(name) for name in names}
        if names and not "".join(texts.values()).strip():
            empty.append(row.where)
        cells = {name: row.cells[name] for name in row.columns}
        yield row.where, Item(texts or row.cells, cells)
    if empty:
        logging.warning(
            "Rows with empty texts: %s. Their predictions are meaningless",
            listed(empty),
        )


def _can_reread(path: str) -> bool:
    """Whether a path can be read twice: it is a file, not a pipe."""
    return os.path.isfile(path) or files.is_remote(path)


def _is_conll(task: TaggingTask, options: Predict) -> bool:
    path, file_format = options.input_file, options.resolved_format
    if file_format == "conll":
        return True
    if options.input_format != "auto" or file_format == "jsonl":
        return False
    if not _can_reread(path):
        return False
    if not task.columns.recognizes(path):
        logging.info(
            "%s is read as one text per line. If it has CoNLL columns, pass "
            "--input_format=conll.",
            path,
        )
        return False
    logging.info(
        "%s is read as CoNLL, with words in column %d. If it has one text "
        "per line, pass --input_format=lines.",
        path,
        task.token_column,
    )
    return True


def read_chunks(
    options: Predict, rows: Iterator[tuple[str, Any]] | None
) -> Iterator[list[tuple[str, Any]]]:
    """Yields chunks of `rows` or, if it is None, of (FILE:LINE, line) pairs.

    On standard input, a chunk has only lines that have arrived, so that no line
    waits for the next. Raises `InputError` if a file is not UTF-8; for standard
    input, `_parse` raises it.
    """
    path = options.input_file
    is_stdin = path == "-"
    numbers = itertools.count(1)
    blocks: Iterable[Iterator[tuple[str, Any]]]
    if rows:
        blocks = [rows]
    elif is_stdin:
        arrived = _arrived_lines(sys.stdin.buffer)
        blocks = (_lines("<stdin>", block, numbers) for block in arrived)
    elif options.output_file:  # A progress bar counts the bytes.
        lines = progress.read_lines([path], "Predicting")
        blocks = [_lines(path, lines, numbers)]
    else:
        blocks = [_lines(path, files.read_lines(path), numbers)]
    with progress.bar(
        description="Predicting",
        unit=" rows" if rows else " lines",
        disable=not (options.output_file and (rows or is_stdin)),
    ) as bar:
        for block in blocks:
            while chunk := list(itertools.islice(block, options.chunk_size)):
                yield chunk
                bar.update(len(chunk))


def _lines(
    name: str, block: Iterable[str], numbers: Iterator[int]
) -> Iterator[tuple[str, str]]:
    """Yields FILE:LINE and line, except blank ones."""
    for text, number in zip(block, numbers, strict=False):
        if number == 1:
            text = text.removeprefix("\ufeff")
        if text.strip():
            yield f"{name}:{number}", text


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
    # Bytes that are not UTF-8 become surrogates, which `_parse` reports.
    return line.decode("utf-8", "surrogateescape").replace("\r", "")


def _answer_chunk(
    answerer: Answerer, chunk: list[tuple[str, Any]], file_format: str
) -> list[tuple[Any, dict[str, Any]]]:
    """Returns pairs of an input, as the output shows it, and its answer."""
    examples: list[Any] = []
    shown = []
    for where, item in chunk:
        if not isinstance(item, Item):  # A line that is not parsed yet.
            value = _parse(item, where, file_format)
            item = Item(value, value)
        examples.append(answerer.parse(item.value, where))
        shown.append(item.shown)
    return list(zip(shown, answerer.answer(examples), strict=True))


def _to_json_lines(answered: list[tuple[Any, dict[str, Any]]]) -> str:
    return "".join(
        json.dumps({"input": shown, **answer}, ensure_ascii=False) + "\n"
        for shown, answer in answered
    )


def _to_csv(
    answered: list[tuple[dict[str, Any], dict[str, Any]]],
    separator: str,
    has_header: bool,
) -> str:
    """Returns CSV with the cells of each row, then its answer."""
    rows = []
    for cells, answer in answered:
        added: dict[str, Any] = {}
        for name, value in answer.items():
            if isinstance(value, dict):  # The probabilities of labels.
                added |= {
                    f"probability_{label}": round(probability, 6)
                    for label, probability in value.items()
                }
            elif name == "probabilities":  # Rows have different choices.
                added["probability"] = round(max(value), 6)
            elif isinstance(value, list | tuple):
                added[f"predicted_{name}"] = ",".join(value)
            else:
                added[f"predicted_{name}"] = value
        if repeated := sorted(added.keys() & cells.keys()):
            raise InputError(
                f"The input already has the columns {listed(repeated)}. Rename "
                "them, or write a .jsonl file."
            )
        rows.append(cells | added)
    text = io.StringIO()
    writer = csv.DictWriter(
        text, list(rows[0]), delimiter=separator, lineterminator="\n"
    )
    if has_header:
        writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _parse(line: str, where: str, file_format: str) -> Any:
    """Returns the JSON value of a line in the format text, tsv or jsonl.

    Raises `InputError` if the line is not UTF-8 or not in the format.
    """
    try:
        line.encode("utf-8")
    except UnicodeEncodeError as error:
        byte = line[error.start].encode("utf-8", "surrogateescape")
        raise InputError(
            f"{where}: text must be UTF-8. Received: the byte 0x{byte.hex()}. "
            "Convert it: `iconv -f ENCODING -t UTF-8`, where ENCODING is often "
            "WINDOWS-1252."
        ) from error
    if file_format == "text":
        return line
    if file_format == "tsv":
        cells = line.split("\t")
        if len(cells) > 2:
            raise InputError(
                f"{where}: must be a text, or two separated by a tab. "
                f"Received: {len(cells)} columns. For a table with a header, "
                "add --text_column=NAME."
            )
        return cells if len(cells) == 2 else line
    return json_files.parse_line(line, where)
