"""The user's own tables, and the tasks and options of runs on them."""

from official_bert import tasks
from official_bert.tasks import detection
from official_bert.tasks.text import TextExample
from official_bert.tasks.text_types import TYPES
from support import tiny

REVIEWS = [f"it is good {i},{i % 2}" for i in range(20)]


def table(*rows, header="review,stars"):
    """Returns the text of a table; `header` may be None."""
    return "\n".join([*filter(None, [header]), *rows]) + "\n"


def rows_with(*labels):
    """Returns a table of texts with these labels."""
    rows = [f"t{i},{label}" for i, label in enumerate(labels)]
    return table(*rows, header="text,label")


def complete(folder, name, text, *flags):
    """Writes a training file; returns the detected options."""
    (folder / name).write_text(text, encoding="utf-8")
    options = tiny.parse(folder, f"--train_file={folder / name}", *flags)
    found, _ = detection.detect_omitted(options)
    return found


def make(folder, file_format="csv", **flags):
    """Returns the task of the files in a directory."""
    return tasks.get(tiny.options(folder, task_name=file_format, **flags))


def text_task(task_type="classification", labels=("a", "b"), **others):
    """Returns a task without data."""
    return TYPES[task_type](labels=labels, **others)


def texts(*labels):
    """Returns examples with these labels."""
    return [TextExample("", "x", None, label) for label in labels]
