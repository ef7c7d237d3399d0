"""Options that all training commands share."""

import dataclasses

from official_bert import cli, files
from official_bert.cli import option
from official_bert.config import BertConfig
from official_bert.errors import InputError
from official_bert.options.checks import require_checkpoint, require_pattern


@dataclasses.dataclass(frozen=True, kw_only=True)
class Devices(cli.Options):
    """Which devices a training command runs on."""

    use_tpu: bool = option("Whether to use TPU or GPU/CPU.", False)
    tpu_name: str | None = option(
        "The Cloud TPU to use: its name, or grpc://ip.address.of.tpu:8470.",
        None,
    )
    tpu_zone: str | None = option("The TPU's zone, if not found itself.", None)
    gcp_project: str | None = option(
        "The TPU's project, if not found itself.", None
    )
    master: str | None = option("A TensorFlow master URL.", None)
    num_tpu_cores: int = option(
        "With `use_tpu`: how many TPU cores to use.", 8, at_least=1
    )
    distribution_strategy: str = option(
        "none: one device. mirrored: all GPUs of this machine, each with its "
        "share of every batch.",
        "none",
        choices=("none", "mirrored"),
    )

    def __post_init__(self) -> None:
        """Refuses what cannot run yet, rather than running something else."""
        super().__post_init__()
        if self.use_tpu:
            raise InputError(
                "--use_tpu is read but TPUs cannot be used yet. Leave it out "
                "to train on CPU or GPUs."
            )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Training(Devices):
    """What is trained, from what, where to, and how fast."""

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
        "Examples per step, over all devices.", 32, at_least=1
    )
    learning_rate: float = option(
        "Adam's learning rate at its peak.", 5e-5, at_least=0
    )
    save_checkpoints_steps: int = option(
        "Steps between checkpoints.", 1000, at_least=1
    )
    iterations_per_loop: int = option(
        "Steps between visits to the host, on TPUs.", 1000, at_least=1
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

    def __post_init__(self) -> None:
        """Checks everything that can be checked without TensorFlow."""
        super().__post_init__()
        config = BertConfig.from_json_file(self.bert_config_file)
        config.require_length(self.max_seq_length)
        if self.init_checkpoint:
            require_checkpoint(self.init_checkpoint)
        files.require_room(self.output_dir)
        for name in ("may_initialize", "may_skip"):
            require_pattern(name, getattr(self, name))
