"""Checks of option values that several commands share.

Functions for `option(check=...)` return what is wrong with a value, or None.
"""

import contextlib
import functools
import os
import re
from collections.abc import Callable, Iterable, Sequence

from official_bert.errors import listed, missing_package
from official_bert.io import files
from official_bert.options.flags import Check, Options, path_option, text
from official_bert.runs import file_names
from official_bert.runs.directory import RunDirectory
from official_bert.sources import formats

_INDEX = file_names.INDEX

_CHECKPOINT_FILE = re.compile(
    r"checkpoint|.+\.(index|meta|resume\.json|data-\d+-of-\d+)"
)


def label_numbers(value: str) -> list[tuple[str, float]]:
    """Returns the labels and numbers in "LABEL=NUMBER,..."; labels may repeat.

    Labels may contain commas and equals signs. Returns [] for other values.
    """
    parts = re.findall("(.+?)=([^=,]+)(?:,|$)", value)
    with contextlib.suppress(ValueError):
        pairs = [(label, float(number)) for label, number in parts]
        if ",".join(f"{a}={b}" for a, b in parts) == value:
            return pairs
    return []


def parsed_by(parse: Callable[[str], object], what: str = "") -> Check:
    """Accepts values that a function can parse: `what`, such as "a number".

    Without `what`, the message of its `ValueError` ends a sentence.
    """

    def check(value: str) -> str | None:
        try:
            parse(value)
        except (ValueError, re.error) as error:
            return f"must be {what}: {error}." if what else str(error)
        return None

    return check


def existing_file(path: str) -> str | None:
    """Accepts the path of a file, local or remote."""
    if files.is_file(path):
        return None
    return "must be an existing file. Check the path."


def seekable_file(path: str) -> str | None:
    """Accepts the path of a file that can be read more than once."""
    is_stored = os.path.isfile(path) or os.path.isdir(path)
    if os.path.exists(path) and not is_stored:
        return "must be a file: a pipe can be read only once. Save it first."
    return existing_file(path)


def existing_files(patterns: str) -> str | None:
    """Accepts comma-separated files, and glob patterns that match files."""
    files.expand(patterns)  # Raises an InputError.
    return None


def existing_directory(path: str) -> str | None:
    """Accepts a local directory, and any remote path."""
    if files.is_remote(path) or os.path.isdir(path):
        return None
    return "must be an existing directory. Check the path."


def existing_checkpoint(prefix: str) -> str | None:
    """Accepts the prefix of a TF1 checkpoint, and a directory with a model."""
    index = prefix + _INDEX
    # Files of a run directory, a Hugging Face directory or a KerasHub preset.
    others = [os.path.join(prefix, n) for n in ("checkpoint", "config.json")]
    if any(map(files.exists, (index, *others))):
        return None
    formats.require_readable(prefix)
    directory = prefix if os.path.isdir(prefix) else os.path.dirname(prefix)
    stored = [
        os.path.join(directory, name.removesuffix(_INDEX))
        for name in files.list_directory(directory)
        if name.endswith(_INDEX)
    ]
    advice = "Check the path; for the newest checkpoint of a run, give its "
    advice += "--output_dir."
    if stored:
        advice = f"Prefixes of checkpoints: {listed(stored)}."
    return f"must be a checkpoint prefix, but {index} does not exist. {advice}"


def installed(package: str, needed_for: str | None = None) -> Check:
    """Returns a check that accepts all values if a package is installed.

    If not, it accepts values other than `needed_for`; None: no value.
    """
    return lambda value: (
        missing_package(package) if needed_for in (None, value) else None
    )


file_option = functools.partial(path_option, check=existing_file)
optional_file = functools.partial(file_option, default=None)
regex_option = functools.partial(
    text, check=parsed_by(re.compile, "a regular expression")
)


def require_outputs(
    options: Options,
    name: str,
    inputs: Iterable[str],
    outputs: Sequence[str] | None = None,
) -> None:
    """Raises `InputError` unless the output files of an option can be written.

    They must not replace each other, an input, or a file of a run. `outputs`
    are the files; by default, the value of the option is a single one.
    """
    taken = {*map(os.path.realpath, inputs)}
    for output in [getattr(options, name)] if outputs is None else outputs:
        base = os.path.basename(output)
        if not base:
            raise options.error(name, "must be a file, not a directory.")
        if _CHECKPOINT_FILE.fullmatch(base):
            message = f"would overwrite a checkpoint: rename {base}."
            raise options.error(name, message)
        run = RunDirectory(os.path.dirname(output))
        of_run = [*run.files_of_model(), run.file(file_names.TRAIN_OPTIONS)]
        if os.path.realpath(output) in {*taken, *map(os.path.realpath, of_run)}:
            message = (
                f"names {output} twice, or overwrites an input or a file of a "
                "run. Rename it."
            )
            raise options.error(name, message)
        taken.add(os.path.realpath(output))
        files.require_writable_file(output)


def require_output_directory(
    options: Options, name: str, inputs: Iterable[str]
) -> None:
    """Raises `InputError` unless an option's directory can be written.

    With --overwrite, the directory may contain files, but no input of the
    command.
    """
    path = getattr(options, name)
    if os.path.isfile(path):
        message = "must be a directory, but is a file. Choose another."
        raise options.error(name, message)
    outer = os.path.join(os.path.realpath(path), "")
    for inner in inputs:
        if os.path.join(os.path.realpath(inner), "").startswith(outer):
            message = f"contains the input {inner} and would replace it. "
            raise options.error(name, message + "Choose another.")
    if os.path.isdir(path) and (
        os.path.ismount(path) or os.path.samefile(path, ".")
    ):
        message = "cannot be replaced. Choose a directory inside it."
        raise options.error(name, message)
    if not options.is_set("overwrite") and files.list_directory(path):
        message = (
            "must be new or empty. Choose another, or pass --overwrite to "
            "replace everything in it."
        )
        raise options.error(name, message)
    files.require_writable_directory(os.path.dirname(path.rstrip("/")) or ".")
