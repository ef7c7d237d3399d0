"""Command-line flags from dataclasses: each field of an options class is one.

A command declares its options as a subclass of `Options` whose fields are made
with `option`, and ends with::

    if __name__ == "__main__":
        cli.run(main, RunSquad)

Tests and other code call `main(RunSquad(...))`; no code below `main` reads a
flag.
"""

import contextlib
import dataclasses
import difflib
import errno
import functools
import inspect
import json
import logging as stdlib_logging
import math
import os
import signal
import sys
import typing
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar, TypeVar

from absl import app, flags, logging

from official_bert.errors import InputError, quoted, short_reason

if sys.version_info >= (3, 11):
    from typing import dataclass_transform
else:

    def dataclass_transform(**_: Any) -> Any:
        """Does nothing: only type checkers use the decorator."""
        return lambda cls: cls


# Keras imports these if they are installed: a third of all import time.
_UNUSED_BY_KERAS = {"matplotlib", "sklearn"}

# Headings of `--help`, in order. Options without a default come first.
REQUIRED, LEGACY = "Required", "Compatibility with 2018"
HEADINGS = (
    REQUIRED,
    "Model",
    "Data",
    "Training",
    "Evaluation",
    "Prediction and export",
    "Devices",
    LEGACY,
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
    instead: str | None = None,
    alias: str | None = None,
    heading: str | None = None,
) -> Any:
    """Declares one option: a dataclass field and a flag of the same name.

    `Options` enforces the declaration. An option is *set* if it is required, or
    if its value is neither empty nor its default.

    Args:
        help: The text in `--help`.
        default: The value if the flag is omitted; without it the flag is
            required.
        choices: The allowed values.
        at_least: The smallest allowed number.
        between: The smallest and the largest allowed number.
        check: Called with the value if the option is set; with `needed_by`,
            only if one of these options is set too.
        needs: Another option that must be set if this one is.
        needed_by: Options that can be set only if this one is.
        conflicts: Options that cannot be set together with this one.
        instead: Another option that implies the value of this required one.
        alias: Another name of the flag.
        heading: The heading in `--help` of this option and of the following
            ones in the class.
    """
    metadata = dict(locals())
    del metadata["default"]
    return dataclasses.field(default=default, metadata=metadata)


count = functools.partial(option, at_least=1)
amount = functools.partial(option, at_least=0)
share = functools.partial(option, between=(0, 1))
optional = functools.partial(option, default=None)
switch = functools.partial(option, default=False)


def choice(help: str, choices: str, **others: Any) -> Any:
    """Declares an option for one of "a|b|c"; the first is the default."""
    names = choices.split("|")
    return option(help, names[0], choices=names, **others)


@dataclass_transform(frozen_default=True, kw_only_default=True)
@dataclasses.dataclass(frozen=True, kw_only=True)
class Options:
    """Base of all options classes: checks fields against their declarations.

    A subclass needs no decorator: `__init_subclass__` makes it a frozen
    dataclass of the fields that it declares and inherits. `run` defines a flag
    for each field, and creates an instance from the values of the flags.

    A subclass may be a mixin that groups related options under a heading::

        class DeviceOptions(cli.Options, heading="Devices"):

    Attributes:
        heading: The heading of the first options of the class.
        headings: {option: heading}, of all options; see `heading_of`.
            Redeclared options keep theirs.
        one_of: Options of which at least one must be set.
        common: The options that `--help` lists, separated by spaces; empty:
            all. `--help=all` lists all.
    """

    heading: ClassVar[str] = "Data"
    headings: ClassVar[dict[str, str]] = {}
    one_of: ClassVar[Sequence[str]] = ()
    common: ClassVar[str] = ""

    def __init_subclass__(cls, heading: str | None = None) -> None:
        dataclasses.dataclass(frozen=True, kw_only=True)(cls)
        cls.heading = current = heading or cls.heading
        cls.headings = {}
        for base in reversed(cls.__mro__[1:]):
            cls.headings |= getattr(base, "headings", {})
        for field in dataclasses.fields(cls):
            if field.name in inspect.get_annotations(cls):
                own = field.metadata["heading"]
                current = own or current
                cls.headings[field.name] = own or cls.headings.get(
                    field.name, current
                )

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

    @classmethod
    def heading_of(cls, field: dataclasses.Field[Any]) -> str:
        """Returns the heading of an option in `--help`."""
        is_required = field.default is dataclasses.MISSING
        if is_required and not field.metadata["instead"]:
            return REQUIRED
        return cls.headings[field.name]

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

    def column_flags(self) -> dict[Any, str]:
        """Returns {column: its flag} for the flags that name columns."""
        columns = {}
        for field in dataclasses.fields(self):
            if field.name.endswith("_column"):
                flag = field.metadata["alias"] or field.name
                columns[getattr(self, field.name)] = f"--{flag}"
        return columns

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
    def complete(cls, given: dict[str, Any]) -> dict[str, Any]:
        """Returns `given`, {flag: value}, with the values that it implies."""
        return given

    @classmethod
    def require_types(cls, values: dict[str, Any], path: str) -> None:
        """Raises `InputError` if the flag of a value cannot have its type.

        `values` are {option: value}, from the file at `path`.
        """
        field_types = typing.get_type_hints(cls)
        for name, value in values.items():
            annotation = field_types[name]
            allowed = typing.get_args(annotation) or (annotation,)
            if type(value) not in allowed and not (
                type(value) is int and float in allowed
            ):
                kind = plain_type(annotation).__name__
                raise InputError(
                    f"{path}: `{name}` must be a {kind}. Received: "
                    f"{quoted(value)}. Restore the file, or give --{name}."
                )

    def to_json(self, command: str) -> str:
        """Returns JSON text of the options, to be kept with a run's results."""
        record = {"command": command, "options": dataclasses.asdict(self)}
        return json.dumps(record, indent=2) + "\n"


