"""Options of `predict.py`."""

import dataclasses
import sys

from official_bert import files, task_file
from official_bert.cli import option
from official_bert.errors import InputError
from official_bert.options.checks import check_outputs
from official_bert.options.model_source import (
    RELEASED,
    ModelOptions,
    require_finetuned,
    require_masked_lm,
    require_pretrained,
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Predict(ModelOptions):
    """Options of `predict.py`."""

    model_dir: str | None = option(
        "A trained model: the --output_dir of run_classifier.py or its like; "
        "with --fill_mask and --score, that of run_pretraining.py.",
        None,
    )
    input_file: str = option(
        "What to predict, one item a line; - for standard input, whose lines "
        "are answered as they come. Blank lines are left out.",
        "-",
    )
    input_format: str = option(
        "text: every line is a text. tsv: a text, or a pair with a tab "
        "between; or a table, if `text_a_column` is known. csv: a table. "
        "jsonl: a JSON value, such as a text, a list, an object. auto: as the "
        "name ends, else text.",
        "auto",
        choices=("auto", "text", "tsv", "csv", "jsonl"),
    )
    text_a_column: str | None = option(
        "The text's column in TSV and CSV files, by name or by number from 0, "
        "and in JSON objects. If not given, what it was in training on data of "
        "your own.",
        None,
    )
    text_b_column: str | None = option(
        "With `text_a_column`: the second text's column, for pairs.", None
    )
    has_header: bool | None = option(
        "Whether the first line of such TSV and CSV names the columns. If not "
        "given, as in training, else true.",
        None,
    )
    output_file: str | None = option(
        'Where to write a JSON object for each item: "input" is the item, the '
        "rest the answer. Standard output, if not given.",
        None,
    )
    batch_size: int = option("Sequences at once.", 32, at_least=1)
    chunk_size: int = option(
        "Items read before they are answered; those of a chunk are sorted by "
        "length. Standard input does not wait for a chunk to be full.",
        256,
        at_least=1,
    )
    fill_mask: bool = option(
        "Whether to guess the pieces in place of every [MASK] of a text, with "
        "a pre-trained model.",
        False,
    )
    top_k: int = option(
        "With `fill_mask`: how many guesses for each.", 5, at_least=1
    )
    score: bool = option(
        "Whether to tell how likely a pre-trained model finds a text: its "
        "pseudo-log-likelihood, and the perplexity of a piece.",
        False,
    )
    bert_config_file: str | None = option(
        "With `fill_mask` and `score`, instead of `model_dir`: the model's "
        "bert_config.json.",
        None,
    )
    do_lower_case: bool | None = option(
        "With `fill_mask` and `score`: whether to lower-case the text. If not "
        "given, as tokenizer_config.json in `model_dir` says, and else true. "
        "False for cased models.",
        None,
    )

    @property
    def is_masked_lm(self) -> bool:
        """Whether a pre-trained model is wanted, not a fine-tuned one."""
        return self.fill_mask or self.score

    @property
    def resolved_format(self) -> str:
        """What a line of input is: text, tsv, csv or jsonl."""
        if self.input_format != "auto":
            return self.input_format
        ending = self.input_file.removesuffix(".gz").rpartition(".")[2]
        return ending if ending in ("tsv", "csv", "jsonl") else "text"

    def __post_init__(self) -> None:
        """Checks everything that can be checked without TensorFlow."""
        super().__post_init__()
        if self.fill_mask and self.score:
            raise InputError(
                "--fill_mask and --score exclude each other. Received: both. "
                "Run the command once for each."
            )
        if self.text_b_column is not None and self.text_a_column is None:
            raise InputError(
                "--text_b_column must come with --text_a_column. Received: it "
                "alone. Give both."
            )
        is_table = (
            self.resolved_format in ("tsv", "csv") and self.input_file != "-"
        )
        for name in ("text_a_column", "has_header"):
            if getattr(self, name) is not None and not (
                is_table or self.resolved_format == "jsonl"
            ):
                raise InputError(
                    f"--{name} goes with tables in files, and JSON objects. "
                    f"Received: it with --input_file={self.input_file} and "
                    f"--input_format={self.resolved_format}. Give a table."
                )
        if self.is_masked_lm:
            self._check_pretrained()
        else:
            self._check_finetuned()
        if self.input_file != "-":
            files.require(self.input_file, "--input_file")
        elif self.resolved_format == "csv":
            raise InputError(
                "--input_format=csv must come with --input_file. Received: "
                "standard input. Name a file."
            )
        if not self.is_masked_lm:
            self._check_columns(self.model_dir or "")
        if self.output_file:
            inputs = [self.input_file, *self.model_files()]
            check_outputs("--output_file", [self.output_file], inputs)
        self._require_streams()

    def _require_streams(self) -> None:
        """Raises `InputError` if a stream that is needed was closed."""
        needed = {
            "--input_file": (self.input_file == "-", sys.stdin),
            "--output_file": (not self.output_file, sys.stdout),
        }
        for flag, (is_needed, stream) in needed.items():
            if is_needed and stream is None:
                raise InputError(
                    f"{flag} must be given where the standard stream is "
                    "closed. Received: neither. Name a file."
                )

    def _check_finetuned(self) -> None:
        if self.model_dir is None:
            raise InputError(
                "--model_dir must be given: the folder of a trained model. "
                "With a pre-trained one, add --fill_mask or --score."
            )
        for name in (*RELEASED, "do_lower_case"):
            if getattr(self, name) is not None:
                raise InputError(
                    f"--{name} goes with --fill_mask and --score only. A "
                    "fine-tuned model has all that it needs in --model_dir. "
                    "Leave it out."
                )
        require_finetuned(self.model_dir)

    def _check_columns(self, model_dir: str) -> None:
        """Raises `InputError` unless a table's columns are known."""
        task = task_file.read(model_dir)
        reads_texts = task.get("kind") == "text"
        if self.text_a_column is not None and not reads_texts:
            raise InputError(
                "--text_a_column goes with models of one or two texts. "
                f"Received: it, and a model of kind {task.get('kind')!r}. "
                "Leave it out."
            )
        has_columns = reads_texts and task.get("columns")
        if self.text_a_column is not None or has_columns:
            return
        if self.has_header is not None:
            raise InputError(
                "--has_header must come with --text_a_column, as the model was "
                f"not trained on data of your own. Received: {self.has_header}."
            )
        if self.resolved_format == "csv":
            raise InputError(
                "CSV needs a model of one or two texts, and --text_a_column if "
                "that was not trained on data of your own. Received: "
                f"{self.input_file}."
            )

    def _check_pretrained(self) -> None:
        if self.text_a_column is not None or self.resolved_format == "csv":
            raise InputError(
                "Tables go with fine-tuned models. Received: --fill_mask or "
                f"--score, and {self.input_file}. Give a file of texts, one a "
                "line; or say --input_format=text."
            )
        self._require_one_name()
        if self.model_dir is not None:
            require_pretrained(self.model_dir)
        require_masked_lm(self.config_path)
        if self.model_dir is None:
            self._require_released()
