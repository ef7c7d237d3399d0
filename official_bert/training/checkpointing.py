"""A run's output directory: its starting point, its checkpoints."""

import contextlib
import os
import re
from collections.abc import Collection, Mapping
from concurrent import futures
from typing import Any, NamedTuple

import keras
import tensorflow as tf
from absl import logging

from official_bert.errors import InputError, listed
from official_bert.options.training import TrainingOptions
from official_bert.runs import checkpoints, file_names
from official_bert.runs.directory import RunDirectory
from official_bert.sources import loading
from official_bert.sources.formats.tf1 import checkpoint as tf1
from official_bert.sources.heads import OF_PAIRS, TASK_HEAD

# Heads of pre-training and of tasks. Training with other heads ignores them.
_HEADS = f"^cls/|{TASK_HEAD}"


class StartingPoint(NamedTuple):
    """Where training starts: after `step` steps, on `examples_seen` examples.

    `seed` determines the order of examples and dropout.
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
    left_out: Collection[str] = (),
) -> None:
    """Loads `init_checkpoint`, if it is set.

    `may_initialize` is added to the option of the same name. `left_out` are the
    names of weights that are not loaded.
    """
    if options.init_checkpoint:
        variables = tf1.by_name(model.trainable_variables)
        for name in left_out:
            variables.pop(name, None)
        patterns = _patterns(options, may_initialize)
        if left_out:
            names = "|".join(map(re.escape, left_out))
            patterns["may_skip"] += f"|^({names})$"
        loaded = loading.load(
            variables,
            options.init_checkpoint,
            model_files=options.model_files,
            **patterns,
        )
        _report_loaded(loaded)
        _warn_of_other_direction(model, loaded.source)


def _patterns(
    options: TrainingOptions, may_initialize: str = ""
) -> dict[str, str]:
    initialize = [options.may_initialize, may_initialize]
    if options.nsp == "none":
        initialize.append(OF_PAIRS)
    # Evaluation needs all weights of the task's head.
    heads = _HEADS if options.do_train else "^cls/"
    skip = (options.may_skip, heads, tf1.OPTIMIZER_STATE)
    return {
        "may_initialize": "|".join(filter(None, initialize)),
        "may_skip": "|".join(filter(None, skip)),
    }


def resume(state: Mapping[str, Any], options: TrainingOptions) -> StartingPoint:
    """Loads the newest undamaged checkpoint of the run.

    `state` is `Trainer.state`.
    """
    # A run may resume in another precision.
    patterns = {"may_initialize": "^loss_scale/", "may_skip": "^loss_scale/"}
    if options.bert_hub_module_handle:
        # The original also stored the module's other heads, without training.
        patterns["may_skip"] += "|^cls/"
    loaded = loading.load_newest(
        state, options.output_dir, resumes=True, **patterns
    )
    assert loaded  # `resuming.check` found a checkpoint.
    logging.info(f"Resuming from {loaded.source}")
    step = int(state["global_step"].numpy())
    # The original implementation's checkpoints have no resume file.
    resume_state = checkpoints.read_resume_state(loaded.source) or (
        options.seed,
        step * options.train_batch_size,
    )
    start = StartingPoint(step, *resume_state)
    if start.seed != options.seed:
        logging.warning(
            f"--seed={options.seed} is ignored: the run was started with "
            f"--seed={start.seed}."
        )
    return start


def load_for_evaluation(model: Any, options: TrainingOptions) -> int:
    """Loads the best or newest checkpoint of the run, or `init_checkpoint`.

    Returns the number of steps the weights were trained for; 0 for
    `init_checkpoint`.
    """
    variables = tf1.by_name(model.trainable_variables)
    patterns = _patterns(options)
    patterns["may_initialize"] = ""  # The run stored all weights.
    for name in (file_names.BEST, ""):
        directory = os.path.join(options.output_dir, name)
        loaded = loading.load_newest(
            variables, directory, resumes=False, **patterns
        )
        if loaded:
            _report_loaded(loaded)
            if not options.do_train:
                RunDirectory(directory).warn_if_unfinished()
                _warn_of_other_step(options, loaded.source)
            return checkpoints.read_global_step(loaded.source)
    if not options.init_checkpoint:
        raise InputError(
            "Without --do_train, --output_dir must contain a checkpoint, or "
            "--init_checkpoint must be given. Received: "
            f"--output_dir={options.output_dir}, without a checkpoint."
        )
    load_initial(model, options)
    return 0


def _warn_of_other_step(options: TrainingOptions, used: str) -> None:
    """Warns if `init_checkpoint` is another checkpoint of the run."""
    given = options.init_checkpoint or ""
    folder, name = os.path.split(given)
    step = file_names.step_of(name)
    is_other = step not in (-1, file_names.step_of(os.path.basename(used)))
    of_run = os.path.realpath(folder) == os.path.realpath(options.output_dir)
    if is_other and of_run:
        logging.warning(
            f"--init_checkpoint={given} is not used: the model of --output_dir "
            f"is {used}. To use the other one, copy the directory without "
            "`checkpoint`, best/ and later checkpoints"
        )


def _report_loaded(loaded: loading.Loaded) -> None:
    logging.info(f"Loaded {loaded.source}")
    if loaded.initialized:
        is_head = all(re.search(_HEADS, name) for name in loaded.initialized)
        reason = "the checkpoint does not have them in this shape"
        if is_head:
            reason = "the checkpoint is of a pre-trained model or another task"
        names = listed(loaded.initialized)
        logging.info(f"Newly initialized, because {reason}: {names}")


def _warn_of_other_direction(model: Any, checkpoint: str) -> None:
    if path := model.config.config_of_other_direction(checkpoint):
        direction = model.config.is_left_to_right
        flag = "and omit" if direction else "or add"
        logging.warning(
            f"{path} has is_left_to_right={not direction}, and this model has "
            f"{direction}: its attention must be learned again. To keep the "
            f"checkpoint's direction, use this config {flag} --left_to_right."
        )


class BackgroundSaver(contextlib.AbstractContextManager["BackgroundSaver"]):
    """Writes checkpoints of a run in a thread while training continues.

    Writes one checkpoint at a time, from a snapshot of `state`, which is
    `Trainer.state`. Only the chief writes. The context ends when the last
    checkpoint is complete.
    """

    def __init__(
        self,
        state: Mapping[str, Any],
        start: StartingPoint,
        options: TrainingOptions,
    ) -> None:
        self._state, self._start, self._options = state, start, options
        self._executor = futures.ThreadPoolExecutor(1)
        self._last: futures.Future[None] | None = None

    def __exit__(self, *_: object) -> None:
        self._executor.shutdown()

    def save(self, step: int) -> None:
        """Calls `wait`, then starts to write the checkpoint of a step."""
        self.wait()
        if not self._options.is_chief:
            return
        # On CPUs, a snapshot shares the memory of the variables. An update
        # gives a variable new memory.
        with tf.device("CPU:0"):
            arrays = {
                name: tf.identity(variable)
                for name, variable in self._state.items()
            }
        self._last = self._executor.submit(self._write, step, arrays)

    def raise_error(self) -> None:
        """Raises the error of the last checkpoint if writing it failed."""
        if self._last and self._last.done():
            self.wait()

    def wait(self) -> None:
        """Returns when the last checkpoint is written, or raises its error."""
        if self._last:
            last, self._last = self._last, None
            last.result()

    def _write(self, step: int, arrays: Mapping[str, Any]) -> None:
        options, start = self._options, self._start
        examples_seen = start.examples_seen_at(step, options.train_batch_size)
        resume_state = checkpoints.ResumeState(start.seed, examples_seen)
        keep = options.keep_checkpoint_max
        prefix = checkpoints.save(
            options.output_dir, step, arrays, resume_state, keep
        )
        logging.info(f"Saved {prefix}")
