"""Options of `visualize_attention.py`."""

import dataclasses

from official_bert import files, task_file
from official_bert.cli import option
from official_bert.config import BertConfig
from official_bert.errors import InputError
from official_bert.options.checks import check_outputs
from official_bert.options.model_source import (
    ModelOptions,
    require_finetuned,
    require_pretrained,
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class VisualizeAttention(ModelOptions):
    """Options of `visualize_attention.py`."""

    output_file: str = option("The page to write, such as attention.html.")
    max_seq_length: int = option(
        "At most how many pieces to read, [CLS] and [SEP]s included. Longer "
        "texts are refused rather than cut.",
        128,
        at_least=3,
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
        config = BertConfig.from_json_file(self.config_path)
        config.require_length(self.max_seq_length)
        inputs = self.model_files()
        if self.input_file:
            inputs.append(self.input_file)
        check_outputs("--output_file", [self.output_file], inputs)

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
        self._require_one_name()
        if self.model_dir is not None:
            self._check_folder(self.model_dir)
            return
        self._require_released()

    def _check_folder(self, folder: str) -> None:
        if not task_file.is_in(folder):
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
