"""Options of `run_squad.py`."""

import dataclasses

from official_bert.cli import COMPATIBILITY, option
from official_bert.options.checks import existing_file
from official_bert.options.finetuning import FinetuningOptions


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunSquad(FinetuningOptions, heading="Data"):
    """Options of `run_squad.py`."""

    command = "run_squad.py"

    train_file: str | None = option(
        "SQuAD JSON to train on, for example train-v1.1.json.",
        None,
        needed_by=("do_train",),
        check=existing_file,
    )
    predict_file: str | None = option(
        "SQuAD JSON to predict and evaluate, for example dev-v1.1.json.",
        None,
        needed_by=("do_predict", "do_eval", "eval_every"),
        check=existing_file,
    )
    max_seq_length: int = option(
        "Maximum number of tokens per sequence or window.", 384, at_least=5
    )
    doc_stride: int = option(
        "Number of tokens between the starts of two windows.", 128, at_least=1
    )
    max_query_length: int = option(
        "Maximum tokens of a question; the rest is cut.", 64, at_least=0
    )
    version_2_with_negative: bool = option(
        "Whether some questions have no answer, as in SQuAD 2.0.", False
    )
    n_best_size: int = option(
        "Number of answers in nbest_predictions.json.",
        20,
        at_least=1,
        heading="Prediction and export",
    )
    max_answer_length: int = option(
        "Maximum number of tokens of an answer.", 30, at_least=1
    )
    null_score_diff_threshold: float = option(
        "Predict no answer if its score is higher by more than this.", 0.0
    )
    # In the original, padding positions compete for the n best logits, and may
    # replace an answer.
    eval_pad_to: str = option(
        "Padding in evaluation and prediction. max: to --max_seq_length. "
        "bucket: by similar length; faster, no padding among the n best.",
        "max",
        choices=("max", "bucket"),
    )
    verbose_logging: bool = option("No effect.", False, heading=COMPATIBILITY)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.max_seq_length <= self.max_query_length + 3:
            message = f"must exceed {self.flag('max_query_length')} + 3."
            raise self.error("max_seq_length", message)
