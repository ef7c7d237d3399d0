"""Options of `run_classifier.py` for sentence embeddings."""

from official_bert.io import files, tables
from official_bert.options import checks, flags
from official_bert.options.task_data import TaskDataOptions
from official_bert.sources.embedding_settings import TRAINED_POOLINGS


def parse_sizes(value: str) -> tuple[int, ...]:
    """Returns the numbers in "64,128".

    Raises `ValueError`, whose message ends a sentence, if they are malformed.
    """
    parts = value.split(",") if value else []
    if not all(part.isdecimal() and 0 < int(part) < 2**16 for part in parts):
        raise ValueError("must be numbers above 0, such as 64,128.")
    return tuple(map(int, parts))


def _passages(paths: str) -> str | None:
    if any(map(tables.format_of, files.expand_if_pattern(paths))):
        return "must be a text file with a passage per line, not a table."
    return None


class EmbeddingOptions(
    TaskDataOptions, heading="Training", common=False, tasks="embedding"
):
    """The flags that only `--task_type=embedding` supports."""

    one_of = (*TaskDataOptions.one_of, "mine_negatives")

    pooling: str = flags.choice(
        "Embeddings: how the vectors of tokens become one vector. auto: as in "
        "the model's sentence-transformers files, otherwise mean.",
        "|".join(["auto", *TRAINED_POOLINGS]),
    )
    embedding_size: int | None = flags.option(
        "Embeddings: add a dense layer with tanh and this number of outputs "
        "after the pooling. 0: no such layer. Default: as in the model, "
        "otherwise 0.",
        None,
        between=(0, 65535),
    )
    matryoshka: str = flags.text(
        "Embeddings: sizes such as 64,128. The first 64 and 128 numbers of "
        "each vector are also trained, so that truncated vectors are good, "
        "too.",
        check=checks.parsed_by(parse_sizes),
        conflicts="teacher",
    )
    temperature: float = flags.option(
        "Embeddings: the divisor of cosines in the losses.",
        0.05,
        at_least=1e-3,
        conflicts="teacher",
    )
    symmetric_loss: bool = flags.switch(
        "Embeddings: in pairs without scores, each match must also find its "
        "text, as in MultipleNegativesSymmetricRankingLoss.",
        conflicts="teacher",
    )
    score_loss: str = flags.choice(
        "Embeddings: the loss of pairs with scores. cosent: the order of the "
        "cosines. cosine: the squared difference of the cosines and the "
        "scores, which are scaled to [0, 1].",
        "cosent|cosine",
        conflicts="teacher",
    )
    corpus_file: str | None = flags.optional_path(
        "Embeddings: text files with a passage per line. Evaluations search "
        "each match among these passages and all matches.",
        needs="train_file",
        check=_passages,
        by_content=True,
        in_sweep=False,
    )
    mine_negatives: int = flags.non_negative(
        "Embeddings: at the end, write mined_negatives.csv for another "
        "training: the training pairs with the N most similar texts that are "
        "not matches.",
        needs="train_file",
        conflicts="sweep teacher",
        **flags.ACTION,
    )

    def _check(self) -> None:
        super()._check()
        if self.task_type != "embedding":
            names = self.names(tasks="embedding")
            self.require_unset(names, "needs --task_type=embedding. Add it.")
            return
        is_searched = "corpus" in self.used_splits
        if self.do_train and self.corpus_file and not is_searched:
            message = "needs an evaluation. Add --dev_file."
            raise self.error("corpus_file", message)
        message = "does not support embeddings. Omit it."
        self.require_unset(("folds", "fold"), message)
        if self.is_tagging or not self.train_file:
            message = "needs your own texts: use --train_file, and omit "
            message += f"{self.flag('task_name')}."
            raise self.error("task_type", message)
