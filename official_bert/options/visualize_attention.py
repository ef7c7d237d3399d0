"""Options of `visualize_attention.py`."""

from official_bert.options import checks, flags
from official_bert.options.model_source import ModelOptions
from official_bert.sources import task_file


def _text(value: str) -> str | None:
    """Accepts text with a word that UTF-8 can encode."""
    if not value.strip():
        return "must contain a word."
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        return f"must be UTF-8, not {value!r}. Check the terminal's encoding."
    return None


class VisualizeAttention(ModelOptions, heading="Data"):
    """Options of `visualize_attention.py`."""

    one_of = ("text_a", "word")
    _has_default_model = True

    output_file: str = flags.path_option(
        "The page to write, for example attention.html."
    )
    text_a: str | None = flags.optional(
        "The text whose attention to show. [MASK] is one token.",
        conflicts="word",
        check=_text,
    )
    text_b: str | None = flags.optional(
        "A second text, to show a pair.", needs="text_a", check=_text
    )
    word: str | None = flags.optional(
        "Without --text_a: a word to compare in --input_file.", check=_text
    )
    input_file: str | None = checks.optional_file(
        "Sentences that contain --word, one per line.",
        needs="word",
        needed_by="word",
    )
    max_seq_length: int = flags.option(
        "Maximum number of tokens; longer texts are an error.", 128, at_least=3
    )

    def _check(self) -> None:
        super()._check()
        directory = self.model_dir
        self._require_files(bool(directory and task_file.is_in(directory)))
        self.model_files.config.require_length(self.max_seq_length)
        inputs = filter(None, [*self.input_files(), self.input_file])
        checks.require_outputs(self, "output_file", inputs)
