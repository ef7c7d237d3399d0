"""Passages: their words, the pieces of these, and their characters."""

from typing import Any, NamedTuple

import tensorflow as tf

from official_bert.export.graph_normalizer import decode
from official_bert.export.graph_tokenizer import GraphTokenizer
from official_bert.tasks.squad.squad_examples import SPACES


class Passage(NamedTuple):
    """One passage, cut into pieces, words and characters.

    Attributes:
        ids: int32 [pieces], of its pieces.
        words: int64 [pieces], of which word each piece is part.
        tokens: string [tokens], its words as the tokenizer cuts them.
        firsts: int64 [words + 1], with which token each word begins.
        letters: int32 [letters], its characters; words have one space between.
        starts: int64 [words], with which of these each word begins.
        lengths: int64 [words], how many each has.
        places: int64 [letters], where in the original text each stands.
    """

    ids: Any
    words: Any
    tokens: Any
    firsts: Any
    letters: Any
    starts: Any
    lengths: Any
    places: Any


class Passages(NamedTuple):
    """Passages, each attribute a RaggedTensor with a row for each passage."""

    ids: Any
    words: Any
    tokens: Any
    counts: Any
    texts: Any
    original: Any

    def of(self, number: Any) -> Passage:
        """Returns one of them."""
        words = self.texts[number]
        letters = tf.strings.unicode_decode(
            tf.strings.reduce_join(words, separator=" "), "UTF-8"
        )
        lengths = tf.strings.length(words, "UTF8_CHAR")
        lengths = tf.cast(lengths, tf.int64)
        return Passage(
            self.ids[number],
            self.words[number],
            self.tokens[number],
            tf.concat([[0], tf.cumsum(self.counts[number])], axis=0),
            letters,
            tf.cumsum(lengths + 1, exclusive=True),
            lengths,
            _places(self.original[number], tf.size(letters)),
        )


def read(texts: Any, tokenizer: GraphTokenizer) -> Passages:
    """Cuts texts into words and pieces.

    Args:
        texts: string [B].
        tokenizer: Of the model. Words are given to it one by one, as nothing
            it does to a word depends on what stands beyond a space.
    """
    # The tokenizer drops what is no UTF-8; places must be those without it.
    texts = tf.strings.unicode_transcode(
        texts, "UTF-8", "UTF-8", errors="ignore"
    )
    spaced = tf.strings.regex_replace(texts, f"[{SPACES}]+", " ")
    words = tf.strings.split(spaced, " ")
    words = tf.ragged.boolean_mask(words, words != "")
    pieces = tokenizer.tokenize(words.values)
    tokens = _tokens(words.values, tokenizer)
    # Over all texts, and then less those of the texts before.
    number = pieces.value_rowids()
    by_text = words.with_values(pieces).merge_dims(1, 2)
    before = tf.gather(words.row_starts(), by_text.value_rowids())
    return Passages(
        by_text,
        by_text.with_values(number - before),
        words.with_values(tokens).merge_dims(1, 2),
        words.with_values(tokens.row_lengths()),
        words,
        tf.strings.unicode_decode(texts, "UTF-8"),
    )


def _tokens(texts: Any, tokenizer: GraphTokenizer) -> Any:
    """Returns `BasicTokenizer`'s words of texts [N], string [N, (words)]."""
    found = tokenizer.split(decode(texts))
    # Its own texts have a mark in place of what is too long for WordPiece.
    letters = tf.RaggedTensor.from_row_starts(
        found.characters.points, found.starts, validate=False
    )
    return tf.RaggedTensor.from_value_rowids(
        tf.strings.unicode_encode(letters, "UTF-8"),
        found.lines,
        nrows=tf.size(texts, tf.int64),
        validate=False,
    )


def _places(original: Any, number: Any) -> Any:
    """Returns where the characters stand of which words and spaces are made.

    Args:
        original: int32 [characters], the text with all its spaces.
        number: How many characters there are without superfluous ones.
    """
    spaces = tf.constant([ord(char) for char in SPACES])
    is_space = tf.reduce_any(original[:, tf.newaxis] == spaces, axis=1)
    before = tf.concat([[True], is_space], axis=0)[:-1]
    # Of several spaces the first one stays; one at the end does no harm.
    return tf.where(~(is_space & before))[:number, 0]
