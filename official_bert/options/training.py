"""Options that all training commands share."""

import dataclasses
import functools
import json
from typing import Any

from official_bert.config import BertConfig
from official_bert.io import files
from official_bert.options import checks, flags, tf_config
from official_bert.options.model_source import NamedModel
from official_bert.runs.directory import RunDirectory
from official_bert.sources import checkpoint_paths


class DeviceOptions(
    flags.Options, heading="Devices", common=False, **flags.EXECUTION
):
    """The devices that a training command runs on."""

    use_tpu: bool = flags.switch(
        "Use a TPU instead of GPUs or CPU.", common=True
    )
    tpu_name: str | None = flags.optional(
        "Name or grpc:// address of a TPU. Default: a local one.", common=True
    )
    tpu_zone: str | None = flags.optional("Zone of the TPU, if not detected.")
    gcp_project: str | None = flags.optional(
        "Project of the TPU, if not detected."
    )
    master: str | None = flags.optional(
        "A grpc:// address, instead of --tpu_name."
    )
    num_tpu_cores: int = flags.positive("Maximum number of TPU cores.", 8)
    distribution_strategy: str = flags.choice(
        "none: one device. mirrored: all GPUs of this machine share each "
        "batch. multi_worker_mirrored: all GPUs of the hosts in TF_CONFIG "
        "share it. tpu: the same as --use_tpu.",
        "none|mirrored|multi_worker_mirrored|tpu",
        common=True,
    )

    def _check(self) -> None:
        super()._check()
        if self.use_tpu and self.distribution_strategy not in ("none", "tpu"):
            message = "conflicts with --use_tpu. Omit one of them."
            raise self.error("distribution_strategy", message)
        if self.distribution_strategy == "multi_worker_mirrored":
            tf_config.require()
            for name, field in self.fields().items():
                advice = field.metadata["one_host"]
                if advice and self.is_set(name):
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


