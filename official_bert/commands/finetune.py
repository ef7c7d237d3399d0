"""Fine-tunes from Python, like `run_classifier.py` from the command line."""

import contextlib
import json
import os
import random
import signal
import tempfile
import weakref
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from official_bert.commands import run_classifier
from official_bert.errors import InputError
from official_bert.io import files, frames, tables
from official_bert.options import RunClassifier, cli, flags
from official_bert.runs import file_names

if TYPE_CHECKING:
    from official_bert.inference.predictor import Predictor

# Flags whose values may also be data in memory.
_TABLES = ("train_file", "dev_file", "test_file", "unlabeled_file")


def finetune(
    model: Any, data: Any, text: Any = None, label: Any = None, **options: Any
) -> "Predictor":
    """Fine-tunes a model on your own data; returns its `Predictor`.

    ```
    predictor = finetune("bert_tiny_demo", df, text="review", label="stars")
    predictor(["A film to remember."])
    ```

    This is `run_classifier.py`: the checks, the messages, the results that it
    prints and the files in `predictor.output_dir` are the same.

    Args:
        model: The value of `--model`.
        data: A pandas or polars DataFrame, an iterable of dicts, such as a
            `datasets.Dataset`, or a value of `--train_file`. None, NaN and NA
            are empty cells.
        text: The value of `--text_column`. By default, it is detected.
        label: The value of `--label_column`, or a list of columns. By default,
            it is detected.
        options: Other flags, such as `num_train_epochs=5`. `dev_file`,
            `test_file` and `unlabeled_file` may be data frames, too. Without
            `output_dir`, the files are in a temporary directory, which is
            removed when the `Predictor` is no longer used.

    Raises:
        InputError: A flag, or the data, cannot be used. Rows are counted from
            1: `train_file.jsonl:3`.
        KeyboardInterrupt: Ctrl-C was pressed. If `output_dir` is given, the
            same call resumes the training.
    """
    # Under the names of their flags, to find options that are given twice.
    given = [("model", model), ("train_file", data), ("text_column", text)]
    given += [("label_column", label), *options.items()]
    with _random_states_kept(), contextlib.ExitStack() as stack:
        folder = stack.enter_context(
            tempfile.TemporaryDirectory(
                prefix=file_names.TEMPORARY, ignore_cleanup_errors=True
            )
        )
        try:
            values = _values(given, folder)
            values.setdefault("output_dir", os.path.join(folder, "out"))
            directory = run_classifier.main(RunClassifier(**values))
        except InputError as error:
            message = str(error).replace(os.path.join(folder, ""), "")
            raise type(error)(message) from None
        except SystemExit as stopped:
            if stopped.code == 128 + signal.SIGINT:
                raise KeyboardInterrupt from None
            raise
        return _load(directory, stack.pop_all())


@contextlib.contextmanager
def _random_states_kept() -> Iterator[None]:
    """Restores the random states of Python and NumPy, which training seeds.

    Otherwise, a caller would draw the same numbers after every call.
    """
    import numpy as np

    of_python, of_numpy = random.getstate(), np.random.get_state()
    try:
        yield
    finally:
        random.setstate(of_python)
        np.random.set_state(of_numpy)


def _load(directory: str, stack: contextlib.ExitStack) -> "Predictor":
    """Loads a model; closes the stack when its `Predictor` is no longer used.

    The `Predictor` is not a variable of `finetune`: the import of TensorFlow
    inside that function keeps its variables alive.
    """
    from official_bert.inference.predictor import Predictor

    with stack:
        predictor = Predictor.from_dir(directory)
        weakref.finalize(predictor, stack.pop_all().close)
    return predictor


def _values(given: list[tuple[str, Any]], folder: str) -> dict[str, Any]:
    """Returns {option: value} of flags; writes data in memory to files."""
    names = cli.flag_names(RunClassifier)
    values: dict[str, Any] = {}
    for flag, value in given:
        if flag not in names:
            raise InputError(cli.unknown_flag(flag, [*names]))
        if value is None:
            continue
        if names[flag] in values:
            raise InputError(f"--{flag} is given twice. Omit one.")
        value = _value(flag, value, folder)
        kind = flags.plain_type(RunClassifier.fields()[names[flag]].type)
        # The columns of a data frame may be numbers.
        is_name = type(value) is int and kind is str
        values[names[flag]] = str(value) if is_name else value
    return values


def _is_path(item: Any) -> bool:
    """Whether an item of a list names a table, and is not a text."""
    return bool(tables.format_of(str(item))) or os.path.exists(item)


def _value(flag: str, value: Any, folder: str) -> Any:
    """Returns the value of a flag for an argument."""
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, list | tuple):
        kinds = str | os.PathLike if flag in _TABLES else str | int
        are_items = value and all(isinstance(item, kinds) for item in value)
        if are_items and (flag not in _TABLES or any(map(_is_path, value))):
            return ",".join(map(str, value))
    if flag not in _TABLES and frames.is_frame(value):
        raise InputError(f"--{flag} must not be a data frame.")
    if flag not in _TABLES and isinstance(value, float):
        return float(value)  # NaN is not an omitted value.
    if flag not in _TABLES or isinstance(value, str):
        return frames.plain(value)
    path = os.path.join(folder, f"{flag}.jsonl")
    rows = frames.rows_of(value, "data" if flag == "train_file" else flag)
    lists = {name for row in rows for name in row if type(row[name]) is list}
    for row in rows:  # An empty text would be an empty list of labels.
        row |= {name: None for name in lists & row.keys() if row[name] == ""}
    lines = (json.dumps(row, default=frames.to_json) + "\n" for row in rows)
    files.write_text(path, "".join(lines))
    return path
