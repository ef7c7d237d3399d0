"""Writes docs/flags.md, the page of all flags, from the options classes.

Run it after a change of flags: python docs/generate_flags.py
"""

import dataclasses
import pathlib
import re
import sys
import textwrap
from collections.abc import Iterator

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from official_bert.commands import COMMANDS  # noqa: E402
from official_bert.options.flags import HEADINGS, Options  # noqa: E402

PAGE = ROOT / "docs" / "flags.md"
INTRODUCTION = """\
# All flags

`--help` shows the common flags of a command, and `--help=all` shows all flags.
If several commands share a flag, this page describes it under the first one.

Write `--flag=value` or, for a boolean, `--flag` or `--noflag`. A default of -
means that the flag has no value unless you give one. All commands also have
`--flagfile=FILE`, which reads flags from a file, `--undefok=NAME,...`, which
ignores unknown flags, and `--verbose`, which shows TensorFlow's messages.

`python docs/generate_flags.py` generates this page from the options classes.
"""


def render() -> str:
    """Returns the page."""
    described: dict[str, str] = {}
    tables: dict[tuple[str, str], list[str]] = {}
    lines = [INTRODUCTION]
    for command in COMMANDS.values():
        lines += section(command, described, tables)
    return "\n".join(lines)


def section(
    options_class: type[Options],
    described: dict[str, str],
    tables: dict[tuple[str, str], list[str]],
) -> Iterator[str]:
    """Yields the section of a command: its flags under the headings of --help.

    This adds to `described`, {row of a flag: first command with it}, and to
    `tables`, {(command, heading): flags in its table}.
    """
    command = options_class.command
    yield f"## {command}\n"
    for heading in HEADINGS:
        names: dict[str, list[str]] = {}
        rows = []
        for field in dataclasses.fields(options_class):
            if field.metadata["heading"] == heading:
                text = row(field)
                first = described.setdefault(text, command)
                names.setdefault(first, []).append(f"`--{field.name}`")
                if first == command:
                    rows.append(text)
        if names:
            yield f"**{heading}**\n"
        tables[command, heading] = names.pop(command, [])
        for other, shared in names.items():
            others = [n for n in tables[other, heading] if n not in shared]
            which_flags = f": {', '.join(shared)}"
            if 2 * len(others) < len(shared):
                which_flags = f", except {', '.join(others)}" if others else ""
            link = f"[{other}](#{other.replace('.', '')})"
            yield textwrap.fill(f"As in {link}{which_flags}.", 120) + "\n"
        if rows:
            yield "| flag | default | |\n|---|---|---|"
            yield "\n".join(rows) + "\n"


def row(field: dataclasses.Field) -> str:
    """Returns one row: the flag, its default, its help and its values."""
    names = filter(None, [field.metadata["alias"], field.name])
    default = field.default
    if isinstance(default, bool):
        default = str(default).lower()
    if default is dataclasses.MISSING or default in (None, ""):
        default = "-"
    text = re.sub(r"([*<|[\]])", r"\\\1", field.metadata["help"])
    text = re.sub(r"--\w+(=[\w.:/-]*\w)?", r"`\g<0>`", text)
    if choices := field.metadata["choices"]:
        text += f" One of `{'`, `'.join(choices)}`."
    flag = ", ".join(f"`--{name}`" for name in names)
    return f"| {flag} | {default} | {text} |"


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