class TrainingOptions(
    NamedModel, DeviceOptions, heading="Training", common=False
):
    """Options of all training commands, with the defaults of the original."""

    # Values in the commands that lack these flags.
    nsp = bert_hub_module_handle = ""
    early_stopping = mine_negatives = 0

    bert_config_file: str = flags.path_option(
        "The model's bert_config.json.", implied_by="model", heading="Model"
    )
    init_checkpoint: str | None = flags.optional_path(
        "TF1 checkpoint to start from, such as DIRECTORY/bert_model.ckpt, or "
        "the --output_dir of another run.",
        check=checks.existing_checkpoint,
        common=True,
        inherited=False,
    )
    left_to_right: bool = flags.switch(
        "Train a left-to-right model: tokens attend only to earlier ones.",
        on_resume="free",
        with_module=False,
    )
    may_initialize: str = checks.regex_option(
        "Regular expression of weights to initialize randomly if "
        "--init_checkpoint lacks them, for example ^cls/. Weights that "
        "--may_skip also matches may have another shape.",
        on_resume="free",
    )
    may_skip: str = checks.regex_option(
        "Regular expression of weights that only the checkpoint may have.",
        on_resume="free",
    )
    max_seq_length: int = flags.option(
        "Maximum number of tokens per sequence, including [CLS] and [SEP].",
        128,
        at_least=3,
        heading="Data",
        common=True,
    )
    output_dir: str = flags.path_option(
        "The run directory: checkpoints, results and TensorBoard events.",
        check=checkpoint_paths.require_supported,
        heading="Training",
        **flags.EXECUTION,
        in_sweep=False,
    )
    overwrite_output_dir: bool = flags.switch(
        "Remove the earlier run in --output_dir instead of resuming it.",
        needs="do_train",
        common=True,
        **flags.PER_COMMAND,
        one_host="Omit it, and remove the directory.",
    )
    do_train: bool = flags.switch(
        "Whether to train.", common=True, **flags.ACTION
    )
    train_batch_size: int = flags.positive(
        "Examples per step, over all devices and micro-batches.",
        32,
        common=True,
        on_resume="if_steps_left",
    )
    learning_rate: float = flags.non_negative(
        "Peak learning rate.", 5e-5, common=True
    )
    optimizer: str = flags.choice(
        "adamw: the original one. lamb: for batches of thousands of examples.",
        "adamw|lamb",
    )
    adam_bias_correction: bool = flags.switch(
        "Correct the bias of AdamW's moments in the first steps, which the "
        "original implementation does not do."
    )
    lr_schedule: str = flags.choice(
        "The learning rate after the warm-up.", "linear|cosine|constant"
    )
    seed: int = flags.option(
        "Seed of initial weights, data order and dropout.",
        12345,
        between=(0, 2**31 - 1),
        common=True,
        on_resume="if_steps_left",
    )
    save_checkpoints_steps: int = flags.positive(
        "Steps between checkpoints.", 1000, common=True, **flags.EXECUTION
    )
    keep_checkpoint_max: int = flags.positive(
        "Number of newest checkpoints to keep.", 5, **flags.EXECUTION
    )
    plots: bool = flags.switch(
        "Draw training curves and, for up to 100 classes, a confusion matrix.",
        check=checks.installed("matplotlib"),
        common=True,
        **flags.EXECUTION,
    )
    iterations_per_loop: int = flags.positive(
        "Steps per compiled call. Default without a TPU: 1.",
        1000,
        **flags.EXECUTION,
    )
    gradient_accumulation_steps: int = flags.positive(
        "Micro-batches per step: less memory, more time.", 1, **flags.EXECUTION
    )
    mixed_precision: str = flags.choice(
        "Compute layers in 16 bits. bfloat16: for TPUs and recent GPUs. "
        "float16: with loss scaling.",
        "none|bfloat16|float16",
        common=True,
        **flags.PER_COMMAND,
        with_module=False,
    )
    matmul_precision: str = flags.choice(
        "bfloat16: round the operands of matrix products to bfloat16; all else "
        "stays in float32. Faster on processors with bfloat16 instructions.",
        "float32|bfloat16",
        conflicts="mixed_precision",
        **flags.PER_COMMAND,
        with_module=False,
    )
    jit_compile: bool = flags.switch(
        "Compile with XLA. On TPUs, this is always done.", **flags.EXECUTION
    )
    remat: bool = flags.switch(
        "Recompute activations in the backward pass: less memory, more time.",
        **flags.EXECUTION,
        with_module=False,
    )
    do_eval: bool = flags.switch(
        "Whether to evaluate on the development set.",
        heading="Evaluation",
        common=True,
        **flags.ACTION,
    )
    eval_batch_size: int = flags.positive(
        "Examples per evaluation step.", 8, **flags.NEUTRAL
    )
    eval_every: int = flags.non_negative(
        "Training steps between evaluations. best/ keeps the best checkpoint, "
        "which is used after training. 0: evaluate only at the end.",
        common=True,
        **flags.PER_COMMAND,
    )

    def _complete(self) -> flags.Self:
        """Without --do_train, fills in the options of the earlier run."""
        options = super()._complete()
        if options.do_train or not options.output_dir:
            return options
        return options.fill(options._earlier_options())

    def _earlier_options(self) -> dict[str, Any]:
        """Returns the options of the earlier run in --output_dir."""
        raise NotImplementedError

    def _check(self) -> None:
        super()._check()
        if self.do_train:
            self._require_utf8()
        self._check_model()
        if self.used_splits:  # An export may write to another directory.
            files.require_writable_directory(self.output_dir)

    def _require_utf8(self) -> None:
        """Raises `InputError` for values that JSON files cannot contain."""
        for name in self.fields():
            try:
                str(getattr(self, name)).encode()
            except UnicodeEncodeError:
                message = "must be a UTF-8 path. Rename the file or directory."
                raise self.error(name, message) from None

    def _check_model(self) -> None:
        """Raises `InputError` if the model does not fit the options."""
        self.model_config().require_length(self.max_seq_length)

    def model_config(self) -> BertConfig:
        """Returns the config in `bert_config_file`, with `left_to_right`."""
        config = self.model_files.config
        is_left_to_right = config.is_left_to_right or self.left_to_right
        return dataclasses.replace(config, is_left_to_right=is_left_to_right)

    def to_json(self) -> str:
        """Returns JSON text of the options, to be kept with a run's results."""
        # ASCII, because a path may not be UTF-8.
        content = {"command": self.command, "options": dataclasses.asdict(self)}
        return json.dumps(content, indent=2) + "\n"

    @functools.cached_property
    def run_directory(self) -> RunDirectory:
        """The directory `output_dir`, whose record is read once."""
        return RunDirectory(self.output_dir)

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
