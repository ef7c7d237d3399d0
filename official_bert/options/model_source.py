"""The model that a command loads, and the engine that runs it."""

import dataclasses
import functools
import os
from collections.abc import Sequence
from typing import Any, cast

from absl import logging

from official_bert.errors import InputError
from official_bert.io import files
from official_bert.options import checks, flags
from official_bert.runs import file_names
from official_bert.runs.directory import RunDirectory
from official_bert.sources import (
    checkpoint_paths,
    formats,
    pretrained,
    task_file,
    tokenizer_files,
)
from official_bert.sources.formats.huggingface import files as huggingface_files
from official_bert.sources.pretrained import ModelFiles
from official_bert.sources.released_models import (
    DEMO,
    show_released,
    validate_case_matches_checkpoint,
)

# The flags of the files of a model.
MODEL_FILES = ModelFiles.names()[:3]

# The commands for models that predict.py cannot use in this way.
FOR_PRETRAINED = (
    "For a pre-trained model, use predict.py with --fill_mask or --score; for "
    "vectors of texts, extract_features.py."
)
FOR_ORIGINAL = (
    "For a model fine-tuned with the original implementation, use "
    "run_classifier.py or run_squad.py with --do_predict."
)


class TokenizerOptions(flags.Options, heading="Model", common=False):
    """Settings of the tokenizer besides its vocabulary and its casing."""

    strip_accents: str = flags.choice(
        "Whether to remove accents. auto: as in the model's tokenizer files; "
        "without them, if text is lower-cased.",
        "auto|true|false",
    )
    never_split: str = flags.text(
        "Tokens of the vocabulary to keep whole wherever they occur in a text, "
        "comma-separated, such as [E1],[/E1]."
    )


class NamedModel(flags.Options, heading="Model"):
    """A model given by `--model`, which implies the flags of its files."""

    # Values in the commands that lack these flags.
    vocab_file = init_checkpoint = cast("str | None", None)

    model: str | None = flags.optional_path(
        "bert_tiny_demo, a released model (--model=list shows all), OWNER/NAME "
        "on the Hugging Face Hub, or a directory. Sets config, vocabulary, "
        "casing and weights, unless their flags are given.",
        inherited=False,
        in_sweep=False,
    )

    def _complete(self) -> flags.Self:
        """Fills in the files and the casing of --model."""
        options = super()._complete()
        names = {"model", "model_dir", *MODEL_FILES}
        if options._has_default_model and options.given.isdisjoint(names):
            logging.info(f"No model is given. Using --model={DEMO}")
            options = options.fill({"model": DEMO})
        if options.model == "list":
            show_released()
        names = options.fields().keys() & ModelFiles.names()
        if not options.model or names <= options.given:
            return options
        return options._fill_from_model(options.model)

    def _fill_from_model(self, model: str) -> flags.Self:
        """Fills in the files and the casing of a model."""
        found = pretrained.find(model, self.vocab_file)
        casing = "uncased" if found.settings.is_uncased else "cased"
        if found.settings.is_uncased and not found.settings.strips_accents:
            casing += ", with accents"
        logging.info(f"--model={model}: {found.init_checkpoint}, {casing}")
        implied = {
            name: value
            for name, value in dataclasses.asdict(found).items()
            if name in self.fields() and value != getattr(ModelFiles, name)
        }
        options = self.fill(implied)
        if options._with_flags(found) == found:
            vars(options)["model_files"] = found  # Already read.
        return options

    def _with_flags(self, model_files: ModelFiles) -> ModelFiles:
        """Returns the files of a model; those that flags name replace them."""
        names = self.fields().keys() & ModelFiles.names()
        values = {name: getattr(self, name) for name in names}
        given = {n: v for n, v in values.items() if v is not None}
        return dataclasses.replace(model_files, **given)

    def replace(self, **changes: Any) -> flags.Self:
        """Keeps what was read of the model, unless its files change."""
        options = super().replace(**changes)
        names = {"model_dir", *ModelFiles.names()}
        if "model_files" in vars(self) and names.isdisjoint(changes):
            vars(options)["model_files"] = self.model_files
        return options

    @property
    def _has_default_model(self) -> bool:
        """Whether the command uses `DEMO` if it is given no model."""
        return False

    @functools.cached_property
    def model_files(self) -> ModelFiles:
        """The files of the model, which are read at most once.

        For --model, `_fill_from_model` sets this property to the result of
        `pretrained.find`, which has already read some of the files.
        """
        return self._with_flags(ModelFiles())

    def download_weights(self) -> None:
        """Downloads the weights of --model, unless other weights are given."""
        if self.model and self.init_checkpoint:
            pretrained.download_weights(self.model, self.init_checkpoint)


