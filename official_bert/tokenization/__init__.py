"""WordPiece tokenization: converts text to tokens of a BERT vocabulary.

`Tokenizer` is a `FullTokenizer` for large amounts of text. All public names of
the 2018 release's `tokenization` module are here.
"""

from official_bert.sources.released_models import (
    validate_case_matches_checkpoint,
)
from official_bert.tokenization.full_tokenizer import (
    BasicTokenizer,
    FullTokenizer,
    WordpieceTokenizer,
    convert_to_unicode,
    printable_text,
    whitespace_tokenize,
)
from official_bert.tokenization.settings import AddedToken, TokenizerSettings
from official_bert.tokenization.tokenizer import Tokenizer
from official_bert.tokenization.vocab import (
    convert_by_vocab,
    convert_ids_to_tokens,
    convert_tokens_to_ids,
    load_vocab,
    num_tokens,
    require_tokens,
)
