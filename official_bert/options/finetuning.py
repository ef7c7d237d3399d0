"""Options that all fine-tuning commands share."""

import re
from collections.abc import Sequence
from typing import Any, ClassVar, cast

from absl import logging

from official_bert.errors import InputError
from official_bert.io import files, json_files
from official_bert.options import checks, flags
from official_bert.options.model_source import CasedModel, TokenizerOptions
from official_bert.options.training import TrainingOptions
from official_bert.runs import file_names
from official_bert.sources import checkpoint_paths, pretrained, task_file
from official_bert.sources.formats.tf1 import files as tf1_files
from official_bert.sources.heads import FEATURE_LAYERS, PoolingHead
from official_bert.sources.released_models import (
    validate_case_matches_checkpoint,
)

# Options whose files training copies to the run directory, under these names.
_COPIES = {
    "vocab_file": file_names.VOCAB,
    "bert_config_file": file_names.CONFIG,
}


def _frozen_parts(value: str) -> str | None:
    for part in filter(None, value.split(",")):
        if not re.fullmatch(r"embeddings|pooler|\d+(-\d+)?", part):
            return (
                "must list embeddings, pooler, layers such as 3 or ranges of "
                f"layers such as 0-5. Received: {part!r}."
            )
    return None


def frozen_layers(freeze: str) -> list[tuple[int, int]]:
    """Returns the first and the last layer of each range in `--freeze`."""
    ranges = re.findall(r"(\d+)(?:-(\d+))?", freeze)
    return [(int(first), int(last or first)) for first, last in ranges]


