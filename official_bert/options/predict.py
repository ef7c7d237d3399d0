"""Options of `predict.py`."""

import functools
import sys
from typing import Any

from official_bert.errors import InputError
from official_bert.io import json_files, tables
from official_bert.options import checks, flags
from official_bert.options.answers import AnswerOptions
from official_bert.sources import task_file

# Methods of `--explain`; see `inference.explanations`.
EXPLANATIONS = ("integrated_gradients", "occlusion")


class Predict(AnswerOptions, heading="Model"):
    """Options of `predict.py`."""

    is_batch_job = True

    input_file: str = checks.file_option(
        "Lines of text, JSON lines or a table. -: standard input.",
        "-",
        heading="Data",
    )
    input_format: str = flags.choice(
        "lines or text: one text per line. tsv: one or two texts, or a table. "
        "csv: a table. jsonl: a text, list or object. conll: one word per "
        "line, for taggers. auto: by the name and, for taggers, the content.",
        "auto|lines|text|tsv|csv|jsonl|conll",
    )
    has_header: bool | None = flags.optional(
        "Whether tables have a header. Default: as in training, or true.",
        tasks="text regression choice squad tagging",
    )
    output_file: str | None = flags.optional_path(
        "The file to write: JSON lines or, if it ends in .csv, a table of the "
        "input and the predictions. With --explain, it may end in .html: a "
        "page. Default: JSON lines to standard output."
    )
    sort_by: str = flags.choice(
        "The order of the output. uncertainty: texts with the smallest margin "
        "between the two highest probabilities first (multi-label: between a "
        "probability and its threshold), to choose what to label next. Keeps "
        "all predictions in memory.",
        "input|uncertainty",
        needs="output_file",
        tasks="text choice",
    )
    chunk_size: int = flags.positive(
        "Examples that are read, sorted by length and predicted together.", 1024
    )
    fill_mask: bool = flags.switch(
        "Predict each [MASK], with a pre-trained model: a run directory, or "
        "--model (--model=list shows names). Default: bert_tiny_demo.",
        conflicts="score",
        heading="Prediction and export",
    )
    top_k: int = flags.positive(
        "With --fill_mask: predictions for each [MASK].", 5, needs="fill_mask"
    )
    score: bool = flags.switch(
        "Compute each text's pseudo-log-likelihood and perplexity, with a "
        "pre-trained model as for --fill_mask."
    )
    explain: str | None = flags.optional(
        "Add a score for every word: how much it contributes to the answer. "
        "integrated_gradients: averages gradients; needs TensorFlow. "
        "occlusion: replaces each word by [MASK]; works with every engine.",
        choices=EXPLANATIONS,
        conflicts="fill_mask score",
    )

    @property
    def _has_default_model(self) -> bool:
        return self.is_masked_lm

    @property
    def is_masked_lm(self) -> bool:
        """Whether to use a pre-trained model, not a fine-tuned one."""
        return self.fill_mask or self.score

    @property
    def resolved_format(self) -> str:
        """The input format: text, conll or one of `tables.FORMATS`."""
        if self.input_format == "lines":
            return "text"
        if self.input_format != "auto":
            return self.input_format
        name = self.input_file.lower().removesuffix(".gz")
        if name.endswith((".conll", ".conllu")):
            return "conll"
        return tables.format_of(self.input_file) or "text"

    @property
    def writes_csv(self) -> bool:
        """Whether the output is a table."""
        return tables.format_of(self.output_file or "") == "csv"

    @property
    def writes_page(self) -> bool:
        """Whether the output is a web page."""
        return (self.output_file or "").lower().endswith(".html")

    @property
    def reads_table(self) -> bool:
        """Whether the input is a table. On standard input, lines are texts."""
        is_table = self.resolved_format in {*tables.FORMATS} - {"jsonl"}
        return self.input_file != "-" and is_table

    def _check(self) -> None:
        super()._check()
        self._check_formats()
        self._check_columns()
        if self.output_file:
            inputs = [self.input_file, *self.input_files()]
            checks.require_outputs(self, "output_file", inputs)

    @functools.cached_property
    def task(self) -> dict[str, Any]:
        """The model's `task.json`, or only the kind of the task."""
        if not self.is_masked_lm:
            return super().task
        self._require_masked_lm()
        return {"kind": "masked LM"}

    def _check_formats(self) -> None:
        """Checks the formats of input and output, without the model."""
        name = self.input_file.lower().removesuffix(".gz")
        if self.input_format == "auto" and name.endswith(".json"):
            message = (
                f"must be JSON Lines. {json_files.WRITE_LINES} Then rename "
                "the file to .jsonl, or add --input_format=jsonl. For a file "
                "in SQuAD's format, use run_squad.py --do_predict "
                "--predict_file=FILE --output_dir=MODEL_DIR."
            )
            raise self.error("input_file", message)
        if not (self.reads_table or self.resolved_format == "jsonl"):
            message = "needs a .tsv, .csv or .jsonl file as --input_file."
            self.require_unset(("text_a_column", "has_header"), message)
        if self.resolved_format in ("csv", "conll") and self.input_file == "-":
            message = "needs --input_file. Add it: /dev/stdin for a pipe."
            raise self.error("input_format", message)
        output = self.output_file or ""
        others = {"gz", "xls", "conll", *tables.FORMATS} - {"csv", "jsonl"}
        if output.lower().rpartition(".")[2] in others:
            raise self.error("output_file", "must end in .csv or .jsonl.")
        if self.writes_page and not self.explain:
            message = "must end in .csv or .jsonl. A page needs --explain."
            raise self.error("output_file", message)
        if self.writes_csv and self.explain:
            message = "must end in .jsonl or .html with --explain."
            raise self.error("output_file", message)
        # Python sets the streams to None if they are closed.
        streams = {"input_file": sys.stdin, "output_file": sys.stdout}
        for name, stream in streams.items():
            if not self.is_set(name) and stream is None:
                raise InputError(
                    f"--{name} must be given, because standard "
                    f"{name.removesuffix('_file')} is closed."
                )

    def _require_masked_lm(self) -> None:
        if self.model_dir and task_file.is_in(self.model_dir):
            raise InputError(
                f"{self.model_dir}: --fill_mask and --score need a pre-trained "
                "model, but this is a fine-tuned one, without a masked LM "
                "head. Use the model that it was fine-tuned from."
            )
        self._require_files(is_finetuned=False)
        path = self.model_files.bert_config_file
        if self.model_files.config.is_left_to_right:
            raise InputError(
                f"{path}: --fill_mask and --score need a masked LM, but this "
                "is a left-to-right model. Use another model."
            )

    def _check_columns(self) -> None:
        """Raises `InputError` if table or CoNLL flags do not fit the task.

        Columns must be given by flags or known from training.
        """
        task, file_format = self.task, self.resolved_format
        kind = task.get("kind")
        if file_format == "conll" and kind != "tagging":
            is_named = self.is_set("input_format")
            name = "input_format" if is_named else "input_file"
            message = f"needs a model that tags words, not a model for {kind}."
            raise self.error(name, message)
        needs_columns = ["has_header"] if self.is_set("has_header") else []
        kinds = ["text", "choice", "squad"]
        if self.reads_table and file_format != "tsv":
            if kind not in (*kinds, "tagging"):
                advice = "Use a .jsonl file."
                message = f"is not supported by a model for {kind}. {advice}"
                raise self.error("input_file", message)
            needs_columns.append("input_file")
        has_cells = self.reads_table or file_format == "jsonl"
        if self.writes_csv and not (has_cells and kind in kinds):
            message = (
                "needs a table, .csv, .tsv or .jsonl, as --input_file, and a "
                "model for texts, multiple choice or questions. Otherwise, "
                "write a .jsonl file."
            )
            raise self.error("output_file", message)
        if self.writes_csv and self.reads_table:
            needs_columns.append("output_file")
        are_known = self.text_a_column or task.get("columns") or kind != "text"
        if needs_columns and not are_known:
            raise self.error(needs_columns[0], "needs --text_column. Add it.")
