"""Options of `run_classifier.py` and `run_classifier_with_tfhub.py`."""

import os

from official_bert.cli import LEGACY, amount, choice, option, optional, switch
from official_bert.options.checks import existing_directory, file_option
from official_bert.options.finetuning import FinetuningOptions

# Options that change the graph of the model, which a module has fixed.
_GRAPH_OPTIONS = (
    "mixed_precision",
    "remat",
    "left_to_right",
    "feature_layers",
    "do_export",
)


def _module(handle: str) -> str | None:
    """Accepts a TF Hub module: a directory or an address."""
    if os.path.isdir(handle):
        if not os.path.exists(os.path.join(handle, "saved_model.pb")):
            return (
                "must be a TF Hub module, but has no saved_model.pb. "
                "export_tfhub.py makes a module from a checkpoint."
            )
    elif "://" not in handle:
        return "must be an existing directory or an address. Check the path."
    return None


class RunClassifier(FinetuningOptions, heading="Data"):
    """Options of `run_classifier.py`."""

    command = "run_classifier.py"
    module_command = "run_classifier_with_tfhub.py"

    data_dir: str = option("The directory with the task's files.")
    task_name: str = option(
        "cola, sst-2, mrpc, sts-b, qqp, mnli, qnli, rte, wnli, ax, xnli; swag; "
        "ner, pos or tagging; tsv, csv or jsonl for your own data; choices for "
        "your own multiple-choice data."
    )
    long_document: str = choice(
        "Of texts longer than --max_seq_length, use the beginning, the "
        "beginning and the end, or overlapping windows.",
        "truncate_tail|head_tail|windows",
    )
    window_stride: int = amount(
        "Tokens between starts of a text's windows; 0: half a window.", 0
    )
    window_pooling: str = choice(
        "How to combine the logits of a text's windows.", "mean|max"
    )
    language: str = option("XNLI: the language to evaluate.", "zh")
    train_language: str | None = optional(
        "XNLI: the language to train on. Default: --language, or en with "
        "--translate_test."
    )
    translate_test: bool = switch(
        "XNLI: whether to evaluate on texts translated into English."
    )
    task_type: str = choice(
        "Own data: the type of the task.",
        "classification|multilabel|regression",
    )
    text_a_column: str = option(
        "Own data: column of the text, by name or number from 0.", "text"
    )
    text_b_column: str | None = optional(
        "Own data: the column of the second text, for pairs."
    )
    has_header: bool = option(
        "Own data: whether the first line of tables names the columns.", True
    )
    label_column: str = option(
        "Own data: column of the label, of comma-separated labels with "
        "--task_type=multilabel, or of the correct choice's number from 0.",
        "label",
    )
    id_column: str | None = optional(
        "Own data: column of example names. Default: the line number, or id."
    )
    label_file: str | None = file_option(
        "Own data, tagging: all labels, one per line. Default: as in training.",
        None,
    )
    context_column: str = option(
        "Multiple choice: the column of the text before all choices.", "context"
    )
    question_column: str | None = optional(
        "Multiple choice: column of the start of all choices. Default: "
        "question, if it exists."
    )
    choices_column: str = option(
        "Multiple choice: the column of the list of choices.", "choices"
    )
    token_column: int = amount("Tagging: column of words.", 0)
    tag_column: int = option(
        "Tagging: the column of the tags; -1 is the last.", -1, at_least=-1
    )
    document_context: bool = switch(
        "Tagging: fill sequences with neighboring sentences."
    )
    sweep: str = option(
        "Train a run for each point of a grid, such as learning_rate=5e-5,3e-5;"
        "seed=1..5, and write a table of the results.",
        "",
        needs="do_train",
        conflicts=("do_export",),
        heading="Training",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.uses_data:
            self.require("data_dir", existing_directory)


class RunClassifierWithTfhub(RunClassifier):
    """Options of `run_classifier_with_tfhub.py`."""

    command = "run_classifier_with_tfhub.py"
    module_command = ""

    bert_hub_module_handle: str = option(
        "The TF Hub module of BERT: a directory written by export_tfhub.py, or "
        "an address.",
        check=_module,
    )
    model: str | None = optional(
        "Not supported: the module is the model.",
        check=lambda _: "is not supported: the module is the model. Omit it.",
        heading=LEGACY,
    )
    # Required by `run_classifier.py`.
    bert_config_file: str | None = optional(  # type: ignore[assignment]
        "Unused: the TF Hub module has its own configuration.", heading=LEGACY
    )
    vocab_file: str | None = optional(  # type: ignore[assignment]
        "Unused: the TF Hub module has its own vocabulary.", heading=LEGACY
    )
    init_checkpoint: str | None = optional(
        "Unused: the TF Hub module has its own weights.", heading=LEGACY
    )
    do_lower_case: bool = option(
        "Unused: the TF Hub module defines whether to lower-case text.",
        True,
        heading=LEGACY,
    )

    def _check_model(self) -> None:
        """Checks the options that a module supports, instead of its files."""
        for name in _GRAPH_OPTIONS:
            if self.is_set(name):
                message = "needs run_classifier.py: a module's graph is fixed."
                raise self.error(name, message)
