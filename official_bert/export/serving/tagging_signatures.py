"""Signatures for tagging words."""

from typing import Any

import tensorflow as tf

from official_bert.export.serving.signatures import (
    TaskSignatures,
    Tensors,
    strings,
)
from official_bert.tasks.tagging import Window


class TaggingSignatures(TaskSignatures):
    """Signatures of a `tasks.tagging.TaggingTask`.

    Outputs of `serving_default` for each text: `tokens` [B, N], its words,
    their `tags` [B, N], and the `probabilities` [B, N] of these tags; after the
    last word, they are "" and 0. Outputs for ids: `tags` [B, S] and
    `probabilities` [B, S, C] of all WordPiece tokens, and `classes` [B, C], the
    names of all tags. A word has the tag of its first token.
    """

    texts = (strings("text"),)

    def _outputs(self, logits: Any) -> Tensors:
        names = tf.constant(self.task.labels)
        shape = [tf.shape(logits)[0], len(self.task.labels)]
        return {
            "tags": tf.gather(names, tf.argmax(logits, axis=-1)),
            "classes": tf.broadcast_to(names, shape),
            "probabilities": tf.nn.softmax(logits),
        }

    def from_text(self, text: Any) -> Tensors:
        """`serving_default`: strings [B], split as in `BasicTokenizer`."""
        words, word_ids = self.tokenizer.split_texts(text)
        room = self.max_seq_length - 2
        tokens = word_ids.values[:, :room]
        windows = _make_windows(words.row_splits, tokens.row_splits, room)
        in_window = tf.ragged.range(windows.begin, windows.end)
        ids = tf.gather(tokens, in_window).merge_dims(1, 2)
        inputs = self.features(ids, ids[:, :0])
        shape = [None, None, len(self.task.labels)]
        logits = self.logits_in_blocks(inputs, shape)
        # Every word is predicted once, in order; [CLS] comes before them.
        begin = tf.gather(tokens.row_splits, windows.begin)
        row = tf.repeat(tf.range(tf.size(begin)), windows.stop - windows.first)
        column = tokens.row_starts() - tf.gather(begin, row) + 1
        first_tokens = tf.stack([tf.cast(row, tf.int64), column], axis=1)
        outputs = self._outputs(tf.gather_nd(logits, first_tokens))
        probabilities = tf.reduce_max(outputs["probabilities"], axis=-1)
        return {
            "tokens": words.to_tensor(""),
            "tags": words.with_values(outputs["tags"]).to_tensor(""),
            "probabilities": words.with_values(probabilities).to_tensor(),
        }


def _make_windows(sentences: Any, words: Any, room: int) -> Window:
    """Returns the windows of `tasks.tagging.make_windows`, each int64 [R].

    `sentences` [B + 1] and `words` [N + 1] are row splits, int64: the index of
    the first word of each sentence, and of the first token of each word.
    """

    def add_window(first: Any, windows: Any) -> tuple[Any, Any]:
        sentence = _last_up_to(sentences, first)
        start, stop = sentences[sentence], sentences[sentence + 1]
        is_short = words[stop] - words[start] <= room
        size = tf.where(is_short, tf.constant(room, tf.int64), room // 2)
        # A single word may be longer than half of the room.
        fits = _last_up_to(words, words[first] + size)
        last = tf.minimum(tf.maximum(fits, first + 1), stop)
        spare = room - (words[last] - words[first])
        after = words[stop] - words[last]
        before = tf.maximum(spare // 2, spare - after)
        before = tf.minimum(words[first] - words[start], before)
        begin = _first_from(words, words[first] - before)
        end = tf.minimum(_last_up_to(words, words[begin] + room), stop)
        window = tf.stack([begin, first, last, end])
        return last, tf.concat([windows, window[tf.newaxis]], axis=0)

    windows = tf.while_loop(
        lambda first, _: first < sentences[-1],
        add_window,
        (tf.constant(0, tf.int64), tf.zeros([0, 4], tf.int64)),
        shape_invariants=(tf.TensorShape([]), tf.TensorShape([None, 4])),
    )[1]
    return Window(*tf.unstack(windows, axis=1))


def _last_up_to(starts: Any, position: Any) -> Any:
    """Returns the index of the last start that is at most `position`."""
    return _first_from(starts, position, "right") - 1


def _first_from(starts: Any, position: Any, side: str = "left") -> Any:
    """Returns the index of the first start that is at least `position`."""
    return tf.searchsorted(starts, position[tf.newaxis], side, tf.int64)[0]
