"""Questions about passages."""

from typing import Any

import tensorflow as tf

from official_bert.export.serving import decoding, packing, passages
from official_bert.export.serving.passages import Passages
from official_bert.export.serving.signatures import (
    Served,
    Signature,
    Tensors,
    strings,
)
from official_bert.export.serving.span_decoding import Windows
from official_bert.tasks.squad.squad_features import NUM_SPECIAL
from official_bert.tasks.squad.squad_task import SquadTask


class SquadKind:
    """Signatures of a `tasks.squad.squad_task.SquadTask`.

    Outputs, for each question: `answer` [B], "" for none (in SQuAD 1.1
    "empty"); `start` and `end` [B], between which characters of the context it
    stands, -1 for none; `probability` [B]; `score` [B], the sum of its logits;
    `n_best_answers` and `n_best_probabilities` [B, N], best first, with "" and
    0 behind the last; in SQuAD 2.0 `null_odds` [B]. For ids `start_logits`,
    `end_logits` [B, S].
    """

    num_choices = 1

    def __init__(self, served: Served) -> None:
        self.served = served
        self.task: SquadTask = served.task

    def outputs(self, logits: Any) -> Tensors:
        """Returns what is said of windows with these logits [B, S, 2]."""
        return {"start_logits": logits[..., 0], "end_logits": logits[..., 1]}

    def of_questions(self, question: Any, context: Any) -> Tensors:
        """`serving_default`: [B] questions and what they are about."""
        texts = passages.read(context, self.served.tokenizer)
        questions = self.served.tokenizer.tokenize(question)
        questions = questions[:, : self.task.max_query_length]
        windows = _make_windows(
            texts.ids.row_lengths(),
            questions.row_lengths(),
            self.served.max_seq_length,
            self.task.doc_stride,
        )
        logits = self._logits(questions, texts, windows)
        counts = tf.math.bincount(
            tf.cast(windows.example, tf.int32),
            minlength=tf.size(question),
            maxlength=tf.size(question),
        )
        limits = tf.concat([[0], tf.cumsum(counts)], axis=0)
        pieces = tf.constant(self.served.pieces)

        def answer(number: Any) -> Tensors:
            begin, end = limits[number], limits[number + 1]
            return decoding.answer(
                texts.of(number),
                Windows(*(column[begin:end] for column in windows)),
                logits[begin:end],
                self.task.decoding,
                pieces,
            )

        return tf.map_fn(
            answer,
            tf.range(tf.size(question)),
            fn_output_signature=decoding.output_signature(self.task.decoding),
        )

    def _logits(self, questions: Any, texts: Passages, windows: Windows) -> Any:
        """Returns [R, S, 2], padded as the task is."""
        rows = packing.pack(
            tf.gather(questions, windows.example),
            packing.take(
                texts.ids, windows.example, windows.start, windows.length
            ),
            self.served.marks,
        )
        if self.task.pad_to == "bucket":
            logits = packing.logits_in_blocks(self.served.model, rows)
            is_there = rows["input_mask"][:, :, tf.newaxis] == 1
            return tf.where(is_there, logits, -float("inf"))
        missing = self.served.max_seq_length - tf.shape(rows["input_ids"])[1]
        rows = {
            name: tf.pad(values, [[0, 0], [0, missing]])
            for name, values in rows.items()
        }
        return packing.logits_in_blocks(self.served.model, rows)

    def text_signatures(self) -> dict[str, Signature]:
        """Returns `serving_default`."""
        inputs = strings("question", "context")
        return {"serving_default": Signature(self.of_questions, inputs)}


def _make_windows(
    num_pieces: Any, num_asked: Any, max_seq_length: int, doc_stride: int
) -> Windows:
    """Does what `tasks.squad.squad_features.make_windows` does.

    Args:
        num_pieces: int64 [B], of each passage.
        num_asked: int64 [B], of each question.
        max_seq_length: With [CLS] and [SEP]s.
        doc_stride: How many pieces further a window begins.
    """
    room = max_seq_length - NUM_SPECIAL - num_asked
    steps = tf.minimum(room, doc_stride)
    num_later = -((room - num_pieces) // steps)
    counts = tf.where(num_pieces > 0, 1 + tf.maximum(num_later, 0), 0)
    example = tf.repeat(tf.range(tf.size(counts, tf.int64)), counts)
    number = tf.ragged.range(counts).values
    start = number * tf.gather(steps, example)
    length = tf.minimum(
        tf.gather(num_pieces, example) - start, tf.gather(room, example)
    )
    return Windows(example, start, length, tf.gather(num_asked, example) + 2)
