"""Options of `run_squad.py`."""

import dataclasses

from official_bert import files
from official_bert.cli import option
from official_bert.errors import InputError
from official_bert.options.finetuning import FinetuningOptions


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunSquad(FinetuningOptions):
    """What `run_squad.py` can be told."""

    command = "run_squad.py"

    train_file: str | None = option(
        "SQuAD JSON to train on, such as train-v1.1.json.", None
    )
    predict_file: str | None = option(
        "SQuAD JSON to predict, such as dev-v1.1.json; its answers, if it has "
        "any, are compared.",
        None,
    )
    max_seq_length: int = option(
        "Pieces per sequence; longer passages are read in windows.",
        384,
        at_least=5,
    )
    doc_stride: int = option(
        "How many pieces a window begins after the one before it.",
        128,
        at_least=1,
    )
    max_query_length: int = option(
        "How many pieces of a question are kept.", 64, at_least=0
    )
    n_best_size: int = option(
        "How many starts and ends are combined, and how many answers written "
        "to nbest_predictions.json.",
        20,
        at_least=1,
    )
    max_answer_length: int = option(
        "How many pieces an answer may have.", 30, at_least=1
    )
    verbose_logging: bool = option(
        "Accepted for old command lines; it has no effect.", False
    )
    version_2_with_negative: bool = option(
        "Whether some questions have no answer, as in SQuAD 2.0.", False
    )
    null_score_diff_threshold: float = option(
        "By how much the score of no answer must be better than that of the "
        "best answer to be predicted.",
        0.0,
    )
    # In 2018 the best logits are chosen among all positions, padding too, so
    # that now and then one of the n best is missing.
    eval_pad_to: str = option(
        "max: sequences of max_seq_length, as in 2018. bucket: batches of "
        "similar length; faster, and no padding among the n best.",
        "max",
        choices=("max", "bucket"),
    )

    def __post_init__(self) -> None:
        """Checks everything that can be checked without TensorFlow."""
        super().__post_init__()
        needed = {
            "train_file": ("--do_train", self.do_train),
            "predict_file": (
                "--do_predict, --do_eval and --eval_every",
                self.do_predict or self.do_eval or self.eval_every,
            ),
        }
        for name, (flags, is_needed) in needed.items():
            path = getattr(self, name)
            if is_needed and not path:
                raise InputError(
                    f"{flags} must come with --{name}. Received: none. "
                    "Name the file."
                )
            if is_needed:
                files.require(path, f"--{name}")
        if self.max_seq_length <= self.max_query_length + 3:
            raise InputError(
                "--max_seq_length must be greater than --max_query_length + 3. "
                f"Received: {self.max_seq_length} and {self.max_query_length}."
            )
