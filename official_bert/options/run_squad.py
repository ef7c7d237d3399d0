"""Options of `run_squad.py`."""

from official_bert.options import checks, flags
from official_bert.options.finetuning import FinetuningOptions


class RunSquad(FinetuningOptions, heading="Data", common=False):
    """Options of `run_squad.py`."""

    train_file: str | None = checks.optional_file(
        "A SQuAD JSON file to train on, or a .jsonl, .csv or .tsv table with "
        "the columns question, context, answer_text, answer_start.",
        needed_by="do_train",
        common=True,
    )
    predict_file: str | None = checks.optional_file(
        "A SQuAD JSON file or a table to predict and evaluate.",
        needed_by="do_predict do_eval eval_every",
        common=True,
    )
    max_seq_length: int = flags.option(
        "Maximum tokens per sequence or window.", 384, at_least=5, common=True
    )
    doc_stride: int = flags.positive(
        "Tokens between the starts of two windows.", 128, common=True
    )
    max_query_length: int = flags.non_negative(
        "Maximum number of tokens of a question; the rest is truncated.", 64
    )
    version_2_with_negative: bool = flags.switch(
        "Whether some questions have no answer, as in SQuAD 2.0.", common=True
    )
    n_best_size: int = flags.positive(
        "Number of answers in nbest_predictions.json.",
        20,
        heading="Prediction and export",
        on_resume="free",
    )
    max_answer_length: int = flags.positive(
        "Maximum number of tokens of an answer.", 30, on_resume="free"
    )
    null_score_diff_threshold: float = flags.option(
        'Predict "no answer" if its score exceeds the score of the best answer '
        "by more than this value.",
        0.0,
        on_resume="free",
    )
    # The default is the original's: padding positions compete for the n best
    # logits and may replace an answer.
    eval_pad_to: str = flags.choice(
        "Like --pad_to, in evaluation and prediction. bucket is faster, and "
        "padding is never chosen as an answer.",
        "max|bucket",
        heading="Evaluation",
        **flags.NEUTRAL,
    )
    verbose_logging: bool = flags.switch(
        "No effect.", heading=flags.LEGACY, on_resume="free"
    )

    def _check(self) -> None:
        super()._check()
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
