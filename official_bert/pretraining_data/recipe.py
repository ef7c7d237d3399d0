"""What every process that makes instances must know."""

import dataclasses
import functools
from typing import Any

from official_bert.config import BertConfig
from official_bert.options import CreatePretrainingData
from official_bert.pretraining_data.examples import VocabularyIds, ids_of
from official_bert.pretraining_data.masking import Mix
from official_bert.tokenization import BatchTokenizer, require_tokens

_NEEDED = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


@dataclasses.dataclass(frozen=True)
class Recipe:
    """The options, and what is made of the vocabulary once it is needed.

    Sent to another process, it is made there anew.

    Attributes:
        options: What the command was told.
        folder: Where the tokenized corpus is, if not in memory.
    """

    options: CreatePretrainingData
    folder: str = ""

    def __reduce__(self) -> tuple[Any, ...]:
        return Recipe, (self.options, self.folder)

    @functools.cached_property
    def tokenizer(self) -> BatchTokenizer:
        """The tokenizer."""
        return BatchTokenizer(
            self.options.vocab_file, do_lower_case=self.options.do_lower_case
        )

    @functools.cached_property
    def vocabulary(self) -> VocabularyIds:
        """What the vocabulary's ids mean."""
        return ids_of(self.tokenizer.vocab)

    @functools.cached_property
    def mix(self) -> Mix:
        """What chosen pieces are replaced by."""
        options = self.options
        return Mix(options.mask_share, options.random_share, options.same_share)

    def check_vocabulary(self) -> None:
        """Raises `InputError` unless the vocabulary fits the options."""
        vocab, options = self.tokenizer.vocab, self.options
        require_tokens(vocab, options.vocab_file, _NEEDED)
        if options.bert_config_file:
            config = BertConfig.from_json_file(options.bert_config_file)
            config.require_vocabulary(vocab, options.vocab_file)
