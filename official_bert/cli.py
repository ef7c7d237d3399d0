"""Command-line flags from dataclasses: each field of an options class is one.

A command declares its options as a frozen dataclass whose fields are made with
`option`, and ends with::

    if __name__ == "__main__":
        cli.run(main, RunSquad)

Flags are defined only when a command runs as a program. Tests and other code
call `main(RunSquad(...))`; no code below `main` reads a flag.
"""

import dataclasses
import errno
import inspect
import json
import math
import os
import signal
import sys
import types
import typing
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar, TypeVar

from absl import app, flags, logging

from official_bert.errors import InputError, short_reason

# Headings of `--help`, in order. Options without a default come first.
REQUIRED, COMPATIBILITY = "Required", "Compatibility with 2018"
HEADINGS = (
    REQUIRED,
    "Model",
    "Data",
    "Training",
    "Evaluation",
    "Prediction and export",
    "Devices",
    COMPATIBILITY,
)

# Returns what is wrong with a value, as the end of a sentence that starts with
# the flag ("must be ..."), or None.
Check = Callable[[Any], str | None]


def option(
    help: str,
    default: Any = dataclasses.MISSING,
    *,
    choices: Sequence[str] | None = None,
    at_least: float | None = None,
    between: tuple[float, float] | None = None,
    check: Check | None = None,
    needs: str | None = None,
    needed_by: Sequence[str] = (),
    conflicts: Sequence[str] = (),
    heading: str | None = None,
) -> Any:
    """Declares one option: a dataclass field and a flag of the same name.

    `Options` enforces what is declared here. An option is *set* if it is
    required, or if its value is neither empty nor its default.

    Args:
        help: The text in `--help`.
        default: The value if the flag is omitted; without it the flag is
            required.
        choices: The allowed values.
        at_least: The smallest allowed number.
        between: The smallest and the largest allowed number.
        check: Called with the value if the option is set and, with `needed_by`,
            needed.
        needs: Another option that must be set if this one is.
        needed_by: Options that can be set only if this one is.
        conflicts: Options that cannot be set together with this one.
        heading: Starts a new group: the heading in `--help` of this option and
            of those that follow in the class.
    """
    metadata = dict(locals())
    del metadata["default"]
    return dataclasses.field(default=default, metadata=metadata)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Options:
    """Base of all options classes: checks fields against their declarations.

    Subclasses may be mixins that group related options under a heading::

        class DeviceOptions(cli.Options, heading="Devices"):

    Attributes:
        heading: The heading of the first options of the class.
        one_of: Options of which at least one must be set.
    """

    heading: ClassVar[str] = "Data"
    one_of: ClassVar[Sequence[str]] = ()

    def __init_subclass__(cls, heading: str | None = None) -> None:
        cls.heading = heading or cls.heading

    def __post_init__(self) -> None:
        fields = dataclasses.fields(self)
        for field in fields:
            if message := _value_error(field, getattr(self, field.name)):
                raise self.error(field.name, message)
        for field in fields:
            self._check_combinations(field)
        if self.one_of and not any(map(self.is_set, self.one_of)):
            names = ", ".join(f"--{name}" for name in self.one_of)
            raise InputError(f"At least one of {names} must be given.")
        for field in fields:
            check = field.metadata["check"]
            needed_by = field.metadata["needed_by"]
            is_needed = not needed_by or any(map(self.is_set, needed_by))
            if check and is_needed and self.is_set(field.name):
                self.require(field.name, check)

    def is_set(self, name: str) -> bool:
        """Whether an option is required, or neither empty nor its default."""
        default = self.__dataclass_fields__[name].default
        is_required = default is dataclasses.MISSING
        return is_required or getattr(self, name) not in (None, "", default)

    def flag(self, name: str) -> str:
        """Returns an option as it is written on a command line."""
        value = getattr(self, name)
        if isinstance(value, bool):
            return f"--{name}" if value else f"--no{name}"
        return f"--{name}" if value is None else f"--{name}={value}"

    def error(self, name: str, message: str) -> InputError:
        """Returns the error for an option: "--NAME=VALUE MESSAGE"."""
        return InputError(f"{self.flag(name)} {message}")

    def require(self, name: str, check: Check) -> None:
        """Raises `InputError` if `check` finds a fault in an option's value."""
        if message := check(getattr(self, name)):
            raise self.error(name, message)

    def _check_combinations(self, field: dataclasses.Field[Any]) -> None:
        name, declared = field.name, field.metadata
        needs = [(name, declared["needs"])] if declared["needs"] else []
        needs += [(other, name) for other in declared["needed_by"]]
        for one, other in needs:
            if self.is_set(one) and not self.is_set(other):
                message = f"needs --{other}. Add it, or omit --{one}."
                raise self.error(one, message)
        for other in declared["conflicts"]:
            if self.is_set(name) and self.is_set(other):
                flag = self.flag(other)
                raise self.error(name, f"conflicts with {flag}. Omit one.")

    @classmethod
    def defaults_from_earlier_run(cls, given: dict[str, Any]) -> dict[str, Any]:
        """Returns values from an earlier run for flags that are not `given`."""
        return {}

    def to_json(self, command: str) -> str:
        """Returns JSON text of the options, to be kept with a run's results."""
        record = {"command": command, "options": dataclasses.asdict(self)}
        return json.dumps(record, indent=2) + "\n"


_Options = TypeVar("_Options", bound=Options)


