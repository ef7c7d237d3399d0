"""Declares flags: each field of an options class is a flag.

A command declares its options as a subclass of `Options`, a dataclass whose
fields are made with `option`. Options are plain values. Creating them checks
every value by itself; `main` calls `resolve`, which reads files, fills in what
is omitted, and checks the rest.
"""

import dataclasses
import functools
import math
import os
import re
import sys
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar

from official_bert.errors import InputError

if sys.version_info >= (3, 11):
    from typing import Self, dataclass_transform
else:
    Self = Any

    def dataclass_transform(**_: Any) -> Any:
        """Does nothing: only type checkers use the decorator."""
        return lambda cls: cls


# Headings of `--help`, in order. Options without a default come first.
REQUIRED, LEGACY = "Required", "Compatibility with the 2018 release"
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

# What commands do with an option, and the defaults. A field has other values as
# arguments of `option`, and a class for its fields as in
# `class DeviceOptions(Options, on_resume="free")`.
POLICY: dict[str, Any] = {
    # What happens if the value differs when a run resumes. "fixed": an error.
    # "if_steps_left": an error if no step is left to train. "free": nothing.
    # "input", the default of paths: nothing, because an input may move; it is
    # an error if --overwrite_output_dir would remove it.
    "on_resume": "fixed",
    # Whether another file makes another run. Its content is compared, not its
    # path, unless only one of the two runs sets the flag.
    "by_content": False,
    # Whether evaluation without training takes the value over from training.
    "inherited": True,
    # Whether a run of a sweep with another value is another run. False for
    # options that change at most rounding and dropout masks.
    "changes_results": True,
    # Whether --sweep can vary it.
    "in_sweep": True,
    # What to do on several hosts, which do not support it.
    "one_host": None,
    # Whether it works with a TF Hub module, whose graph is fixed.
    "with_module": True,
    # Whether --help lists it; --help=all lists all.
    "common": True,
    # The tasks that support it, by their losses or kinds, such as
    # "classification embedding"; "": all of them.
    "tasks": "",
}

# Policies that several options share. Of options that concern one command:
PER_COMMAND: dict[str, Any] = {"on_resume": "free", "inherited": False}
# Of options that say what a command does, such as --do_train:
ACTION: dict[str, Any] = {**PER_COMMAND, "in_sweep": False}
# Of options that change at most rounding and dropout masks:
NEUTRAL: dict[str, Any] = {"on_resume": "free", "changes_results": False}
# Of options that concern one command, and change at most rounding and masks:
EXECUTION: dict[str, Any] = PER_COMMAND | NEUTRAL

# What a value of each type is, for error messages.
VALUES = {
    str: "text",
    int: "an integer",
    float: "a number",
    bool: "true or false",
}

# Returns None for a valid value. Otherwise, returns the end of a sentence that
# starts with the flag, such as "must be ...".
Check = Callable[[Any], str | None]


def option(
    help: str,
    default: Any = dataclasses.MISSING,
    *,
    choices: Sequence[str] | None = None,
    at_least: float | None = None,
    between: tuple[float, float] | None = None,
    check: Check | None = None,
    needs: str = "",
    needed_by: str = "",
    conflicts: str = "",
    implied_by: str | None = None,
    num_bits: int = 31,
    is_path: bool = False,
    alias: str | None = None,
    heading: str | None = None,
    **policy: Any,
) -> Any:
    """Declares one option: a dataclass field and a flag of the same name.

    `Options` enforces the declaration. An option is *set* if it is required, or
    if its value is neither empty nor its default. An option that is given with
    its default value is not set.

    Args:
        help: The text in `--help`.
        default: The value if the flag is omitted; without it the flag is
            required.
        choices: The allowed values.
        at_least: The smallest allowed number.
        between: The smallest and the largest allowed number.
        check: Called with the value if the option is set; with `needed_by`,
            only if one of these options is set too.
        needs: Other options that must be set if this one is, separated by
            spaces, such as "teacher train_file".
        needed_by: Options that can be set only if this one is.
        conflicts: Options that cannot be set together with this one.
        implied_by: Another option that implies the value of this required one.
        num_bits: The number of bits of an integer, without its sign.
        is_path: Whether the value is a path, or several separated by commas.
            `~/` and `~USER/` at the start of a path are replaced.
        alias: Another name of the flag.
        heading: The heading in `--help` of this option and of the following
            ones in the class. Options with neither a default nor `implied_by`
            are under `REQUIRED`.
        **policy: Values that differ from `POLICY`.
    """
    metadata = dict(locals())
    for name in ("default", "policy"):
        del metadata[name]
    if is_path:
        policy.setdefault("on_resume", "input")
    metadata |= _checked(policy)
    return dataclasses.field(default=default, metadata=metadata)


def _checked(policy: dict[str, Any]) -> dict[str, Any]:
    if unknown := policy.keys() - POLICY.keys():
        raise TypeError(f"Unknown arguments of an option: {sorted(unknown)}")
    return policy


