"""Options of `run_pretraining.py`."""

from typing import Any

from official_bert.options import checks, create_pretraining_data, flags
from official_bert.options.training import TrainingOptions
from official_bert.runs import file_names


class RunPretraining(TrainingOptions, heading="Data", common=False):
    """Options of `run_pretraining.py`."""

    one_of = ("do_train", "do_eval")

    input_file: str = flags.path_option(
        "TFRecord files of instances, or glob patterns, comma-separated.",
        check=checks.existing_files,
    )
    max_seq_length: int = flags.option(
        "Tokens per instance, as in the records.", 128, at_least=5, common=True
    )
    max_predictions_per_seq: int = flags.positive(
        "Masked tokens per instance, as in the records.", 20, common=True
    )
    pack_sequences: bool = flags.switch(
        "Whether the records were created with --pack_sequences."
    )
    max_sequences_per_row: int = flags.positive(
        "With --pack_sequences: as in create_pretraining_data.py.",
        create_pretraining_data.MAX_SEQUENCES_PER_ROW,
    )
    num_train_steps: int = flags.positive(
        "Training steps.",
        100000,
        heading="Training",
        common=True,
        on_resume="if_steps_left",
    )
    num_warmup_steps: int = flags.non_negative(
        "Steps over which the learning rate rises.", 10000, common=True
    )
    nsp: str = flags.choice(
        "Loss on segment pairs: next sentence, sentence order (records of "
        "--nsp=sop), or none. Default of evaluation without training: as in "
        "the run.",
        "next|sop|none",
        common=True,
    )
    do_eval: bool = flags.switch(
        "Evaluate on --eval_file or, without it, on --input_file.",
        heading="Evaluation",
        common=True,
        **flags.ACTION,
    )
    eval_file: str | None = flags.optional_path(
        "TFRecord files to evaluate on, such as held-out ones.",
        check=checks.existing_files,
        common=True,
    )
    eval_every: int = flags.non_negative(
        "Training steps between evaluations. 0: evaluate only at the end.",
        needs="eval_file",
        **flags.PER_COMMAND,
    )
    max_eval_steps: int = flags.positive(
        "Evaluation steps; too few records are repeated.", 100, on_resume="free"
    )
    vocab_file: str | None = checks.optional_file(
        "The vocabulary, to check and to copy to --output_dir.",
        heading="Model",
        common=True,
    )

    def _earlier_options(self) -> dict[str, Any]:
        """Returns the config and the loss of the run to evaluate."""
        run = self.run_directory
        earlier = {k: v for k, v in run.record.options.items() if k == "nsp"}
        if run.has(file_names.CONFIG):
            earlier["bert_config_file"] = run.file(file_names.CONFIG)
        return earlier
