"""Whether training can resume the run in `output_dir`, or replaces it.

`train_options.json` records the options of a run, and fingerprints of its
training data and initial weights. Earlier versions recorded less: what is
missing there is not compared.
"""

import dataclasses
import itertools
import os
import re
from collections.abc import Iterable, Sequence
from typing import Any

from absl import logging

from official_bert import files, json_files
from official_bert.checkpoints import tf1
from official_bert.errors import InputError, bullet_list
from official_bert.options.training import TrainingOptions
from official_bert.training import checkpointing

RECORD = "train_options.json"

# Options that can change when a run resumes, by reason. All others decide what
# is trained.
_CAN_CHANGE = {
    "followed from the next step on": (
        "train_batch_size num_train_epochs num_train_steps pad_to"
    ),
    "used only at the start": "seed may_initialize may_skip",
    "input files, compared by content": (
        "model bert_config_file vocab_file init_checkpoint label_file "
        "train_file dev_file test_file predict_file input_file"
    ),
    "decide which files are read, or how": (
        "task_name data_dir language train_language translate_test has_header "
        "fit_max_seq_length left_to_right"
    ),
    "the same training on other devices": (
        "use_tpu tpu_name tpu_zone gcp_project master num_tpu_cores "
        "distribution_strategy mixed_precision jit_compile remat "
        "gradient_accumulation_steps iterations_per_loop"
    ),
    "what is saved, evaluated and written": (
        "output_dir overwrite_output_dir save_checkpoints_steps plots sweep "
        "keep_checkpoint_max do_train do_eval do_predict do_export export_dir "
        "export_text export_tflite eval_every early_stopping eval_batch_size "
        "predict_batch_size eval_pad_to max_eval_steps n_best_size "
        "max_answer_length null_score_diff_threshold verbose_logging"
    ),
}
_FOLLOWED = _CAN_CHANGE["followed from the next step on"].split()
_INPUTS = _CAN_CHANGE["input files, compared by content"].split()

# The files of a run that would be wrong beside another model. The next run
# replaces `train_options.json`, which shows until then what the directory is.
_OF_MODEL = re.compile(
    r"checkpoint|model\.ckpt-\d+\..+|events\.out\.tfevents\..+|vocab\.txt"
    r"|dev\.jsonl|(task|bert_config|eval_options)\.json|eval_history\.jsonl"
    r"|(eval|predict)_results\w*\.(txt|json)|test_results\w*\.tsv"
    r"|test\w*_predictions\.(tsv|txt)|(nbest_)?predictions\.json|null_odds\.json"
    r"|(CoLA|SST-2|MRPC|STS-B|QQP|MNLI-mm?|QNLI|RTE|WNLI|AX|XNLI-.+)\.tsv"
    r"|(training_curves|confusion_matrix)\.(png|html)"
)

_REMEDY = (
    "To resume the run, restore what it had. For another run, choose another "
    "--output_dir, or remove this one with --overwrite_output_dir."
)


def starts_anew(options: TrainingOptions) -> bool:
    """Whether training replaces what an earlier run left in `output_dir`.

    It does if told to, and if that run ended before its first step was saved.
    """
    if not options.do_train or options.overwrite_output_dir:
        return options.do_train
    is_run = files.exists(os.path.join(options.output_dir, RECORD))
    return is_run and not checkpointing.checkpoint_to_resume(options)


