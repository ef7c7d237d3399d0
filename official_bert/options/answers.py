"""The fine-tuned model of `predict.py` and `serve.py`, and its answers."""

import contextlib
import functools
from typing import Any

from official_bert.errors import InputError, listed
from official_bert.options import checks, flags
from official_bert.options.model_source import (
    FOR_ORIGINAL,
    FOR_PRETRAINED,
    MODEL_FILES,
    EngineOptions,
    ModelOptions,
)
from official_bert.sources import task_file
from official_bert.sources.heads import KINDS

_CLASSES = [kind.architecture for kind in KINDS.values() if kind.task]


def parse_thresholds(value: str) -> list[tuple[str, float]]:
    """Returns labels and thresholds; a number alone has the label "".

    Raises `ValueError`, whose message ends a sentence, if they are malformed.
    """
    pairs = checks.label_numbers(value)
    if not pairs:
        with contextlib.suppress(ValueError):
            pairs = [("", float(value))]
    are_probabilities = all(0 < number < 1 for _, number in pairs)
    if not pairs or not are_probabilities or len(dict(pairs)) < len(pairs):
        raise ValueError(
            "must be a number between 0 and 1, or different labels with such "
            "numbers, such as spam=0.2."
        )
    return pairs


class AnswerOptions(ModelOptions, EngineOptions, heading="Model"):
    """A fine-tuned model, and how it answers."""

    model: str | None = flags.optional_path(
        "A run directory, or a model fine-tuned with transformers: a directory "
        "or OWNER/NAME on the Hugging Face Hub."
    )
    model_dir: str | None = flags.optional_path(
        "The --output_dir of run_classifier.py, run_classifier_with_tfhub.py "
        "or run_squad.py, or a model exported for OpenVINO.",
        conflicts=" ".join(MODEL_FILES),
    )
    text_a_column: str | None = flags.optional(
        "Column of the text: name or number; in JSON, the key. Default: as in "
        "training.",
        alias="text_column",
        heading="Data",
        tasks="text regression tagging",
    )
    text_b_column: str | None = flags.optional(
        "The column of the second text, for pairs.",
        needs="text_a_column",
        tasks="text regression",
    )
    batch_size: int = flags.positive(
        "Sequences per step.", 32, heading="Prediction and export"
    )
    calibrated: bool = flags.option(
        "Own texts: use the temperature and thresholds fitted in training.",
        True,
        tasks="text",
    )
    threshold: str = flags.text(
        "Classifiers: the minimum probability of a predicted label. A number "
        "for all labels (multi-label only), or LABEL=T, such as spam=0.2. "
        "Default: as fitted in training, otherwise 0.5.",
        check=checks.parsed_by(parse_thresholds),
        tasks="text",
    )
    null_score_diff_threshold: float | None = flags.optional(
        'SQuAD 2.0: predict "no answer" if its score exceeds the score of the '
        "best answer by more than this value. Default: as in training."
    )
    n_best_size: int | None = flags.positive(
        "SQuAD: show at most this many of the best answers. Default: all of "
        "them, 20 unless training had another --n_best_size.",
        None,
        tasks="squad",
    )

    def _check(self) -> None:
        super()._check()
        decoding = self.task.get("decoding")
        has_no_answers = isinstance(decoding, dict) and decoding.get(
            "version_2_with_negative"
        )
        if self.is_set("null_score_diff_threshold") and not has_no_answers:
            message = "needs a model for SQuAD 2.0. Omit it."
            raise self.error("null_score_diff_threshold", message)
        self.require_support(self.task.get("kind"))

    def require_support(self, kind: object) -> None:
        """Raises `InputError` if a kind of task does not support a flag."""
        fields = self.fields().items()
        names = [name for name, f in fields if not flags.is_for(f, kind)]
        message = f"is not supported by a model for {kind}. Omit it."
        self.require_unset(names, message)

    @functools.cached_property
    def task(self) -> dict[str, Any]:
        """The model's `task.json`, or the part of it that is known.

        Raises `InputError` if the model is not fine-tuned, or lacks a file.
        """
        if self.model_dir:
            self._require_files(is_finetuned=True)
            return task_file.read(self.model_dir)
        if not self.model:
            raise InputError(
                "--model_dir must be given, or --model with a model that was "
                f"fine-tuned with transformers. {FOR_PRETRAINED}"
            )
        if not self.model_files.task:
            message = (
                "must be a fine-tuned model. Fine-tune it with "
                f"run_classifier.py or run_squad.py. {FOR_PRETRAINED} "
            )
            source = self.model_files.source
            if source.format.name == "huggingface":
                key = "architectures"
                names = source.config_json.get(key, tuple[str, ...] | None)
                received = listed(names or ["none"])
                message += (
                    f"Otherwise, `{key}` in its config.json must name one of "
                    f"{listed(_CLASSES)}. Received: {received}."
                )
            else:
                message += FOR_ORIGINAL
            raise self.error("model", message)
        self._require_files(is_finetuned=False)
        return self.model_files.task
