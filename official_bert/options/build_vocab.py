"""Options of `build_vocab.py`."""

from typing import Any

from official_bert.config import BertConfig
from official_bert.io import files
from official_bert.options import checks, flags
from official_bert.tokenization.learning import special_tokens
from official_bert.tokenization.settings import UNKNOWN, TokenizerSettings

# Otherwise, small models learn only the frequencies of tokens for a long time.
_SMALL_MODEL: dict[str, Any] = {
    "initializer_range": 0.08,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
}


class BuildVocab(flags.Options):
    """Options of `build_vocab.py`."""

    input_file: str = flags.path_option(
        "Text files or glob patterns, comma-separated, also .gz."
    )
    vocab_file: str = flags.path_option(
        "The vocabulary to write, one token per line."
    )
    vocab_size: int = flags.option(
        "Maximum number of tokens, including special ones.",
        30522,
        between=(10, 10_000_000),
    )
    do_lower_case: bool = flags.option(
        "Lower-case the text and strip accents.", True
    )
    strip_accents: str = flags.choice(
        "Remove accents; auto: if text is lower-cased.", "auto|true|false"
    )
    min_count: int = flags.positive(
        "Minimum number of occurrences of a token.", 2
    )
    num_unused: int = flags.non_negative(
        "Number of [unusedN] tokens to reserve.", 99
    )
    limit_alphabet: int | None = flags.positive(
        "Number of most frequent characters to keep. Default: at least 1,000 "
        "and, if --vocab_size allows, as many as make up 99.99% of the text.",
        None,
    )
    bert_config_file: str | None = flags.optional_path(
        "A bert_config.json to write, with the following sizes. Models of up "
        "to two layers have no dropout and an initializer_range of 0.08.",
        heading="Model",
    )
    hidden_size: int = flags.positive("Hidden size of the model.", 768)
    num_hidden_layers: int = flags.positive("Number of layers.", 12)
    num_attention_heads: int = flags.positive("Number of attention heads.", 12)
    max_position_embeddings: int = flags.positive(
        "Maximum sequence length.", 512
    )

    def _check(self) -> None:
        super()._check()
        inputs = files.expand(self.input_file)
        checks.require_outputs(self, "vocab_file", inputs)
        if self.bert_config_file:
            inputs.append(self.vocab_file)
            checks.require_outputs(self, "bert_config_file", inputs)
            self.config(self.vocab_size).validate()
        num_special = self.num_unused + len(special_tokens(num_unused=0))
        if self.vocab_size <= num_special:
            message = f"must exceed the {num_special} special tokens."
            raise self.error("vocab_size", message)

    @property
    def settings(self) -> TokenizerSettings:
        """How the text is split into words."""
        return UNKNOWN.with_flags(self.do_lower_case, self.strip_accents)

    def config(self, vocab_size: int) -> BertConfig:
        """Returns the config of a model with `vocab_size` tokens."""
        return BertConfig(
            vocab_size=vocab_size,
            hidden_size=self.hidden_size,
            num_hidden_layers=self.num_hidden_layers,
            num_attention_heads=self.num_attention_heads,
            intermediate_size=4 * self.hidden_size,
            max_position_embeddings=self.max_position_embeddings,
            type_vocab_size=2,
            **(_SMALL_MODEL if self.num_hidden_layers <= 2 else {}),
        )
