"""Decides whether training resumes or replaces the run in `output_dir`."""

import dataclasses
import glob
import itertools
import os
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from official_bert.config import BertConfig
from official_bert.errors import InputError, bullet_list, listed
from official_bert.io import files
from official_bert.options import FinetuningOptions, RunPretraining
from official_bert.options.training import TrainingOptions
from official_bert.runs import checkpoints, file_names
from official_bert.runs.record import RunRecord, fingerprints_of
from official_bert.sources import formats, task_file, tokenizer_files
from official_bert.sources.heads import POOLING_KEY

# Keys of the config that may change when a run resumes.
_MAY_CHANGE = (
    "hidden_dropout_prob",
    "attention_probs_dropout_prob",
    "initializer_range",
)


def check(
    options: RunPretraining | FinetuningOptions,
    config: BertConfig | None,
    data_files: Mapping[str, Sequence[str]],
    task: dict[str, Any] | None = None,
) -> str | None:
    """Compares a run with the earlier one in `output_dir`.

    Returns the checkpoint that training resumes from, if any. `config` is None
    for a TF Hub module, `data_files` is {description: names of files}, `task`
    is the content of `task.json` in fine-tuning. Raises `InputError` if the
    earlier run was another one, or if `--overwrite_output_dir` would remove an
    input.
    """
    directory = options.run_directory
    resumed = _checkpoint_to_resume(options)
    if options.overwrite_output_dir:
        _require_no_inputs(options, directory.files_of_model())
    elif task:
        _require_eval_every_if_best(options)
    # A run that saved no step is replaced, too.
    is_replaced = not resumed and directory.is_of_run and options.do_train
    if not (options.overwrite_output_dir or is_replaced):
        _require_same_model(options, config)
        if task:
            _require_same_task(options, task)
    if resumed:
        _require_same_run(options, resumed, data_files)
    return resumed


def _checkpoint_to_resume(options: TrainingOptions) -> str | None:
    """Returns the newest checkpoint of the run that training resumes.

    There is none before the first step: `model.ckpt-0` is written again.
    """
    if not options.do_train or options.overwrite_output_dir:
        return None
    prefix = checkpoints.latest(options.output_dir)
    is_start = prefix and os.path.basename(prefix) == file_names.checkpoint(0)
    return None if is_start else prefix


def num_extra_examples(options: TrainingOptions, resumed: str | None) -> int:
    """Returns the number of examples seen beyond `train_batch_size` per step.

    It is not 0 if earlier steps of the run had another batch size.
    """
    state = checkpoints.read_resume_state(resumed) if resumed else None
    if not (resumed and state):
        return 0
    step = file_names.step_of(os.path.basename(resumed))
    return state.examples_seen - step * options.train_batch_size


def _require_same_model(
    options: RunPretraining | FinetuningOptions, config: BertConfig | None
) -> None:
    """Raises `InputError` if config or vocabulary differ."""
    directory = options.run_directory
    if config and directory.has(file_names.CONFIG):
        config_file = directory.file(file_names.CONFIG)
        earlier = dataclasses.asdict(BertConfig.from_json_file(config_file))
        for name, now in dataclasses.asdict(config).items():
            before = earlier[name]
            if before != now and name not in _MAY_CHANGE:
                raise InputError(
                    f"{options.bert_config_file}: `{name}` must be {before!r}, "
                    f"as in {config_file}. Received: {now!r}. Use another "
                    "--output_dir for another model."
                )
    for name, text in _tokenizer_texts(options).items():
        path = directory.file(name)
        stored = files.read_text(path) if directory.has(name) else text
        if text != stored:
            known = {*stored.split("\n")}
            lines = [n for n in text.split("\n") if n not in known]
            new = [line.strip(" ,") for line in lines]
            raise InputError(
                f"{options.vocab_file}: the tokenizer must be that of the "
                f"model in --output_dir, as in {path}. Received: {listed(new)}."
                " Use another --output_dir for another tokenizer."
            )


def _tokenizer_texts(
    options: RunPretraining | FinetuningOptions,
) -> dict[str, str]:
    """Returns {name: text} of the tokenizer's files in a run directory."""
    if not options.vocab_file:
        return {}
    vocab = options.model_files.vocab
    settings = options.model_files.settings
    texts = {file_names.VOCAB: vocab}
    if settings.do_lower_case is not None:
        config = tokenizer_files.config_text(vocab, settings)
        texts[tokenizer_files.CONFIG] = config
    return texts


def _require_same_task(options: TrainingOptions, task: dict[str, Any]) -> None:
    """Raises `InputError` if the output directory's model has another task."""
    directory = options.output_dir
    if not (trained := task_file.read(directory)):
        return
    names = ["kind", "task_type", "labels", "is_pair", POOLING_KEY]
    names += ["do_lower_case", "pooling", "embedding_size"]
    if options.do_train:
        names.append("metric")  # Evaluations during training compare it.
    for name in names:
        before, now = trained.get(name), task.get(name)
        is_known = name != "is_pair" or None not in (before, now)
        if is_known and before != now:
            advice = "Give the flags of the task that it was trained on."
            if options.do_train:
                advice = (
                    "For another task, choose another --output_dir, or remove "
                    "this model with --overwrite_output_dir."
                )
            raise InputError(
                f"{task_file.path_in(directory)}: the model was trained with "
                f"`{name}` {before!r}. Received: {now!r}. {advice}"
            )


