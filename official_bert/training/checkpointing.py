"""A run's output directory: its lock, its starting point, its checkpoints."""

import contextlib
import fcntl
import os
import re
import socket
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import keras
from absl import logging

from official_bert import files
from official_bert.checkpoints import loading, run_directory
from official_bert.config import BertConfig
from official_bert.errors import InputError, short_reason
from official_bert.options.training import TrainingOptions
from official_bert.training import distribution

_LOCK = "run.lock"
_LOSS_SCALE = "^loss_scale/"

# Temporary files of a run that was killed. Only the holder of the lock writes
# them; the temporary files of evaluations and exports are not removed.
_UNFINISHED = re.compile(
    r"(model\.ckpt-\d+|checkpoint|train\.tf_record).*"
    r"\.tmp-(\d+\.)?[0-9a-f]{8}(\..+)?"
)

# Config keys that must not change when a run resumes.
_MODEL_KEYS = (
    "vocab_size",
    "hidden_size",
    "num_hidden_layers",
    "num_attention_heads",
    "intermediate_size",
    "hidden_act",
    "max_position_embeddings",
    "type_vocab_size",
    "is_left_to_right",
)


@contextlib.contextmanager
def output_dir_lock(options: TrainingOptions) -> Iterator[None]:
    """Creates the output directory and keeps other training runs out of it.

    The lock ends with its process, however that ends. Without effect if the
    run does not train, on hosts other than the chief, and on remote or other
    file systems that have no locks. A directory that is still empty at the end
    is removed.

    Raises:
        InputError: Another run holds the lock, or the directory is not
            writable.
    """
    if (
        not options.do_train
        or not options.is_chief
        or files.is_remote(options.output_dir)
    ):
        yield
        return
    is_new = not files.exists(options.output_dir)
    files.make_directory(options.output_dir)
    path = os.path.join(options.output_dir, _LOCK)
    descriptor = _acquire_lock(path)
    try:
        for directory in ("", files.BEST_DIRECTORY):
            _remove_unfinished(os.path.join(options.output_dir, directory))
        yield
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.remove(path)  # While the lock is still held.
        os.close(descriptor)
        if is_new:
            with contextlib.suppress(OSError):  # It is not empty.
                os.rmdir(options.output_dir)


def _acquire_lock(path: str) -> int:
    """Returns the descriptor of the locked file, which names this process."""
    while True:
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as error:
            raise InputError(
                f"{path}: cannot be written: {short_reason(error)}. If a "
                "killed run of another user left it, remove it; or choose "
                "another --output_dir."
            ) from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(descriptor, 1000).decode(errors="replace").strip()
            os.close(descriptor)
            raise InputError(
                f"--output_dir={os.path.dirname(path)} is in use by "
                f"{holder or 'another process'}. Wait for that run, stop it, "
                "or choose another --output_dir."
            ) from None
        except OSError as error:
            logging.warning("%s: cannot be locked: %s", path, error)
        if _is_same_file(path, descriptor):
            os.ftruncate(descriptor, 0)
            holder = f"process {os.getpid()} on host {socket.gethostname()}\n"
            os.write(descriptor, holder.encode())
            return descriptor
        # Its holder removed it between our opening and locking it.
        os.close(descriptor)


