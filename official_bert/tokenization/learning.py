"""Learns a WordPiece vocabulary from text.

```
text     "the lowest of the low"
words    {"the": 2, "lowest": 1, "of": 1, "low": 1}
tokens   ["[PAD]", ..., "e", "f", ..., "##e", ..., "the", "low", "##est", "of"]
```
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping

from official_bert.errors import InputError
from official_bert.tokenization import characters
from official_bert.tokenization.full_tokenizer import (
    BasicTokenizer,
    WordpieceTokenizer,
)
from official_bert.tokenization.settings import UNCASED, TokenizerSettings
from official_bert.tokenization.vocab import SPECIAL_TOKENS

# Longer words are unknown with any vocabulary.
LONGEST_WORD = WordpieceTokenizer(()).max_input_chars_per_word

_WORDS_PER_LINE = 10_000

# By default, the alphabet has at least this number of characters, and as many
# as make up this share of the text.
_MIN_ALPHABET, _COVERAGE = 1000, 0.9999


def count_words(
    lines: Iterable[str], settings: TokenizerSettings = UNCASED
) -> Counter[str]:
    """Counts the words of a text, as split by `BasicTokenizer`."""
    tokenizer = BasicTokenizer(settings=settings)
    words: Counter[str] = Counter()
    for line in lines:
        words.update(tokenizer.tokenize(line))
    return words


def count_tokens(
    vocab: Iterable[str], word_counts: Mapping[str, int]
) -> Counter[str]:
    """Counts the WordPiece tokens of {word: frequency}, "[UNK]" included."""
    tokenizer = WordpieceTokenizer(frozenset(vocab))
    return _count_parts(word_counts, tokenizer.tokenize)


def count_characters(word_counts: Mapping[str, int]) -> Counter[str]:
    """Counts the characters of {word: frequency}."""
    return _count_parts(word_counts, str)


def _count_parts(
    word_counts: Mapping[str, int], split: Callable[[str], Iterable[str]]
) -> Counter[str]:
    parts: Counter[str] = Counter()
    for word, count in word_counts.items():
        for part in split(word):
            parts[part] += count
    return parts


def learn(
    word_counts: Mapping[str, int],
    *,
    vocab_size: int,
    min_count: int = 2,
    num_unused: int = 99,
    limit_alphabet: int | None = None,
) -> list[str]:
    """Learns tokens by merging the most frequent neighbors in the words.

    `word_counts` is {word: frequency}, in any order. Returns at most
    `vocab_size` tokens: the special tokens, the characters, the characters as
    continuations, and longer tokens that occur at least `min_count` times, the
    most frequent first. Only the `limit_alphabet` most frequent characters are
    kept; words with other characters are unknown. By default, at least 1,000
    are kept and, if `vocab_size` allows, as many as make up 99.99% of the text.
    Raises `InputError` if `vocab_size` is too small for special tokens and
    characters.
    """
    # TensorFlow Text's trainer needs 75 times as long for 30,522 tokens.
    import tokenizers  # Only needed for learning.
    from tokenizers import models, pre_tokenizers, trainers

    special = special_tokens(num_unused)
    alphabet = _alphabet(word_counts, limit_alphabet, vocab_size - len(special))
    characters_to_keep = frozenset(alphabet)
    words = {
        word: count
        for word, count in word_counts.items()
        if len(word) <= LONGEST_WORD and characters_to_keep.issuperset(word)
    }
    fixed = special + alphabet
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
    padding, *others = SPECIAL_TOKENS
    unused = [f"[unused{index}]" for index in range(num_unused)]
    return [padding, *unused, *others]


def _alphabet(
    word_counts: Mapping[str, int], limit: int | None, room: int
) -> list[str]:
    """Returns the most frequent characters and their continuations.

    `room` is the largest number of these tokens.
    """
    counts = count_characters(word_counts)
    by_frequency = sorted(counts, key=lambda char: (-counts[char], char))
    if limit is None:
        limit = _alphabet_size({c: counts[c] for c in by_frequency}, room)
    chars = sorted(by_frequency[:limit])
    return chars + [f"##{char}" for char in chars if _can_continue(char)]


def _alphabet_size(counts: Mapping[str, int], room: int) -> int:
    """Returns how many of {character: frequency}, by frequency, are kept."""
    remaining = sum(counts.values())
    may_remain = (1 - _COVERAGE) * remaining
    for number, (char, count) in enumerate(counts.items()):
        room -= 1 + _can_continue(char)
        is_enough = remaining <= may_remain or room < 0
        if is_enough and number >= _MIN_ALPHABET:
            return number
        remaining -= count
    return len(counts)


def _can_continue(char: str) -> bool:
    """Whether a character can continue a word."""
    return not (characters.is_punctuation(char) or characters.is_chinese(char))


def _repeat(words: Mapping[str, int]) -> Iterator[str]:
    # Lines are short, because "the" occurs 200 million times in Wikipedia.
    for word, count in words.items():
        for start in range(0, count, _WORDS_PER_LINE):
            yield " ".join([word] * min(_WORDS_PER_LINE, count - start))