def _value_error(field: dataclasses.Field[Any], value: Any) -> str | None:
    """Compares a value with the choices and bounds of its option."""
    if value is None:
        return None
    declared = field.metadata
    choices, between = declared["choices"], declared["between"]
    at_least = declared["at_least"]
    if choices and value not in choices:
        return f"must be one of {', '.join(choices)}."
    if isinstance(value, float) and not math.isfinite(value):
        return "must be finite."
    if at_least is not None and value < at_least:
        return f"must be at least {at_least}."
    if between is not None and not between[0] <= value <= between[1]:
        return f"must be between {between[0]} and {between[1]}."
    return None


def run(
    main: Callable[[_Options], object], options_class: type[_Options]
) -> None:
    """Runs a command: parses its flags, then calls `main` with its options.

    An `InputError` ends the process with its message and status 1, Ctrl-C with
    status 130.
    """
    # TensorFlow reads this when it is imported. By default it leaves oneDNN off
    # on processors without AVX-512, where oneDNN is 1.2 to 1.6 times as fast.
    os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")
    define_flags(options_class)
    app.define_help_flags()
    delattr(flags.FLAGS, "help")
    flags.DEFINE_flag(_HelpFlag(options_class))
    logging.set_verbosity(logging.INFO)
    app.run(lambda argv: _call(main, options_class, argv))


_DISK_FULL = [os.strerror(code) for code in (errno.ENOSPC, errno.EDQUOT)]


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
                f"{argv[1]!r} is not a flag. Write --name=value, or for a "
                "boolean --name or --name=false."
            )
        main(options_from_flags(options_class))
        return
    except InputError as error:
        status = f"{name}: error: {error}"
    except Exception as error:
        # Python and TensorFlow raise different exceptions for a full disk.
        if not any(reason in str(error) for reason in _DISK_FULL):
            raise
        reason = short_reason(error)
        status = f"{name}: error: {reason}. Free some space and run it again."
    except KeyboardInterrupt:
        print(f"\n{name}: interrupted", file=sys.stderr)
        status = 128 + signal.SIGINT
    # Exit outside `except`: a traceback would keep objects alive until Python
    # shuts down, and TensorFlow's thread pools complain about that.
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
    """Defines one flag for every field of an options class."""
    field_types = typing.get_type_hints(options_class)
    for field in dataclasses.fields(options_class):
        is_required = field.default is dataclasses.MISSING
        _DEFINE[plain_type(field_types[field.name])](
            field.name,
            None if is_required else field.default,
            field.metadata["help"],
            flag_values=flag_values,
            module_name=sys.argv[0],
        )


def plain_type(annotation: Any) -> type:
    """Returns `str` for `str | None`, and other types unchanged."""
    if isinstance(annotation, types.UnionType):
        annotation, _ = typing.get_args(annotation)
    return typing.cast(type, annotation)


def options_from_flags(
    options_class: type[_Options], flag_values: flags.FlagValues = flags.FLAGS
) -> _Options:
    """Returns the parsed flags as options, or raises `InputError`."""
    fields = dataclasses.fields(options_class)
    values = {field.name: flag_values[field.name].value for field in fields}
    given = {n: v for n, v in values.items() if flag_values[n].present}
    values |= options_class.defaults_from_earlier_run(given) | given
    for field in fields:
        if field.default is dataclasses.MISSING and values[field.name] is None:
            raise InputError(
                f"--{field.name} is required: {field.metadata['help']} "
                "See --help for all flags."
            )
    return options_class(**values)


class _HelpFlag(flags.BooleanFlag):
    """`--help` and `-h`: print the flags under their headings, and exit."""

    def __init__(self, options_class: type[Options]) -> None:
        super().__init__("help", False, "show this help", short_name="h")
        self._options_class = options_class

    def parse(self, argument: Any) -> None:
        if self._parse(argument):
            print(sys.modules["__main__"].__doc__)
            print("\n".join(_help_lines(self._options_class)))
            print("\n--helpfull also lists the flags of the logging library.")
            sys.exit(0)


def _help_lines(options_class: type[Options]) -> Iterator[str]:
    headings = find_headings(options_class)
    for heading in HEADINGS:
        if heading in headings.values():
            yield f"\n{heading}:"
        for field in dataclasses.fields(options_class):
            if headings[field.name] == heading:
                yield _flag_help(field)


def find_headings(options_class: type[Options]) -> dict[str, str]:
    """Returns {option: heading in `--help`}; redeclared options keep theirs."""
    found: dict[str, str] = {}
    for base in reversed(options_class.__mro__):
        if not issubclass(base, Options):
            continue
        current = base.heading
        declared = inspect.get_annotations(base)
        for field in dataclasses.fields(base):
            if field.name in declared:
                current = field.metadata["heading"] or current
                old = found.get(field.name, current)
                found[field.name] = field.metadata["heading"] or old
    for field in dataclasses.fields(options_class):
        if field.default is dataclasses.MISSING:
            found[field.name] = REQUIRED
    return found


def _flag_help(field: dataclasses.Field[Any]) -> str:
    flag = flags.FLAGS[field.name]
    text = f"--{'[no]' if flag.boolean else ''}{flag.name}: "
    if field.metadata["choices"]:
        text += f"<{'|'.join(field.metadata['choices'])}>: "
    text = flags.text_wrap(
        text + flag.help, indent="    ", firstline_indent="  "
    )
    if flag.default_as_str:
        text += f"\n    (default: {flag.default_as_str})"
    return text
