"""Options of `build_vocab.py`."""

import dataclasses

from official_bert import cli, files
from official_bert.cli import option
from official_bert.config import BertConfig
from official_bert.options.checks import require_outputs
from official_bert.tokenization.learning import special_tokens


@dataclasses.dataclass(frozen=True, kw_only=True)
class BuildVocab(cli.Options):
    """Options of `build_vocab.py`."""

    input_file: str = option(
        "Text: files or glob patterns, comma-separated; also .gz."
    )
    vocab_file: str = option("The vocabulary to write, one token per line.")
    vocab_size: int = option(
        "Maximum number of tokens, special ones too.", 30522, at_least=10
    )
    do_lower_case: bool = option("Lower-case the text and strip accents.", True)
    min_count: int = option(
        "Minimum number of occurrences of a token.", 2, at_least=1
    )
    num_unused: int = option(
        "Number of [unusedN] tokens to reserve.", 99, at_least=0
    )
    limit_alphabet: int = option(
        "Number of characters to keep, by frequency.", 1000, at_least=1
    )
    bert_config_file: str | None = option(
        "A bert_config.json to write, with these sizes.",
        None,
        heading="Model",
    )
    hidden_size: int = option("Hidden size.", 768, at_least=1)
    num_hidden_layers: int = option("Number of layers.", 12, at_least=1)
    num_attention_heads: int = option(
        "Number of attention heads.", 12, at_least=1
    )
    max_position_embeddings: int = option(
        "Maximum sequence length.", 512, at_least=1
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        inputs = files.expand(self.input_file)
        require_outputs(self, "vocab_file", [self.vocab_file], inputs)
        if self.bert_config_file:
            inputs.append(self.vocab_file)
            outputs = [self.bert_config_file]
            require_outputs(self, "bert_config_file", outputs, inputs)
            self.config(self.vocab_size).validate()
        num_special = len(special_tokens(self.num_unused))
        if self.vocab_size <= num_special:
            message = f"must exceed the {num_special} special tokens."
            raise self.error("vocab_size", message)

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
        )