class CasedModel(TokenizerOptions, NamedModel, heading="Model", common=False):
    """A model with a vocabulary and a casing, by default those of `--model`."""

    vocab_file: str = checks.file_option(
        "The vocabulary of the model.", implied_by="model"
    )
    do_lower_case: bool = flags.option(
        "Lower-case text and strip accents, for uncased models.",
        True,
        common=True,
    )


class ModelOptions(TokenizerOptions, NamedModel, heading="Model", common=False):
    """A model given by `--model`, by its files, or by a run directory."""

    model_dir: str | None = flags.optional_path(
        "A run directory: the --output_dir of run_pretraining.py, "
        "run_classifier.py or run_squad.py.",
        conflicts=" ".join(MODEL_FILES),
        common=True,
    )
    bert_config_file: str | None = flags.optional_path(
        "Without --model_dir: the bert_config.json of the model."
    )
    vocab_file: str | None = flags.optional_path(
        "Without --model_dir: the vocabulary of the model."
    )
    init_checkpoint: str | None = flags.optional_path(
        "Without --model_dir: TF1 checkpoint, such as DIR/bert_model.ckpt."
    )
    do_lower_case: bool | None = flags.optional(
        "Lower-case the text. Default: the casing of --model or --model_dir; "
        "without them, true."
    )

    def _complete(self) -> flags.Self:
        """Fills in the files of --model, which conflicts with --model_dir."""
        if self.model and self.model_dir:
            message = f"conflicts with {self.flag('model')}. Omit one."
            raise self.error("model_dir", message)
        return super()._complete()

    def _fill_from_model(self, model: str) -> flags.Self:
        """Fills in the run directory that --model names, or its files."""
        if task_file.is_in_run(model):
            return self.fill({"model_dir": model})
        return super()._fill_from_model(model)

    @functools.cached_property
    def model_files(self) -> ModelFiles:
        """The files of the model; for a run directory, its best checkpoint."""
        if self.model_dir:
            found = pretrained.run_files(
                self.model_dir, self.do_lower_case, self.vocab_file
            )
            names = filter(self.is_set, TokenizerOptions.fields())
            given = {name: getattr(self, name) for name in names}
            return dataclasses.replace(found, **given)
        return super().model_files

    def input_files(self) -> list[str]:
        """Returns all files of the model except its weights."""
        model_files = self.model_files
        paths = [model_files.bert_config_file, model_files.vocab_file]
        if self.model_dir:
            names = (file_names.TASK, tokenizer_files.CONFIG)
            paths += [os.path.join(self.model_dir, name) for name in names]
        return paths

    def _require_model(self, needed: Sequence[str] = MODEL_FILES) -> None:
        """Raises `InputError` unless the needed files or a run are given."""
        missing = [f"--{name}" for name in needed if not self.is_set(name)]
        if missing and not self.model_dir:
            names = ", ".join(missing)
            if self.model:
                raise InputError(
                    f"--model={self.model} lacks a file. Add {names}."
                )
            raise InputError(f"--model, --model_dir or {names} must be given.")

    def _require_files(self, is_finetuned: bool) -> None:
        """Raises `InputError` unless the files of the model exist.

        A run directory must have a fine-tuned or, if `is_finetuned` is false, a
        pre-trained model.
        """
        if not self.model_dir:
            self._require_model()
            require_model_files(self.model_files)
        elif not is_finetuned:
            _require_pretrained(self.model_dir)
        else:
            require_finetuned(self.model_dir)
            names = ("do_lower_case", *TokenizerOptions.fields())
            self.require_unset(names, "needs a pre-trained model. Omit it.")


