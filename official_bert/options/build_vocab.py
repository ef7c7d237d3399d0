"""Options of `build_vocab.py`."""

import dataclasses

from official_bert import cli, files
from official_bert.cli import option
from official_bert.config import BertConfig
from official_bert.errors import InputError
from official_bert.options.checks import check_outputs
from official_bert.tokenization.learning import special_tokens


@dataclasses.dataclass(frozen=True, kw_only=True)
class BuildVocab(cli.Options):
    """Options of `build_vocab.py`."""

    input_file: str = option(
        "Text to learn from: files or globs, comma-separated; .gz is unpacked."
    )
    vocab_file: str = option("The vocabulary to write, one piece a line.")
    vocab_size: int = option(
        "At most how many pieces to learn, special ones included.",
        30522,
        at_least=10,
    )
    do_lower_case: bool = option(
        "Whether to lower-case the text and strip its accents.", True
    )
    min_count: int = option(
        "How often a piece must occur to be learned.", 2, at_least=1
    )
    num_unused: int = option(
        "How many [unusedN] slots to reserve for words of your own.",
        99,
        at_least=0,
    )
    limit_alphabet: int = option(
        "At most how many different characters to keep, the most frequent.",
        1000,
        at_least=1,
    )
    bert_config_file: str | None = option(
        "A bert_config.json to write beside it, with the vocabulary's size.",
        None,
    )
    hidden_size: int = option("The config's width.", 768, at_least=1)
    num_hidden_layers: int = option("Its layers.", 12, at_least=1)
    num_attention_heads: int = option("Its heads.", 12, at_least=1)
    max_position_embeddings: int = option(
        "The longest sequence its model reads.", 512, at_least=1
    )

    def __post_init__(self) -> None:
        """Checks what can be checked before the text is read."""
        super().__post_init__()
        check_outputs(
            "--vocab_file and --bert_config_file",
            filter(None, (self.vocab_file, self.bert_config_file)),
            inputs=files.expand(self.input_file),
        )
        if self.bert_config_file:
            self.config(self.vocab_size).validate()
        num_special = len(special_tokens(self.num_unused))
        if self.vocab_size <= num_special:
            raise InputError(
                "--vocab_size must be greater than the number of special "
                f"pieces, {num_special} with --num_unused={self.num_unused}. "
                f"Received: {self.vocab_size}. Raise it, or reserve fewer."
            )

    def config(self, vocab_size: int) -> BertConfig:
        """Returns the config of a model for a vocabulary of that size."""
        return BertConfig(
            vocab_size=vocab_size,
            hidden_size=self.hidden_size,
            num_hidden_layers=self.num_hidden_layers,
            num_attention_heads=self.num_attention_heads,
            intermediate_size=4 * self.hidden_size,
            max_position_embeddings=self.max_position_embeddings,
            type_vocab_size=2,
        )
