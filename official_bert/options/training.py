"""Options that all training commands share."""

import dataclasses
import json
import os
from typing import Any

from official_bert.config import BertConfig
from official_bert.errors import InputError
from official_bert.io import files, json_files
from official_bert.options import checks, tf_config
from official_bert.options.flags import (
    Options,
    amount,
    choice,
    count,
    option,
    optional,
    switch,
)
from official_bert.options.model_source import NamedModel
from official_bert.sources import model_formats

TRAIN_OPTIONS = "train_options.json"

# Options that need a single host, and what to do on several hosts.
_ONE_HOST = {
    "overwrite_output_dir": "Omit it, and remove the directory.",
    "do_export": "Omit it, and export after training.",
    "sweep": "Give each host its own part of the sweep.",
}


def read_train_options(directory: str) -> dict[str, Any]:
    """Returns the content of `train_options.json`; {} without the file.

    If present, `options` is an object, and `fingerprints` an object of lists.
    Raises `InputError` if the file is invalid.
    """
    path = os.path.join(directory, TRAIN_OPTIONS)
    if not files.exists(path):
        return {}
    record = json_files.read_object(path)
    fingerprints = record.get("fingerprints", {})
    if not (
        isinstance(record.get("options", {}), dict)
        and isinstance(fingerprints, dict)
        and all(isinstance(value, list) for value in fingerprints.values())
    ):
        raise InputError(
            f"{path}: `options` must be an object and `fingerprints` an object "
            "of lists, as training wrote them. Restore the file, or choose "
            "another --output_dir."
        )
    return record


