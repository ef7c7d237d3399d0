"""Options of `convert_checkpoint.py`, and what kind of model it is given."""

import dataclasses
import os

from official_bert import cli, files, json_files
from official_bert.cli import option
from official_bert.errors import InputError
from official_bert.options.checks import require_package, require_pattern

# Heads whose weights have the same names in a TF1 checkpoint.
CLASSIFIERS = (
    "sequence_classification",
    "multiple_choice",
    "token_classification",
)

# What is never opened, and how to get the same as safetensors.
_REFUSED = {
    ".bin": "is a pickle, which can run any code when it is opened",
    ".pt": "is a pickle, which can run any code when it is opened",
    ".pth": "is a pickle, which can run any code when it is opened",
    ".h5": "is of transformers' former TensorFlow models",
    ".msgpack": "is of transformers' former Flax models",
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class ConvertCheckpoint(cli.Options):
    """Options of `convert_checkpoint.py`."""

    input: str = option(
        "What to convert: a TF1 checkpoint or a run's --output_dir, a Hugging "
        "Face folder, a KerasHub preset's folder, or a checkpoint of Model "
        "Garden (TF2)."
    )
    output: str = option("The folder to write; new, or empty.")
    to: str = option(
        "What to make of it. tf1: bert_model.ckpt, bert_config.json and "
        "vocab.txt, as models were released in 2018.",
        choices=("tf1", "huggingface", "keras_hub"),
    )
    input_format: str = option(
        "What --input is; auto: as its files say.",
        "auto",
        choices=("auto", "tf1", "huggingface", "keras_hub", "model_garden"),
    )
    bert_config_file: str | None = option(
        "For TF1 and Model Garden: the model's bert_config.json. If not given, "
        "that beside the checkpoint.",
        None,
    )
    vocab_file: str | None = option(
        "The vocabulary. If not given, that beside the weights.", None
    )
    do_lower_case: bool | None = option(
        "Whether the model is uncased. If not given, as its files say; if none "
        "does, as its vocabulary looks.",
        None,
    )
    head: str | None = option(
        "For a fine-tuned model whose files do not say it: what its classifier "
        "is for.",
        None,
        choices=CLASSIFIERS,
    )
    skip: str | None = option(
        "Regular expression of names in --input that are left out, such as "
        "'^cls/seq_relationship/'. All others must have a counterpart.",
        None,
    )
    strip_optimizer: bool = option(
        "With --to=tf1, for a TF1 checkpoint: leaves out what only training "
        "needs (adam_m, adam_v, global_step, ...), two thirds of it.",
        False,
    )
    overwrite: bool = option(
        "Whether to replace all that is in --output.", False
    )

    def __post_init__(self) -> None:
        """Checks everything that can be checked without TensorFlow."""
        super().__post_init__()
        if self.skip:
            require_pattern("skip", self.skip)
        for name in ("bert_config_file", "vocab_file"):
            if getattr(self, name):
                files.require(getattr(self, name), f"--{name}")
        found = self.resolved_input_format
        self._check_formats(found)
        if "keras_hub" in (found, self.to):
            require_package("A conversion from or to KerasHub", "keras_nlp")
        if self.strip_optimizer:
            self._check_stripping()
        if files.is_remote(self.output):
            raise InputError(
                "--output must be a local folder. Received: "
                f"{self.output!r}. Copy it there afterwards."
            )
        # The best checkpoint is read from a folder of its own in a run's.
        best = os.path.join(self.input, files.BEST_DIRECTORY)
        inputs = [self.input, best, self.bert_config_file, self.vocab_file]
        files.require_free_directory(
            "--output", self.output, self.overwrite, filter(None, inputs)
        )

    @property
    def resolved_input_format(self) -> str:
        """What --input is; checkpoint if it may be tf1 or model_garden."""
        if self.input_format != "auto":
            found = find_format(self.input)
            mine = self.input_format
            is_checkpoint = mine in ("tf1", "model_garden")
            if found != ("checkpoint" if is_checkpoint else mine):
                raise InputError(
                    f"--input must be as --input_format says. Received: {mine},"
                    f" and {self.input!r} looks like {found}."
                )
            return mine
        return find_format(self.input)

    def _check_stripping(self) -> None:
        """Refuses what a copy has no use for."""
        names = ("bert_config_file", "vocab_file", "do_lower_case", "head")
        given = [f"--{n}" for n in names if getattr(self, n) is not None]
        if given:
            raise InputError(
                "--strip_optimizer copies what is beside the checkpoint. "
                f"Received: {', '.join(given)} as well. Leave it out, and copy "
                "the file there."
            )

    def _check_formats(self, found: str) -> None:
        if found == self.to:
            if self.to == "tf1" and self.strip_optimizer:
                return
            refuse_same_format(self.to)
        if self.strip_optimizer and (
            self.to != "tf1" or found not in ("tf1", "checkpoint")
        ):
            raise InputError(
                "--strip_optimizer goes with a TF1 checkpoint and --to=tf1. "
                f"Received: --to={self.to}. Leave it out: other formats never "
                "get an optimizer's state."
            )
        if found not in ("tf1", "checkpoint", "model_garden") and (
            self.bert_config_file
        ):
            raise InputError(
                "--bert_config_file goes with TF1 and Model Garden "
                "checkpoints. Received: a folder whose config.json says it "
                "all. Leave it out."
            )


def refuse_same_format(name: str) -> None:
    """Raises `InputError`, as there is nothing to convert."""
    raise InputError(
        "--to must be another format than that of --input. Received: "
        f"{name} for both. To leave out an optimizer's state, add "
        "--strip_optimizer."
    )


def find_format(path: str) -> str:
    """Returns huggingface, keras_hub, or checkpoint (of TF1 or Model Garden).

    Raises:
        InputError: There is nothing of the kind, or what is never opened.
    """
    if files.exists(path + ".index"):
        return "checkpoint"
    if files.is_remote(path):
        raise InputError(
            "--input must be local, unless it is a checkpoint's prefix. "
            f"Received: {path!r}. Copy it here."
        )
    if os.path.isfile(path):
        _refuse_file(path)
    if not os.path.isdir(path):
        raise InputError(
            "--input must be a folder, or a checkpoint's NAME.index without "
            f".index. Received: {path!r}, which does not exist. Check the path."
        )
    names = sorted(os.listdir(path))
    if "checkpoint" in names or any(
        name.startswith(("model.ckpt-", "bert_model.ckpt"))
        and name.endswith(".index")
        for name in names
    ):
        return "checkpoint"
    return _format_of_folder(path, names)


def _refuse_file(path: str) -> None:
    reason = _REFUSED.get(os.path.splitext(path)[1])
    if reason:
        raise InputError(_refusal(path, reason))
    raise InputError(
        f"--input must be a folder, or a checkpoint's prefix. Received: "
        f"{path!r}, which is a file. For model.safetensors or config.json, "
        "give the folder they are in; for NAME.index, give NAME."
    )


def _refusal(path: str, reason: str) -> str:
    return (
        f"{path}: weights must be in model.safetensors. Received: "
        f"{os.path.basename(path)}, which {reason}, and is not read. Where you "
        "trust it, load it with the version of transformers that reads it, "
        "call `model.save_pretrained(folder, safe_serialization=True)`, and "
        "give that folder."
    )


def _format_of_folder(path: str, names: list[str]) -> str:
    is_safe = any(
        name.endswith((".safetensors", ".index.json")) for name in names
    )
    if not is_safe and "model.weights.h5" not in names:
        for name in names:
            if reason := _REFUSED.get(os.path.splitext(name)[1]):
                raise InputError(_refusal(os.path.join(path, name), reason))
    if "config.json" not in names:
        raise InputError(
            f"{path}: must hold config.json, or a checkpoint. Received: a "
            f"folder with {', '.join(names[:8]) or 'nothing'}. Name the folder "
            "of a model, or a checkpoint in it without .index."
        )
    config_file = os.path.join(path, "config.json")
    config = json_files.read_object(config_file)
    if "registered_name" in config and "class_name" in config:
        return "keras_hub"
    if "model_type" in config or is_safe:
        return "huggingface"
    raise InputError(
        f"{config_file}: must be of a BERT of transformers or KerasHub. "
        "Received: neither `model_type` nor `registered_name`. For a "
        "checkpoint, name its files without .index."
    )
