"""Options of `export_tfhub.py`."""

import dataclasses
import os

from official_bert import files, task_file
from official_bert.cli import option
from official_bert.config import BertConfig
from official_bert.errors import InputError
from official_bert.options.checks import require_package
from official_bert.options.model_source import (
    RELEASED,
    ModelOptions,
    require_released,
)
from official_bert.tokenization import load_vocab


@dataclasses.dataclass(frozen=True, kw_only=True)
class ExportTfhub(ModelOptions):
    """Options of `export_tfhub.py`."""

    bert_config_file: str | None = option(
        "The bert_config.json of the model.", None
    )
    vocab_file: str | None = option(
        "The vocabulary the model was trained with.", None
    )
    init_checkpoint: str | None = option(
        "Its TF1 checkpoint, such as uncased_L-12_H-768_A-12/bert_model.ckpt.",
        None,
    )
    model_dir: str | None = option(
        "Instead of these three: the --output_dir of run_pretraining.py (with "
        "--vocab_file, if it had none), run_classifier.py or their like. Of a "
        "task's model, the module is the encoder without the task's layer.",
        None,
    )
    do_lower_case: bool | None = option(
        "Whether text is lower-cased. If not given, as task.json or "
        "tokenizer_config.json in `model_dir` says, and else true. False for "
        "cased models.",
        None,
    )
    export_path: str | None = option("Folder for the encoder's module.", None)
    preprocessor_path: str | None = option(
        "Folder for the preprocessor's module, from text to what the encoder "
        "reads.",
        None,
    )
    max_seq_length: int = option(
        "The preprocessor's: pieces per sequence, [CLS] and [SEP]s included, "
        "where its user does not say.",
        128,
        at_least=3,
    )
    overwrite: bool = option(
        "Whether to replace what is in these folders.", False
    )

    def __post_init__(self) -> None:
        """Checks everything that can be checked without TensorFlow."""
        super().__post_init__()
        if not self.export_path and not self.preprocessor_path:
            raise InputError(
                "--export_path, --preprocessor_path or both must be given. "
                "Received: neither. Name the folders to write."
            )
        if self.preprocessor_path:
            require_package("--preprocessor_path", "tensorflow_text")
        self._check_model()
        for name in ("export_path", "preprocessor_path"):
            if folder := getattr(self, name):
                files.require_free_directory(
                    f"--{name}", folder, self.overwrite, self._inputs()
                )
        if self.export_path and self.preprocessor_path:
            self._require_apart(self.export_path, self.preprocessor_path)

    def _check_model(self) -> None:
        """Looks at the files that will be read."""
        given = self._given_files()
        for name in ("bert_config_file", "init_checkpoint"):
            if self.model_dir is not None and name in given:
                raise InputError(
                    "--model_dir stands for config and checkpoint. Received: "
                    f"--{name} as well. Leave out one of both."
                )
        needed = RELEASED if self.export_path else ("vocab_file",)
        if self.model_dir is None:
            missing = [name for name in needed if name not in given]
            if missing:
                raise InputError(
                    f"--{', --'.join(missing)} must be given, or --model_dir "
                    "in their place. Received: neither."
                )
        files.require(self.vocab_path, "--vocab_file, or vocab.txt there,")
        if self.model_dir is not None and task_file.is_in(self.model_dir):
            module = task_file.read(self.model_dir).get("hub_module")
            if module is not None:
                raise InputError(
                    f"{self.model_dir}: must hold a BERT of this project. "
                    f"Received: a model on the TF Hub module {module}, which "
                    "was exported by others. Use that, or start from a "
                    "checkpoint."
                )
        if not self.export_path and not files.exists(self.config_path):
            return  # A preprocessor's vocabulary is enough.
        config = BertConfig.from_json_file(self.config_path)
        if self.preprocessor_path:
            config.require_length(self.max_seq_length)
        config.require_vocabulary(load_vocab(self.vocab_path), self.vocab_path)
        if self.export_path:
            require_released(
                config, self.vocab_path, self.checkpoint_path, self.is_uncased
            )

    def _inputs(self) -> list[str]:
        inputs = [self.vocab_path, self.model_dir]
        if self.model_dir:
            inputs.append(os.path.join(self.model_dir, files.BEST_DIRECTORY))
        if self.export_path:
            inputs += [self.config_path, self.checkpoint_path]
        return [name for name in inputs if name]

    def _require_apart(self, one: str, other: str) -> None:
        paths = [os.path.realpath(one), os.path.realpath(other)]
        if os.path.commonpath(paths) in paths:
            raise InputError(
                "--export_path and --preprocessor_path must be two folders "
                f"side by side. Received: {one!r} and {other!r}. Name others."
            )
