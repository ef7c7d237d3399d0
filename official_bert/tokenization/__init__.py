"""Text to the pieces of BERT's vocabulary.

`FullTokenizer` is the reference, `BatchTokenizer` the fast engine that equals
it. Everything that the 2018 release's `tokenization` offers is here under the
same name.
"""

from official_bert.tokenization.basic import BasicTokenizer
from official_bert.tokenization.batch import BatchTokenizer
from official_bert.tokenization.casing import validate_case_matches_checkpoint
from official_bert.tokenization.full import FullTokenizer
from official_bert.tokenization.text import (
    convert_to_unicode,
    printable_text,
    whitespace_tokenize,
)
from official_bert.tokenization.vocabulary import (
    convert_by_vocab,
    convert_ids_to_tokens,
    convert_tokens_to_ids,
    load_vocab,
    require_tokens,
)
from official_bert.tokenization.wordpiece import WordpieceTokenizer

__all__ = [
    "BasicTokenizer",
    "BatchTokenizer",
    "FullTokenizer",
    "WordpieceTokenizer",
    "convert_by_vocab",
    "convert_ids_to_tokens",
    "convert_to_unicode",
    "convert_tokens_to_ids",
    "load_vocab",
    "printable_text",
    "require_tokens",
    "validate_case_matches_checkpoint",
    "whitespace_tokenize",
]