_Options = TypeVar("_Options", bound=Options)

# Flags, and other programs' names for them that are spelled differently.
_OTHER_NAMES = {
    "model": "model_name_or_path bert_model",
    "train_file": "data dataset dataset_name",
    "dev_file": "validation_file",
    "data_dir": "data dataset",
    "do_lower_case": "uncased",
    "train_batch_size": "batch_size per_device_train_batch_size",
    "learning_rate": "lr",
    "num_train_epochs": "epochs max_steps",
    "warmup_proportion": "warmup_steps warmup",
    "num_train_steps": "max_steps steps epochs",
    "keep_checkpoint_max": "save_total_limit",
    "eval_every": "eval_steps",
    "mixed_precision": "fp16 bf16",
}


def _value_error(field: dataclasses.Field[Any], value: Any) -> str | None:
    """Returns what is wrong with a value, by its option's declaration."""
    choices, between = field.metadata["choices"], field.metadata["between"]
    at_least = field.metadata["at_least"]
    if value is None:
        return None
    if isinstance(value, str) and "\0" in value:
        return "must not contain a null character."
    if choices and value not in choices:
        return f"must be one of {', '.join(choices)}."
    if isinstance(value, float) and not math.isfinite(value):
        return "must be finite."
    if at_least is not None and value < at_least:
        return f"must be at least {at_least}."
    # Models and records have 32-bit sizes. Seeds may be longer.
    num_bits = 63 if at_least is None else 31
    if isinstance(value, int) and abs(value) >= 2**num_bits:
        return f"must be below 2**{num_bits}."
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
    for name in ("help", "helpfull"):
        delattr(flags.FLAGS, name)
    help_flag = flags.BooleanFlag("help", False, "show help", short_name="h")
    help_flag.parser = _HelpParser()
    flags.DEFINE_flag(help_flag)
    flags.DEFINE_bool("helpfull", False, "the same as --help=all")
    flags.DEFINE_bool("verbose", False, "show TensorFlow's own log lines")
    logging.set_verbosity(logging.INFO)
    app.run(
        lambda argv: _call(main, options_class, argv),
        flags_parser=lambda argv: _parse(options_class, argv),
    )


class _HelpParser(flags.BooleanParser):
    """Accepts `--help=all`."""

    def parse(self, argument: Any) -> Any:
        """Returns "all", or the boolean."""
        return argument if argument == "all" else super().parse(argument)


@contextlib.contextmanager
def quiet_imports() -> Iterator[None]:
    """Discards the lines that TensorFlow writes to stderr when it is imported.

    No setting of TensorFlow hides them. They are shown with --verbose,
    if the user set TF_CPP_MIN_LOG_LEVEL, and outside `run`. Also hides packages
    that Keras would import for functions that no command uses.
    """
    if os.environ.get(_LOG_LEVEL) != _NO_LINES:
        yield
        return
    sys.stderr.flush()
    hidden: Any = dict.fromkeys(_UNUSED_BY_KERAS - sys.modules.keys())
    with open(os.devnull, "w") as null, os.fdopen(os.dup(2), "w") as saved:
        os.dup2(null.fileno(), 2)
        sys.modules.update(hidden)  # Importing them raises ImportError.
        try:
            yield
        finally:
            os.dup2(saved.fileno(), 2)
            for name in hidden:
                del sys.modules[name]