# Options with a common default or bound.
positive = functools.partial(option, at_least=1)
share = functools.partial(option, between=(0, 1))
optional = functools.partial(option, default=None)
switch = functools.partial(option, default=False)
text = functools.partial(option, default="")
path_option = functools.partial(option, is_path=True)
optional_path = functools.partial(path_option, default=None)


def non_negative(help: str, default: Any = 0, **others: Any) -> Any:
    """Declares an option for a number of at least 0, the default."""
    return option(help, default, at_least=0, **others)


def choice(help: str, choices: str, **others: Any) -> Any:
    """Declares an option for one of "a|b|c"; the first is the default."""
    names = choices.split("|")
    return option(help, names[0], choices=names, **others)


def is_for(field: dataclasses.Field[Any], *tasks: object) -> bool:
    """Whether a flag is for one of the tasks, by their losses or kinds."""
    supported = field.metadata["tasks"].split()
    return not supported or any(task in supported for task in tasks)


@dataclass_transform(frozen_default=True, kw_only_default=True)
@dataclasses.dataclass(frozen=True, kw_only=True, init=False)
class Options:
    """Base of all options classes.

    Calling a class, as in `RunSquad(output_dir="out", do_train=True)`, sets
    omitted options to their defaults, or to None if they are required. It
    checks each value, and which options exclude each other. `resolve` does
    everything else.

    A subclass needs no decorator: `__init_subclass__` makes it a frozen
    dataclass of the fields that it declares and inherits. It may be a mixin
    that groups related options under a heading, with a policy::

        class DeviceOptions(Options, heading="Devices", on_resume="free"):

    Attributes:
        command: The file name of the command, from the name of the class:
            `run_squad.py` for `RunSquad`.
        one_of: Options of which at least one must be set.
        given: The names of the options that have values other than None, even
            if these are the defaults.
        is_resolved: Whether `resolve` returned these options.
    """

    command: ClassVar[str]
    one_of: ClassVar[Sequence[str]] = ()
    given: ClassVar[frozenset[str]]  # Set per instance; not a field.
    is_resolved: ClassVar[bool] = False

    def __init_subclass__(cls, heading: str = "Data", **policy: Any) -> None:
        words = re.findall("[A-Z][a-z]+", cls.__name__)
        cls.command = "_".join(words).lower() + ".py"
        for field in vars(cls).values():
            if not isinstance(field, dataclasses.Field):
                continue
            declared = {**field.metadata}
            heading = declared["heading"] or heading
            has_default = field.default is not dataclasses.MISSING
            is_optional = has_default or declared["implied_by"]
            declared["heading"] = heading if is_optional else REQUIRED
            declared = {**POLICY, **_checked(policy), **declared}
            field.metadata = types.MappingProxyType(declared)
        dataclasses.dataclass(frozen=True, kw_only=True, init=False)(cls)

    def __init__(self, **values: Any) -> None:
        fields = self.fields()
        if unknown := values.keys() - fields.keys():
            raise TypeError(f"Unknown options: {', '.join(sorted(unknown))}")
        for name, field in fields.items():
            default = field.default
            default = None if default is dataclasses.MISSING else default
            value = values.get(name, default)
            if field.metadata["is_path"] and isinstance(value, str):
                value = ",".join(map(os.path.expanduser, value.split(",")))
            vars(self)[name] = value
        given = (name for name, value in values.items() if value is not None)
        vars(self)["given"] = frozenset(given)
        for name, field in fields.items():
            if message := _value_error(field, getattr(self, name)):
                raise self.error(name, message)
        for name, field in fields.items():
            for other in field.metadata["conflicts"].split():
                if self.is_set(name) and self.is_set(other):
                    flag = self.flag(other)
                    raise self.error(name, f"conflicts with {flag}. Omit one.")

    @classmethod
    def fields(cls) -> Mapping[str, dataclasses.Field[Any]]:
        """Returns {name: declaration} of all options."""
        return {field.name: field for field in dataclasses.fields(cls)}

    @classmethod
    def names(cls, **policy: Any) -> list[str]:
        """Returns the options with a policy, such as `on_resume="free"`."""
        return [
            name
            for name, field in cls.fields().items()
            if policy.items() <= field.metadata.items()
        ]

    def replace(self, **changes: Any) -> Self:
        """Returns options with some values changed; these count as given, too.

        If the options are resolved, all of their values count as given.
        """
        names = self.fields().keys() if self.is_resolved else self.given
        kept = {name: getattr(self, name) for name in names}
        return type(self)(**{**kept, **changes})

    def fill(self, values: Mapping[str, Any]) -> Self:
        """Returns options with values for those that are not given."""
        omitted = {n: v for n, v in values.items() if n not in self.given}
        return self.replace(**omitted)

    def resolve(self) -> Self:
        """Returns options whose values are complete, valid and usable.

        This reads files, and fills in what they and other options imply.
        Raises `InputError` if an option is missing or cannot be used.
        """
        if self.is_resolved:
            return self
        options = self.fill(self._implied())._complete()
        options._check()
        vars(options)["is_resolved"] = True
        return options

    def _implied(self) -> dict[str, Any]:
        """Returns {name: value} that given options imply for omitted ones."""
        return {}

    def _complete(self) -> Self:
        """Returns options with the values that files and options imply.

        Each class adds its own to those of `super()`.
        """
        return self

    def _check(self) -> None:
        """Raises `InputError` if options are missing or cannot be used."""
        for name, field in self.fields().items():
            is_required = field.default is dataclasses.MISSING
            if is_required and getattr(self, name) is None:
                raise self._missing(field)
            self._require_needed(field)
        if self.one_of and not any(map(self.is_set, self.one_of)):
            names = ", ".join(f"--{name}" for name in self.one_of)
            raise InputError(f"At least one of {names} must be given.")
        for name, field in self.fields().items():
            check = field.metadata["check"]
            needed_by = field.metadata["needed_by"].split()
            is_needed = not needed_by or any(map(self.is_set, needed_by))
            if check and is_needed and self.is_set(name):
                self.require(name, check)

    def is_set(self, name: str) -> bool:
        """Whether an option is required, or neither empty nor its default."""
        default = self.fields()[name].default
        is_required = default is dataclasses.MISSING
        return getattr(self, name) not in (None, "", default) or is_required

    def flag_name(self, name: str) -> str:
        """Returns the documented flag of an option: its alias, if any."""
        return f"--{self.fields()[name].metadata['alias'] or name}"

    def flag(self, name: str) -> str:
        """Returns an option with its value, as written on a command line."""
        value = getattr(self, name)
        flag = self.flag_name(name)
        if isinstance(value, bool):
            return flag if value else f"--no{name}"
        return flag if value is None else f"{flag}={value}"

    def flags(self) -> list[str]:
        """Returns the command line of these options: all that are not None."""
        names = self.fields()
        return [self.flag(n) for n in names if getattr(self, n) is not None]

    def error(self, name: str, message: str) -> InputError:
        """Returns the error for an option: "--NAME=VALUE MESSAGE"."""
        return InputError(f"{self.flag(name)} {message}")

    def require_unset(self, names: Iterable[str], message: str) -> None:
        """Raises `InputError` for the first of some options that is set."""
        for name in filter(self.is_set, names):
            raise self.error(name, message)

    def require(self, name: str, check: Check) -> None:
        """Raises `InputError` if `check` finds a fault in an option's value."""
        if message := check(getattr(self, name)):
            raise self.error(name, message)

    def _missing(self, field: dataclasses.Field[Any]) -> InputError:
        """Returns the error for a required option without a value."""
        implied_by = field.metadata["implied_by"]
        flag, hint = f"--{field.name}", "See --help."
        if implied_by and getattr(self, implied_by):
            hint = f"{self.flag(implied_by)} has none."
        elif implied_by:
            flag = f"--{implied_by} or {flag}"
            field = self.fields()[implied_by]
        text = field.metadata["help"]
        if choices := field.metadata["choices"]:
            text += f" One of {', '.join(choices)}."
        return InputError(f"{flag} is required: {text} {hint}")

    def _require_needed(self, field: dataclasses.Field[Any]) -> None:
        """Raises `InputError` if an option is set, but not one it needs."""
        name, declared = field.name, field.metadata
        needs = [(name, needed) for needed in declared["needs"].split()]
        needs += [(other, name) for other in declared["needed_by"].split()]
        for dependent, needed in needs:
            if self.is_set(dependent) and not self.is_set(needed):
                message = (
                    f"needs {self.flag_name(needed)}. Add it, or omit "
                    f"{self.flag_name(dependent)}."
                )
                raise self.error(dependent, message)


