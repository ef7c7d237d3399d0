"""From texts to pieces, in TensorFlow operations."""

import itertools
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from official_bert.export import graph_packing as packing
from official_bert.export.graph_normalizer import (
    CasedNormalizer,
    Decoded,
    Normalized,
    UncasedNormalizer,
    decode,
    num_bytes,
)
from official_bert.export.unicode_tables import Kind
from official_bert.inputs import text_inputs
from official_bert.tokenization import (
    WordpieceTokenizer,
    load_vocab,
    require_tokens,
)

UNKNOWN = "[UNK]"
_BYTES_PER_CHARACTER = 4  # At most, in UTF-8.


class Words(NamedTuple):
    """The words of all texts; W is their number, M that of their characters.

    Attributes:
        texts: string [W].
        lines: int64 [W], which text each is of.
        characters: What they are made of, without spaces.
        starts: int64 [W], where in `characters` each starts.
    """

    texts: tf.Tensor
    lines: tf.Tensor
    characters: Normalized
    starts: tf.Tensor


class GraphTokenizer:
    """A `FullTokenizer` that can be saved with a model.

    Its pieces are those of `FullTokenizer` on the Python that makes it, whose
    Unicode tables it takes along. It needs no Python afterwards, but the
    operations of `tensorflow_text`.

    Args:
        vocab_file: A text file with one token per line.
        do_lower_case: Whether to lower-case words and to drop their accents.

    Attributes:
        vocab: {token: id}.
        marks: The ids of [CLS] and [SEP].

    Raises:
        InputError: The vocabulary cannot be read, or lacks "[UNK]", "[CLS]" or
            "[SEP]".
    """

    def __init__(self, vocab_file: str, do_lower_case: bool):
        vocab = load_vocab(vocab_file)
        require_tokens(vocab, vocab_file)
        self.marks = text_inputs.special_ids(vocab)
        self.vocab = vocab
        self._normalizer = (
            UncasedNormalizer() if do_lower_case else CasedNormalizer()
        )
        self._longest = WordpieceTokenizer(vocab).max_input_chars_per_word
        self._unknown_word = _unknown_character(vocab)
        # Blank lines, tokens with spaces and "##" alone are no word's pieces.
        tokens = [t for t in vocab if t != "##" and t.split() == [t]]
        self._ids = tf.constant([vocab[t] for t in tokens], tf.int32)
        self._wordpiece = _fast_wordpiece(
            tokens, (self._longest + 1) * _BYTES_PER_CHARACTER
        )

    def tokenize(self, texts: tf.Tensor) -> tf.RaggedTensor:
        """Returns the ids of pieces.

        Args:
            texts: string [B], in UTF-8. Bytes that are not valid are left out.

        Returns:
            int32 [B, (pieces)].
        """
        return self.tokenize_words(texts).merge_dims(1, 2)

    def tokenize_words(self, texts: tf.Tensor) -> tf.RaggedTensor:
        """Returns the ids of pieces by word, int32 [B, (words), (pieces)]."""
        words = self.split(decode(texts))
        pieces = self._wordpiece.tokenize(words.texts)
        return _by_line(self._with_ids(pieces), words, texts)

    def tokenize_words_with_offsets(
        self, texts: tf.Tensor
    ) -> tuple[tf.RaggedTensor, tf.RaggedTensor, tf.RaggedTensor]:
        """Returns pieces by word, and where in its text each stands.

        ```
        "Ça coûte" -> [[ca], [co, ##ute]], [[0], [4, 6]], [[3], [6, 10]]
        ```

        Args:
            texts: string [B], in UTF-8.

        Returns:
            The ids, int32 [B, (words), (pieces)]; and the bytes of the text at
            which each piece starts, and before which it ends, both int64. These
            are the places of `BatchTokenizer.tokenize_with_offsets`, which
            counts characters.
        """
        decoded = decode(texts)
        words = self.split(decoded)
        pieces, starts, limits = self._wordpiece.tokenize_with_offsets(
            words.texts
        )
        ids = self._with_ids(pieces)
        is_unknown = ids.values == self.vocab[UNKNOWN]
        starts, limits = _places(decoded, words, starts, limits, is_unknown)
        return (
            _by_line(ids, words, texts),
            _by_line(starts, words, texts),
            _by_line(limits, words, texts),
        )

    def pack(
        self,
        segments: Sequence[tf.RaggedTensor],
        seq_length: int | tf.Tensor,
        ends_empty: bool = True,
    ) -> dict[str, tf.Tensor]:
        """Frames segments with this vocabulary's marks; see `packing.pack`."""
        padding_id = self.vocab.get("[PAD]", 0)
        return packing.pack(
            segments, seq_length, self.marks, padding_id, ends_empty=ends_empty
        )

    def split(self, decoded: Decoded) -> Words:
        """Returns the words that `BasicTokenizer` finds."""
        chars = self._normalizer.normalize(decoded.points)
        is_alone = chars.kinds >= Kind.PUNCTUATION  # Or a space.
        is_first = is_alone | tf.concat([[True], is_alone[:-1]], axis=0)
        kept = tf.where(chars.kinds != Kind.SPACE)[:, 0]
        chars = Normalized(*(tf.gather(field, kept) for field in chars))
        starts = tf.where(tf.gather(is_first, kept))[:, 0]
        points = tf.RaggedTensor.from_row_starts(
            chars.points, starts, validate=False
        )
        texts = tf.strings.unicode_encode(points, "UTF-8")
        is_too_long = points.row_lengths() > self._longest
        texts = tf.where(is_too_long, self._unknown_word, texts)
        lines = tf.gather(decoded.lines, tf.gather(chars.first, starts))
        return Words(texts, lines, chars, starts)

    def _with_ids(self, pieces: tf.RaggedTensor) -> tf.RaggedTensor:
        # `pieces` are numbered without the blank lines of the vocabulary.
        return pieces.with_values(tf.gather(self._ids, pieces.values))


