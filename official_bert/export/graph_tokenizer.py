"""`FullTokenizer` as TensorFlow operations, to be saved with a model."""

import itertools
import re
from typing import Any, NamedTuple

import tensorflow as tf

from official_bert.errors import InputError
from official_bert.export.graph_normalizer import (
    Decoded,
    Normalized,
    decode,
    normalize,
    num_bytes,
)
from official_bert.export.unicode_tables import Kind, make_tables
from official_bert.tokenization import FullTokenizer, require_tokens

UNKNOWN = "[UNK]"

# A prefix of added tokens in the vocabulary. No word contains this character.
_ADDED = "\x01"

_MAX_TOKEN_BYTES = 256  # The limit of `FastWordpieceTokenizer`.


class Words(NamedTuple):
    """The W words of a batch of texts."""

    texts: tf.Tensor  # string [W]
    text_indices: tf.Tensor  # int64 [W], the text that each belongs to
    characters: Normalized  # Their characters, without spaces.
    starts: tf.Tensor  # int64 [W], index of the first character of each


class GraphTokenizer:
    """A `FullTokenizer` that can be saved with a model.

    It contains the Unicode tables of the Python version that creates it. To
    run, it needs TensorFlow and the operations of `tensorflow_text`.
    `vocab` is {token: id}. Raises `InputError` if the vocabulary lacks "[UNK]",
    "[CLS]" or "[SEP]", or has a token that is too long, or if there are added
    tokens that are a `single_word` or `normalized`.
    """

    def __init__(self, tokenizer: FullTokenizer):
        # Imported here because only this class needs it.
        import tensorflow_text

        vocab, vocab_file = tokenizer.vocab, tokenizer.vocab_file
        require_tokens(vocab, vocab_file)
        self.vocab, settings = vocab, tokenizer.settings
        self._tables = make_tables(settings)
        words = tokenizer.wordpiece_tokenizer
        self._max_characters = words.max_input_chars_per_word
        # A character that no token contains, as a word that becomes [UNK].
        vocab_characters = set().union(*vocab)
        private = map(chr, itertools.count(0xE000))
        self._unknown_word = next(
            char for char in private if char not in vocab_characters
        )
        # Blank lines, tokens with spaces and "##" alone match no word.
        tokens = [t for t in words.vocab if t != "##" and t.split() == [t]]
        ids = [vocab[token] for token in tokens]
        settings.require_exportable()
        added = [token.content for token in settings.added_tokens]
        added.sort(key=len, reverse=True)  # The longest is found.
        self._added = f"({'|'.join(map(re.escape, added))})" if added else ""
        self._split_at = tensorflow_text.regex_split_with_offsets
        tokens += [_ADDED + token for token in added]
        ids += [vocab[token] for token in added]
        self._ids = tf.constant(ids, tf.int32)
        longest = max(tokens, key=lambda token: len(token.encode()))
        if len(longest.encode()) > _MAX_TOKEN_BYTES:
            raise InputError(
                f"{vocab_file}: to export a tokenizer, tokens must have at "
                f"most {_MAX_TOKEN_BYTES} bytes. Received: {longest!r}. "
                "Remove such tokens from the vocabulary before training. For "
                "a fine-tuned model, --noexport_text exports no tokenizer."
            )
        self._wordpiece = tensorflow_text.FastWordpieceTokenizer(
            tokens,
            # In UTF-8, a character has up to four bytes.
            max_bytes_per_word=4 * (self._max_characters + 1),
            unknown_token=UNKNOWN,
            no_pretokenization=True,
            token_out_type=tf.int32,
        )

    def tokenize(self, texts: tf.Tensor) -> tf.RaggedTensor:
        """Returns token ids, int32 [B, (tokens)], of UTF-8 strings [B].

        Bytes that are not valid are dropped.
        """
        return self.tokenize_words(texts).merge_dims(1, 2)

    def tokenize_words(self, texts: tf.Tensor) -> tf.RaggedTensor:
        """Returns token ids by word, int32 [B, (words), (tokens)]."""
        return self.tokenize_words_with_offsets(texts)[0]

    def tokenize_words_with_offsets(
        self, texts: tf.Tensor
    ) -> list[tf.RaggedTensor]:
        """Returns token ids by word, and the spans of the tokens in bytes.

        ```
        "Ça coûte" -> [[ca], [co, ##ute]], [[0], [4, 6]], [[3], [6, 10]]
        ```

        For strings [B] in UTF-8: int32 token ids; int64 bytes at which tokens
        begin; int64 bytes before which they end; all [B, (words), (tokens)].
        `Tokenizer.tokenize_with_offsets` gives the same spans in characters.
        """
        if not self._added:
            return self._tokenize_parts(texts)
        # The operation stops at null characters. Both kinds are removed.
        texts = tf.strings.regex_replace(texts, r"\x00", "\x01")
        # [B, (parts)]: added tokens, and the texts between them.
        parts, begins, ends = self._split_at(texts, self._added, self._added)
        is_added = tf.strings.regex_full_match(parts.values, self._added)
        tokens = self._tokenize_parts(tf.where(is_added, "", parts.values))
        part = tf.gather(
            tokens[0].value_rowids(), tokens[0].values.value_rowids()
        )
        shift = tf.gather(begins.values, part)
        tokens[1:] = [
            t.with_flat_values(t.flat_values + shift) for t in tokens[1:]
        ]
        # Parts that are an added token get their only word here.
        added, *bounds = (
            tf.boolean_mask(ragged.values, is_added)
            for ragged in (parts, begins, ends)
        )
        ids = self._with_ids(self._wordpiece.tokenize(_ADDED + added))
        words = [ids, *map(ids.with_values, bounds)]
        num_words = tf.cast(is_added, tf.int64)
        words = [
            tf.RaggedTensor.from_row_lengths(word, num_words) for word in words
        ]
        return [
            parts.with_values(tf.concat(pair, axis=1)).merge_dims(1, 2)
            for pair in zip(tokens, words, strict=True)
        ]

    def _tokenize_parts(self, texts: tf.Tensor) -> list[tf.RaggedTensor]:
        """Tokenizes texts without added tokens."""
        decoded = decode(texts)
        words = self.split(decoded)
        tokens, starts, limits = self._wordpiece.tokenize_with_offsets(
            words.texts
        )
        ids = self._with_ids(tokens)
        chars = words.characters
        lengths = num_bytes(chars.points)
        num_characters = tf.size(lengths, tf.int64)
        # Bytes of a word -> bytes of all words -> characters.
        character_starts = tf.cumsum(lengths, exclusive=True)
        character_of = tf.repeat(tf.range(num_characters), lengths)
        word = ids.value_rowids()
        shift = tf.gather(character_starts, tf.gather(words.starts, word))
        start = shift + tf.cast(starts.values, tf.int64)
        limit = shift + tf.cast(limits.values, tf.int64)
        first = tf.gather(character_of, start)
        last = tf.gather(character_of, limit - 1)
        # Unknown tokens stand for their whole word.
        next_starts = tf.concat([words.starts[1:], [num_characters]], axis=0)
        is_unknown = ids.values == self.vocab[UNKNOWN]
        last = tf.where(is_unknown, tf.gather(next_starts, word) - 1, last)
        first = tf.gather(chars.first, first)
        last = tf.gather(chars.last, last)
        offsets = (
            ids.with_values(tf.gather(decoded.starts, first)),
            ids.with_values(tf.gather(decoded.limits, last)),
        )
        return [_by_text(values, words, texts) for values in (ids, *offsets)]

    def split_texts(
        self, texts: tf.Tensor
    ) -> tuple[tf.RaggedTensor, tf.RaggedTensor]:
        """Returns words, strings [B, (words)] as in the text, and their ids.

        Each word is tokenized on its own, as in `predict.py`. In lower case,
        "Σ" is then "σ", while at the end of "Α.Σ", it is "ς". Invalid bytes are
        dropped, except inside a word.
        """
        _, starts, limits = self.tokenize_words_with_offsets(texts)
        start = tf.reduce_min(starts.values, axis=1)
        length = tf.reduce_max(limits.values, axis=1) - start
        text_of_word = tf.gather(texts, starts.value_rowids())
        words = tf.strings.substr(text_of_word, start, length)
        return starts.with_values(words), starts.with_values(
            self.tokenize(words)
        )

    def split(self, decoded: Decoded) -> Words:
        """Returns the words of `BasicTokenizer`."""
        chars = normalize(decoded.points, self._tables)
        is_alone = chars.kinds >= Kind.PUNCTUATION  # Or a space.
        is_first = is_alone | tf.concat([[True], is_alone[:-1]], axis=0)
        kept = tf.where(chars.kinds != Kind.SPACE)[:, 0]
        chars = Normalized(*(tf.gather(field, kept) for field in chars))
        starts = tf.where(tf.gather(is_first, kept))[:, 0]
        points = tf.RaggedTensor.from_row_starts(
            chars.points, starts, validate=False
        )
        texts = tf.strings.unicode_encode(points, "UTF-8")
        is_too_long = points.row_lengths() > self._max_characters
        texts = tf.where(is_too_long, self._unknown_word, texts)
        first = tf.gather(chars.first, starts)
        text_indices = tf.gather(decoded.text_indices, first)
        return Words(texts, text_indices, chars, starts)

    def _with_ids(self, tokens: tf.RaggedTensor) -> tf.RaggedTensor:
        # The operation returns indices of the list `tokens`, not ids.
        return tokens.with_values(tf.gather(self._ids, tokens.values))


def _by_text(values: Any, words: Words, texts: tf.Tensor) -> tf.RaggedTensor:
    """Groups the rows of values, one for each word, by text."""
    num_texts = tf.size(texts, tf.int64)
    return tf.RaggedTensor.from_value_rowids(
        values, words.text_indices, nrows=num_texts, validate=False
    )
