"""From pieces back to the text they were made of, in a graph.

What `tasks.squad.answer_text` does to strings, here with code points.
"""

from typing import Any

import tensorflow as tf

from official_bert.export.serving.passages import Passage

_SPACE = ord(" ")


def of_span(
    passage: Passage, first: Any, last: Any, pieces: Any
) -> tuple[Any, Any]:
    """Returns the text of a span, and where it stands.

    Args:
        passage: What it is part of.
        first: int64, its first piece.
        last: int64, its last piece.
        pieces: string [V], the vocabulary.

    Returns:
        A string, and int32 [2], between which characters of the original text.
    """
    predicted = _joined(tf.gather(pieces, passage.ids[first : last + 1]))
    word, last_word = passage.words[first], passage.words[last]
    begin = passage.starts[word]
    end = passage.starts[last_word] + passage.lengths[last_word]
    tokens = passage.tokens[
        passage.firsts[word] : passage.firsts[last_word + 1]
    ]
    start, stop = _find(
        predicted,
        passage.letters[begin:end],
        _decoded(tf.strings.reduce_join(tokens, separator=" ")),
    )
    start, stop = start + begin, stop + begin
    text = tf.strings.unicode_encode(passage.letters[start : stop + 1], "UTF-8")
    places = tf.gather(passage.places, tf.stack([start, stop]))
    return text, tf.cast(places, tf.int32) + tf.constant([0, 1])


def _joined(pieces: Any) -> Any:
    """Returns the characters of the words that pieces are of."""
    text = tf.strings.reduce_join(pieces, separator=" ")
    for continued in (" ##", "##"):
        text = tf.strings.regex_replace(text, continued, "")
    return _decoded(text)


def _decoded(text: Any) -> Any:
    return tf.strings.unicode_decode(text, "UTF-8")


def _find(predicted: Any, original: Any, tokenized: Any) -> tuple[Any, Any]:
    """Does what `get_final_text` does.

    Args:
        predicted: int32 [M], the characters that are looked for.
        original: int32 [N].
        tokenized: int32 [T], those of `original`, as the tokenizer has them.

    Returns:
        The first and last character of `original` that is kept, int64.
    """
    first = tf.constant(0, tf.int64)
    last = tf.size(original, tf.int64) - 1
    letters = tf.where(original != _SPACE)[:, 0]
    is_letter = tf.cast(tokenized != _SPACE, tf.int64)
    found = _places_of(predicted, tokenized)
    is_found = (tf.size(found) > 0) & (tf.size(predicted) > 0)
    if is_found & (tf.size(letters, tf.int64) == tf.reduce_sum(is_letter)):
        before = tf.cumsum(is_letter, exclusive=True)
        start = found[0]
        end = start + tf.size(predicted, tf.int64) - 1
        first = letters[before[start]]
        last = letters[before[end]]
    return first, last


def _places_of(wanted: Any, text: Any) -> Any:
    """Returns where in a text another one begins, int64."""
    number = tf.maximum(tf.size(text) - tf.size(wanted) + 1, 0)
    places = tf.range(number)[:, tf.newaxis] + tf.range(tf.size(wanted))
    is_equal = tf.gather(text, places) == wanted
    return tf.where(tf.reduce_all(is_equal, axis=1))[:, 0]
