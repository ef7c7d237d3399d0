"""Options of `extract_features.py`."""

import dataclasses
import os
from typing import Any

from absl import logging

from official_bert.io import files, tables
from official_bert.options import checks, flags
from official_bert.options.model_source import (
    CasedModel,
    EngineOptions,
    require_model_files,
)
from official_bert.sources import pretrained
from official_bert.sources.embedding_settings import EmbeddingSettings

_FORMATS = {".npy": "npy", ".tfrecord": "tfrecord", ".tf_record": "tfrecord"}


class ExtractFeatures(CasedModel, EngineOptions, heading="Data"):
    """Options of `extract_features.py`."""

    _has_default_model = True
    is_batch_job = True

    input_file: str = checks.file_option(
        "A text, or two texts separated by ` ||| `, on each line."
    )
    output_file: str = flags.path_option("The file to write.")
    bert_config_file: str = flags.path_option(
        "The model's bert_config.json.", implied_by="model", heading="Model"
    )
    init_checkpoint: str = flags.path_option(
        "TF1 checkpoint, such as DIR/bert_model.ckpt.", implied_by="model"
    )
    layers: str = flags.option(
        "The layers to write, comma-separated: 0 is the lowest, -1 the top. "
        "Default for models with fewer than four layers: all.",
        "-1,-2,-3,-4",
        heading="Data",
    )
    max_seq_length: int = flags.option(
        "Maximum number of tokens; longer texts are truncated.", 128, at_least=3
    )
    batch_size: int = flags.positive("Sequences per step.", 32)
    pooling: str = flags.choice(
        "Write one vector per line. cls: the vector of [CLS]. mean, max: the "
        "mean or maximum over all tokens, including [CLS] and [SEP]. none: one "
        "vector per token. auto: as the model's sentence-transformers files "
        "say, with their length and normalization; without them, none.",
        "auto|none|cls|mean|max",
    )
    normalize: bool = flags.switch("Divide each vector by its Euclidean norm.")
    output_format: str = flags.choice(
        "npy: float32 [lines, layers * hidden size]; needs --pooling. "
        "tfrecord: a tf.train.Example per line. auto: detected from the ending "
        "of --output_file, otherwise jsonl.",
        "auto|jsonl|npy|tfrecord",
    )
    use_tpu: bool = flags.switch(
        "Not supported.",
        check=lambda _: "is not supported. Omit it.",
        heading=flags.LEGACY,
    )
    master: str | None = flags.optional("No effect.")
    num_tpu_cores: int = flags.option("No effect.", 8)
    use_one_hot_embeddings: bool = flags.switch("No effect.")

    def _complete(self) -> flags.Self:
        """Fills in what the model's files say, and the layers of small ones."""
        options = super()._complete()
        if not files.is_file(options.bert_config_file or ""):
            return options
        config = options.model_files.config
        if options.pooling == "auto" and options.model_files.embedding:
            settings = options.model_files.embedding
            length = settings.length(config.max_position_embeddings)
            values = {
                "layers": "-1",
                "max_seq_length": length,
                "normalize": settings.normalize,
            }
            options._check_overrides(values, settings.in_model)
            return options.fill(values)
        if config.num_hidden_layers < 4:
            depths = range(1, config.num_hidden_layers + 1)
            return options.fill({"layers": ",".join(f"-{n}" for n in depths)})
        return options

    def _check_overrides(self, values: dict[str, Any], in_model: bool) -> None:
        """Warns if flags override settings of a model for vectors of texts.

        Raises `InputError` if the model was trained with these settings, as
        `in_model` says; only the length may differ.
        """
        for name in sorted(values.keys() & self.given):
            if getattr(self, name) == values[name]:
                continue
            if in_model and name != "max_seq_length":
                message = "does not fit a model that was trained with "
                message += "--task_type=embedding. Omit it, or add "
                message += "--pooling=mean to use only its BERT."
                raise self.error(name, message)
            logging.warning(
                f"--{name}={getattr(self, name)} overrides the setting of the "
                f"model, {values[name]}"
            )

    @property
    def embedding(self) -> EmbeddingSettings | None:
        """How each line becomes one vector; None: one vector per token."""
        if self.pooling == "none":
            return None
        if self.pooling != "auto":
            return EmbeddingSettings((self.pooling,))
        settings = self.model_files.embedding
        if settings is None:
            return None
        has_module = settings.normalize and self.normalize
        return dataclasses.replace(settings, normalize=has_module)

    @property
    def resolved_format(self) -> str:
        """The output format: jsonl, npy or tfrecord."""
        if self.output_format != "auto":
            return self.output_format
        return _FORMATS.get(os.path.splitext(self.output_file)[1], "jsonl")

    @property
    def layer_indexes(self) -> list[int]:
        """The numbers in `layers`."""
        return [int(number) for number in self.layers.split(",")]

    def _check(self) -> None:
        super()._check()
        config = self.model_files.config
        config.require_length(self.max_seq_length)
        depth = config.num_hidden_layers
        try:
            is_valid = all(-depth <= n < depth for n in self.layer_indexes)
        except ValueError:
            is_valid = False
        if not is_valid:
            message = (
                f"must list numbers from {-depth} to {depth - 1}, because the "
                f"model has {depth} layers. For the top one, use --layers=-1."
            )
            raise self.error("layers", message)
        if self.pooling == "cls" and config.is_left_to_right:
            raise self.error(
                "pooling",
                "does not suit a left-to-right model, whose [CLS] attends only "
                "to itself. Use mean or max.",
            )
        if self.pooling not in ("auto", "none") and self.model_files.embedding:
            logging.warning(
                f"--pooling={self.pooling} is used without the settings of the "
                "model for vectors of texts. To use them, omit --pooling"
            )
        if self.resolved_format == "npy" and self.embedding is None:
            message = "must be cls, mean or max for .npy: one vector per line."
            raise self.error("pooling", message)
        require_model_files(self.model_files)
        if not self.model:
            pretrained.warn_of_casing(self.model_files)
        is_table = tables.format_of(self.output_file) in ("csv", "tsv")
        if is_table and self.output_format == "auto":
            logging.warning(
                f"{self.output_file} will contain JSON lines. For other "
                "formats, use .npy or .tfrecord"
            )
        tables.warn_of_lines([self.input_file])
        # The file is read twice: first to count its lines.
        self.require("input_file", checks.seekable_file)
        inputs = [self.input_file, self.bert_config_file, self.vocab_file]
        checks.require_outputs(self, "output_file", inputs)
