"""`--sweep`: the values of the flags that a sweep varies."""

import re
import typing
from collections.abc import Iterator
from typing import Any

from official_bert.errors import InputError
from official_bert.options.flags import Options, plain_type


def parse(sweep: str, options_class: type[Options]) -> dict[str, list[Any]]:
    """Returns {flag: its values} of a sweep.

    `sweep` is a value such as `learning_rate=5e-5,3e-5;seed=1..5`. Values in
    double quotes may contain commas and semicolons. Raises `InputError` if a
    flag cannot be varied, or a value has the wrong type.
    """
    if sweep.count('"') % 2:
        raise InputError(f"--sweep: {sweep!r} lacks a closing double quote.")
    types = typing.get_type_hints(options_class)
    names = options_class.names(in_sweep=True)
    values: dict[str, list[Any]] = {}
    for part in filter(None, _split(sweep, ";")):
        name, equals, texts = part.strip().partition("=")
        if name == "model":
            raise InputError(
                "--sweep does not vary --model. Start a sweep for each model."
            )
        if not equals or name not in names:
            raise InputError(
                f"--sweep: {part!r} does not start with a flag that can be "
                "varied. Write flags and values as in "
                "learning_rate=5e-5,3e-5;seed=1..5."
            )
        if name in values:
            raise InputError(
                f"--sweep names `{name}` twice. Write {name}=A,B instead of "
                f"{name}=A;{name}=B."
            )
        values[name] = list(_parse_values(name, texts, plain_type(types[name])))
        if len(set(values[name])) < len(values[name]):
            raise InputError(
                f"--sweep: {part!r} has a value twice: {values[name]}. Remove "
                "one of them."
            )
    return values


def _split(text: str, separator: str) -> list[str]:
    """Splits a text at the separators that are not in double quotes."""
    return re.split(f'{separator}(?=(?:[^"]*"[^"]*")*[^"]*$)', text)


def _parse_values(name: str, texts: str, kind: Any) -> Iterator[Any]:
    for quoted in _split(texts, ","):
        text = quoted.strip('"')
        first, dots, last = text.partition("..")
        try:
            if dots and kind is int:
                values = [*range(int(first), int(last) + 1)]
                if not values:
                    raise ValueError(text)
            elif kind is bool:
                values = [{"true": True, "false": False}[text.lower()]]
            else:
                values = [kind(text) if kind in (int, float) else text]
        except (KeyError, ValueError):
            raise InputError(
                f"--sweep: `{name}` must be of type {kind.__name__}. A range "
                f"is two increasing integers, as in 1..5. Received: {text!r}."
            ) from None
        yield from values