class FinetuningOptions(
    CasedModel, TrainingOptions, heading="Training", common=False
):
    """Options of all fine-tuning commands."""

    # The command whose run directories this command can evaluate too.
    module_command = ""
    one_of: ClassVar[Sequence[str]] = (
        "do_train",
        "do_eval",
        "do_predict",
        "do_export",
    )
    # Values in the commands that lack these flags of `run_classifier.py`.
    best_metric = fold = task_type = ""
    label_smoothing = 0.0
    train_file = dev_file = test_file = corpus_file = cast("str | None", None)

    num_train_epochs: float = flags.non_negative(
        "Passes over the data.", 3.0, common=True, on_resume="if_steps_left"
    )
    warmup_proportion: float = flags.share(
        "Proportion of the training steps used for warm-up.", 0.1, common=True
    )
    layerwise_lr_decay: float = flags.share(
        "Each layer learns at this fraction of the rate above it.", 1.0
    )
    reinit_layers: int = flags.non_negative(
        "Reinitialize N top layers and the pooler (Zhang et al., 2021).",
        with_module=False,
    )
    pad_to: str = flags.choice(
        "max: pad training batches to --max_seq_length. bucket: batch examples "
        "of similar length, which is faster, but changes their order.",
        "max|bucket",
        common=True,
        on_resume="if_steps_left",
    )
    teacher: str | None = flags.optional_path(
        "Also learn the answers of a model fine-tuned for the same task: a run "
        "directory, an OpenVINO export, or a Hugging Face model. For "
        "embeddings, learn only the vectors of an embedding model.",
        needed_by="distill_alpha distill_temperature",
        by_content=True,
        inherited=False,
        in_sweep=False,
    )
    distill_alpha: float = flags.share(
        "The weight of the teacher's answers in the loss. The labels have the "
        "weight 1 - distill_alpha.",
        0.5,
        tasks="classification multilabel regression choices tags spans",
        inherited=False,
    )
    distill_temperature: float = flags.option(
        "The divisor of the logits of teacher and student. Not in multi-label "
        "tasks and regression.",
        2.0,
        at_least=0.1,
        tasks="classification choices tags spans",
        inherited=False,
    )
    freeze: str = flags.text(
        "Weights not to train, such as embeddings,0-5,7,pooler.",
        check=_frozen_parts,
        heading="Model",
    )
    feature_layers: str = flags.choice(
        "Freeze BERT and train a BiLSTM on these outputs (table 7 of the "
        "paper), with a learning rate such as 1e-3.",
        "|".join(FEATURE_LAYERS),
        with_module=False,
        tasks="text choice tagging squad",
    )
    bilstm_size: int | None = flags.non_negative(
        "Size per direction of a two-layer BiLSTM on BERT; 0: none. Default: "
        "768 with --feature_layers, otherwise 0.",
        None,
        tasks="text choice tagging squad",
    )
    eval_pad_to: str = flags.choice(
        "Like --pad_to, in evaluation and prediction; results are the same.",
        "bucket|max",
        heading="Evaluation",
        **flags.NEUTRAL,
    )
    early_stopping: int = flags.non_negative(
        "Stop after N --eval_every evaluations without improvement; 0: never.",
        needs="eval_every",
        common=True,
        **flags.PER_COMMAND,
    )
    do_predict: bool = flags.switch(
        "Whether to predict.",
        heading="Prediction and export",
        common=True,
        **flags.EXECUTION,
    )
    predict_batch_size: int = flags.positive(
        "Examples per prediction step.", 8, **flags.NEUTRAL
    )
    do_export: bool = flags.switch(
        "Whether to export for TensorFlow Serving; needs no data.",
        common=True,
        **flags.PER_COMMAND,
        one_host="Omit it, and export after training.",
        with_module=False,
    )
    export_dir: str | None = flags.optional_path(
        "Directory of the versions 1, 2, ... Default: export/ in --output_dir.",
        needs="do_export",
        **flags.PER_COMMAND,
    )
    export_text: bool = flags.option(
        "Whether the exported model takes text.", True, **flags.PER_COMMAND
    )
    export_tflite: bool = flags.switch(
        "Whether to also export model.tflite.",
        needs="do_export",
        check=checks.installed("ai_edge_litert"),
        **flags.PER_COMMAND,
    )
    export_openvino: bool = flags.switch(
        "Export for OpenVINO, not for TensorFlow Serving. The default of "
        "--export_dir is then export_openvino/ in --output_dir.",
        needs="do_export",
        conflicts="export_tflite",
        check=checks.installed("openvino"),
        **flags.PER_COMMAND,
    )
    quantize: str = flags.choice(
        "Make the exported model smaller, and print what that costs on the "
        "development set. model.tflite: float16 weights, or dynamic (int8 "
        "weights). OpenVINO: int8, also for activations.",
        "none|float16|dynamic|int8",
        needs="do_eval",
        check=checks.installed("nncf", needed_for="int8"),
        tasks="classification multilabel regression choices tags spans",
        **flags.PER_COMMAND,
    )

    def _earlier_options(self) -> dict[str, Any]:
        """Returns the options with which the model in --output_dir was trained.

        Returns no options that concern a single run. Raises `InputError` if
        neither --output_dir nor a flag names a model, or an option has a value
        of another type.
        """
        directory, run = self.output_dir, self.run_directory
        path = run.file(file_names.TRAIN_OPTIONS)
        command, recorded = run.record.command, {**run.record.options}
        has_task = task_file.is_in(directory)
        is_of_module = has_task and command == self.module_command
        if not recorded or not (is_of_module or command == self.command):
            self._require_model_flag(command if recorded else None)
            return {}
        if is_of_module:
            task = task_file.read(directory)
            if "hub_module" in task:
                return {}
            recorded["do_lower_case"] = task.get("do_lower_case", True)
        for name, file_name in _COPIES.items():
            # The options of a run with a Hub module do not name these files.
            if (recorded.get(name) or is_of_module) and run.has(file_name):
                recorded[name] = run.file(file_name)
        logging.info(f"Values of omitted flags are read from {path}")
        fields = self.fields()
        earlier = {}
        for name in {*self.names(inherited=True)} - self.given:
            if name in recorded:
                value, kind = recorded[name], fields[name].type
                try:
                    earlier[name] = json_files.decode(value, kind, name)
                except ValueError as error:
                    hint = f"Restore the file, or give --{name}."
                    raise InputError(f"{path}: {error} {hint}") from error
        return earlier

    def _require_model_flag(self, command: str | None) -> None:
        """Raises `InputError` if no flag names the model to evaluate.

        `command` is another command, which wrote --output_dir, or None.
        """
        acts = any(map(self.is_set, self.one_of))
        names = (self.model, self.bert_config_file, self.bert_hub_module_handle)
        if acts and not any(names):
            received = f", not a run of {command}" if command else ""
            raise InputError(
                f"--output_dir={self.output_dir} must contain a fine-tuned "
                f"model{received}. Check the path, or add --do_train or "
                "--model."
            )

    @property
    def pooling_head(self) -> PoolingHead:
        """The pooling head; a frozen BERT has a BiLSTM by default."""
        size = self.bilstm_size
        if size is None:
            size = 768 if self.feature_layers != "none" else 0
        return PoolingHead(self.feature_layers, size)

    @property
    def more_steps(self) -> str:
        """Flags that would give more training steps, for messages, or ""."""
        values = []
        # Embeddings learn from the other texts of the batch: more are better.
        if self.train_batch_size > 8 and self.task_type != "embedding":
            values.append("--train_batch_size=8")
        if self.num_train_epochs < 20:
            values.append("--num_train_epochs=20")
        return " ".join(values)

    @property
    def used_splits(self) -> list[str]:
        """Which of `train`, `dev` and `test` are read."""
        splits = super().used_splits
        return [*splits, "test"] if self.do_predict else splits

    @property
    def holds_out(self) -> bool:
        """Whether a part of the training data is used for evaluation only."""
        return False

    @property
    def training_records(self) -> str:
        """The file with the features of the training data."""
        return self.run_directory.file(file_names.records("train"))

    @property
    def serving_dir(self) -> str:
        """The directory of the exported versions."""
        name = "export_openvino" if self.export_openvino else "export"
        return self.export_dir or self.run_directory.file(name)

    def _check(self) -> None:
        super()._check()
        if self.quantize != "none":
            self._check_quantize()
        if self.do_export:
            self._check_export()

    def _check_model(self) -> None:
        super()._check_model()
        self.require_layers(self.model_files.config.num_hidden_layers)
        validate_case_matches_checkpoint(
            self.do_lower_case, self.init_checkpoint
        )
        if self.do_train and not self.model:
            pretrained.warn_of_casing(self.model_files)
        if self.init_checkpoint and not self.model:
            self._warn_of_other_tokenizer(self.init_checkpoint)

    def _warn_of_other_tokenizer(self, checkpoint: str) -> None:
        """Warns if files beside a checkpoint differ from the flags."""
        path = checkpoint_paths.beside(checkpoint, file_names.VOCAB)
        if path and files.read_text(path) != self.model_files.vocab:
            logging.warning(
                f"--vocab_file={self.vocab_file} differs from {path}, which "
                "is beside the weights"
            )
        lower = tf1_files.read_settings(checkpoint).do_lower_case
        if lower not in (None, self.do_lower_case):
            logging.warning(
                f"--do_lower_case={self.do_lower_case}, but the "
                f"tokenizer_config.json of {checkpoint} has "
                f"do_lower_case={lower}"
            )

    def require_layers(self, num_hidden_layers: int) -> None:
        """Raises `InputError` if `freeze` names layers that the model lacks."""
        for first, last in frozen_layers(self.freeze):
            if not first <= last < num_hidden_layers:
                message = f"must name layers from 0 to {num_hidden_layers - 1}."
                raise self.error("freeze", message)
        if self.reinit_layers > num_hidden_layers:
            message = (
                f"must be at most {num_hidden_layers}, the model's layers."
            )
            raise self.error("reinit_layers", message)

    def _check_quantize(self) -> None:
        is_int8 = self.quantize == "int8"
        export = "export_openvino" if is_int8 else "export_tflite"
        if not getattr(self, export):
            raise self.error("quantize", f"needs --{export}. Add it.")
        records = self.training_records
        if is_int8 and not self.do_train and not files.exists(records):
            message = f"needs {records}, which training wrote. Restore it."
            raise self.error("quantize", message)

    def _check_export(self) -> None:
        if self.export_text and not self.export_openvino:
            self.require("export_text", checks.installed("tensorflow_text"))
            self.model_files.settings.require_exportable()
        bilstm_size = self.pooling_head.bilstm_size
        if self.export_tflite and bilstm_size:
            message = f"does not support --bilstm_size={bilstm_size}."
            raise self.error("export_tflite", message)
        files.require_writable_directory(self.serving_dir)
        if self.do_train:
            return
        task = task_file.read(self.output_dir)
        if not task:
            message = f"needs task.json in {self.output_dir}. Add --do_train."
            raise self.error("do_export", message)
        trained = {**self.run_directory.record.options, **task}
        names = ("max_seq_length", "do_lower_case", *TokenizerOptions.fields())
        for name in names:
            if trained.get(name) not in (None, getattr(self, name)):
                run = self.output_dir
                message = f"must be as in training: {trained[name]!r} in {run}."
                raise self.error(name, message)
