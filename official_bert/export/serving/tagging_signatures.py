"""Tags for words."""

from typing import Any, NamedTuple

import tensorflow as tf

from official_bert.export.serving import packing
from official_bert.export.serving.signatures import (
    SPACE,
    Served,
    Signature,
    Tensors,
    strings,
)
from official_bert.tasks.tagging import TaggingTask


class _Windows(NamedTuple):
    """Parts of sentences, by numbers of words over all sentences; int64 [R].

    Attributes: see `tasks.tagging.Window`.
    """

    begin: Any
    first: Any
    last: Any
    end: Any


class TaggingKind:
    """Signatures of a `tasks.tagging.TaggingTask`.

    Outputs, for each text: `tokens` [B, N], its words, and `tags` [B, N]; short
    texts have "" behind their last word. For ids, `tags` [B, S] and
    `probabilities` [B, S, C] are those of pieces, of which the first one of a
    word counts, and `classes` [B, C] the names of all tags.
    """

    num_choices = 1

    def __init__(self, served: Served) -> None:
        self.served = served
        self.task: TaggingTask = served.task

    def outputs(self, logits: Any) -> Tensors:
        """Returns what is said of pieces with these logits [B, S, C]."""
        names = tf.constant(self.task.labels)
        shape = [tf.shape(logits)[0], len(self.task.labels)]
        return {
            "tags": self._tags(logits),
            "classes": tf.broadcast_to(names, shape),
            "probabilities": tf.nn.softmax(logits),
        }

    def _tags(self, logits: Any) -> Any:
        return tf.gather(
            tf.constant(self.task.labels), tf.argmax(logits, axis=-1)
        )

    def of_texts(self, text: Any) -> Tensors:
        """`serving_default`: [B] texts, whose words have spaces between."""
        words = tf.strings.split(tf.strings.regex_replace(text, SPACE, " "))
        room = self.served.max_seq_length - 2
        pieces = self._pieces(words.values, room)
        windows = _make_windows(words.row_splits, pieces.row_splits, room)
        # A window's words are one another's neighbours, and so their pieces.
        begin = tf.gather(pieces.row_splits, windows.begin)
        end = tf.gather(pieces.row_splits, windows.end)
        places = tf.ragged.range(begin, end)
        ids = places.with_values(tf.gather(pieces.values, places.values))
        none = tf.RaggedTensor.from_row_lengths(
            tf.zeros([0], tf.int32), tf.zeros_like(begin)
        )
        rows = packing.pack(ids, none, self.served.marks)
        logits = packing.logits_in_blocks(self.served.model, rows)
        # Every word is predicted once, in their order, behind [CLS].
        row = tf.repeat(tf.range(tf.size(begin)), windows.last - windows.first)
        place = pieces.row_starts() - tf.gather(begin, row) + 1
        place = tf.stack([tf.cast(row, tf.int64), place], axis=1)
        tags = words.with_values(self._tags(tf.gather_nd(logits, place)))
        return {"tokens": words.to_tensor(""), "tags": tags.to_tensor("")}

    def _pieces(self, words: Any, room: int) -> Any:
        """Returns the ids of each word's pieces, at least one."""
        pieces = self.served.tokenizer.tokenize(words)[:, :room]
        is_empty = tf.cast(pieces.row_lengths() == 0, tf.int64)
        number = tf.reduce_sum(is_empty)
        unknown = self.served.pieces.index("[UNK]")
        return tf.concat(
            [
                pieces,
                tf.RaggedTensor.from_row_lengths(
                    tf.fill([number], unknown), is_empty
                ),
            ],
            axis=1,
        )

    def text_signatures(self) -> dict[str, Signature]:
        """Returns `serving_default`."""
        return {"serving_default": Signature(self.of_texts, strings("text"))}


def _make_windows(sentences: Any, words: Any, room: int) -> _Windows:
    """Does what `tasks.tagging.make_windows` does.

    Args:
        sentences: int64 [B + 1], at which words sentences begin.
        words: int64 [N + 1], at which pieces words begin.
        room: How many pieces are read at once.
    """
    found = tf.zeros([0, 4], tf.int64)
    for number in tf.range(tf.size(sentences) - 1):
        tf.autograph.experimental.set_loop_options(
            shape_invariants=[(found, tf.TensorShape([None, 4]))]
        )
        start, stop = sentences[number], sentences[number + 1]
        is_short = words[stop] - words[start] <= room
        size = tf.where(is_short, tf.constant(room), room // 2)
        first = start
        while first < stop:
            tf.autograph.experimental.set_loop_options(
                shape_invariants=[(found, tf.TensorShape([None, 4]))]
            )
            fits = _last_within(words, words[first] + tf.cast(size, tf.int64))
            last = tf.minimum(tf.maximum(fits, first + 1), stop)
            spare = room - (words[last] - words[first])
            after = words[stop] - words[last]
            before = tf.maximum(spare // 2, spare - after)
            before = tf.minimum(words[first] - words[start], before)
            begin = _first_from(words, words[first] - before)
            end = tf.minimum(_last_within(words, words[begin] + room), stop)
            window = tf.stack([begin, first, last, end])
            found = tf.concat([found, window[tf.newaxis]], axis=0)
            first = last
    return _Windows(*tf.unstack(found, axis=1))


def _last_within(words: Any, place: Any) -> Any:
    """Returns the last word that begins at a piece or before it."""
    found = tf.searchsorted(words, place[tf.newaxis], "right", tf.int64)
    return found[0] - 1


def _first_from(words: Any, place: Any) -> Any:
    """Returns the first word that begins at a piece or after it."""
    return tf.searchsorted(words, place[tf.newaxis], "left", tf.int64)[0]
