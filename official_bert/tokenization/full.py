"""From text to pieces: the tokenizer that BERT's models were trained with."""

from collections.abc import Iterable

from official_bert.tokenization import vocabulary
from official_bert.tokenization.basic import BasicTokenizer
from official_bert.tokenization.wordpiece import WordpieceTokenizer


class FullTokenizer:
    """Splits text into words, and words into pieces of the vocabulary.

    ```
    text                  "Dürer's typewriters"
    BasicTokenizer        durer     '  s  typewriters
    WordpieceTokenizer    du ##rer  '  s  type ##writer ##s
    ```

    This is the reference: it goes character by character, and every step can
    be read in `basic.py` and `wordpiece.py`. `BatchTokenizer` gives the same
    result many times faster.

    Args:
        vocab_file: A text file with one token per line.
        do_lower_case: Whether to lower-case words and to drop their accents;
            True for uncased models.
        never_split: Tokens that are kept whole wherever they occur in a text.
            The 2018 release keeps none, and so cuts "[MASK]" in a text to
            "[", "mask", "]".

    Attributes:
        vocab: {token: id}.
        inv_vocab: {id: token}.
        basic_tokenizer: What splits text into words.
        wordpiece_tokenizer: What splits words into pieces.

    Raises:
        InputError: The vocabulary cannot be read, or lacks a token of
            `never_split`.
    """

    def __init__(
        self,
        vocab_file: str,
        do_lower_case: bool = True,
        never_split: tuple[str, ...] = (),
    ):
        self.vocab = vocabulary.load_vocab(vocab_file)
        self.inv_vocab = {index: token for token, index in self.vocab.items()}
        self.basic_tokenizer = BasicTokenizer(do_lower_case, never_split)
        self.wordpiece_tokenizer = WordpieceTokenizer(self.vocab)
        self.basic_tokenizer.never_split.check(self.vocab)

    def tokenize(self, text: str | bytes) -> list[str]:
        """Returns the pieces of `text`."""
        pieces: list[str] = []
        for word in self.basic_tokenizer.tokenize(text):
            pieces.extend(self.wordpiece_tokenizer.tokenize(word))
        return pieces

    def convert_tokens_to_ids(self, tokens: Iterable[str]) -> list[int]:
        """Returns the ids of `tokens`.

        Raises:
            KeyError: A token is not in the vocabulary.
        """
        return vocabulary.convert_tokens_to_ids(self.vocab, tokens)

    def convert_ids_to_tokens(self, ids: Iterable[int]) -> list[str]:
        """Returns the tokens with these `ids`.

        Raises:
            KeyError: The vocabulary has no such id.
        """
        return vocabulary.convert_ids_to_tokens(self.inv_vocab, ids)