class DeviceOptions(Options, heading="Devices"):
    """The devices that a training command runs on."""

    use_tpu: bool = switch("Use a TPU instead of GPUs or CPU.")
    tpu_name: str | None = optional(
        "A Cloud TPU's name or grpc:// address. Default: this machine's."
    )
    tpu_zone: str | None = optional("Zone of the TPU, if not detected.")
    gcp_project: str | None = optional("Project of the TPU, if not detected.")
    master: str | None = optional("A grpc:// address, instead of --tpu_name.")
    num_tpu_cores: int = count("Maximum number of TPU cores.", 8)
    distribution_strategy: str = choice(
        "none: one device. mirrored: all GPUs of this machine share each "
        "batch. multi_worker_mirrored: all GPUs of the hosts in TF_CONFIG "
        "share it. tpu: the same as --use_tpu.",
        "none|mirrored|multi_worker_mirrored|tpu",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.use_tpu and self.distribution_strategy not in ("none", "tpu"):
            message = "conflicts with --use_tpu. Omit one of them."
            raise self.error("distribution_strategy", message)
        if self.distribution_strategy == "multi_worker_mirrored":
            tf_config.require()
            for name, advice in _ONE_HOST.items():
                if getattr(self, name, None):
                    raise self.error(name, f"needs one host. {advice}")

    @property
    def resolved_strategy(self) -> str:
        """The distribution strategy: tpu if `use_tpu` is set."""
        return "tpu" if self.use_tpu else self.distribution_strategy

    @property
    def is_chief(self) -> bool:
        """Whether this process writes to the run directory."""
        is_alone = self.resolved_strategy != "multi_worker_mirrored"
        return is_alone or tf_config.is_chief()


class TrainingOptions(NamedModel, DeviceOptions, heading="Training"):
    """Options of all training commands, with the defaults of the original."""

    common = (
        "overwrite_output_dir max_seq_length do_train train_batch_size "
        "learning_rate seed save_checkpoints_steps mixed_precision "
        "gradient_accumulation_steps do_eval use_tpu tpu_name "
        "distribution_strategy "
    )

    bert_config_file: str = option(
        "The bert_config.json of the model.", instead="model", heading="Model"
    )
    init_checkpoint: str | None = optional(
        "TF1 checkpoint to start from, such as DIRECTORY/bert_model.ckpt, or "
        "the --output_dir of another run.",
        check=checks.existing_checkpoint,
    )
    left_to_right: bool = switch(
        "Train a left-to-right model: tokens attend only to earlier ones."
    )
    may_initialize: str = checks.regex_option(
        "Regular expression of weights to initialize randomly if "
        "--init_checkpoint lacks them, for example ^cls/. Weights that "
        "--may_skip also matches may have another shape.",
        "",
    )
    may_skip: str = checks.regex_option(
        "Regular expression of weights in --init_checkpoint to ignore if the "
        "model lacks them.",
        "",
    )
    max_seq_length: int = option(
        "Maximum number of tokens per sequence, including [CLS] and [SEP].",
        128,
        at_least=3,
        heading="Data",
    )
    output_dir: str = option(
        "The run directory: checkpoints, results and TensorBoard events.",
        check=model_formats.require_checkpoint_path,
        heading="Training",
    )
    overwrite_output_dir: bool = switch(
        "Remove the earlier run in --output_dir instead of resuming it.",
        needs="do_train",
    )
    do_train: bool = switch("Whether to train.")
    train_batch_size: int = count(
        "Examples per step, over all devices and micro-batches.", 32
    )
    learning_rate: float = amount("Peak learning rate.", 5e-5)
    optimizer: str = choice(
        "adamw: the original optimizer. lamb: for batches of thousands of "
        "examples.",
        "adamw|lamb",
    )
    seed: int = option(
        "Seed of initial weights, data order and dropout.",
        12345,
        between=(0, 2**31 - 1),
    )
    save_checkpoints_steps: int = count("Steps between checkpoints.", 1000)
    keep_checkpoint_max: int = count("Number of newest checkpoints to keep.", 5)
    plots: bool = switch(
        "Draw training curves and, for up to 100 classes, a confusion matrix.",
        check=checks.installed("matplotlib"),
    )
    iterations_per_loop: int = count(
        "Training steps per compiled call. Default without a TPU: 1.", 1000
    )
    gradient_accumulation_steps: int = count(
        "Micro-batches per step: less memory, more time.", 1
    )
    mixed_precision: str = choice(
        "Compute layers in 16 bits. bfloat16: for TPUs and recent GPUs. "
        "float16: with loss scaling.",
        "none|bfloat16|float16",
    )
    jit_compile: bool = switch(
        "Compile with XLA. On TPUs, this is always done."
    )
    remat: bool = switch(
        "Recompute activations in the backward pass: less memory, more time."
    )
    do_eval: bool = switch(
        "Whether to evaluate on the development set.", heading="Evaluation"
    )
    eval_batch_size: int = count("Examples per evaluation step.", 8)
    eval_every: int = amount(
        "Training steps between evaluations. best/ keeps the best checkpoint, "
        "which is used after training. 0: evaluate only at the end.",
        0,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.do_train:
            self._require_utf8()
        self._check_model()
        if self.used_splits:  # An export may write to another directory.
            files.require_writable_directory(self.output_dir)

    def _require_utf8(self) -> None:
        """Raises `InputError` for values that JSON files cannot contain."""
        for name, value in vars(self).items():
            try:
                str(value).encode()
            except UnicodeEncodeError:
                message = "must be a UTF-8 path. Rename the file or directory."
                raise self.error(name, message) from None

    def _check_model(self) -> None:
        self.model_config().require_length(self.max_seq_length)

    def model_config(self) -> BertConfig:
        """Returns the config in `bert_config_file`, with `left_to_right`."""
        config = BertConfig.from_json_file(self.bert_config_file)
        config.is_left_to_right |= self.left_to_right
        return config

    def to_json(self) -> str:
        """Returns JSON text of the options, to be kept with a run's results."""
        options = dataclasses.asdict(self)
        # ASCII, because a path may not be UTF-8.
        content = {"command": self.command, "options": options}
        return json.dumps(content, indent=2) + "\n"

    @property
    def used_splits(self) -> list[str]:
        """Which of `train`, `dev` and, in fine-tuning, `test` are read."""
        is_used = {
            "train": self.do_train,
            "dev": self.do_eval or (self.do_train and self.eval_every),
        }
        return [split for split in is_used if is_used[split]]

    @property
    def steps_per_call(self) -> int:
        """Training steps per call of the compiled function."""
        is_tpu = self.resolved_strategy == "tpu"
        if self.is_set("iterations_per_loop") or is_tpu:
            return self.iterations_per_loop
        return 1
