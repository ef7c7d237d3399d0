"""The content of `train_options.json`, the record of a run."""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from official_bert.io import files, json_files, tables


class RunRecord(NamedTuple):
    """The command and the options of a run, and what it trained on.

    Earlier versions recorded less; missing values are not compared.

    Attributes:
        command: The file name of the command, such as `run_squad.py`.
        options: {name: value}; {} if a directory has no record.
        fingerprints: {description: a fingerprint of each file} of the data and
            the initial weights.
        num_train_steps: The last step of the training; the step at which it
            stopped early.
    """

    command: str | None
    options: dict[str, Any]
    fingerprints: dict[str, list[str]]
    num_train_steps: int | None = None

    @classmethod
    def read(cls, path: str) -> "RunRecord":
        """Reads `train_options.json`; without the file, the record is empty.

        Raises `InputError` if it is invalid.
        """
        record = json_files.load(path)
        return cls(
            record.get("command", str | None),
            record.nested("options").content,
            record.get("fingerprints", dict[str, list] | None) or {},
            record.get("num_train_steps", int | None),
        )

    def changed_files(self, paths: Mapping[str, Sequence[str]]) -> list[str]:
        """Returns lines that describe which {description: files} differ."""
        changes = []
        recorded = {n: p for n, p in paths.items() if n in self.fingerprints}
        for name, now in fingerprints_of(recorded).items():
            before = self.fingerprints[name]
            changes += [
                f"{name}: {a}, now {b}"
                for a, b in itertools.zip_longest(before, now, fillvalue="none")
                if data_of(a) != data_of(b)
            ]
        return changes


def holds_out(options: Mapping[str, Any]) -> bool:
    """Whether training with these options holds out a part of its own file."""
    has_own_file = options.get("train_file") and not options.get("dev_file")
    has_part = options.get("dev_share") or options.get("fold")
    return bool(has_own_file and has_part)


def data_of(fingerprint: str) -> tuple[str, str]:
    """Returns the part that stays the same if a file is renamed or copied.

    Its format is in the name.
    """
    name, _, content = fingerprint.rpartition(": ")
    return tables.format_of(name), content


def fingerprints_of(paths: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """Returns {description: a fingerprint of each file}."""
    return {
        name: [files.fingerprint(path) for path in named]
        for name, named in paths.items()
    }