def _value_error(field: dataclasses.Field[Any], value: Any) -> str | None:
    """Returns what is wrong with a value, by its option's declaration."""
    declared, kind = field.metadata, plain_type(field.type)
    choices, between = declared["choices"], declared["between"]
    at_least, num_bits = declared["at_least"], declared["num_bits"]
    if value is None:
        return None
    is_number = kind is float and type(value) is int
    if type(value) is not kind and not is_number:
        return f"must be {VALUES[kind]}, not {type(value).__name__}."
    if isinstance(value, str) and "\0" in value:
        return "must not contain a null character."
    if declared["is_path"] and re.search(r"(^|,)~[^,]*/", value):
        return (
            "starts with the home directory of an unknown user. Check the "
            "name or, for a directory whose name starts with ~, write ./~NAME."
        )
    if choices and value not in choices:
        return f"must be one of {', '.join(choices)}."
    if isinstance(value, float) and not math.isfinite(value):
        return "must be finite."
    if at_least is not None and value < at_least:
        return f"must be at least {at_least}."
    if isinstance(value, int) and abs(value) >= 2**num_bits:
        return f"must be below 2**{num_bits}."
    if between is not None and not between[0] <= value <= between[1]:
        return f"must be between {between[0]} and {between[1]}."
    return None


def plain_type(annotation: Any) -> type:
    """Returns `str` for `str | None`, and other types unchanged."""
    arguments = typing.get_args(annotation)
    return arguments[0] if arguments else annotation
