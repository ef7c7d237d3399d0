"""Options that all commands that fine-tune share.

`classification.py` and `squad.py` add those of one command.
"""

import dataclasses
import os
import re
from typing import Any

from absl import logging

from official_bert import files, json_files, task_file
from official_bert.cli import option
from official_bert.errors import InputError
from official_bert.options.checks import require_package
from official_bert.options.training import StepOptions, TrainingOptions

# What a frozen BERT may give to a model above it; none trains BERT.
FEATURE_LAYERS = (
    "none",
    "embeddings",
    "second_to_last",
    "last",
    "weighted_sum_last_4",
    "concat_last_4",
    "weighted_sum_all",
)

# What training leaves in the output folder.
_KEPT_AS = {"vocab_file": "vocab.txt", "bert_config_file": "bert_config.json"}

# What an earlier run was told for itself alone.
_OF_A_RUN = {
    *(field.name for field in dataclasses.fields(StepOptions)),
    "output_dir",
    "do_train",
    "do_eval",
    "do_predict",
    "init_checkpoint",
    "do_export",
    "export_dir",
    "export_text",
    "export_tflite",
    "sweep",
    "eval_every",
    "early_stopping",
    "label_file",
    "plots",
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class FinetuningOptions(TrainingOptions):
    """What all fine-tuning commands can be told."""

    # The one whose models, on modules of ours, are also this one's.
    module_command = ""

    vocab_file: str = option("The vocabulary the model was trained with.")
    do_lower_case: bool = option(
        "Whether to lower-case the text. True for uncased models.", True
    )
    do_eval: bool = option("Whether to evaluate on the development set.", False)
    eval_batch_size: int = option(
        "Examples per evaluation step.", 8, at_least=1
    )
    do_predict: bool = option("Whether to predict.", False)
    predict_batch_size: int = option(
        "Examples per prediction step.", 8, at_least=1
    )
    num_train_epochs: float = option(
        "How often to go over the training data.", 3.0, at_least=0
    )
    warmup_proportion: float = option(
        "The share of steps over which the learning rate rises.",
        0.1,
        at_least=0,
        at_most=1,
    )
    pad_to: str = option(
        "In training. max: every batch to max_seq_length, as in 2018. bucket: "
        "batches of similar length, padded to the next of a few lengths; "
        "faster, in another order.",
        "max",
        choices=("max", "bucket"),
    )
    eval_pad_to: str = option(
        "The same for evaluation and prediction, whose results stay the same.",
        "bucket",
        choices=("max", "bucket"),
    )
    eval_every: int = option(
        "Steps between evaluations while training; the best checkpoint is kept "
        "in the folder `best`, and is what is evaluated and predicts in the "
        "end. 0: evaluate only in the end, the last one.",
        0,
        at_least=0,
    )
    early_stopping: int = option(
        "With `eval_every`: stop after so many evaluations without a new best. "
        "0: never.",
        0,
        at_least=0,
    )
    freeze: str = option(
        "What not to train: embeddings, layers as 3 or 0-5, pooler; "
        "comma-separated.",
        "",
    )
    layerwise_lr_decay: float = option(
        "By what the learning rate is multiplied from one layer to the one "
        "below, such as 0.9.",
        1.0,
        at_least=0,
        at_most=1,
    )
    do_export: bool = option(
        "Whether to write the trained model as TensorFlow Serving loads it; "
        "alone, it needs no data.",
        False,
    )
    export_dir: str | None = option(
        "With `do_export`: the folder of all versions 1, 2, ...; `export` in "
        "the output folder, if not given.",
        None,
    )
    export_text: bool = option(
        "With `do_export`: whether the model takes texts. It then needs the "
        "operations of tensorflow_text, which TensorFlow Serving has.",
        True,
    )
    export_tflite: bool = option(
        "With `do_export`: whether to write model.tflite as well.", False
    )
    feature_layers: str = option(
        "Freezes BERT and trains a model on its vectors (the paper's table 7): "
        "those of the embeddings, the second to last layer, the last one, a "
        "learned weighted sum of the last four, these behind one another, a "
        "weighted sum of all. Take a learning rate of 1e-3. none: fine-tune "
        "BERT.",
        "none",
        choices=FEATURE_LAYERS,
    )
    bilstm_size: int | None = option(
        "Size, in each direction, of a two-layer BiLSTM between BERT and the "
        "task's layer; 0 for none. If not given, 768 with `feature_layers`, "
        "and else none.",
        None,
        at_least=0,
    )

    @classmethod
    def defaults_from_earlier_run(cls, given: dict[str, Any]) -> dict[str, Any]:
        """Returns what a model's training was told, to use the model the same.

        That is where nothing is trained, and all but what is of a run alone:
        what it does, and on which devices.
        """
        folder = given.get("output_dir", "")
        path = os.path.join(folder, "train_options.json")
        if given.get("do_train") or not files.exists(path):
            return {}
        record = json_files.read_object(path)
        told = record.get("options")
        if not isinstance(told, dict):
            return {}
        is_of_module = record.get("command") == cls.module_command
        if is_of_module and task_file.is_in(folder):
            task = task_file.read(folder)
            if "hub_module" in task:
                return {}
            told["do_lower_case"] = task["do_lower_case"]
        elif record.get("command") != cls.command:
            return {}
        for name, kept in _KEPT_AS.items():
            kept = os.path.join(folder, kept)
            # A module had its own.
            if (told.get(name) or is_of_module) and files.exists(kept):
                told[name] = kept
        names = {field.name for field in dataclasses.fields(cls)} - _OF_A_RUN
        found = {name: told[name] for name in names if name in told}
        logging.info("%s: flags that are not given are as there", path)
        return found

    @property
    def bilstm_units(self) -> int:
        """What `bilstm_size` comes to."""
        if self.bilstm_size is None:
            return 768 if self.feature_layers != "none" else 0
        return self.bilstm_size

    @property
    def uses_data(self) -> bool:
        """Whether there is more to do than to export."""
        return self.do_train or self.do_eval or self.do_predict

    @property
    def serving_dir(self) -> str:
        """Where versions are exported to."""
        return self.export_dir or os.path.join(self.output_dir, "export")

    def _check_model(self) -> None:
        """Looks at the files that the model is made of."""
        super()._check_model()
        files.require(self.vocab_file, "--vocab_file")
        self.require_layers(self.model_config().num_hidden_layers)

    def require_layers(self, num_hidden_layers: int) -> None:
        """Raises `InputError` if `freeze` names layers that a model lacks."""
        for first, last in re.findall(r"(\d+)(?:-(\d+))?", self.freeze):
            if not int(first) <= int(last or first) < num_hidden_layers:
                raise InputError(
                    "--freeze must name layers from 0 to "
                    f"{num_hidden_layers - 1}. Received: {self.freeze!r}."
                )

    def __post_init__(self) -> None:
        """Checks everything that can be checked without TensorFlow."""
        super().__post_init__()
        if not (self.uses_data or self.do_export):
            raise InputError(
                "At least one of --do_train, --do_eval, --do_predict and "
                "--do_export must be given. Received: none."
            )
        self._check_export()
        if self.early_stopping and not self.eval_every:
            raise InputError(
                "--early_stopping needs --eval_every. Received: "
                f"--early_stopping={self.early_stopping}. Say how often to "
                "evaluate."
            )
        for part in filter(None, self.freeze.split(",")):
            if not re.fullmatch(r"embeddings|pooler|\d+(-\d+)?", part):
                raise InputError(
                    "--freeze must name embeddings, pooler, layers as 3 or "
                    f"0-5, comma-separated. Received: {part!r}."
                )

    def _check_export(self) -> None:
        if not self.do_export:
            if self.export_dir or self.export_tflite:
                raise InputError(
                    "--export_dir and --export_tflite go with --do_export. "
                    "Received: one without it. Add it, or leave them out."
                )
            return
        if self.export_text:
            require_package(
                "--do_export without --noexport_text", "tensorflow_text"
            )
        if self.export_tflite and self.bilstm_units:
            raise InputError(
                "--export_tflite must come without a BiLSTM, which TensorFlow "
                f"Lite cannot compute. Received: --bilstm_size="
                f"{self.bilstm_units}. Leave out one of both."
            )
        if self.resolved_strategy == "multi_worker_mirrored":
            raise InputError(
                "--do_export must run on one host. Received: it with "
                "--distribution_strategy=multi_worker_mirrored. Leave it out, "
                "and then run the command with --do_export alone."
            )
        if not (self.do_train or task_file.is_in(self.output_dir)):
            raise InputError(
                "--do_export must have a fine-tuned model. Received: "
                f"--output_dir={self.output_dir!r} without task.json. Check "
                "the folder, or add --do_train."
            )
        if not self.do_train:
            self._require_as_trained(task_file.read(self.output_dir))
        files.require_writable_directory(self.serving_dir)

    def _require_as_trained(self, task: dict[str, Any]) -> None:
        for name in ("max_seq_length", "do_lower_case"):
            told, trained = getattr(self, name), task.get(name)
            if trained not in (None, told):
                raise InputError(
                    f"--do_export exports a model with the --{name} that it "
                    f"was trained with. Received: {told}, and {trained} in "
                    f"{task_file.path_in(self.output_dir)}. Give that."
                )
