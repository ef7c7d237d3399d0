"""Options of `run_pretraining.py`."""

import dataclasses

from official_bert.cli import option
from official_bert.options import create_pretraining_data
from official_bert.options.checks import existing_file, existing_files
from official_bert.options.training import TrainingOptions


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunPretraining(TrainingOptions, heading="Data"):
    """Options of `run_pretraining.py`."""

    command = "run_pretraining.py"
    one_of = ("do_train", "do_eval")

    input_file: str = option(
        "TFRecord files of instances: files or glob patterns, comma-separated.",
        check=existing_files,
    )
    max_seq_length: int = option(
        "Tokens per instance, as in the records.", 128, at_least=5
    )
    max_predictions_per_seq: int = option(
        "Masked tokens per instance, as in the records.", 20, at_least=1
    )
    pack_sequences: bool = option(
        "Whether the records were created with --pack_sequences.", False
    )
    max_sequences_per_row: int = option(
        "With --pack_sequences: instances per record, as in the records.",
        create_pretraining_data.MAX_SEQUENCES_PER_ROW,
        at_least=1,
    )
    num_train_steps: int = option(
        "Training steps.", 100000, at_least=1, heading="Training"
    )
    num_warmup_steps: int = option(
        "Steps over which the learning rate rises.", 10000, at_least=0
    )
    nsp: str = option(
        "Loss on segment pairs. next: next sentence prediction. sop: sentence "
        "order, with records of --nsp=sop. none: no loss.",
        "next",
        choices=create_pretraining_data.PAIR_TASKS,
    )
    do_eval: bool = option(
        "Whether to evaluate on --input_file.", False, heading="Evaluation"
    )
    eval_batch_size: int = option(
        "Instances per evaluation step.", 8, at_least=1
    )
    max_eval_steps: int = option(
        "Maximum number of evaluation steps.", 100, at_least=1
    )
    vocab_file: str | None = option(
        "The vocabulary, to check and to copy to --output_dir.",
        None,
        check=existing_file,
        heading="Model",
    )