class EngineOptions(
    flags.Options, heading="Prediction and export", common=False
):
    """The flags `--engine` and `--precision`."""

    # Whether the command answers many texts and then ends; see
    # `OpenVinoEngine`.
    is_batch_job = False

    engine: str = flags.choice(
        "openvino: run a model that was exported for OpenVINO, or convert a "
        "checkpoint; in a run directory, the result is kept. auto: openvino if "
        "it is installed and the model was converted, otherwise tensorflow.",
        "auto|tensorflow|openvino",
        check=checks.installed("openvino", needed_for="openvino"),
    )
    precision: str = flags.choice(
        "OpenVINO: the precision of computation. bfloat16 is faster on many "
        "processors. auto: float32.",
        "auto|float32|bfloat16",
    )


def require_model_files(model_files: ModelFiles) -> None:
    """Raises `InputError` unless the files exist and fit each other."""
    checkpoint = model_files.init_checkpoint
    model_files.config.require_same_direction(checkpoint)
    files.require(model_files.vocab_file, "--vocab_file")
    message = checks.existing_checkpoint(checkpoint)
    if message and not RunDirectory(checkpoint).has(file_names.OPENVINO):
        raise InputError(f"--init_checkpoint={checkpoint} {message}")
    is_uncased = model_files.settings.is_uncased
    validate_case_matches_checkpoint(is_uncased, checkpoint)


def require_finetuned(directory: str) -> None:
    """Raises `InputError` unless a run directory has a fine-tuned model."""
    if not task_file.is_in(directory):
        run = RunDirectory(directory)
        if run.has(file_names.SWEEP_TABLE):
            raise InputError(
                f"{directory}: must be the directory of a fine-tuned model, "
                "not of a sweep. Choose the directory of one of its runs."
            )
        if path := checkpoint_paths.beside(directory, file_names.TASK):
            raise InputError(
                f"{directory}: must be the run directory, "
                f"{os.path.dirname(path) or '.'}. Its best or newest "
                "checkpoint is used."
            )
        if run.has(file_names.CONFIG) or run.has(file_names.CHECKPOINT_LIST):
            raise InputError(
                f"{directory}: must be a fine-tuned model, but has no "
                f"task.json. {FOR_PRETRAINED} {FOR_ORIGINAL}"
            )
        formats.require_readable(directory)
        formats.require_one_version(directory)
    for name in (file_names.TASK, file_names.VOCAB):
        _require_file(directory, name, "Fine-tuning writes it.")
    # Runs with third-party TF Hub modules have no bert_config.json.
    if "hub_module" not in task_file.read(directory):
        _require_file(directory, file_names.CONFIG, "Fine-tuning writes it.")


def _require_pretrained(directory: str) -> None:
    """Raises `InputError` unless a run directory has a pre-trained model."""
    _require_file(directory, file_names.CONFIG, "Pre-training writes it.")
    _require_file(
        directory,
        file_names.VOCAB,
        "run_pretraining.py writes it if --vocab_file is given. Copy the file, "
        f"or use --{', --'.join(MODEL_FILES)} instead of --model_dir.",
    )


def _require_file(directory: str, name: str, hint: str) -> None:
    if not files.exists(directory):
        raise InputError(
            f"{directory}: must be an existing run directory, the --output_dir "
            "of a training command. Check the path."
        )
    run = RunDirectory(directory)
    if not run.has(name):
        if run.has(huggingface_files.CONFIG):
            hint = (
                f"For a Hugging Face directory, use --model={directory}, or "
                "`from_pretrained` in Python."
            )
        raise InputError(f"{directory}: must contain {name}. {hint}")
