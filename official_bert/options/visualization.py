"""Options of `visualize_attention.py`."""

import dataclasses
import os

from official_bert import cli, files
from official_bert.cli import option
from official_bert.config import BertConfig
from official_bert.errors import InputError
from official_bert.options.checks import check_outputs, require_checkpoint
from official_bert.options.prediction import (
    require_finetuned,
    require_pretrained,
)
from official_bert.tokenization import validate_case_matches_checkpoint

# The three files of a model as it was released.
_RELEASED = ("bert_config_file", "vocab_file", "init_checkpoint")


@dataclasses.dataclass(frozen=True, kw_only=True)
class VisualizeAttention(cli.Options):
    """Options of `visualize_attention.py`."""

    output_file: str = option("The page to write, such as attention.html.")
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
        "models. What is fine-tuned in `model_dir` knows it itself.",
        None,
    )
    max_seq_length: int = option(
        "At most how many pieces to read, [CLS] and [SEP]s included. Longer "
        "texts are refused rather than cut.",
        128,
        at_least=3,
    )
    model_dir: str | None = option(
        "A trained model instead of the three files: the --output_dir of "
        "run_pretraining.py, run_classifier.py or run_squad.py.",
        None,
    )
    text_a: str | None = option(
        "The text whose attention to show. [MASK] is kept whole.", None
    )
    text_b: str | None = option("A second text, to make a pair.", None)
    word: str | None = option(
        "Show instead how alike this word's vectors are in the sentences of "
        "`input_file`.",
        None,
    )
    input_file: str | None = option(
        "With `word`: a sentence with it on every line.", None
    )

    def __post_init__(self) -> None:
        """Checks everything that can be checked without TensorFlow."""
        super().__post_init__()
        self._check_texts()
        self._check_model()
        config_file, vocab_file = self.config_file, self.vocabulary
        BertConfig.from_json_file(config_file).require_length(
            self.max_seq_length
        )
        inputs = [config_file, vocab_file, self.input_file]
        check_outputs("--output_file", [self.output_file], filter(None, inputs))

    @property
    def config_file(self) -> str:
        """The model's `bert_config.json`."""
        return self.bert_config_file or self._in_folder("bert_config.json")

    @property
    def vocabulary(self) -> str:
        """The model's `vocab.txt`."""
        return self.vocab_file or self._in_folder("vocab.txt")

    def _in_folder(self, name: str) -> str:
        assert self.model_dir
        return os.path.join(self.model_dir, name)

    def _check_texts(self) -> None:
        if (self.text_a is None) == (self.word is None):
            raise InputError(
                "Either --text_a or --word must be given. Received: "
                f"{'neither' if self.word is None else 'both'}. --text_a shows "
                "the attention of a text, --word a word in several contexts."
            )
        if self.word is None and self.input_file:
            raise InputError(
                "--input_file goes with --word. Received: "
                f"{self.input_file!r}, and no word. Give the text itself as "
                "--text_a."
            )
        if self.word is not None and self.text_b is not None:
            raise InputError(
                "--text_b goes with --text_a. Received: --word as well. Leave "
                "out one of both."
            )
        if self.word is not None:
            files.require(self.input_file or "", "--input_file")
        for name in ("text_a", "text_b", "word"):
            value = getattr(self, name)
            if value is not None:
                _require_text(name, value)

    def _check_model(self) -> None:
        given = [name for name in _RELEASED if getattr(self, name) is not None]
        if (self.model_dir is None) == (not given):
            raise InputError(
                "Either --model_dir or all of --bert_config_file, --vocab_file "
                "and --init_checkpoint must be given. Received: "
                f"{'both' if given else 'neither'}."
            )
        if self.model_dir is not None:
            self._check_folder(self.model_dir)
            return
        if len(given) < len(_RELEASED):
            missing = ", ".join(f"--{n}" for n in _RELEASED if n not in given)
            raise InputError(f"{missing} must be given as well.")
        files.require(self.vocabulary, "--vocab_file")
        assert self.init_checkpoint
        require_checkpoint(self.init_checkpoint)
        validate_case_matches_checkpoint(
            self.do_lower_case is not False, self.init_checkpoint
        )

    def _check_folder(self, folder: str) -> None:
        if not files.exists(os.path.join(folder, "task.json")):
            require_pretrained(folder)
            return
        require_finetuned(folder)
        if self.do_lower_case is not None:
            raise InputError(
                "--do_lower_case must not be given with a fine-tuned model, "
                f"which knows it itself. Received: {self.do_lower_case}. "
                "Leave it out."
            )


def _require_text(name: str, value: str) -> None:
    if not value.strip():
        raise InputError(f"--{name} must have a word. Received: {value!r}.")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InputError(
            f"--{name} must be UTF-8. Received: {value!r}. Type it in a "
            "terminal that is set to it."
        ) from error