def _require_eval_every_if_best(options: TrainingOptions) -> None:
    """Raises `InputError` if an earlier run's best model would stay in use."""
    best = options.run_directory.best.path
    ignores_best = options.do_train and not options.eval_every
    if ignores_best and checkpoints.latest(best):
        raise InputError(
            "Resuming without --eval_every would have no effect: the model "
            f"used at the end is the checkpoint in {best!r}. Set --eval_every, "
            "choose another --output_dir, or remove that directory to use the "
            "last model."
        )


def _require_same_run(
    options: TrainingOptions,
    resumed: str,
    data_files: Mapping[str, Sequence[str]],
) -> None:
    """Raises `InputError` if the resumed run had other options or data."""
    record = options.run_directory.record
    if record.command not in (None, options.command):
        raise InputError(
            f"--output_dir={options.output_dir} is a run of {record.command}. "
            "Choose another directory. To start from that model, add "
            f"--model={options.output_dir}."
        )
    names = options.names(on_resume="fixed") + options.names(by_content=True)
    changes = changed_inputs(options, names, data_files)
    problem = f"{resumed} was trained with other options or data:"
    _require_no_changes(changes, problem)


def require_same_steps(options: TrainingOptions, reason: str) -> None:
    """Raises `InputError` if changed options cannot apply to a finished run.

    `reason` says why it is finished.
    """
    changes = changed_inputs(options, options.names(on_resume="if_steps_left"))
    problem = (
        f"{options.output_dir}: no step is left to train ({reason}), so these "
        "changes would have no effect:"
    )
    _require_no_changes(changes, problem)


def write_run_files(
    options: RunPretraining | FinetuningOptions,
    seed: int,
    num_steps: int,
    data_files: Mapping[str, Sequence[str]],
    model_texts: Mapping[str, str],
    *,
    only_missing: bool,
) -> None:
    """Writes the options and the files needed to use the model.

    `seed` and the number of steps are the run's; `model_texts` is {name: text}
    of files besides `train_options.json` and `vocab.txt`. With `only_missing`,
    existing files are unchanged.
    """
    directory = options.run_directory
    if not (only_missing and directory.is_of_run):
        values = {**dataclasses.asdict(options), "seed": seed}
        prints = fingerprints_of(compared_files(options, data_files))
        directory.write_record(
            RunRecord(options.command, values, prints, num_steps)
        )
    texts = {**model_texts, **_tokenizer_texts(options)}
    if only_missing:
        texts = {n: text for n, text in texts.items() if not directory.has(n)}
    files.write_texts(directory.path, texts)


def _require_no_inputs(options: TrainingOptions, paths: list[str]) -> None:
    for name in options.names(on_resume="input"):
        if not (value := getattr(options, name)):
            continue
        several = itertools.chain.from_iterable(
            map(glob.glob, value.split(","))
        )
        sources = map(os.path.realpath, [value, *several])
        real_paths = map(os.path.realpath, paths)
        for source, path in itertools.product(sources, real_paths):
            # A file, the prefix of a checkpoint, or a directory.
            if f"{path}/".startswith((f"{source}/", f"{source}.")):
                raise options.error(
                    name,
                    f"would be removed by --overwrite_output_dir: {path}. "
                    "Choose another --output_dir.",
                )


def _require_no_changes(changes: list[str], problem: str) -> None:
    if changes:
        raise InputError(
            f"{problem}{bullet_list(changes)}\nTo resume the run, restore the "
            "earlier values. For another run, choose another --output_dir, or "
            "remove this one with --overwrite_output_dir."
        )


def changed_inputs(
    options: TrainingOptions,
    names: Collection[str],
    data_files: Mapping[str, Sequence[str]] | None = None,
) -> list[str]:
    """Returns lines that describe how a run differs from the earlier one.

    Compares the named options and, if `data_files` is not None, these files and
    the initial weights.
    """
    record = options.run_directory.record
    trained, by_content = record.options, options.names(by_content=True)
    changes = [
        f"{options.flag_name(name)}: {trained[name]!r}, now {now!r}"
        for name, now in sorted(dataclasses.asdict(options).items())
        if name in names
        and trained.get(name, now) != now
        and (name not in by_content or None in (trained[name], now))
    ]
    if data_files is not None:
        changes += record.changed_files(compared_files(options, data_files))
    return changes


def compared_files(
    options: TrainingOptions, data_files: Mapping[str, Sequence[str]]
) -> dict[str, Sequence[str]]:
    """Returns {description: paths} of all files that must not change."""
    return {**data_files, "initial weights": _initial_weights(options)}


def _initial_weights(options: TrainingOptions) -> list[str]:
    """Returns the files of initial weights whose fingerprints are compared.

    Returns [] for a directory of TF1 checkpoints; its changes go unnoticed.
    """
    checkpoint = options.init_checkpoint
    if not checkpoint:
        return []
    released = os.path.join(options.output_dir, file_names.RELEASED_PREFIX)
    if os.path.realpath(checkpoint) == os.path.realpath(released):
        # If a run trains in the directory of a released model, --model later
        # means the run.
        return []
    index = checkpoint + file_names.INDEX  # Has checksums of all weights.
    if files.exists(index):
        return [index]
    return [
        os.path.join(checkpoint, name)
        for name in files.list_directory(checkpoint)
        if formats.has_other_weights([name])
    ]
