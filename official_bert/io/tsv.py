"""Rows of TSV files, in which quotes are quoting or text.

Programs such as pandas, R and Excel write a cell in quotes, with the quotes in
it doubled, if it contains a quote, a tab or a line break (Excel: or a comma),
or they write all cells of a column in quotes. If a column has other quotes,
such as `"Great film," he said` or `5" pipe`, all of its quotes are text.
"""

import collections
import functools
import re
from collections.abc import Iterable, Iterator, Sequence

from absl import logging

from official_bert.errors import log_once
from official_bert.io import files

# The line on which a row begins, and the row's cells.
NumberedCells = tuple[int, list[str]]

_QUOTED = '"[^"]*(?:""[^"]*)*"'
_QUOTED_CELL = re.compile(_QUOTED)
_CELLS = re.compile(rf"(?:^|\t)({_QUOTED}(?=\t|\Z)|[^\t]*)")
_MAX_LINES = 10_000  # Of a row. Bounds the memory for quotes that are text.

_ADVICE = (
    'A text with a tab or a line break needs quotes (") around it, and quotes '
    "in it must be doubled."
)


class _Columns:
    """How the cells of a file are quoted, for one division into rows.

    Attributes:
        widths: The numbers of cells in a row.
        kinds: {column: {kind of its cells: the first line of this kind}}.
    """

    def __init__(self) -> None:
        self.widths: set[int] = set()
        self.kinds: dict[int, dict[str, int]] = collections.defaultdict(dict)

    def add(self, line: int, cells: Sequence[str]) -> None:
        """Adds a row. Rows of several empty cells are ignored."""
        if len(cells) > 1 and not any(cells):
            return
        is_first = not self.widths
        self.widths.add(len(cells))
        for column, cell in enumerate(cells):
            kind = _kind(cell)
            # Names in a header may be quoted in another way than the cells.
            if not is_first or kind in ("text", "needed"):
                self.kinds[column].setdefault(kind, line)

    @property
    def first_text(self) -> int | None:
        """The first line with quotes that are text."""
        lines = (kinds.get("text") for kinds in self.kinds.values())
        return min(filter(None, lines), default=None)

    @property
    def is_consistent(self) -> bool:
        """Whether all rows are equally long, and all quotes are quoting."""
        return len(self.widths) == 1 and not self.first_text


def _kind(cell: str) -> str:
    """Returns how a cell is written.

    `needed`: in quotes, because it contains a quote, a tab or the end of a
    line, or nothing. `comma`: in quotes, and contains a comma. `bare`: in
    quotes for no reason. `text`: not in quotes, but contains quotes.
    """
    if '"' not in cell:
        return "plain comma" if "," in cell else "plain" if cell else "empty"
    if not _QUOTED_CELL.fullmatch(cell):
        return "text"
    if cell == '""' or re.search('["\t\n\r]', cell[1:-1]):
        return "needed"
    return "comma" if "," in cell else "bare"


def _has_quoting(kinds: set[str]) -> bool:
    """Whether quotes in a column with these kinds of cells are quoting."""
    if "text" in kinds or not kinds & {"needed", "comma", "bare"}:
        return False
    if not kinds & {"plain", "plain comma"}:  # All cells are in quotes.
        return True
    return "bare" not in kinds and not {"comma", "plain comma"} <= kinds


def _rows(
    lines: Iterable[tuple[int, str]], *, joins_lines: bool
) -> Iterator[NumberedCells]:
    """Yields raw cells; if asked for, quoted ones may contain tabs and lines.

    Blank lines between rows are left out.
    """
    pending: list[str] = []
    start = num_quotes = 0
    for line, text in lines:
        if not pending:
            if not text.strip() and "\t" not in text:
                continue
            start, num_quotes = line, 0
        pending.append(text)
        num_quotes += text.count('"')
        is_open = joins_lines and num_quotes % 2 and len(pending) < _MAX_LINES
        if not is_open:
            row = "\n".join(pending)
            is_simple = not (joins_lines and num_quotes)
            yield start, row.split("\t") if is_simple else _CELLS.findall(row)
            pending = []
    if pending:
        yield start, ["\n".join(pending)]


def first_cells(path: str) -> list[str]:
    """Returns the cells of the first line, without quotes around them."""
    _, line = next(files.numbered_lines(path), (1, ""))
    return [cell.strip().strip('"') for cell in line.split("\t")]


def read(path: str) -> tuple[Iterator[NumberedCells], str]:
    """Returns the rows of a file, and advice for rows of another length.

    The file is read twice, a pipe is kept in memory. Rows begin and end with
    lines, unless only quoted cells with line breaks explain the file.
    """
    is_pipe = not files.can_reread(path)
    # pandas quotes cells with carriage returns, which are white space in texts.
    read_lines = functools.partial(files.numbered_lines, path, "\r")
    kept = [*read_lines()] if is_pipe else None
    by_line, joined = _Columns(), _Columns()

    def lines_seen() -> Iterator[tuple[int, str]]:
        for line, text in kept or read_lines():
            for row in _rows([(line, text)], joins_lines=False):
                by_line.add(*row)
            yield line, text

    for row in _rows(lines_seen(), joins_lines=True):
        joined.add(*row)
    # In a table of several columns, line breaks in cells make lines shorter.
    may_join = len(by_line.widths) > 1 or 1 in by_line.widths
    joins = may_join and joined.is_consistent and not by_line.is_consistent
    columns = joined if joins else by_line
    quoted = {
        column
        for column, kinds in columns.kinds.items()
        if joins or _has_quoting({*kinds})
    }
    if quoted:
        log_once(logging.INFO, f"{path}: cells are quoted, as in CSV")
    for column, kinds in columns.kinds.items():
        if "needed" in kinds and column not in quoted:
            other = kinds.get("text") or kinds.get("bare") or kinds["comma"]
            log_once(
                logging.WARNING,
                f"{path}:{other}: column {column} (from 0) is not quoted as on "
                f"line {kinds['needed']}, so all quotes in it are text",
            )
    rows = _rows(kept or read_lines(), joins_lines=joins)
    advice = _ADVICE
    if joined.first_text:
        advice = (
            "Quotes are text in this file, because those on line "
            f"{joined.first_text} do not enclose a cell. {_ADVICE}"
        )
    return _unquoted(rows, quoted), advice


def _unquoted(
    rows: Iterable[NumberedCells], columns: set[int]
) -> Iterator[NumberedCells]:
    """Yields rows without the quoting of some columns, and of the header."""
    is_first = bool(columns)
    for line, cells in rows:
        yield (
            line,
            [
                cell[1:-1].replace('""', '"')
                if (is_first or column in columns)
                and _QUOTED_CELL.fullmatch(cell)
                else cell
                for column, cell in enumerate(cells)
            ],
        )
        is_first = False
