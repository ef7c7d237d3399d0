"""Options of `export_tfhub.py`."""

import dataclasses
import os

from official_bert.io import files
from official_bert.options import checks, flags
from official_bert.options.model_source import (
    MODEL_FILES,
    ModelOptions,
    require_model_files,
)
from official_bert.runs import file_names
from official_bert.sources import task_file
from official_bert.tokenization import load_vocab


class ExportTfhub(ModelOptions, heading="Model"):
    """Options of `export_tfhub.py`."""

    one_of = ("export_path", "preprocessor_path")

    model_dir: str | None = flags.optional_path(
        "A run directory; add --vocab_file if it has no vocab.txt. Layers of a "
        "task are not exported.",
        conflicts="bert_config_file init_checkpoint",
    )
    export_path: str | None = flags.optional_path(
        "Directory of the encoder module.", heading="Prediction and export"
    )
    preprocessor_path: str | None = flags.optional_path(
        "Directory to write the preprocessor to, a module that takes text.",
        check=checks.installed("tensorflow_text"),
    )
    max_seq_length: int = flags.option(
        "Default sequence length of the preprocessor.", 128, at_least=3
    )
    overwrite: bool = flags.switch(
        "Replace the contents of output directories."
    )

    def _check(self) -> None:
        super()._check()
        self._check_model()
        outputs = list(filter(self.is_set, self.one_of))
        named = dataclasses.asdict(self.model_files)
        inputs = [named[name] for name in MODEL_FILES if named[name]]
        if self.model_dir:
            best = os.path.join(self.model_dir, file_names.BEST)
            inputs += [self.model_dir, best]
        for name in outputs:
            checks.require_output_directory(self, name, inputs)
        paths = [os.path.realpath(getattr(self, name)) for name in outputs]
        if len(paths) > 1 and os.path.commonpath(paths) in paths:
            message = "and --export_path must not contain each other."
            raise self.error("preprocessor_path", message)

    def _check_model(self) -> None:
        needed = MODEL_FILES if self.export_path else ("vocab_file",)
        self._require_model(needed)
        if self.preprocessor_path:
            self.model_files.settings.require_exportable()
        config_file = self.model_files.bert_config_file
        vocab_file = self.model_files.vocab_file
        files.require(vocab_file, "--vocab_file, or vocab.txt of the model,")
        if self.model_dir:
            module = task_file.read(self.model_dir).get("hub_module")
            if module is not None:
                message = f"has no encoder, but uses {module}. Use that module."
                raise self.error("model_dir", message)
        if not self.export_path and not files.exists(config_file):
            return  # A preprocessor needs only the vocabulary.
        config = self.model_files.config
        if self.preprocessor_path:
            config.require_length(self.max_seq_length)
        config.require_vocabulary(load_vocab(vocab_file), vocab_file)
        if self.export_path:
            require_model_files(self.model_files)
