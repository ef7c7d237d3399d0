"""The data of `run_classifier.py`: its files, columns and types of tasks."""

import os
import re

from official_bert.errors import listed
from official_bert.io import files, tables
from official_bert.options import checks, flags
from official_bert.options.finetuning import FinetuningOptions
from official_bert.runs import file_names, record

# Values of --task_name for tagging, all with the same meaning.
TAGGING_NAMES = ("ner", "pos", "tagging")


def parse_fold(value: str) -> tuple[int, int]:
    """Returns the number of a fold, from 1, and the number of all folds.

    Raises `ValueError`, whose message ends a sentence, if they are malformed.
    """
    match = re.fullmatch(r"([1-9]\d*)of(\d+)", value)
    if not match or int(match[2]) < max(2, int(match[1])):
        raise ValueError(
            "must be a fold and the number of folds, such as 2of5."
        )
    return int(match[1]), int(match[2])


class TaskDataOptions(FinetuningOptions, heading="Data", common=False):
    """The files of a benchmark, or of the user's own data."""

    data_dir: str = flags.path_option(
        "Directory of the task's files.",
        implied_by="train_file",
        on_resume="free",
    )
    task_name: str = flags.option(
        "cola, sst-2, mrpc, sts-b, qqp, mnli, qnli, rte, wnli, ax, xnli; swag; "
        "ner, pos or tagging; own data: tsv, csv, jsonl, xlsx, parquet or "
        "arrow, or choices for multiple choice.",
        implied_by="train_file",
        on_resume="free",
        in_sweep=False,
    )
    train_file: str | None = flags.optional_path(
        "Own data, instead of --task_name and --data_dir: .csv, .tsv, .jsonl "
        "(also .gz), .xlsx, .parquet or .arrow files, as a,b or a pattern; for "
        "--task_name=ner, also CoNLL. Implies --do_train, --do_eval and, by "
        "default, --pad_to=bucket, --adam_bias_correction and a learning rate "
        "that fits the hidden size. Flags that you omit are detected.",
        common=True,
    )
    dev_file: str | None = flags.optional_path(
        "Own data: the evaluation data. Default: a part of --train_file.",
        needs="train_file",
        by_content=True,
        common=True,
    )
    test_file: str | None = flags.optional_path(
        "Own data: the file to predict; also evaluated if it has labels.",
        needs="train_file",
        changes_results=False,
        common=True,
    )
    dev_share: float = flags.option(
        "Own data: without --dev_file, the share of --train_file to evaluate "
        "on, also written to dev.jsonl. 0: no evaluation.",
        0.1,
        between=(0, 0.5),
    )
    folds: int = flags.non_negative(
        "Own data: cross-validation. Train a model for each of N parts of "
        "--train_file, on the other parts, and evaluate it on this part; then "
        "train one model on all examples.",
        needs="train_file do_train",
        check=lambda number: None if number > 1 else "must be at least 2.",
        conflicts="fold sweep dev_file do_eval eval_every do_export "
        "overwrite_output_dir",
        **flags.ACTION,
        one_host="Give each host its own --fold.",
    )
    fold: str = flags.text(
        "Own data: the part of --train_file to evaluate on, instead of "
        "--dev_share, such as 2of5.",
        needs="train_file do_train",
        check=checks.parsed_by(parse_fold),
        conflicts="dev_file",
        inherited=False,
    )
    fit_max_seq_length: bool = flags.switch(
        "Own data: lower --max_seq_length to the 99th percentile of the texts' "
        "lengths. Default with --train_file, unless --max_seq_length is given.",
        on_resume="free",
    )
    long_document: str = flags.choice(
        "For texts longer than --max_seq_length: use the beginning, the "
        "beginning and the end, or overlapping windows of the whole text.",
        "truncate_tail|head_tail|windows",
        tasks="classification multilabel regression choices",
    )
    window_stride: int = flags.non_negative(
        "Tokens between the starts of two windows; 0: half a window."
    )
    window_pooling: str = flags.choice(
        "How to combine the logits of a text's windows.", "mean|max"
    )
    language: str = flags.option(
        "XNLI: the language to evaluate.", "zh", on_resume="free"
    )
    train_language: str | None = flags.optional(
        "XNLI: the language to train on. Default: --language, or en with "
        "--translate_test.",
        on_resume="free",
    )
    translate_test: bool = flags.switch(
        "XNLI: evaluate on texts translated into English.", on_resume="free"
    )
    task_type: str = flags.choice(
        "Own data: the type of the task. auto, the default with --train_file: "
        "by the labels. embedding: sentence embeddings.",
        "classification|multilabel|regression|auto|embedding",
        common=True,
        in_sweep=False,
    )
    text_a_column: str = flags.option(
        "Own data: column of the text or words, by name or number from 0.",
        "text",
        alias="text_column",
        common=True,
    )
    text_b_column: str | None = flags.optional(
        "Own data: the column of the second text, for pairs.", common=True
    )
    has_header: bool | None = flags.optional(
        "Own data: whether tables have a header. Default: detected."
    )
    label_column: str = flags.option(
        "Own data: column of the label. Multi-label: comma-separated labels, "
        "or several columns of 0 and 1, such as toxic,insult. Multiple choice: "
        "A, B, ... or a number from 0. Tagging: tags or spans.",
        "label",
        common=True,
    )
    id_column: str | None = flags.optional(
        "Own data: column of ids; in tagging, ids of sentences. Default: the "
        "line number; in multiple choice, id if it exists."
    )
    label_file: str | None = checks.optional_file(
        "Own data, tagging: all labels, one per line. Default: the labels of "
        "the training data.",
        tasks="classification multilabel tags",
        inherited=False,
    )
    context_column: str = flags.option(
        "Multiple choice: column of the context; not needed with questions.",
        "context",
        tasks="choices",
    )
    question_column: str | None = flags.optional(
        "Multiple choice: the question column. Default: question, if any.",
        tasks="choices",
    )
    choices_column: str = flags.option(
        "Multiple choice: column of the list of choices, or one column for "
        "each, such as A,B,C,D. Default: choices, or columns with such names.",
        "choices",
        tasks="choices",
    )
    token_column: int = flags.non_negative(
        "Tagging: column of words.", tasks="tags"
    )
    tag_column: int = flags.option(
        "Tagging: column of tags; -1: the last.", -1, at_least=-1, tasks="tags"
    )
    document_context: bool = flags.switch(
        "Tagging: fill sequences with neighboring sentences.", tasks="tags"
    )

    @property
    def resolved_task(self) -> str:
        """`task_name` without capitals and hyphens, such as sst2."""
        return (self.task_name or "").lower().replace("-", "")

    @property
    def is_tagging(self) -> bool:
        """Whether the task is to tag words."""
        return self.resolved_task in TAGGING_NAMES

    @property
    def has_own_texts(self) -> bool:
        """Whether the task is a table of the user's own texts."""
        return self.resolved_task in (*tables.FORMATS, tables.LINES)

    def own_file(self, split: str) -> str:
        """Returns the user's file of a split, such as `train`.

        This may be several, see `own_files`. With --train_file, but without
        --dev_file, `dev` is the file of held-out examples that training writes.
        """
        if self.train_file:
            held_out = self.run_directory.file(file_names.HELD_OUT)
            return getattr(self, f"{split}_file") or held_out
        return os.path.join(self.data_dir, f"{split}.{self.resolved_task}")

    def own_files(self, split: str) -> list[str]:
        """Returns the files that `own_file` names."""
        is_flag = self.train_file and getattr(self, f"{split}_file")
        path = self.own_file(split)
        return files.expand_if_pattern(path) if is_flag else [path]

    def own_format(self, split: str) -> str:
        """Returns the format of `own_file`: `LINES`, or one of `FORMATS`."""
        path = self.own_file(split)
        if split == "unlabeled" and tables.is_lines(path):
            return tables.LINES
        return tables.format_of(path) or self.resolved_task

    @property
    def reads_header(self) -> bool:
        """Whether tables begin with a header; true if that is not known."""
        return self.has_header is not False

    @property
    def text_columns(self) -> tuple[str, ...]:
        """The columns of a text or a pair of texts."""
        columns = (self.text_a_column, self.text_b_column)
        return tuple(name for name in columns if name is not None)

    @property
    def holds_out(self) -> bool:
        """Whether a part of --train_file is used for evaluation only."""
        return self.do_train and record.holds_out(vars(self))

    def _check_own_files(self, split: str) -> None:
        """Checks that the tables of a split can be read together."""
        name, paths, seen = f"{split}_file", self.own_files(split), set()
        for path in paths:
            message = checks.seekable_file(path)
            if message and len(paths) > 1:
                message = f"names {path}, which {message}"
            elif os.path.realpath(path) in seen:
                message = f"names {path} twice. Name each file once."
            if message:
                raise self.error(name, message)
            seen.add(os.path.realpath(path))
        if len({*map(tables.format_of, paths)}) > 1:
            message = "must name files with the same ending. Received: "
            raise self.error(name, f"{message}{listed(paths)}.")
