"""Options of `convert_checkpoint.py`, and the detection of the input format."""

import functools
import os

from official_bert.io import files
from official_bert.options import checks, flags
from official_bert.options.model_source import TokenizerOptions
from official_bert.runs import file_names
from official_bert.sources import downloads, formats
from official_bert.sources.formats import FORMATS
from official_bert.sources.formats.huggingface import sentence_transformers
from official_bert.sources.heads import CLASSIFIERS
from official_bert.sources.released_models import show_released

# {values of --to that cannot be converted back: packages that they need}.
EXPORTS = {"openvino": ["openvino"], "onnx": ["tf2onnx", "onnxruntime"]}


class ConvertCheckpoint(TokenizerOptions, heading="Model"):
    """Options of `convert_checkpoint.py`."""

    input: str = flags.path_option(
        "A TF1 or Model Garden (TF2) checkpoint, a run directory, a Hugging "
        "Face directory, a KerasHub preset, or a name as for --model of other "
        "commands. list: print the names."
    )
    output: str = flags.path_option("The directory to write; new or empty.")
    to: str = flags.option(
        "The output format. tf1: a checkpoint bert_model.ckpt, as released. "
        "openvino, onnx: for prediction without TensorFlow.",
        choices=[
            *(row.name for row in FORMATS.values() if row.is_output),
            *EXPORTS,
        ],
    )
    input_format: str = flags.choice(
        "The format of --input; auto: detected from its files.",
        "|".join(["auto", *FORMATS]),
    )
    bert_config_file: str | None = checks.optional_file(
        "TF1, Model Garden: the config. Default: the one beside the weights."
    )
    vocab_file: str | None = checks.optional_file(
        "The vocabulary. Default: the one beside the weights."
    )
    do_lower_case: bool | None = flags.optional(
        "Whether the model is uncased. Default: detected from its files."
    )
    head: str | None = flags.optional(
        "The type of a fine-tuned model, if its files do not name it.",
        choices=CLASSIFIERS,
    )
    dtype: str = flags.choice(
        "Hugging Face: the type of the stored weights. float16: weights are "
        "rounded and take half the space; loading converts them to float32.",
        "float32|float16",
    )
    model_card: str | None = checks.optional_file(
        "Hugging Face: a Markdown file to insert in the model card."
    )
    skip: str = checks.regex_option(
        "Regular expression of weights to leave out, such as ^cls/."
    )
    license: str | None = flags.optional(
        "Hugging Face: the license to name in the model card, such as "
        "apache-2.0. Default: the one in the README.md of --input, if any."
    )
    add_tokens: str | None = checks.optional_file(
        "A file of new words and markers such as [E1], one per line, to add to "
        "the vocabulary. Their weights are the means over the tokens into "
        "which they were split before."
    )
    repeat_positions: int = flags.non_negative(
        "For a model that was trained on at most N tokens: replace the "
        "position embeddings after the first N with copies of the first N. 0: "
        "keep them. TF1 input needs --to=huggingface."
    )
    average_checkpoints: int = flags.non_negative(
        "A run directory: the mean of the weights of its newest N checkpoints. "
        "0: those of the best or newest one.",
        check=lambda number: None if number != 1 else "must be at least 2.",
    )
    strip_optimizer: bool = flags.switch(
        "Copy a TF1 checkpoint without the optimizer state (adam_m, adam_v, "
        "global_step, ...), which is two thirds of its size.",
        conflicts=" ".join(TokenizerOptions.fields())
        + " bert_config_file vocab_file do_lower_case add_tokens head "
        "repeat_positions average_checkpoints",
    )
    overwrite: bool = flags.switch("Replace the contents of --output.")

    def _complete(self) -> flags.Self:
        """Downloads the model if --input is a name; sets its directory."""
        model = self.input or ""
        if model == "list":
            show_released()
        paths = (model, model + file_names.INDEX)
        if any(map(files.exists, paths)) or not downloads.is_name(model):
            return self
        return self.replace(input=downloads.download(model))

    def _check(self) -> None:
        super()._check()
        detected = self.source.format
        self._check_formats(detected.name)
        row = FORMATS.get(self.to)
        needed = [row.package] if row else EXPORTS[self.to]
        for package in filter(None, [detected.package, *needed]):
            self.require("to", checks.installed(package))
        if files.is_remote(self.output):
            raise self.error("output", "must be a local directory.")
        # In a run directory, the best checkpoint may be read.
        best = os.path.join(self.input, file_names.BEST)
        others = (self.bert_config_file, self.vocab_file, self.model_card)
        inputs = [self.input, best, *filter(None, (*others, self.add_tokens))]
        checks.require_output_directory(self, "output", inputs)

    @functools.cached_property
    def source(self) -> formats.Source:
        """The model at --input, whose format is detected once."""
        directory = sentence_transformers.transformer_directory(self.input)
        return formats.find(directory, f"--input={self.input}")

    def _check_formats(self, detected: str) -> None:
        if self.input_format not in ("auto", detected):
            message = f"must be the format of --input, {detected}. Omit it."
            raise self.error("input_format", message)
        if self.strip_optimizer:
            if (self.to, detected) != ("tf1", "tf1"):
                raise self.error(
                    "strip_optimizer",
                    "needs a TF1 checkpoint and --to=tf1. Omit it: other "
                    "formats never include the optimizer.",
                )
        elif self.to == detected and not (
            self.add_tokens or self.average_checkpoints
        ):
            advice = "Choose another format."
            if detected == "tf1":
                advice = "To remove the optimizer state, add --strip_optimizer."
            message = f"must differ from the format of --input. {advice}"
            raise self.error("to", message)
        if self.to != "huggingface":
            names = ("dtype", "model_card", "license")
            self.require_unset(names, "needs --to=huggingface. Omit it.")
        if self.bert_config_file and detected not in ("tf1", "model_garden"):
            message = "is only for TF1 and Model Garden checkpoints. Omit it."
            raise self.error("bert_config_file", message)