def require_resumable(
    options: TrainingOptions, training_files: Sequence[str]
) -> None:
    """Raises `InputError` if a resumed run could not honour the options.

    With `--overwrite_output_dir`, raises if the run cannot be removed.
    """
    if options.overwrite_output_dir:
        _require_no_inputs(options, _files_of_model(options))
    if not (checkpoint := checkpointing.checkpoint_to_resume(options)):
        return
    record = _read_record(options)
    can_change = " ".join(_CAN_CHANGE.values()).split()
    names = {field.name for field in dataclasses.fields(options)}
    names.difference_update(can_change)
    trained = record.get("options", {})
    if None in (trained.get("dev_file"), getattr(options, "dev_file", None)):
        names.add("dev_file")  # Without it, training data is held out.
    changes = _changed_options(record, options, names)
    for name, now in _fingerprints(options, training_files).items():
        before = record.get("fingerprints", {}).get(name, now)
        pairs = itertools.zip_longest(before, now, fillvalue="none")
        changes += [f"{name}: {a}, now {b}" for a, b in pairs if a != b]
    if changes:
        raise InputError(
            f"{checkpoint} was trained with other options or data:"
            f"{bullet_list(changes)}\n{_REMEDY}"
        )


def is_finished(
    options: TrainingOptions, step: int, num_steps: int, stops_early: bool
) -> bool:
    """Returns whether no step is left to train.

    Raises `InputError` if options have changed that then have no effect.
    """
    if step < num_steps and not stops_early:
        return False
    names = [*_FOLLOWED, "seed"]
    if changes := _changed_options(_read_record(options), options, names):
        raise InputError(
            f"{options.output_dir}: no step is left to train ({step} of "
            f"{num_steps} are done), so that these options have no effect:"
            f"{bullet_list(changes)}\n{_REMEDY}"
        )
    logging.info("Nothing to train: step %d of %d.", step, num_steps)
    return True


def to_record(
    options: TrainingOptions, seed: int, training_files: Sequence[str]
) -> str:
    """Returns the content of `train_options.json`; `seed` is the run's."""
    record = {
        "command": options.command,
        "options": {**dataclasses.asdict(options), "seed": seed},
        "fingerprints": _fingerprints(options, training_files),
    }
    return json_files.to_text(record)


def remove_earlier_run(options: TrainingOptions) -> None:
    """Removes the files of an earlier model if `--overwrite_output_dir`."""
    if options.overwrite_output_dir:
        for path in _files_of_model(options):
            files.remove(path)


def _files_of_model(options: TrainingOptions) -> list[str]:
    """Returns what an earlier run wrote; nothing if there was none."""
    directory = options.output_dir
    if not files.exists(os.path.join(directory, RECORD)):
        return []
    return [
        os.path.join(directory, part, name)
        for part in ("", files.BEST_DIRECTORY, "eval")
        for name in files.list_directory(os.path.join(directory, part))
        if _OF_MODEL.fullmatch(name)
    ]


def _require_no_inputs(options: TrainingOptions, paths: list[str]) -> None:
    for name in _INPUTS:
        given = os.path.realpath(getattr(options, name, None) or os.devnull)
        for path in map(os.path.realpath, paths):
            # A file, the prefix of a checkpoint, or a directory.
            if f"{path}/".startswith((f"{given}/", f"{given}.")):
                raise options.error(
                    name,
                    f"would be removed by --overwrite_output_dir: {path}. "
                    "Choose another --output_dir.",
                )


def _read_record(options: TrainingOptions) -> dict[str, Any]:
    path = os.path.join(options.output_dir, RECORD)
    return json_files.read_object(path) if files.exists(path) else {}


def _changed_options(
    record: dict[str, Any], options: TrainingOptions, names: Iterable[str]
) -> list[str]:
    trained, given = record.get("options", {}), dataclasses.asdict(options)
    return [
        f"--{name}: {trained[name]!r}, now {given[name]!r}"
        for name in sorted(names)
        if name in trained and name in given and trained[name] != given[name]
    ]


def _fingerprints(
    options: TrainingOptions, training_files: Sequence[str]
) -> dict[str, list[str]]:
    # The index of a checkpoint holds the checksums of all weights.
    path = options.init_checkpoint
    weights = [path + tf1.INDEX] if path else []
    return {
        "training data": [files.fingerprint(path) for path in training_files],
        "--init_checkpoint": [files.fingerprint(path) for path in weights],
    }
