"""Examples of one text or a pair, and where they come from."""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol


class TextExample(NamedTuple):
    """A text, or a pair of them.

    Attributes:
        guid: Names it, such as "dev-12".
        text_a: The text.
        text_b: The second one, if there is one.
        label: One of the task's labels; a tuple of them where there may be
            several; a number in regression; None in test data.
    """

    guid: str
    text_a: str
    text_b: str | None = None
    label: Any = None


class TextColumns(NamedTuple):
    """Where the texts of an example stand in a user's files.

    Attributes:
        names: The column of the text, or both of a pair's, by name or number.
        has_header: Whether the first line of TSV and CSV names the columns.
    """

    names: tuple[str, ...]
    has_header: bool = True


class TextData(Protocol):
    """Where the examples of a `TextTask` come from."""

    def splits(self, mode: str) -> Sequence[str]:
        """See `task.Task`."""

    def read(self, split: str) -> list[TextExample]:
        """Reads one part of the data.

        Raises:
            InputError: A file is missing or wrong, with its name and line.
        """

    def submission(
        self,
        split: str,
        examples: Sequence[TextExample],
        predictions: Sequence[Any],
    ) -> tuple[str, str]:
        """Returns name and text of a file of predictions.

        Args:
            split: What was predicted.
            examples: Its examples.
            predictions: As `TextTask.predictions` returns them.
        """