def _parse(options_class: type[Options], argv: list[str]) -> list[str]:
    """Parses the flags; ends the process if one is unknown or invalid."""
    try:
        return flags.FLAGS(argv)
    except flags.UnrecognizedFlagError as error:
        names = [field.name for field in dataclasses.fields(options_class)]
        message = unknown_flag(error.flagname, names)
    except flags.Error as error:
        message = f"{error}. See --help=all for all flags."
    sys.exit(f"{os.path.basename(argv[0])}: error: {message}")


def unknown_flag(name: str, names: Sequence[str]) -> str:
    """Returns the message for a flag that is none of `names`."""
    plain = name.replace("-", "_")
    near = [n for n in names if plain in _OTHER_NAMES.get(n, "").split()]
    near = near or difflib.get_close_matches(plain, names, n=1)
    flags_meant = " or ".join(f"--{n}" for n in near)
    hint = f" Did you mean {flags_meant}?" if near else ""
    return f"There is no flag --{name}.{hint} See --help=all for all flags."


# TensorFlow's variable for the lowest level that it logs, and a level above all
# lines that do not end the process.
_LOG_LEVEL, _NO_LINES = "TF_CPP_MIN_LOG_LEVEL", "3"

_DISK_FULL = [os.strerror(code) for code in (errno.ENOSPC, errno.EDQUOT)]


def _call(
    main: Callable[[_Options], object],
    options_class: type[_Options],
    argv: list[str],
) -> None:
    name = os.path.basename(argv[0])
    status: str | int
    try:
        if flags.FLAGS.help or flags.FLAGS.helpfull:
            print((sys.modules["__main__"].__doc__ or "").rstrip())
            is_full = flags.FLAGS.help == "all" or flags.FLAGS.helpfull
            shows_all = is_full or not options_class.common
            print("\n".join(_help_lines(options_class, shows_all)))
            if not shows_all:
                print("\n--help=all lists all flags.")
            print("--flagfile=FILE reads flags from a file.")
            return
        if len(argv) > 1:
            raise InputError(
                f"{argv[1]!r} is not a flag. Write --name=value, or for a "
                "boolean --name or --name=false."
            )
        if not flags.FLAGS.verbose:
            os.environ.setdefault(_LOG_LEVEL, _NO_LINES)
            # Python's part of TensorFlow warns of retracing.
            stdlib_logging.getLogger("tensorflow").setLevel("ERROR")
        options = options_from_flags(options_class)
        main(options)
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
        if alias := field.metadata["alias"]:
            flags.DEFINE_alias(alias, field.name, flag_values, sys.argv[0])


def plain_type(annotation: Any) -> type:
    """Returns `str` for `str | None`, and other types unchanged."""
    arguments = typing.get_args(annotation)
    return arguments[0] if arguments else annotation


def options_from_flags(
    options_class: type[_Options], flag_values: flags.FlagValues = flags.FLAGS
) -> _Options:
    """Returns the parsed flags as options, or raises `InputError`."""
    fields = dataclasses.fields(options_class)
    values = {field.name: flag_values[field.name].value for field in fields}
    given = {n: v for n, v in values.items() if flag_values[n].present}
    values |= options_class.complete(given)
    for field in fields:
        if field.default is dataclasses.MISSING and values[field.name] is None:
            instead = field.metadata["instead"]
            flag, hint = f"--{field.name}", "See --help=all for all flags."
            if instead in given:
                hint = f"--{instead}={given[instead]} has none."
            elif instead:
                flag = f"--{instead} or {flag}"
            raise InputError(
                f"{flag} is required: {field.metadata['help']} {hint}"
            )
    return options_class(**values)


def _help_lines(options_class: type[Options], shows_all: bool) -> Iterator[str]:
    """Yields the descriptions of the flags under their headings."""
    common = options_class.common.split()
    parts: dict[str, list[str]] = {heading: [] for heading in HEADINGS}
    for field in dataclasses.fields(options_class):
        flag, choices = flags.FLAGS[field.name], field.metadata["choices"]
        is_required = field.default is dataclasses.MISSING
        if not (shows_all or is_required or flag.name in common):
            continue
        text = f"--{'[no]' if flag.boolean else ''}{flag.name}: "
        if alias := field.metadata["alias"]:
            text = f"--{alias}, {text}"
        if choices:
            text += f"<{' | '.join(choices)}>: "
        text += flag.help
        if flag.default not in (None, "", False):
            text += f" (default: {flag.default})"
        text = flags.text_wrap(text, indent="    ", firstline_indent="  ")
        parts[options_class.heading_of(field)].append(text)
    for heading, texts in parts.items():
        if texts:
            yield f"\n{heading}:"
            yield from texts
