"""Which model a command asks, and what the folder of one must hold."""

import dataclasses
import os

from official_bert import cli, files, json_files, task_file
from official_bert.cli import option
from official_bert.config import BertConfig
from official_bert.errors import InputError
from official_bert.options.checks import require_checkpoint
from official_bert.tokenization import validate_case_matches_checkpoint

# The three files of a model as it was released.
RELEASED = ("bert_config_file", "vocab_file", "init_checkpoint")


@dataclasses.dataclass(frozen=True, kw_only=True)
class ModelOptions(cli.Options):
    """A model as it was released, or the folder of a run."""

    bert_config_file: str | None = option(
        "The model's bert_config.json, if there is no `model_dir`.", None
    )
    vocab_file: str | None = option(
        "The same: the vocabulary it was trained with.", None
    )
    init_checkpoint: str | None = option(
        "The same: its TF1 checkpoint, such as uncased_L-12_H-768_A-12/"
        "bert_model.ckpt.",
        None,
    )
    do_lower_case: bool | None = option(
        "Whether to lower-case the text, true if not given. False for cased "
        "models. If task.json or tokenizer_config.json lies in `model_dir`, "
        "as that says.",
        None,
    )
    model_dir: str | None = option(
        "A trained model instead of the three files: the --output_dir of "
        "run_pretraining.py, run_classifier.py or run_squad.py.",
        None,
    )

    @property
    def config_path(self) -> str:
        """The model's `bert_config.json`."""
        return self._file(self.bert_config_file, "bert_config.json")

    @property
    def vocab_path(self) -> str:
        """The model's `vocab.txt`."""
        return self._file(self.vocab_file, "vocab.txt")

    @property
    def checkpoint_path(self) -> str:
        """The checkpoint's prefix, or a run's folder."""
        return self.init_checkpoint or self.model_dir or ""

    @property
    def is_uncased(self) -> bool:
        """What `do_lower_case` comes to."""
        if self.do_lower_case is not None or not self.model_dir:
            return self.do_lower_case is not False
        for name in (task_file.NAME, "tokenizer_config.json"):
            path = os.path.join(self.model_dir, name)
            if files.exists(path):
                return bool(
                    json_files.read_object(path).get("do_lower_case", True)
                )
        return True

    def model_files(self) -> list[str]:
        """Returns the files that say what the model is, beside its weights."""
        found = [self.config_path, self.vocab_path]
        if self.model_dir:
            for name in (task_file.NAME, "tokenizer_config.json"):
                found.append(os.path.join(self.model_dir, name))
        return found

    def _require_released(self) -> None:
        """Raises `InputError` unless the three files belong together."""
        config = BertConfig.from_json_file(self.config_path)
        require_released(
            config, self.vocab_path, self.checkpoint_path, self.is_uncased
        )

    def _file(self, given: str | None, name: str) -> str:
        if given or self.model_dir is None:
            return given or ""
        return os.path.join(self.model_dir, name)

    def _given_files(self) -> list[str]:
        """Returns which of `RELEASED` are given."""
        return [name for name in RELEASED if getattr(self, name) is not None]

    def _require_one_name(self) -> None:
        """Raises `InputError` unless it is all three files, or a folder."""
        given = self._given_files()
        if (self.model_dir is None) == (not given):
            raise InputError(
                "Either --model_dir or all of --bert_config_file, --vocab_file "
                "and --init_checkpoint must be given. Received: "
                f"{'both' if given else 'neither'}."
            )
        missing = [f"--{name}" for name in RELEASED if name not in given]
        if given and missing:
            named = ", ".join(f"--{name}" for name in given)
            raise InputError(
                f"{', '.join(missing)} must be given as well. Received: "
                f"{named} alone."
            )


def require_released(
    config: BertConfig,
    vocab_file: str,
    init_checkpoint: str,
    do_lower_case: bool,
) -> None:
    """Raises `InputError` unless files are there, and belong together."""
    config.require_same_direction(init_checkpoint)
    files.require(vocab_file, "--vocab_file")
    require_checkpoint(init_checkpoint)
    validate_case_matches_checkpoint(do_lower_case, init_checkpoint)


def require_finetuned(folder: str) -> None:
    """Raises `InputError` unless a folder describes a fine-tuned model."""
    _require_folder(folder)
    has_config = files.exists(os.path.join(folder, "bert_config.json"))
    if has_config and not task_file.is_in(folder):
        raise InputError(
            f"{folder}: must be what run_classifier.py or its like wrote. "
            "Received: a folder without task.json, as of a model that is only "
            "pre-trained. That can do --fill_mask and --score."
        )
    for name in (task_file.NAME, "vocab.txt"):
        _require_in(folder, name, "Fine-tuning leaves it there.")
    # The models of others on the TF Hub have no config.
    if "hub_module" not in task_file.read(folder):
        _require_in(folder, "bert_config.json", "Fine-tuning leaves it there.")


def require_pretrained(folder: str) -> None:
    """Raises `InputError` unless a folder describes a pre-trained model."""
    _require_folder(folder)
    if task_file.is_in(folder):
        raise InputError(
            f"{folder}: --fill_mask and --score need a pre-trained model. "
            "Received: a fine-tuned one, which has lost its head for masked "
            "LM. Give the model it was made of."
        )
    _require_in(folder, "bert_config.json", "Pre-training leaves it there.")
    _require_in(
        folder,
        "vocab.txt",
        "run_pretraining.py leaves it there if it has --vocab_file. Copy it, "
        "or give --bert_config_file, --vocab_file and --init_checkpoint "
        "instead of --model_dir.",
    )


def require_masked_lm(config_file: str) -> None:
    """Raises `InputError` if a model cannot have learned masked LM."""
    if BertConfig.from_json_file(config_file).is_left_to_right:
        raise InputError(
            f"{config_file}: --fill_mask and --score need a model that learned "
            "masked LM. Received: one that reads from left to right, and "
            "learned to guess the next piece. Give another."
        )


def _require_folder(folder: str) -> None:
    if not files.exists(folder):
        raise InputError(
            "--model_dir must be the folder of a trained model. Received: "
            f"{folder!r}, which does not exist. Check the path."
        )


def _require_in(folder: str, name: str, what_to_know: str) -> None:
    if not files.exists(os.path.join(folder, name)):
        raise InputError(
            f"{folder}: must hold {name}. Received: a folder without it. "
            f"{what_to_know}"
        )
