"""Options that all training commands share."""

import dataclasses

from official_bert import cli, files
from official_bert.cli import option
from official_bert.config import BertConfig
from official_bert.errors import InputError
from official_bert.options import tf_config
from official_bert.options.checks import (
    require_checkpoint,
    require_package,
    require_pattern,
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class DeviceOptions(cli.Options):
    """Which devices a training command runs on."""

    use_tpu: bool = option("Whether to use TPU or GPU/CPU.", False)
    tpu_name: str | None = option(
        "The Cloud TPU to use: its name, or grpc://ip.address.of.tpu:8470. "
        "Without one, the TPU of this machine.",
        None,
    )
    tpu_zone: str | None = option(
        "The TPU's zone, if it cannot be found out.", None
    )
    gcp_project: str | None = option(
        "The TPU's project, if it cannot be found out.", None
    )
    master: str | None = option(
        "A TensorFlow master URL: that of the TPU, if `tpu_name` is not given.",
        None,
    )
    num_tpu_cores: int = option(
        "With `use_tpu`: how many TPU cores to use, if there are so many.",
        8,
        at_least=1,
    )
    distribution_strategy: str = option(
        "Who shares every batch. none: one device. mirrored: all GPUs of this "
        "machine. multi_worker_mirrored: those of all hosts in the environment "
        "variable TF_CONFIG. tpu: as `use_tpu`.",
        "none",
        choices=("none", "mirrored", "multi_worker_mirrored", "tpu"),
    )

    def __post_init__(self) -> None:
        """Refuses what cannot run, before anything expensive."""
        super().__post_init__()
        if self.use_tpu and self.distribution_strategy not in ("none", "tpu"):
            raise InputError(
                "--use_tpu must go with --distribution_strategy=tpu, or none. "
                f"Received: {self.distribution_strategy!r}. Leave out one of "
                "both."
            )
        if self.distribution_strategy == "multi_worker_mirrored":
            tf_config.require()

    @property
    def resolved_strategy(self) -> str:
        """What `distribution_strategy` comes to, `use_tpu` considered."""
        return "tpu" if self.use_tpu else self.distribution_strategy

    @property
    def is_chief(self) -> bool:
        """Whether this process writes the run's files: one host of several."""
        return tf_config.is_chief(self.resolved_strategy)


@dataclasses.dataclass(frozen=True, kw_only=True)
class StepOptions(DeviceOptions):
    """How a training step is computed; the defaults are those of 2018."""

    iterations_per_loop: int = option(
        "Steps between visits to the host. The default means 1000 on TPUs and "
        "1 elsewhere.",
        1000,
        at_least=1,
    )
    gradient_accumulation_steps: int = option(
        "In how many parts, one after the other, each device goes through its "
        "share of a batch: less memory for more time.",
        1,
        at_least=1,
    )
    mixed_precision: str = option(
        "Layers compute in 16 bits; weights and losses stay in float32. "
        "bfloat16 is for TPUs and new GPUs; float16 scales the loss.",
        "none",
        choices=("none", "bfloat16", "float16"),
    )
    jit_compile: bool = option(
        "Whether XLA compiles the step, as it always does on TPUs.", False
    )
    remat: bool = option(
        "Whether to compute the inside of every Transformer layer again for "
        "its gradient rather than to remember it: less memory for more time.",
        False,
    )
    optimizer: str = option(
        "adamw: that of 2018. lamb: for batches of thousands.",
        "adamw",
        choices=("adamw", "lamb"),
    )

    @property
    def steps_per_call(self) -> int:
        """What `iterations_per_loop` comes to on these devices."""
        is_default = self.iterations_per_loop == StepOptions.iterations_per_loop
        if is_default and self.resolved_strategy != "tpu":
            return 1
        return self.iterations_per_loop


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrainingOptions(StepOptions):
    """What is trained, from what, where to, and how fast."""

    command = ""  # The file that is told it; no flag.

    bert_config_file: str = option("The bert_config.json of the model.")
    output_dir: str = option(
        "Folder for checkpoints, results and TensorBoard events."
    )
    init_checkpoint: str | None = option(
        "TF1 checkpoint to start from, such as uncased_L-12_H-768_A-12/"
        "bert_model.ckpt.",
        None,
    )
    max_seq_length: int = option(
        "Pieces per sequence, [CLS] and [SEP]s included.", 128, at_least=3
    )
    do_train: bool = option("Whether to train.", False)
    train_batch_size: int = option(
        "Examples per step, over all devices and micro-batches.", 32, at_least=1
    )
    learning_rate: float = option(
        "The optimizer's learning rate at its peak.", 5e-5, at_least=0
    )
    save_checkpoints_steps: int = option(
        "Steps between checkpoints.", 1000, at_least=1
    )
    left_to_right: bool = option(
        "Whether a piece sees only itself and those before it, as in an "
        "ordinary language model; the same as is_left_to_right in the "
        "bert_config.json, where it is left for later commands.",
        False,
    )
    may_initialize: str = option(
        "Regular expression of weights that `init_checkpoint` may lack, and "
        "that then start anew, such as ^cls/.",
        "",
    )
    may_skip: str = option(
        "Regular expression of weights in `init_checkpoint` that may go "
        "unused, such as ^output_.",
        "",
    )
    keep_checkpoint_max: int = option(
        "How many checkpoints to keep, the newest.", 5, at_least=1
    )
    seed: int = option(
        "Seed of initial weights, order of examples and dropout.",
        12345,
        at_least=0,
        at_most=2**31 - 1,
    )
    plots: bool = option(
        "Whether to draw training_curves and, of classes, confusion_matrix as "
        ".png and .html in `output_dir` at the end of the run.",
        False,
    )

    def __post_init__(self) -> None:
        """Checks everything that can be checked without TensorFlow."""
        super().__post_init__()
        self._check_model()
        if self.plots:
            require_package("--plots", "matplotlib")
        files.require_checkpoint_path(self.output_dir)
        files.require_writable_directory(self.output_dir)
        for name in ("may_initialize", "may_skip"):
            require_pattern(name, getattr(self, name))

    def _check_model(self) -> None:
        """Looks at the files that the model is made of."""
        self.model_config().require_length(self.max_seq_length)
        if self.init_checkpoint:
            require_checkpoint(self.init_checkpoint)

    def model_config(self) -> BertConfig:
        """Reads `bert_config_file`; `left_to_right` is added to it."""
        config = BertConfig.from_json_file(self.bert_config_file)
        config.is_left_to_right |= self.left_to_right
        return config
