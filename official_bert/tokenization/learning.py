"""From text to a vocabulary: which pieces are worth an id of their own.

```
text     "the lowest of the low"
words    {"the": 2, "lowest": 1, "of": 1, "low": 1}
pieces   ["[PAD]", ..., "e", "f", ..., "##e", ..., "the", "low", "##est", "of"]
```
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from official_bert.errors import InputError
from official_bert.tokenization import characters
from official_bert.tokenization.normalize import normalize
from official_bert.tokenization.wordpiece import WordpieceTokenizer

# Longer words are unknown whatever the vocabulary has.
_LONGEST_WORD = WordpieceTokenizer(()).max_input_chars_per_word

_WORDS_PER_LINE = 10_000


def count_words(
    lines: Iterable[str], do_lower_case: bool = True
) -> Counter[str]:
    """Counts the words of a text as `BasicTokenizer` sees them.

    Memory grows with the number of different words, not with the text.

    Args:
        lines: The text.
        do_lower_case: Whether to lower-case words and to drop their accents.

    Returns:
        {word: how often it occurs}.
    """
    words: Counter[str] = Counter()
    for line in lines:
        words.update(normalize(line, do_lower_case).split())
    return words


def count_pieces(
    vocab: Iterable[str], word_counts: Mapping[str, int]
) -> Counter[str]:
    """Counts the pieces that words are cut into.

    Args:
        vocab: The known pieces.
        word_counts: {word: how often it occurs}.

    Returns:
        {piece: how often it occurs}, "[UNK]" for words that cannot be cut.
    """
    tokenizer = WordpieceTokenizer(frozenset(vocab))
    pieces: Counter[str] = Counter()
    for word, count in word_counts.items():
        for piece in tokenizer.tokenize(word):
            pieces[piece] += count
    return pieces


def learn(
    word_counts: Mapping[str, int],
    *,
    vocab_size: int,
    min_count: int = 2,
    num_unused: int = 99,
    limit_alphabet: int = 1000,
) -> list[str]:
    """Learns the pieces that cut words into as few of them as possible.

    Args:
        word_counts: {word: how often it occurs}, from `count_words`.
        vocab_size: At most how many pieces to return.
        min_count: How often a piece longer than a character must occur.
        num_unused: How many [unusedN] there are to be.
        limit_alphabet: At most how many different characters to know. Words
            with other ones are unknown.

    Returns:
        The special tokens, the characters, those that continue words, and the
        longer pieces, which all occur when the words are cut. The same counts
        always give the same list.

    Raises:
        InputError: `vocab_size` is too small for the tokens and characters.
    """
    alphabet = _alphabet(word_counts, limit_alphabet)
    known = frozenset(alphabet)
    words = {
        word: count
        for word, count in word_counts.items()
        if len(word) <= _LONGEST_WORD and known.issuperset(word)
    }
    fixed = special_tokens(num_unused) + alphabet
    room = vocab_size - len(fixed)
    if room < 0:
        raise InputError(
            "`vocab_size` must not be smaller than the special tokens and the "
            f"characters of the text together, {len(fixed)}. "
            f"Received: vocab_size={vocab_size}. "
            "Raise it, or lower `limit_alphabet`."
        )
    # Some will prove useless, and others take their places.
    candidates = _merge(words, alphabet, 2 * vocab_size, min_count)
    return fixed + _choose(candidates, alphabet, words, room)


def special_tokens(num_unused: int) -> list[str]:
    """Returns the tokens that come first in all of BERT's vocabularies."""
    unused = [f"[unused{index}]" for index in range(num_unused)]
    return ["[PAD]", *unused, "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def _alphabet(word_counts: Mapping[str, int], limit: int) -> list[str]:
    """Returns the most frequent characters as first and as later pieces."""
    counts: Counter[str] = Counter()
    for word, count in word_counts.items():
        for char in word:
            counts[char] += count
    by_frequency = sorted(counts, key=lambda char: (-counts[char], char))
    chars = sorted(by_frequency[:limit])
    # Punctuation and Chinese characters are words of their own: no word goes
    # on with "##,".
    inner = [
        f"##{char}"
        for char in chars
        if not characters.is_punctuation(char)
        and not characters.is_chinese(char)
    ]
    return chars + inner


def _merge(
    words: Mapping[str, int],
    alphabet: Sequence[str],
    num_pieces: int,
    min_count: int,
) -> list[str]:
    """Returns pieces of two and more characters, the most frequent first.

    Each is the most frequent pair of neighbours at its time, put together.
    """
    # Hugging Face's trainer rather than TensorFlow Text's: 2.5 million words
    # of Wikipedia give 30,522 pieces in 2 seconds and 0.15 GB, not in 150
    # seconds and 0.7 GB, and cut to 1.057 instead of 1.054 pieces a word.
    import tokenizers  # Only who learns needs it.
    from tokenizers import models, pre_tokenizers, trainers

    tokenizer = tokenizers.Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.CharDelimiterSplit(" ")
    trainer = trainers.WordPieceTrainer(
        vocab_size=num_pieces,
        min_frequency=min_count,
        show_progress=False,
        # Left to itself it numbers characters in the order of a hash table,
        # which decides between pairs of equal frequency and is another one in
        # every process. Special tokens are numbered as they are given.
        special_tokens=list(alphabet),
    )
    tokenizer.train_from_iterator(_repeat(words), trainer)
    ids = tokenizer.get_vocab()
    return sorted(ids, key=ids.__getitem__)[len(alphabet) :]


def _repeat(words: Mapping[str, int]) -> Iterator[str]:
    """Yields lines that have every word as often as it occurs.

    The trainer takes text, not counts. A line must not become too long: "the"
    occurs 200 million times in Wikipedia.
    """
    for word, count in words.items():
        for start in range(0, count, _WORDS_PER_LINE):
            yield " ".join([word] * min(_WORDS_PER_LINE, count - start))


def _choose(
    candidates: Sequence[str],
    alphabet: Sequence[str],
    words: Mapping[str, int],
    room: int,
) -> list[str]:
    """Returns at most `room` candidates that cutting the words makes use of.

    Many a candidate was a step towards a longer one, and words are cut into
    the longest pieces there are. Those nobody uses can go without a trace, and
    each makes room for the next in line.
    """
    chosen: list[str] = []
    end = room
    while True:
        used = count_pieces([*alphabet, *candidates[:end]], words)
        useful = [piece for piece in candidates[:end] if piece in used]
        if len(useful) > room:  # A new one can wake others that slept.
            return chosen
        chosen = useful
        if len(chosen) == room or end >= len(candidates):
            return chosen
        end += room - len(chosen)
