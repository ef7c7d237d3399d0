"""Options of `run_classifier.py`."""

import functools
import os
from typing import Any

from official_bert.errors import InputError
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


class RunClassifier(EmbeddingOptions, heading="Training", common=False):
    """Options of `run_classifier.py`."""

    module_command = "run_classifier_with_tfhub.py"

    class_weights: str = flags.option(
        "Weights of the labels in the training loss: none, balanced (rare "
        "labels have large weights), or LABEL=W,... (others have weight 1).",
        "none",
        check=checks.parsed_by(parse_class_weights),
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
        if self.group_column and not (
            self.text_a_column and self.text_b_column
        ):
            message = "needs pairs of texts. Add --text_column, the column of "
            message += "the query, and --text_b_column, that of the document."
            raise self.error("group_column", message)
        if self.train_file:
            self._check_own_data()
        elif self.used_splits:
            self.require("data_dir", checks.existing_directory)

    def _check_own_data(self) -> None:
        """Checks `train_file` and the flags that need it."""
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
        if (self.sweep or "dev" in self.used_splits) and not self.dev_file:
            self._check_held_out()

    def _implied(self) -> dict[str, Any]:
        """Returns what to do with the files that are given."""
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
        return actions

    def _complete(self) -> flags.Self:
        """Fills in what the flags of own files imply, without reading them."""
        options = super()._complete()
        if options.task_name and not (options.data_dir or options.train_file):
            raise InputError(
                f"--task_name={options.task_name} needs --data_dir, the "
                "directory with the files of the task. Add it."
            )
        if "train_file" not in self.given:
            return options
        train_file = str(options.train_file)
        first = files.expand_if_pattern(train_file)[0]
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
        if options.bert_config_file and not options.bert_hub_module_handle:
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
        """Which of `train`, `dev`, `test`, `corpus`, `unlabeled` are read."""
        splits = super().used_splits
        if self.mine_negatives and not self.do_train:
            splits.insert(0, "train")
        is_searched = self.mine_negatives or {"dev", "test"} & {*splits}
        if self.corpus_file and is_searched:
            splits.append("corpus")
        if self.unlabeled_file and self.do_train:
            splits.append("unlabeled")
        return splits

    @functools.cached_property
    def trained_task(self) -> dict[str, Any]:
        """The `task.json` of the model to evaluate; {} if there is none."""
        return {} if self.do_train else task_file.read(self.output_dir)

    @property
    def own_columns(self) -> tuple[str | None, ...]:
        """The columns of id, texts, query and weight; empty if unknown.

        Only training data has weights.
        """
        columns = (self.id_column, self.text_a_column, self.text_b_column)
        weight_column = self.weight_column if self.do_train else None
        return (*columns, self.group_column, weight_column)
