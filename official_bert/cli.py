"""Dataclass -> command line -> `main(options)`: one field is one flag.

A command declares its options as a frozen dataclass whose fields are made with
`option`, and ends with::

    if __name__ == "__main__":
        cli.run(main, Options)

Flags exist only once a command is run, so tests import every command and call
`main(Options(...))`; nothing below `main` sees a flag.
"""

import dataclasses
import errno
import json
import math
import os
import signal
import sys
import types
import typing
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from absl import app, flags, logging

from official_bert.errors import InputError, short_reason


def option(
    help: str,
    default: Any = dataclasses.MISSING,
    *,
    choices: Sequence[str] | None = None,
    at_least: float | None = None,
    at_most: float | None = None,
) -> Any:
    """Declares one field of an options dataclass, and so one flag.

    Args:
        help: What the flag does, as `--help` shows it.
        default: Its value when it is not given; without one it must be.
        choices: The only words it may be.
        at_least: The smallest number it may be.
        at_most: The largest.
    """
    metadata = {
        "help": help,
        "choices": choices,
        "at_least": at_least,
        "at_most": at_most,
    }
    return dataclasses.field(default=default, metadata=metadata)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Options:
    """Base of all options: checks every field against its declaration."""

    def __post_init__(self) -> None:
        """Raises `InputError` for the first field that is out of bounds."""
        for field in dataclasses.fields(self):
            _check(field.name, getattr(self, field.name), field.metadata)

    @classmethod
    def defaults_from_earlier_run(cls, given: dict[str, Any]) -> dict[str, Any]:
        """Returns values, from an earlier run, for flags that were not given.

        Args:
            given: The values of the flags that were.
        """
        return {}

    def to_json(self, command: str) -> str:
        """Returns the options as JSON text, to lie beside a run's results."""
        record = {"command": command, "options": dataclasses.asdict(self)}
        return json.dumps(record, indent=2) + "\n"


_Options = TypeVar("_Options", bound=Options)


def _check(name: str, value: Any, limits: Any) -> None:
    if value is None:
        return
    if limits["choices"] and value not in limits["choices"]:
        raise InputError(
            f"--{name} must be one of {', '.join(limits['choices'])}. "
            f"Received: {value!r}."
        )
    if isinstance(value, float) and not math.isfinite(value):
        raise InputError(f"--{name} must be finite. Received: {value!r}.")
    low, high = limits["at_least"], limits["at_most"]
    if low is not None and not value >= low:
        raise InputError(
            f"--{name} must be at least {low}. Received: {value!r}."
        )
    if high is not None and not value <= high:
        raise InputError(
            f"--{name} must be at most {high}. Received: {value!r}."
        )


def run(
    main: Callable[[_Options], object], options_class: type[_Options]
) -> None:
    """Runs a command: parses its flags, then calls `main` with its options.

    `InputError` ends it with the message alone and exit status 1, Ctrl-C with
    130, as a shell expects.
    """
    define_flags(options_class)
    logging.set_verbosity(logging.INFO)
    app.run(lambda argv: _call(main, options_class, argv))


_FULL_DISK = [os.strerror(code) for code in (errno.ENOSPC, errno.EDQUOT)]


def _call(
    main: Callable[[_Options], object],
    options_class: type[_Options],
    argv: list[str],
) -> None:
    name = os.path.basename(argv[0])
    status: str | int
    try:
        if len(argv) > 1:
            raise InputError(
                f"All arguments must be flags. Received: {argv[1]!r}. Write "
                "`--name=value`; a truth value is `--name` or `--name=false`."
            )
        main(options_from_flags(options_class))
        return
    except InputError as error:
        status = f"{name}: error: {error}"
    except Exception as error:
        # Whatever was being written, and whoever says so.
        if not any(reason in str(error) for reason in _FULL_DISK):
            raise
        status = (
            f"{name}: error: {short_reason(error)}. Make room, and run the "
            "command again."
        )
    except KeyboardInterrupt:
        print(f"\n{name}: interrupted", file=sys.stderr)
        status = 128 + signal.SIGINT
    # Not before the error is gone, and what its traceback holds: a pool of
    # threads that TensorFlow leaves there complains if Python ends first.
    sys.exit(status)


_DEFINE = {
    str: flags.DEFINE_string,
    int: flags.DEFINE_integer,
    float: flags.DEFINE_float,
    bool: flags.DEFINE_bool,
}


def define_flags(
    options_class: type[Any], flag_values: flags.FlagValues = flags.FLAGS
) -> None:
    """Defines one flag for every field of a dataclass."""
    field_types = typing.get_type_hints(options_class)
    for field in dataclasses.fields(options_class):
        required = field.default is dataclasses.MISSING
        define = _DEFINE[plain_type(field_types[field.name])]
        help = field.metadata["help"]
        if field.metadata["choices"]:
            help = f"<{'|'.join(field.metadata['choices'])}>: {help}"
        if required:
            help = f"{help}\n(required)"
        define(
            field.name,
            None if required else field.default,
            help,
            flag_values=flag_values,
            # `--help` lists what belongs to the running file.
            module_name=sys.argv[0],
        )


def plain_type(annotation: Any) -> type:
    """Returns `str` for `str | None`, and anything else as it is."""
    if isinstance(annotation, types.UnionType):
        return next(
            part
            for part in typing.get_args(annotation)
            if part is not types.NoneType
        )
    return typing.cast(type, annotation)


def options_from_flags(
    options_class: type[_Options],
    flag_values: flags.FlagValues = flags.FLAGS,
) -> _Options:
    """Returns a dataclass filled from the parsed flags of the same names.

    Raises:
        InputError: One that is required was not given.
    """
    fields = dataclasses.fields(options_class)
    defaults = {field.name: flag_values[field.name].value for field in fields}
    given = {n: v for n, v in defaults.items() if flag_values[n].present}
    values = {
        **defaults,
        **options_class.defaults_from_earlier_run(given),
        **given,
    }
    for field in fields:
        if field.default is dataclasses.MISSING and values[field.name] is None:
            raise InputError(
                f"--{field.name} must be given: {field.metadata['help']} "
                "--help lists all flags."
            )
    return options_class(**values)
