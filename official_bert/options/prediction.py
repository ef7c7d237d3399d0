"""Options of `predict.py`."""

import dataclasses
import os

from official_bert import cli, files, json_files
from official_bert.cli import option
from official_bert.config import BertConfig
from official_bert.errors import InputError
from official_bert.options.checks import check_outputs, require_checkpoint
from official_bert.tokenization import validate_case_matches_checkpoint

# The three files of a model as it was released.
_RELEASED = ("bert_config_file", "vocab_file", "init_checkpoint")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Predict(cli.Options):
    """Options of `predict.py`."""

    model_dir: str | None = option(
        "A trained model: the --output_dir of run_classifier.py or its like; "
        "with --fill_mask and --score, that of run_pretraining.py.",
        None,
    )
    input_file: str = option(
        "What to predict, one item a line; - for standard input, whose lines "
        "are answered as they come. Blank lines are left out.",
        "-",
    )
    input_format: str = option(
        "text: every line is a text. tsv: a text, or a pair with a tab "
        "between. jsonl: a JSON value, such as a text, a list, an object. "
        "auto: as the name ends, else text.",
        "auto",
        choices=("auto", "text", "tsv", "jsonl"),
    )
    output_file: str | None = option(
        'Where to write a JSON object for each item: "input" is the item, the '
        "rest the answer. Standard output, if not given.",
        None,
    )
    batch_size: int = option("Sequences at once.", 32, at_least=1)
    chunk_size: int = option(
        "Items read before they are answered; those of a chunk are sorted by "
        "length. Standard input does not wait for a chunk to be full.",
        256,
        at_least=1,
    )
    fill_mask: bool = option(
        "Whether to guess the pieces in place of every [MASK] of a text, with "
        "a pre-trained model.",
        False,
    )
    top_k: int = option(
        "With `fill_mask`: how many guesses for each.", 5, at_least=1
    )
    score: bool = option(
        "Whether to tell how likely a pre-trained model finds a text: its "
        "pseudo-log-likelihood, and the perplexity of a piece.",
        False,
    )
    bert_config_file: str | None = option(
        "With `fill_mask` and `score`, instead of `model_dir`: the model's "
        "bert_config.json.",
        None,
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
        "With `fill_mask` and `score`: whether to lower-case the text, true if "
        "not given. False for cased models.",
        None,
    )

    @property
    def is_masked_lm(self) -> bool:
        """Whether a pre-trained model is wanted, not a fine-tuned one."""
        return self.fill_mask or self.score

    @property
    def kind(self) -> str:
        """What a line of input is: text, tsv or jsonl."""
        if self.input_format != "auto":
            return self.input_format
        ending = self.input_file.removesuffix(".gz").rpartition(".")[2]
        return ending if ending in ("tsv", "jsonl") else "text"

    def __post_init__(self) -> None:
        """Checks everything that can be checked without TensorFlow."""
        super().__post_init__()
        if self.fill_mask and self.score:
            raise InputError(
                "--fill_mask and --score exclude each other. Received: both. "
                "Run the command once for each."
            )
        if self.is_masked_lm:
            self._check_pretrained()
        else:
            self._check_finetuned()
        if self.input_file != "-":
            files.require(self.input_file, "--input_file")
        if self.output_file:
            check_outputs("--output_file", [self.output_file], self._inputs())

    def _inputs(self) -> list[str]:
        names = [self.input_file, self.bert_config_file, self.vocab_file]
        return [name for name in names if name]

    def _check_finetuned(self) -> None:
        if self.model_dir is None:
            raise InputError(
                "--model_dir must be given: the folder of a trained model. "
                "With a pre-trained one, add --fill_mask or --score."
            )
        for name in (*_RELEASED, "do_lower_case"):
            if getattr(self, name) is not None:
                raise InputError(
                    f"--{name} goes with --fill_mask and --score only. A "
                    "fine-tuned model has all that it needs in --model_dir. "
                    "Leave it out."
                )
        require_finetuned(self.model_dir)

    def _check_pretrained(self) -> None:
        given = [name for name in _RELEASED if getattr(self, name) is not None]
        if (self.model_dir is None) == (not given):
            raise InputError(
                "Either --model_dir or all of --bert_config_file, --vocab_file "
                "and --init_checkpoint must be given. Received: "
                f"{'both' if given else 'neither'}."
            )
        if self.model_dir is not None:
            require_pretrained(self.model_dir)
            return
        if len(given) < len(_RELEASED):
            missing = ", ".join(f"--{n}" for n in _RELEASED if n not in given)
            raise InputError(f"{missing} must be given as well.")
        assert self.bert_config_file
        assert self.vocab_file
        assert self.init_checkpoint
        require_masked_lm(self.bert_config_file)
        files.require(self.vocab_file, "--vocab_file")
        require_checkpoint(self.init_checkpoint)
        validate_case_matches_checkpoint(
            self.do_lower_case is not False, self.init_checkpoint
        )


def require_finetuned(folder: str) -> None:
    """Raises `InputError` unless a folder describes a fine-tuned model."""
    _require_folder(folder)
    has_config = files.exists(os.path.join(folder, "bert_config.json"))
    if has_config and not files.exists(os.path.join(folder, "task.json")):
        raise InputError(
            f"{folder}: must be what run_classifier.py or its like wrote. "
            "Received: a folder without task.json, as of a model that is only "
            "pre-trained. That can do --fill_mask and --score."
        )
    for name in ("task.json", "vocab.txt"):
        _require_in(folder, name, "Fine-tuning leaves it there.")
    # The models of others on the TF Hub have no config.
    task = json_files.read_object(os.path.join(folder, "task.json"))
    if "hub_module" not in task:
        _require_in(folder, "bert_config.json", "Fine-tuning leaves it there.")


def require_pretrained(folder: str) -> None:
    """Raises `InputError` unless a folder describes a pre-trained model."""
    _require_folder(folder)
    if files.exists(os.path.join(folder, "task.json")):
        raise InputError(
            f"{folder}: --fill_mask and --score need a pre-trained model. "
            "Received: a fine-tuned one, which has lost its head for masked "
            "LM. Give the model it was made of."
        )
    _require_in(folder, "bert_config.json", "Pre-training leaves it there.")
    require_masked_lm(os.path.join(folder, "bert_config.json"))
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
