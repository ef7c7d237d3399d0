"""Options of `run_pretraining.py`."""

import dataclasses

from official_bert import files
from official_bert.cli import option
from official_bert.errors import InputError
from official_bert.options.create_pretraining_data import (
    MAX_SEQUENCES_PER_ROW,
    PAIR_TASKS,
)
from official_bert.options.training import TrainingOptions


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunPretraining(TrainingOptions):
    """Options of `run_pretraining.py`."""

    command = "run_pretraining.py"

    input_file: str = option(
        "TFRecords to read: files or globs, comma-separated."
    )
    max_seq_length: int = option(
        "Pieces per instance, as the records were made.", 128, at_least=5
    )
    max_predictions_per_seq: int = option(
        "Masked pieces per instance, as the records were made.",
        20,
        at_least=1,
    )
    pack_sequences: bool = option(
        "Whether the records are rows of several instances, made with "
        "--pack_sequences.",
        False,
    )
    max_sequences_per_row: int = option(
        "With `pack_sequences`: instances per row, as the records were made.",
        MAX_SEQUENCES_PER_ROW,
        at_least=1,
    )
    nsp: str = option(
        "What to learn from pairs. next: next sentence. sop: sentence order; "
        "the records must be made with --nsp=sop. none: nothing.",
        "next",
        choices=PAIR_TASKS,
    )
    do_eval: bool = option("Whether to evaluate on `input_file`.", False)
    eval_batch_size: int = option(
        "Instances per evaluation step.", 8, at_least=1
    )
    num_train_steps: int = option("Training steps.", 100000, at_least=1)
    num_warmup_steps: int = option(
        "Steps over which the learning rate rises.", 10000, at_least=0
    )
    max_eval_steps: int = option("Evaluation steps.", 100, at_least=1)
    vocab_file: str | None = option(
        "The vocabulary, if it is to be checked and kept with the model.", None
    )

    def __post_init__(self) -> None:
        """Checks everything that can be checked without TensorFlow."""
        super().__post_init__()
        if not (self.do_train or self.do_eval):
            raise InputError(
                "At least one of --do_train and --do_eval must be given. "
                "Received: neither."
            )
        files.expand(self.input_file)
        if self.vocab_file:
            files.require(self.vocab_file, "--vocab_file")