def _is_same_file(path: str, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False


def _remove_unfinished(directory: str) -> None:
    for name in files.list_directory(directory):
        if _UNFINISHED.fullmatch(name):
            files.remove(os.path.join(directory, name))


class StartingPoint(NamedTuple):
    """Where training starts or resumes.

    Attributes:
        step: Number of steps already done.
        seed: Seed of the run: order of examples and dropout.
        examples_seen: Number of examples already trained on.
    """

    step: int
    seed: int
    examples_seen: int

    def examples_seen_at(self, step: int, batch_size: int) -> int:
        """Returns the number of examples trained on after `step` steps."""
        return self.examples_seen + (step - self.step) * batch_size


def set_seed(seed: int) -> None:
    """Seeds the initial weights and TensorFlow's global random state."""
    # TensorFlow takes seeds modulo 2**31 - 1, and its datasets do not reshuffle
    # with a seed of 0.
    keras.utils.set_random_seed(seed if seed % (2**31 - 1) else 2**30)


def load_initial(
    model: Any,
    options: TrainingOptions,
    *,
    may_initialize: str = "",
    may_skip: str = "",
) -> None:
    """Loads `init_checkpoint`, unless the run has a checkpoint of its own.

    The regular expressions add to those of the options: weights that the
    checkpoint may lack, and weights of it that may go unused.
    """
    if options.init_checkpoint and not run_directory.latest(options.output_dir):
        initialized = loading.load(
            loading.by_name(model.trainable_variables),
            options.init_checkpoint,
            may_initialize=_any_of(options.may_initialize, may_initialize),
            may_skip=_any_of(
                options.may_skip, may_skip, loading.OPTIMIZER_STATE
            ),
        )
        _report_loaded(model, options.init_checkpoint, initialized)


def resume(
    state: Mapping[str, Any], options: TrainingOptions, strategy: Any
) -> StartingPoint:
    """Loads the newest checkpoint of the run, if any, and sets the seed.

    `state` is {name: variable} of everything a checkpoint holds. All hosts of
    the strategy must start from the same state.
    """
    start = StartingPoint(0, options.seed, 0)
    # A run may resume in another precision.
    loaded = loading.load_newest(
        state,
        options.output_dir,
        may_initialize=_LOSS_SCALE,
        may_skip=_LOSS_SCALE,
    )
    if loaded:
        prefix, _ = loaded
        step = int(state["global_step"].numpy())
        logging.info("Resuming from %s", prefix)
        # The original implementation's checkpoints have no resume file.
        saved = run_directory.read_resume_state(prefix)
        if saved is None:
            saved = run_directory.ResumeState(
                options.seed, step * options.train_batch_size
            )
        start = StartingPoint(step, saved.seed, saved.examples_seen)
        if start.seed != options.seed:
            logging.warning(
                "--seed=%d is ignored: the run was started with --seed=%d.",
                options.seed,
                start.seed,
            )
    distribution.require_equal_start(strategy, start.seed, state)
    # The order of examples depends on TensorFlow's global seed too.
    set_seed(start.seed)
    return start


def load_for_evaluation(
    model: Any, options: TrainingOptions, *, may_skip: str = ""
) -> int:
    """Loads the best or newest checkpoint of the run, or `init_checkpoint`.

    Weights of it that match `may_skip` may go unused.

    Returns:
        The number of steps the weights were trained for; 0 for
        `init_checkpoint`.

    Raises:
        InputError: There is no checkpoint, or it does not fit the model.
    """
    variables = loading.by_name(model.trainable_variables)
    patterns = {
        "may_initialize": options.may_initialize,
        "may_skip": _any_of(
            options.may_skip, may_skip, loading.OPTIMIZER_STATE
        ),
    }
    best = os.path.join(options.output_dir, files.BEST_DIRECTORY)
    for directory in (best, options.output_dir):
        if loaded := loading.load_newest(variables, directory, **patterns):
            _report_loaded(model, *loaded)
            return run_directory.read_global_step(loaded[0])
    if not options.init_checkpoint:
        raise InputError(
            "Without --do_train, --output_dir must hold a checkpoint, or "
            "--init_checkpoint must be given. Received: "
            f"--output_dir={options.output_dir}, without a checkpoint."
        )
    initialized = loading.load(variables, options.init_checkpoint, **patterns)
    _report_loaded(model, options.init_checkpoint, initialized)
    return 0


def _report_loaded(model: Any, prefix: str, initialized: list[str]) -> None:
    """Logs what was loaded, and warns of what was not."""
    logging.info("Loaded %s", prefix)
    if initialized:
        logging.warning(
            "Not in the checkpoint, newly initialized: %s",
            ", ".join(initialized),
        )
    path = model.config.config_of_other_direction(prefix)
    if path is not None:
        logging.warning(
            "%s has is_left_to_right=%s, and this model has %s: its attention "
            "must be learned again. To keep the checkpoint's direction, use "
            "the bert_config.json beside it, or --left_to_right.",
            path,
            not model.config.is_left_to_right,
            model.config.is_left_to_right,
        )


def _any_of(*patterns: str) -> str:
    """Returns a regular expression that matches what any of them matches."""
    return "|".join(filter(None, patterns))


def save(
    state: Mapping[str, Any],
    step: int,
    start: StartingPoint,
    options: TrainingOptions,
) -> None:
    """Writes the checkpoint of a step, if this process is the chief."""
    if not options.is_chief:
        return
    prefix = run_directory.save(
        options.output_dir,
        step,
        {name: variable.numpy() for name, variable in state.items()},
        run_directory.ResumeState(
            start.seed, start.examples_seen_at(step, options.train_batch_size)
        ),
        keep=options.keep_checkpoint_max,
    )
    logging.info("Saved %s", prefix)


def require_same_model(options: TrainingOptions, config: BertConfig) -> None:
    """Raises `InputError` if the output directory holds another model."""
    path = os.path.join(options.output_dir, "bert_config.json")
    if not files.exists(path):
        return
    trained = BertConfig.from_json_file(path)
    for name in _MODEL_KEYS:
        before, now = getattr(trained, name), getattr(config, name)
        if before != now:
            raise InputError(
                f"{options.bert_config_file}: `{name}` must be {before!r}, as "
                f"in {path}. Received: {now!r}. Use another --output_dir for "
                "another model."
            )


def require_same_vocabulary(output_dir: str, vocab_file: str) -> None:
    """Raises `InputError` if the output directory has another vocabulary."""
    path = os.path.join(output_dir, "vocab.txt")
    if files.exists(path) and files.read_text(path) != files.read_text(
        vocab_file
    ):
        raise InputError(
            f"{vocab_file}: differs from {path}, the vocabulary of the model "
            "in --output_dir. Use another --output_dir for another vocabulary."
        )
