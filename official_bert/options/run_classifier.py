"""Options of `run_classifier.py`."""

import dataclasses
import os

from official_bert import files
from official_bert.cli import option
from official_bert.errors import InputError
from official_bert.options.finetuning import FinetuningOptions


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunClassifier(FinetuningOptions):
    """Options of `run_classifier.py`."""

    command = "run_classifier.py"
    module_command = "run_classifier_with_tfhub.py"

    data_dir: str = option("Folder with the task's files.")
    task_name: str = option(
        "cola, sst-2, mrpc, sts-b, qqp, mnli, qnli, rte, wnli, ax, xnli; swag; "
        "ner, pos or tagging; tsv, csv or jsonl for data of your own; "
        "choices for your own multiple choice."
    )
    # Of every task that reads one or two texts.
    long_document: str = option(
        "What to do with texts that are too long. truncate_tail: keep their "
        "beginnings. head_tail: keep beginning and end. windows: read all, in "
        "overlapping pieces.",
        "truncate_tail",
        choices=("truncate_tail", "head_tail", "windows"),
    )
    window_stride: int = option(
        "With windows: how many pieces further the next one starts; 0: half "
        "of one.",
        0,
        at_least=0,
    )
    window_pooling: str = option(
        "With windows: how their logits become the document's.",
        "mean",
        choices=("mean", "max"),
    )
    # Of xnli.
    language: str = option("xnli: which language to evaluate.", "zh")
    train_language: str | None = option(
        "xnli: which language to train on. If not given, the same, and with "
        "`translate_test` en. en gives zero-shot, the same translate-train.",
        None,
    )
    translate_test: bool = option(
        "xnli: evaluate on texts translated into English.", False
    )
    # Of tsv, csv, jsonl.
    task_type: str = option(
        "Own data: what is predicted.",
        "classification",
        choices=("classification", "multilabel", "regression"),
    )
    text_a_column: str = option(
        "Own data: the text's column, by name or by number from 0; a name in "
        "the header goes before a number.",
        "text",
    )
    text_b_column: str | None = option(
        "Own data: the second text's column, for pairs.", None
    )
    has_header: bool = option(
        "Own data: whether the first line of TSV and CSV names the columns.",
        True,
    )
    label_column: str = option(
        "Own data and choices: the label's column; several labels of one text "
        "are comma-separated. Of choices, the right one's number, from 0.",
        "label",
    )
    id_column: str | None = option(
        "Own data and choices: the column that names an example; else it is "
        "its line, or of choices what is called id.",
        None,
    )
    label_file: str | None = option(
        "Own data and tagging: all labels, one a line; else they are those of "
        "the training data, sorted.",
        None,
    )
    # Of choices, with label_column and id_column.
    context_column: str = option(
        "Choices: the column of the text that all choices follow.", "context"
    )
    question_column: str | None = option(
        "Choices: the column of the text that stands before every choice; if "
        "not given, question, where there is one.",
        None,
    )
    choices_column: str = option(
        "Choices: the column of the list of texts.", "choices"
    )
    # Of tagging.
    token_column: int = option("Tagging: the words' column.", 0, at_least=0)
    tag_column: int = option(
        "Tagging: the tags' column; -1 is the last.", -1, at_least=-1
    )
    document_context: bool = option(
        "Tagging: whether to fill sequences with neighbouring sentences, as "
        "the paper did.",
        False,
    )
    sweep: str = option(
        "Runs a grid, such as learning_rate=5e-5,3e-5,2e-5;"
        "train_batch_size=16,32;seed=1..5, one folder each, and writes a "
        "table of them.",
        "",
    )

    def __post_init__(self) -> None:
        """Checks everything that can be checked without TensorFlow."""
        super().__post_init__()
        if (
            self.uses_data
            and not files.is_remote(self.data_dir)
            and not os.path.isdir(self.data_dir)
        ):
            raise InputError(
                "--data_dir must be an existing folder. Received: "
                f"{self.data_dir!r}. Check the path."
            )
        if self.label_file:
            files.require(self.label_file, "--label_file")
        if self.sweep and not self.do_train:
            raise InputError(
                "--sweep must come with --do_train. Received: --sweep alone. "
                "Give both."
            )
        if self.sweep and self.do_export:
            raise InputError(
                "--do_export must not come with --sweep. Export the best run, "
                "with its own --output_dir, afterwards."
            )
