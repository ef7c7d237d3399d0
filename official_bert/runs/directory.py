"""A run directory: its lock, its record, its files."""

import contextlib
import dataclasses
import errno
import functools
import os
import re
import socket
from collections.abc import Iterator
from typing import Any

from absl import logging

from official_bert.errors import InputError, short_reason
from official_bert.io import files, json_files
from official_bert.runs import file_names
from official_bert.runs.record import RunRecord, holds_out

# flock fails with one of these on file systems without locks.
_NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL)


@dataclasses.dataclass(frozen=True)
class RunDirectory:
    """The output directory of a training command; it may not exist yet."""

    path: str

    def file(self, name: str) -> str:
        """Returns the path of a file in the directory."""
        return os.path.join(self.path, name)

    def has(self, name: str) -> bool:
        """Whether the directory has a file of this name."""
        return files.exists(self.file(name))

    @property
    def is_of_run(self) -> bool:
        """Whether a training command wrote its record."""
        return self.has(file_names.TRAIN_OPTIONS)

    @property
    def best(self) -> "RunDirectory":
        """The directory of the checkpoint with the best evaluation."""
        return RunDirectory(self.file(file_names.BEST))

    @functools.cached_property
    def record(self) -> RunRecord:
        """The record of the run, read once; for errors see `RunRecord.read`."""
        return RunRecord.read(self.file(file_names.TRAIN_OPTIONS))

    def write_record(self, record: RunRecord) -> None:
        """Writes `train_options.json`."""
        vars(self)["record"] = record
        path = self.file(file_names.TRAIN_OPTIONS)
        files.write_text(path, json_files.to_text(record._asdict()))

    @property
    def is_unfinished(self) -> bool:
        """Whether training has saved a checkpoint, but not after all steps."""
        num_steps = self.record.num_train_steps or 0
        return 0 <= self._last_step < num_steps

    @property
    def _last_step(self) -> int:
        return file_names.step_of("".join(self.checkpoint_names()[-1:]))

    def warn_if_unfinished(self) -> None:
        """Warns if training has not finished; also for the `best/` of a run."""
        run = RunDirectory(self.path.rstrip("/"))
        if os.path.basename(run.path) == file_names.BEST:
            run = RunDirectory(os.path.dirname(run.path) or ".")
        if run.is_unfinished:
            step, num_steps = run._last_step, run.record.num_train_steps
            logging.warning(
                f"{run.path}: the training was stopped at step {step} of "
                f"{num_steps}, or it is still running. To finish it, run its "
                "command again"
            )

    def has_held_out(self) -> bool:
        """Whether the run wrote `file_names.HELD_OUT`."""
        return holds_out(self.record.options)

    def variant_of_results(
        self, split: str, path: str | None, corpus_file: str | None = None
    ) -> str:
        """Returns what distinguishes the results for a `dev` or `test` file.

        This is "" for the files that the run was trained with, and for its
        held-out examples: their results have names without a variant.
        """
        options = self.record.options
        own_path = options.get(f"{split}_file")
        if split == "dev":
            own_path = own_path or self.file(file_names.HELD_OUT)
        data = "evaluation data" if split == "dev" else ""
        files_of_run = (
            (path, own_path, data),
            (corpus_file, options.get("corpus_file"), "corpus"),
        )
        others = [
            paths
            for paths, own, name in files_of_run
            if paths and not self._is_own(paths, own, name)
        ]
        if not (others and options):
            return ""
        return file_names.variant(",".join(others))

    def _is_own(self, paths: str, own_paths: str | None, name: str) -> bool:
        """Whether files are those of the run: by content, if it is recorded.

        A relative path may name other files in another working directory.
        `name` is the description of the files in the record.
        """
        if not own_paths:
            return False
        if name in self.record.fingerprints:
            return not self.record.changed_files(
                {name: files.expand_if_pattern(paths)}
            )
        return os.path.realpath(paths) == os.path.realpath(own_paths)

    def checkpoint_names(self) -> list[str]:
        """Returns the names in the list of checkpoints, the newest last.

        Without the list, returns the names of all checkpoints with an index: a
        run may be killed before it writes the list. Raises `InputError` if the
        list is damaged.
        """
        if not self.has(file_names.CHECKPOINT_LIST):
            indexed = [
                name.removesuffix(file_names.INDEX)
                for name in files.list_directory(self.path)
                if name.endswith(file_names.INDEX)
            ]
            steps = {file_names.step_of(name): name for name in indexed}
            return [name for step, name in sorted(steps.items()) if step >= 0]
        path = self.file(file_names.CHECKPOINT_LIST)
        # A message `CheckpointState` in protobuf's text format. The checkpoints
        # may have been moved, so their directories do not matter.
        entry = r'^\s*(all_)?model_checkpoint_paths?\s*:\s*"(?:.*/)?(.*)"\s*$'
        entries = re.findall(entry, files.read_text(path), re.MULTILINE)
        newest = [name for is_any, name in entries if name and not is_any]
        if not newest:
            raise InputError(
                f"{path} is damaged. Write "
                '`model_checkpoint_path: "model.ckpt-N"` into it.'
            )
        listed = [name for is_any, name in entries if is_any]
        return [*(n for n in listed if n != newest[-1]), newest[-1]]

    def files_of_model(self) -> list[str]:
        """Returns the files that `remove_model` removes."""
        if not self.is_of_run:
            return []
        paths = [
            os.path.join(self.path, part, name)
            for part in ("", file_names.BEST, file_names.EVENTS)
            for name in files.list_directory(os.path.join(self.path, part))
            if file_names.OF_MODEL.fullmatch(name)
        ]
        if self.has_held_out() and self.has(file_names.HELD_OUT):
            paths.append(self.file(file_names.HELD_OUT))
        for directory in self._converted_models():
            names = files.list_directory(directory)
            paths += [os.path.join(directory, name) for name in names]
        return paths

    def _converted_models(self) -> list[str]:
        """Returns the directories of models converted from checkpoints."""
        folders = [run.file(file_names.CONVERTED) for run in (self, self.best)]
        models = [
            RunDirectory(os.path.join(folder, kind))
            for folder in folders
            for kind in files.list_directory(folder)
        ]
        return [model.path for model in models if model.has(file_names.SOURCE)]

    def remove_model(self) -> None:
        """Removes the files of an earlier run's model."""
        for directory in self._converted_models():
            files.remove_directory(directory)
            with contextlib.suppress(OSError):  # It is not empty.
                os.rmdir(os.path.dirname(directory))
        for path in self.files_of_model():
            files.remove(path)

    def result_names(self) -> list[str]:
        """Returns the names of the files with results and predictions."""
        is_result = file_names.RESULTS.fullmatch
        return list(filter(is_result, files.list_directory(self.path)))

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Creates the directory and keeps other training runs out of it.

        The lock is released when its process ends, even if it is killed. Remote
        directories, and file systems without locks, are not locked. A new
        directory that is still empty at the end is removed. Raises `InputError`
        if another run holds the lock, or the lock file cannot be written.
        """
        if files.is_remote(self.path):
            yield
            return
        is_new = not files.exists(self.path)
        files.make_directory(self.path)
        path = self.file(file_names.LOCK)
        lock = _acquire_lock(path)
        try:
            for directory in (self, self.best):
                directory.remove_unfinished()
            yield
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.remove(path)  # While the lock is still held.
            lock.release()
            if is_new:
                with contextlib.suppress(OSError):  # It is not empty.
                    os.rmdir(self.path)

    def remove_unfinished(self) -> None:
        """Removes files that a killed run was writing or removing."""
        existing = files.list_directory(self.path)
        for name in existing:
            part = file_names.CHECKPOINT_PART.fullmatch(name)
            has_no_index = part and part[1] + file_names.INDEX not in existing
            if has_no_index or file_names.UNFINISHED.fullmatch(name):
                os.remove(self.file(name))


def _acquire_lock(path: str) -> Any:
    """Locks a file and writes this process into it; returns the lock."""
    import filelock  # Takes 0.03 s: not at start-up.

    lock = filelock.FileLock(path, fallback_to_soft=False)
    try:
        # The holder may remove the file while it is opened here: try again.
        lock.acquire(timeout=0.2)
    except filelock.Timeout:
        holder = "another process"
        with contextlib.suppress(InputError):  # It is removed now.
            holder = files.read_text(path).strip() or holder
        raise InputError(
            f"--output_dir={os.path.dirname(path)} is in use by {holder}. Wait "
            "for that run, stop it, or choose another --output_dir."
        ) from None
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise InputError(
                f"{path}: cannot be written: {short_reason(error)}. If a "
                "killed run of another user left it, remove it; or choose "
                "another --output_dir."
            ) from error
        logging.warning(f"{path}: cannot be locked: {error}")
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"process {os.getpid()} on host {socket.gethostname()}\n")
    return lock
