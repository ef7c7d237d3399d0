"""Options of `run_classifier.py`."""

import functools
import os
import re
from typing import Any

from official_bert.errors import InputError, listed
from official_bert.io import files, json_files, tables
from official_bert.options import checks, flags, sweep_values
from official_bert.options.embedding import EmbeddingOptions
from official_bert.runs import file_names
from official_bert.sources import task_file
from official_bert.sources.embedding_settings import EmbeddingSettings

# What to do if --train_file has another ending.
_CONVERT = {
    ".xls": "Save it as .xlsx.",
    ".json": json_files.WRITE_LINES,
    ".ann": "Convert it with anntoconll.py, which is part of brat, and add "
    "--token_column=3 --tag_column=0.",
}
_TAGGING = (
    "Rename or convert the file. For words with tags, add --task_name=ner."
)
# Sums of larger weights would exceed float32.
MAX_WEIGHT = 1e30
# Values of --task_name for tagging, all with the same meaning.
TAGGING_NAMES = ("ner", "pos", "tagging")


def parse_class_weights(value: str) -> list[tuple[str, float]]:
    """Returns the labels and weights in "LABEL=W,..."; labels may repeat.

    There are none in "none" and "balanced". Raises `ValueError`, whose message
    ends a sentence, if the value has another form.
    """
    pairs = checks.label_numbers(value)
    are_weights = all(0 < weight < MAX_WEIGHT for _, weight in pairs)
    is_list = value not in ("none", "balanced")
    if is_list and not (pairs and are_weights):
        raise ValueError(
            "must be none, balanced, or labels with weights above 0 and below "
            f"{MAX_WEIGHT:g}, such as spam=10,other=1."
        )
    return pairs


def _fold(value: str) -> str | None:
    match = re.fullmatch(r"([1-9]\d*)of(\d+)", value)
    if not match or int(match[2]) < max(2, int(match[1])):
        return "must be a fold and the number of folds, such as 2of5."
    return None


