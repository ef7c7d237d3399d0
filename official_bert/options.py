"""What every command can be told: one frozen dataclass each, one field a flag.

Names, defaults and meanings of the 2018 release's flags are its own; flags that
it did not have stand last in each class and leave the old behaviour alone.
All values are checked here, before anything slow is imported or begun.
"""

import dataclasses
import os
import re
from collections.abc import Iterable

from official_bert import cli, files
from official_bert.cli import option
from official_bert.config import BertConfig
from official_bert.errors import InputError


@dataclasses.dataclass(frozen=True, kw_only=True)
class BuildVocab(cli.Options):
    """Options of `build_vocab.py`."""

    input_file: str = option(
        "Text to learn from: files or globs, comma-separated; .gz is unpacked."
    )
    vocab_file: str = option("The vocabulary to write, one piece a line.")
    vocab_size: int = option(
        "At most how many pieces to learn, special ones included.",
        30522,
        at_least=10,
    )
    do_lower_case: bool = option(
        "Whether to lower-case the text and strip its accents.", True
    )
    min_count: int = option(
        "How often a piece must occur to be learned.", 2, at_least=1
    )
    num_unused: int = option(
        "How many [unusedN] slots to reserve for words of your own.",
        99,
        at_least=0,
    )
    limit_alphabet: int = option(
        "At most how many different characters to keep, the most frequent.",
        1000,
        at_least=1,
    )
    bert_config_file: str | None = option(
        "A bert_config.json to write beside it, with the vocabulary's size.",
        None,
    )
    hidden_size: int = option("The config's width.", 768, at_least=1)
    num_hidden_layers: int = option("Its layers.", 12, at_least=1)
    num_attention_heads: int = option("Its heads.", 12, at_least=1)
    max_position_embeddings: int = option(
        "The longest sequence its model reads.", 512, at_least=1
    )

    def __post_init__(self) -> None:
        """Checks what can be checked before the text is read."""
        super().__post_init__()
        _check_outputs(
            "--vocab_file and --bert_config_file",
            filter(None, (self.vocab_file, self.bert_config_file)),
            inputs=files.expand(self.input_file),
        )
        if self.bert_config_file:
            self.config(self.vocab_size).validate()

    def config(self, vocab_size: int) -> BertConfig:
        """Returns the config of a model for a vocabulary of that size."""
        return BertConfig(
            vocab_size=vocab_size,
            hidden_size=self.hidden_size,
            num_hidden_layers=self.num_hidden_layers,
            num_attention_heads=self.num_attention_heads,
            intermediate_size=4 * self.hidden_size,
            max_position_embeddings=self.max_position_embeddings,
            type_vocab_size=2,
        )


