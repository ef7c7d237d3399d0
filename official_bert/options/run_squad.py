"""Options of `run_squad.py`."""

from official_bert.options.checks import file_option
from official_bert.options.finetuning import FinetuningOptions
from official_bert.options.flags import (
    LEGACY,
    amount,
    choice,
    count,
    option,
    switch,
)


class RunSquad(FinetuningOptions, heading="Data"):
    """Options of `run_squad.py`."""

    common = FinetuningOptions.common + (
        "model init_checkpoint do_lower_case train_file predict_file "
        "doc_stride version_2_with_negative"
    )

    train_file: str | None = file_option(
        "A SQuAD JSON file to train on.", None, needed_by=("do_train",)
    )
    predict_file: str | None = file_option(
        "A SQuAD JSON file to predict and evaluate.",
        None,
        needed_by=("do_predict", "do_eval", "eval_every"),
    )
    max_seq_length: int = option(
        "Maximum number of tokens per sequence or window.", 384, at_least=5
    )
    doc_stride: int = count("Tokens between the starts of two windows.", 128)
    max_query_length: int = amount(
        "Maximum number of tokens of a question; the rest is truncated.", 64
    )
    version_2_with_negative: bool = switch(
        "Whether some questions have no answer, as in SQuAD 2.0."
    )
    n_best_size: int = count(
        "Number of answers in nbest_predictions.json.",
        20,
        heading="Prediction and export",
    )
    max_answer_length: int = count("Maximum number of tokens of an answer.", 30)
    null_score_diff_threshold: float = option(
        'Predict "no answer" if its score exceeds the score of the best answer '
        "by more than this value.",
        0.0,
    )
    # The default is the original's: padding positions compete for the n best
    # logits and may replace an answer.
    eval_pad_to: str = choice(
        "Like --pad_to, in evaluation and prediction. bucket is faster, and "
        "padding is never chosen as an answer.",
        "max|bucket",
        heading="Evaluation",
    )
    verbose_logging: bool = switch("No effect.", heading=LEGACY)

    def __post_init__(self) -> None:
        super().__post_init__()
        decodes = self.do_export or {"dev", "test"} & set(self.used_splits)
        if decodes and self.version_2_with_negative and self.n_best_size == 1:
            message = (
                "must be at least 2 with --version_2_with_negative: an answer "
                "and no answer."
            )
            raise self.error("n_best_size", message)
        if self.max_seq_length <= self.max_query_length + 3:
            message = (
                f"must exceed {self.flag('max_query_length')} + 3, for "
                "special tokens and a part of the paragraph."
            )
            raise self.error("max_seq_length", message)
