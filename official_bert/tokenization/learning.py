"""Learns a WordPiece vocabulary from text.

```
text     "the lowest of the low"
words    {"the": 2, "lowest": 1, "of": 1, "low": 1}
tokens   ["[PAD]", ..., "e", "f", ..., "##e", ..., "the", "low", "##est", "of"]
```
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from official_bert.errors import InputError
from official_bert.tokenization import characters
from official_bert.tokenization.full_tokenizer import (
    BasicTokenizer,
    WordpieceTokenizer,
)

# Longer words are unknown with any vocabulary.
_LONGEST_WORD = WordpieceTokenizer(()).max_input_chars_per_word

_WORDS_PER_LINE = 10_000


def count_words(
    lines: Iterable[str], do_lower_case: bool = True
) -> Counter[str]:
    """Counts the words of a text, as split by `BasicTokenizer`."""
    tokenizer = BasicTokenizer(do_lower_case)
    words: Counter[str] = Counter()
    for line in lines:
        words.update(tokenizer.tokenize(line))
    return words


def count_tokens(
    vocab: Iterable[str], word_counts: Mapping[str, int]
) -> Counter[str]:
    """Counts the WordPiece tokens of {word: frequency}, "[UNK]" included."""
    tokenizer = WordpieceTokenizer(frozenset(vocab))
    tokens: Counter[str] = Counter()
    for word, count in word_counts.items():
        for token in tokenizer.tokenize(word):
            tokens[token] += count
    return tokens


def learn(
    word_counts: Mapping[str, int],
    *,
    vocab_size: int,
    min_count: int = 2,
    num_unused: int = 99,
    limit_alphabet: int = 1000,
) -> list[str]:
    """Learns tokens by merging the most frequent neighbors in the words.

    `word_counts` is {word: frequency}, in any order. Returns at most
    `vocab_size` tokens: the special tokens, the characters, the characters as
    continuations, and longer tokens that occur at least `min_count` times, the
    most frequent first. Only the `limit_alphabet` most frequent characters are
    kept; words with other characters are unknown. Raises `InputError` if
    `vocab_size` is too small for special tokens and characters.
    """
    # TensorFlow Text's trainer needs 75 times as long for 30,522 tokens.
    import tokenizers  # Only needed for learning.
    from tokenizers import models, pre_tokenizers, trainers

    alphabet = _alphabet(word_counts, limit_alphabet)
    characters_to_keep = frozenset(alphabet)
    words = {
        word: count
        for word, count in word_counts.items()
        if len(word) <= _LONGEST_WORD and characters_to_keep.issuperset(word)
    }
    fixed = special_tokens(num_unused) + alphabet
    if vocab_size < len(fixed):
        raise InputError(
            f"vocab_size={vocab_size} must be at least {len(fixed)}, the "
            "number of special tokens and characters. Increase it, or lower "
            "`limit_alphabet`."
        )
    tokenizer = tokenizers.Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.CharDelimiterSplit(" ")
    # The trainer allocates memory for `vocab_size` tokens. Each new token joins
    # two neighbors in at least one word.
    most_tokens = len(fixed) + sum(map(len, words))
    trainer = trainers.WordPieceTrainer(
        vocab_size=min(vocab_size, most_tokens),
        min_frequency=min_count,
        show_progress=False,
        # By default the trainer numbers characters in the order of a hash
        # table, which differs between processes and breaks ties between pairs.
        # Special tokens are numbered in the given order.
        special_tokens=fixed,
    )
    tokenizer.train_from_iterator(_repeat(words), trainer)
    ids = tokenizer.get_vocab()
    return sorted(ids, key=ids.__getitem__)


def special_tokens(num_unused: int) -> list[str]:
    """Returns the tokens at the start of the released vocabularies."""
    unused = [f"[unused{index}]" for index in range(num_unused)]
    return ["[PAD]", *unused, "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def _alphabet(word_counts: Mapping[str, int], limit: int) -> list[str]:
    """Returns the most frequent characters and their continuations."""
    counts: Counter[str] = Counter()
    for word, count in word_counts.items():
        for char in word:
            counts[char] += count
    by_frequency = sorted(counts, key=lambda char: (-counts[char], char))
    chars = sorted(by_frequency[:limit])
    return chars + [
        f"##{char}"
        for char in chars
        # Punctuation and Chinese characters never continue a word.
        if not (characters.is_punctuation(char) or characters.is_chinese(char))
    ]


def _repeat(words: Mapping[str, int]) -> Iterator[str]:
    # Lines are short, because "the" occurs 200 million times in Wikipedia.
    for word, count in words.items():
        for start in range(0, count, _WORDS_PER_LINE):
            yield " ".join([word] * min(_WORDS_PER_LINE, count - start))
