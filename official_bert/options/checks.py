"""Checks that several commands make of their options."""

import importlib.util
import os
import re
from collections.abc import Iterable

from official_bert import files
from official_bert.errors import InputError

_OF_A_CHECKPOINT = re.compile(
    r"checkpoint|.+\.(index|meta|resume\.json|data-\d+-of-\d+)"
)


def check_outputs(
    flags: str, outputs: Iterable[str], inputs: Iterable[str]
) -> None:
    """Raises `InputError` unless all outputs can be written, each once."""
    taken = {os.path.realpath(name) for name in inputs}
    for output in outputs:
        if not os.path.basename(output):
            raise InputError(
                f"{flags} must name files. Received: {output!r}, which is a "
                "folder. Add a name."
            )
        if _OF_A_CHECKPOINT.fullmatch(os.path.basename(output)):
            raise InputError(
                f"{flags} must not have the name of a checkpoint's file, to "
                f"replace none. Received: {output!r}. Choose another name."
            )
        if os.path.realpath(output) in taken:
            raise InputError(
                f"{flags} must name each file once, and no input. "
                f"Received: {output!r}. Rename it."
            )
        taken.add(os.path.realpath(output))
        files.require_writable_file(output)


def require_checkpoint(prefix: str) -> None:
    """Raises `InputError` unless `prefix` is a TF1 checkpoint's, or a run's."""
    its_list = os.path.join(prefix, "checkpoint")
    if not files.exists(prefix + ".index") and not files.exists(its_list):
        raise InputError(
            "--init_checkpoint must name a TF1 checkpoint, whose files are "
            f"called NAME.index and NAME.data-*. Received: {prefix!r}, and "
            f"there is no {prefix + '.index'!r}. Check the path, and give it "
            "without what follows NAME. A run's output folder stands for its "
            "newest."
        )


def require_pattern(name: str, pattern: str) -> None:
    """Raises `InputError` unless a flag's value is a regular expression."""
    try:
        re.compile(pattern)
    except re.error as error:
        raise InputError(
            f"--{name} must be a regular expression. Received: {pattern!r} "
            f"({error})."
        ) from error


def require_package(flag: str, package: str) -> None:
    """Raises `InputError` unless a package that a flag needs is installed."""
    if importlib.util.find_spec(package) is None:
        raise InputError(
            f"{flag} needs {package}. Received: an environment without it. "
            "Run the command where requirements.txt is installed."
        )
