"""Declares flags: each field of an options class is a flag.

A command declares its options as a subclass of `Options`, a dataclass whose
fields are made with `option`. Values are checked when the options are created:
by `cli.run`, from the command line, or by other code.
"""

import dataclasses
import functools
import math
import re
import sys
import types
import typing
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from official_bert.errors import InputError

if sys.version_info >= (3, 11):
    from typing import dataclass_transform
else:

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
    # "if_steps_left": an error if no step is left to train. "input": nothing,
    # because it names an input, which may move; it is an error if
    # --overwrite_output_dir would remove it. "free": nothing.
    "on_resume": "fixed",
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
    needs: str | None = None,
    needed_by: Sequence[str] = (),
    conflicts: Sequence[str] = (),
    implied_by: str | None = None,
    num_bits: int = 31,
    alias: str | None = None,
    heading: str | None = None,
    **policy: Any,
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
        implied_by: Another option that implies the value of this required one.
        num_bits: The number of bits of an integer, without its sign.
        alias: Another name of the flag.
        heading: The heading in `--help` of this option and of the following
            ones in the class. Options with neither a default nor `implied_by`
            are under `REQUIRED`.
        **policy: Values that differ from `POLICY`.
    """
    metadata = dict(locals())
    for name in ("default", "policy"):
        del metadata[name]
    metadata |= _checked(policy)
    return dataclasses.field(default=default, metadata=metadata)


def _checked(policy: dict[str, Any]) -> dict[str, Any]:
    if unknown := policy.keys() - POLICY.keys():
        raise TypeError(f"Unknown arguments of an option: {sorted(unknown)}")
    return policy


# Options with a common default or bound.
positive = functools.partial(option, at_least=1)
non_negative = functools.partial(option, at_least=0)
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
    dataclass of the fields that it declares and inherits. It may be a mixin
    that groups related options under a heading, with a policy::

        class DeviceOptions(Options, heading="Devices", on_resume="free"):

    Attributes:
        command: The file name of the command, from the name of the class:
            `run_squad.py` for `RunSquad`.
        one_of: Options of which at least one must be set.
    """

    command: ClassVar[str]
    one_of: ClassVar[Sequence[str]] = ()

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
        dataclasses.dataclass(frozen=True, kw_only=True)(cls)

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
    def names(cls, **policy: Any) -> list[str]:
        """Returns the options with a policy, such as `on_resume="free"`."""
        return [
            field.name
            for field in dataclasses.fields(cls)
            if policy.items() <= field.metadata.items()
        ]

    def is_set(self, name: str) -> bool:
        """Whether an option is required, or neither empty nor its default."""
        default = self.__dataclass_fields__[name].default
        is_required = default is dataclasses.MISSING
        return is_required or getattr(self, name) not in (None, "", default)

    def flag_name(self, name: str) -> str:
        """Returns the documented flag of an option: its alias, if any."""
        alias = self.__dataclass_fields__[name].metadata["alias"]
        return f"--{alias or name}"

    def flag(self, name: str) -> str:
        """Returns an option with its value, as written on a command line."""
        value = getattr(self, name)
        flag = self.flag_name(name)
        if isinstance(value, bool):
            return flag if value else f"--no{name}"
        return flag if value is None else f"{flag}={value}"

    def flags(self) -> list[str]:
        """Returns the command line of these options: all that are not None."""
        names = [field.name for field in dataclasses.fields(self)]
        return [self.flag(n) for n in names if getattr(self, n) is not None]

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
        for dependent, needed in needs:
            if self.is_set(dependent) and not self.is_set(needed):
                message = (
                    f"needs {self.flag_name(needed)}. Add it, or omit "
                    f"{self.flag_name(dependent)}."
                )
                raise self.error(dependent, message)
        for other in declared["conflicts"]:
            if self.is_set(name) and self.is_set(other):
                flag = self.flag(other)
                raise self.error(name, f"conflicts with {flag}. Omit one.")

    @classmethod
    def complete(cls, given: dict[str, Any]) -> dict[str, Any]:
        """Returns the `given` flags, {name: value}, and those they imply."""
        return given


def _value_error(field: dataclasses.Field[Any], value: Any) -> str | None:
    """Returns what is wrong with a value, by its option's declaration."""
    choices, between = field.metadata["choices"], field.metadata["between"]
    at_least, num_bits = field.metadata["at_least"], field.metadata["num_bits"]
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
    if isinstance(value, int) and abs(value) >= 2**num_bits:
        return f"must be below 2**{num_bits}."
    if between is not None and not between[0] <= value <= between[1]:
        return f"must be between {between[0]} and {between[1]}."
    return None


def plain_type(annotation: Any) -> type:
    """Returns `str` for `str | None`, and other types unchanged."""
    arguments = typing.get_args(annotation)
    return arguments[0] if arguments else annotation