def _unknown_character(vocab: Iterable[str]) -> str:
    """Returns a character that no token has."""
    known = set().union(*vocab)
    return next(chr(c) for c in itertools.count(0xE000) if chr(c) not in known)


def _fast_wordpiece(tokens: list[str], max_bytes: int) -> Any:
    """Returns what cuts words into pieces, from their start, as long as can be.

    Args:
        tokens: The vocabulary.
        max_bytes: The longest word that it may try.
    """
    # Imported here because only export needs it.
    import tensorflow_text

    return tensorflow_text.FastWordpieceTokenizer(
        tokens,
        max_bytes_per_word=max_bytes,
        unknown_token=UNKNOWN,
        no_pretokenization=True,
        token_out_type=tf.int32,
    )


def _by_line(
    ragged: tf.RaggedTensor, words: Words, texts: tf.Tensor
) -> tf.RaggedTensor:
    """Returns values by word as values by text and word."""
    return tf.RaggedTensor.from_value_rowids(
        ragged,
        words.lines,
        nrows=tf.size(texts, tf.int64),
        validate=False,
    )


def _places(
    decoded: Decoded,
    words: Words,
    starts: tf.RaggedTensor,
    limits: tf.RaggedTensor,
    is_unknown: tf.Tensor,
) -> tuple[tf.RaggedTensor, tf.RaggedTensor]:
    """Returns where in the texts pieces stand.

    Args:
        decoded: The texts.
        words: Their words.
        starts: int [W, (pieces)], where in its word each piece starts, in
            bytes.
        limits: Where it ends.
        is_unknown: bool [pieces], whether each stands for its whole word.

    Returns:
        Both in bytes of the texts, int64.
    """
    chars = words.characters
    lengths = num_bytes(chars.points)
    character_of = tf.repeat(tf.range(tf.size(lengths)), lengths)
    ends = tf.cumsum(lengths)
    word_starts = tf.gather(ends - lengths, words.starts)
    word_ends = tf.concat([word_starts[1:], ends[-1:]], axis=0)
    word = starts.value_rowids()
    shifts = tf.gather(word_starts, word)
    first = shifts + tf.cast(starts.values, tf.int64)
    last = shifts + tf.cast(limits.values, tf.int64)
    last = tf.where(is_unknown, tf.gather(word_ends, word), last) - 1
    first = tf.gather(chars.first, tf.gather(character_of, first))
    last = tf.gather(chars.last, tf.gather(character_of, last))
    return (
        starts.with_values(tf.gather(decoded.starts, first)),
        starts.with_values(tf.gather(decoded.limits, last)),
    )