@dataclasses.dataclass(frozen=True, kw_only=True)
class CreatePretrainingData(cli.Options):
    """Options of `create_pretraining_data.py`."""

    input_file: str = option(
        "Text, one sentence a line, documents parted by blank lines: files or "
        "globs, comma-separated; .gz is unpacked."
    )
    output_file: str = option(
        "TFRecord files to write, comma-separated; instances go to them in "
        "turn."
    )
    vocab_file: str = option("The vocabulary the model is trained with.")
    do_lower_case: bool = option(
        "Whether to lower-case the text. True for uncased models.", True
    )
    do_whole_word_mask: bool = option(
        "Whether to mask whole words rather than single pieces.", False
    )
    max_seq_length: int = option(
        "Pieces per instance, [CLS] and [SEP]s included.",
        128,
        # Three special tokens, and one piece for each of the two segments.
        at_least=5,
    )
    max_predictions_per_seq: int = option(
        "At most how many pieces to mask in an instance.", 20, at_least=1
    )
    random_seed: int = option("Random seed; the same gives the same.", 12345)
    dupe_factor: int = option(
        "How often to go over the text, with other masks.", 10, at_least=1
    )
    masked_lm_prob: float = option(
        "The share of pieces to mask.", 0.15, at_least=0, at_most=1
    )
    short_seq_prob: float = option(
        "The share of instances made shorter than `max_seq_length`.",
        0.1,
        at_least=0,
        at_most=1,
    )
    bert_config_file: str | None = option(
        "The model the records are for; if given, its sizes are checked "
        "against vocabulary and length.",
        None,
    )

    def __post_init__(self) -> None:
        """Checks what can be checked before the text is read."""
        super().__post_init__()
        inputs = files.expand(self.input_file)
        files.require(self.vocab_file, "--vocab_file")
        _check_outputs(
            "--output_file",
            self.output_files(),
            inputs=[*inputs, self.vocab_file],
        )
        if not self.output_files():
            raise InputError(
                "--output_file must name at least one file. "
                f"Received: {self.output_file!r}. Name the TFRecords to write."
            )
        if self.bert_config_file:
            config = BertConfig.from_json_file(self.bert_config_file)
            config.require_length(self.max_seq_length)

    def output_files(self) -> list[str]:
        """Returns the names in `output_file`."""
        return [name for name in self.output_file.split(",") if name]


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
class RunPretraining(Devices):
    """Options of `run_pretraining.py`."""

    bert_config_file: str = option("The bert_config.json of the model.")
    input_file: str = option(
        "TFRecords to read: files or globs, comma-separated."
    )
    output_dir: str = option(
        "Folder for checkpoints, results and TensorBoard events."
    )
    init_checkpoint: str | None = option(
        "TF1 checkpoint to start from, such as uncased_L-12_H-768_A-12/"
        "bert_model.ckpt.",
        None,
    )
    max_seq_length: int = option(
        "Pieces per instance, as the records were made.", 128, at_least=5
    )
    max_predictions_per_seq: int = option(
        "Masked pieces per instance, as the records were made.",
        20,
        at_least=1,
    )
    do_train: bool = option("Whether to train.", False)
    do_eval: bool = option("Whether to evaluate on `input_file`.", False)
    train_batch_size: int = option(
        "Instances per step, over all devices.", 32, at_least=1
    )
    eval_batch_size: int = option(
        "Instances per evaluation step.", 8, at_least=1
    )
    learning_rate: float = option(
        "Adam's learning rate at its peak.", 5e-5, at_least=0
    )
    num_train_steps: int = option("Training steps.", 100000, at_least=1)
    num_warmup_steps: int = option(
        "Steps over which the learning rate rises.", 10000, at_least=0
    )
    save_checkpoints_steps: int = option(
        "Steps between checkpoints.", 1000, at_least=1
    )
    iterations_per_loop: int = option(
        "Steps between visits to the host, on TPUs.", 1000, at_least=1
    )
    max_eval_steps: int = option("Evaluation steps.", 100, at_least=1)
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
        "Seed of initial weights, order of instances and dropout.",
        12345,
        at_least=0,
        at_most=2**31 - 1,
    )
    vocab_file: str | None = option(
        "The vocabulary, if it is to be checked and kept with the model.", None
    )

    def __post_init__(self) -> None:
        """Checks everything that can be checked without TensorFlow."""
        super().__post_init__()
        if not (self.do_train or self.do_eval):
            raise InputError(
                "At least one of --do_train and --do_eval must be given."
            )
        files.expand(self.input_file)
        config = BertConfig.from_json_file(self.bert_config_file)
        config.require_length(self.max_seq_length)
        if self.init_checkpoint:
            _require_checkpoint(self.init_checkpoint)
        if self.vocab_file:
            files.require(self.vocab_file, "--vocab_file")
        files.require_room(self.output_dir)
        for name in ("may_initialize", "may_skip"):
            _require_pattern(name, getattr(self, name))


def _require_checkpoint(prefix: str) -> None:
    if not files.exists(prefix + ".index"):
        raise InputError(
            "--init_checkpoint must name a TF1 checkpoint, whose files are "
            f"called NAME.index and NAME.data-*. Received: {prefix!r}, and "
            f"there is no {prefix + '.index'!r}. Check the path, and give it "
            "without what follows NAME."
        )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Demo(cli.Options):
    """Options of `demo.py`: a model that two cores train in minutes."""

    output_dir: str = option("Folder for all that it makes.", "demo")
    vocab_size: int = option("At most how many pieces to learn.", 4000)
    hidden_size: int = option("The model's width.", 128, at_least=1)
    num_hidden_layers: int = option("Its layers.", 2, at_least=1)
    num_attention_heads: int = option("Its heads.", 4, at_least=1)
    max_seq_length: int = option("Pieces per instance.", 64, at_least=5)
    max_predictions_per_seq: int = option(
        "At most how many to mask in each.", 10, at_least=1
    )
    dupe_factor: int = option("How often to mask the text anew.", 10)
    train_batch_size: int = option("Instances per step.", 32, at_least=1)
    learning_rate: float = option("Adam's rate at its peak.", 1e-3)
    num_train_steps: int = option("Training steps.", 4000, at_least=1)


def _check_outputs(
    flags: str, outputs: Iterable[str], inputs: Iterable[str]
) -> None:
    taken = {os.path.realpath(name) for name in inputs}
    for output in outputs:
        if os.path.realpath(output) in taken:
            raise InputError(
                f"{flags} must name each file once, and no input. "
                f"Received: {output!r}. Rename it."
            )
        taken.add(os.path.realpath(output))
        files.require_room_for_file(output)


def _require_pattern(name: str, pattern: str) -> None:
    try:
        re.compile(pattern)
    except re.error as error:
        raise InputError(
            f"--{name} must be a regular expression. Received: {pattern!r} "
            f"({error})."
        ) from error