class RunClassifier(EmbeddingOptions, heading="Data", common=False):
    """Options of `run_classifier.py`."""

    module_command = "run_classifier_with_tfhub.py"

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
        check=_fold,
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
    class_weights: str = flags.option(
        "Weights of the labels in the training loss: none, balanced (rare "
        "labels have large weights), or LABEL=W,... (others have weight 1).",
        "none",
        check=checks.parsed_by(parse_class_weights),
        heading="Training",
        tasks="classification multilabel",
    )
    label_smoothing: float = flags.option(
        "The share of each label's target probability that is spread evenly "
        "over all labels, such as 0.1. Not in regression.",
        0.0,
        between=(0, 0.5),
        tasks="classification multilabel choices tags",
    )
    weight_column: str | None = flags.optional(
        "Own texts: column of the weights of the training examples in the "
        "loss, numbers of at least 0.",
        tasks="classification multilabel regression",
    )
    unlabeled_file: str | None = flags.optional_path(
        "Own data: more texts to learn the teacher's answers for: files like "
        "--train_file (labels are ignored), or .txt files with a text per "
        "line.",
        needs="teacher train_file",
        by_content=True,
        inherited=False,
        in_sweep=False,
    )
    group_column: str | None = flags.optional(
        "Own pairs of a query and a document: column of the query or its id. "
        "Evaluations then rank the documents of each query, report mrr@10 and "
        "ndcg@10, and maximize ndcg@10 by default.",
        tasks="classification regression",
    )
    best_metric: str = flags.text(
        "The metric of eval_results.json that best/, --early_stopping and "
        "--sweep maximize, such as macro_f1 or roc_auc. Default: that of the "
        "task; for own data, macro_f1 if over 80% of the examples have one "
        "label.",
        tasks="classification multilabel regression embedding",
        in_sweep=False,
    )
    sweep: str = flags.text(
        "Train with each combination of values, such as "
        "learning_rate=5e-5,3e-5;seed=1..5, and write a table of results.",
        needs="do_train",
        conflicts="do_export overwrite_output_dir",
        common=True,
        **flags.ACTION,
        one_host="Give each host its own part of the sweep.",
    )

    def _check(self) -> None:
        super()._check()
        sweep_values.parse(self.sweep, type(self))  # Raises an InputError.
        self._check_embedding()
        if self.group_column and not (
            self.text_a_column and self.text_b_column
        ):
            message = "needs pairs of texts. Add --text_column, the column of "
            message += "the query, and --text_b_column, that of the document."
            raise self.error("group_column", message)
        if not self.train_file:
            if self.used_splits:
                self.require("data_dir", checks.existing_directory)
            return
        if not (self.has_own_texts or self.is_tagging):
            message = (
                f"is for your own texts: omit {self.flag('task_name')}. For "
                "this task, give --data_dir, a directory with files such as "
                "train.csv and dev.csv (choices)."
            )
            raise self.error("train_file", message)
        if self.folds and self.dev_share:
            message = "conflicts with --folds, which evaluates all examples."
            raise self.error("dev_share", f"{message} Omit it.")
        if self.document_context and self.holds_out:
            message = "needs --dev_file, with complete documents. Add it."
            raise self.error("document_context", message)
        if self.do_predict and not self.test_file:
            raise self.error("do_predict", "needs --test_file. Add it.")
        for split in self.used_splits:
            if self.is_set(f"{split}_file"):
                self._check_own_files(split)
        has_lines = self.own_format("unlabeled") == tables.LINES
        if self.text_b_column and has_lines and self.task_type != "embedding":
            message = "must be a table, such as .csv, with pairs of texts."
            raise self.error("unlabeled_file", message)
        is_evaluated = self.sweep or "dev" in self.used_splits
        if is_evaluated and not self.dev_file:
            self._check_held_out()

    def _check_embedding(self) -> None:
        """Checks the flags of sentence embeddings."""
        if self.task_type != "embedding":
            for name in self.names(tasks="embedding"):
                if self.is_set(name):
                    message = "needs --task_type=embedding. Add it."
                    raise self.error(name, message)
            return
        is_searched = "corpus" in self.used_splits
        if self.do_train and self.corpus_file and not is_searched:
            message = "needs an evaluation. Add --dev_file."
            raise self.error("corpus_file", message)
        for name in ("folds", "fold"):
            if self.is_set(name):
                raise self.error(name, "does not support embeddings. Omit it.")
        if self.is_tagging or not self.train_file:
            message = "needs your own texts: use --train_file, and omit "
            message += f"{self.flag('task_name')}."
            raise self.error("task_type", message)

    def _complete(self) -> flags.Self:
        """Fills in what the flags of own files imply, without reading them."""
        actions: dict[str, Any] = {}
        if self.train_file:
            has_dev = self.fold or (self.dev_share and not self.folds)
            actions = {"do_train": True, "do_eval": bool(has_dev)}
        if self.dev_file:
            actions["do_eval"] = True
        if self.test_file:
            actions["do_predict"] = True
        if self.folds:  # The last model is trained on all examples.
            actions["dev_share"] = 0.0
        if not actions.keys() <= self.given:
            return self.fill(actions)._complete()
        options = super()._complete()
        if options.task_name and not (options.data_dir or options.train_file):
            raise InputError(
                f"--task_name={options.task_name} needs --data_dir, the "
                "directory with the files of the task. Add it."
            )
        if "train_file" not in self.given:
            return options
        train_file = str(options.train_file)
        first = files.named(train_file)[0]
        file_format = tables.format_of(first)
        if tables.is_lines(first) and options.task_type == "embedding":
            file_format = tables.LINES
        ending = os.path.splitext(train_file)[1].lower()
        is_other = not (file_format or options.task_name)
        if is_other or (options.is_tagging and ending in _CONVERT):
            raise InputError(
                f"--train_file={train_file} must end in .csv, .tsv or .jsonl, "
                "also with .gz, or in .xlsx, .parquet or .arrow. "
                + _CONVERT.get(ending, _TAGGING)
            )
        implied: dict[str, Any] = {
            "task_name": file_format,
            "data_dir": "",
            "task_type": "auto",
            "text_a_column": "",
            "label_column": "",
            "pad_to": "bucket",
            "adam_bias_correction": True,
        }
        if options._has_model_files:
            implied |= options._implied_by_model()
        return options.fill(implied)

    def _implied_by_model(self) -> dict[str, Any]:
        """Returns the values of flags for own texts that depend on a model."""
        config = self.model_files.config
        # Narrower models than BERT-Base need higher rates. With the rate for
        # single texts and tags, some models for pairs learn nothing.
        has_pairs = self.text_b_column or self.task_type == "embedding"
        exponent = 1 if has_pairs else 1.5
        rate = 5e-5 * (768 / config.hidden_size) ** exponent
        rate = min(float(f"{rate:.1g}"), 1e-3)
        implied: dict[str, Any] = {"learning_rate": rate}
        # Long sentences with tags are divided, not truncated.
        if self.is_tagging or "max_seq_length" in self.given:
            return implied
        settings = None
        if self.task_type == "embedding" and self.init_checkpoint:
            settings = self.model_files.embedding
        settings = settings or EmbeddingSettings()
        length = settings.length(config.max_position_embeddings)
        # Embedding models keep their length, also for short training data.
        fits = not settings.max_seq_length
        return {**implied, "max_seq_length": length, "fit_max_seq_length": fits}

    @property
    def _has_model_files(self) -> bool:
        """Whether options name the files of the model."""
        return bool(self.bert_config_file)

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

    def _check_held_out(self) -> None:
        """Checks the examples that training holds out, or held out earlier.

        Raises `InputError` if there are none, or if they would replace a file
        that is not of an earlier run.
        """
        path = self.own_file("dev")
        exists = files.exists(path)
        if not self.do_train and not exists:
            message = f"is needed, because training did not write {path}."
            raise self.error("dev_file", f"{message} Add it or --nodo_eval.")
        if self.do_train and not self.holds_out:
            message = "leaves no examples to evaluate. Add --dev_file."
            raise self.error("dev_share", message)
        # The runs of a sweep have their own directories.
        replaces = self.do_train and exists and not self.sweep
        if replaces and not self.run_directory.has_held_out():
            message = (
                f"has a file {file_names.HELD_OUT}, which held-out examples "
                "would replace. Choose another directory, or add --dev_file."
            )
            raise self.error("output_dir", message)

    @property
    def used_splits(self) -> list[str]:
        """Which of `train`, `dev`, `test`, `unlabeled`, `corpus` are read."""
        is_used = self.do_train and self.unlabeled_file
        return super().used_splits + ["unlabeled"] * bool(is_used)

    @property
    def resolved_task(self) -> str:
        """`task_name` without capitals and hyphens, such as sst2."""
        return (self.task_name or "").lower().replace("-", "")

    @functools.cached_property
    def trained_task(self) -> dict[str, Any]:
        """The `task.json` of the model to evaluate; {} if there is none."""
        has_model = not self.do_train and task_file.is_in(self.output_dir)
        return task_file.read(self.output_dir) if has_model else {}

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
        return files.named(path) if is_flag else [path]

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
    def own_columns(self) -> tuple[str | None, ...]:
        """The columns of id, texts, query and weight; empty if unknown.

        Only training data has weights.
        """
        columns = (self.id_column, self.text_a_column, self.text_b_column)
        weight_column = self.weight_column if self.do_train else None
        return (*columns, self.group_column, weight_column)

    @property
    def text_columns(self) -> tuple[str, ...]:
        """The columns of a text or a pair of texts."""
        columns = (self.text_a_column, self.text_b_column)
        return tuple(name for name in columns if name is not None)

    @property
    def holds_out(self) -> bool:
        """Whether a part of --train_file is used for evaluation only."""
        is_needed = self.train_file and not self.dev_file
        has_part = self.dev_share or self.fold
        return bool(is_needed and self.do_train and has_part)

    @property
    def fold_numbers(self) -> tuple[int, int]:
        """The number of `fold`, from 1, and the number of all folds."""
        number, num_folds = map(int, self.fold.split("of"))
        return number, num_folds
