"""Options of `visualize_attention.py`."""

import dataclasses

from official_bert import task_file
from official_bert.cli import option
from official_bert.config import BertConfig
from official_bert.options.checks import existing_file, require_outputs
from official_bert.options.model_source import ModelOptions, require_pretrained


def _text(value: str) -> str | None:
    """Accepts text with a word that UTF-8 can encode."""
    if not value.strip():
        return "must have a word."
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        return f"must be UTF-8, not {value!r}. Check the terminal's encoding."
    return None


@dataclasses.dataclass(frozen=True, kw_only=True)
class VisualizeAttention(ModelOptions, heading="Data"):
    """Options of `visualize_attention.py`."""

    one_of = ("text_a", "word")

    output_file: str = option("The page to write, for example attention.html.")
    text_a: str | None = option(
        "The text whose attention to show. [MASK] is one token.",
        None,
        conflicts=("word",),
        check=_text,
    )
    text_b: str | None = option(
        "A second text, to show a pair.", None, needs="text_a", check=_text
    )
    word: str | None = option(
        "Instead, compare this word's vectors in the --input_file sentences.",
        None,
        check=_text,
    )
    input_file: str | None = option(
        "Sentences with --word, one per line.",
        None,
        needs="word",
        needed_by=("word",),
        check=existing_file,
    )
    max_seq_length: int = option(
        "Maximum number of tokens; longer texts are an error.", 128, at_least=3
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_model()
        config = BertConfig.from_json_file(self.config_path)
        config.require_length(self.max_seq_length)
        inputs = self.model_files()
        if self.input_file:
            inputs.append(self.input_file)
        require_outputs(self, "output_file", [self.output_file], inputs)

    def _check_model(self) -> None:
        self._require_model()
        if not self.model_dir:
            self.require_released()
        elif not task_file.is_in(self.model_dir):
            require_pretrained(self.model_dir)
        else:
            self._require_finetuned()
