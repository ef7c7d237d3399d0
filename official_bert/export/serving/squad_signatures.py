"""Signatures for questions about passages."""

from typing import Any

import tensorflow as tf

from official_bert.export import graph_packing
from official_bert.export.serving import span_decoding
from official_bert.export.serving.signatures import (
    Signature,
    TaskSignatures,
    Tensors,
    string_inputs,
)
from official_bert.export.serving.span_decoding import Passage, Windows
from official_bert.tasks.squad.squad_features import NUM_SPECIAL


class SquadSignatures(TaskSignatures):
    """Signatures of a `tasks.squad.squad_task.SquadTask`.

    Outputs of `serving_default` for each question:
        answer: [B], "" for no answer (SQuAD 1.1: "empty").
        start, end: int32 [B], the characters of the context between which the
            answer stands; -1 for no answer.
        probability: [B].
        score: [B], the sum of the answer's logits.
        n_best_answers, n_best_probabilities: [B, N], best first, then "" and 0.
        null_odds: [B], in SQuAD 2.0.

    Outputs for ids: `start_logits` and `end_logits` [B, S].
    """

    def outputs(self, logits: Any) -> Tensors:
        """See the class; `logits` [B, S, 2]."""
        return {"start_logits": logits[..., 0], "end_logits": logits[..., 1]}

    def from_questions(self, question: Any, context: Any) -> Tensors:
        """`serving_default`: strings [B]."""
        # Offsets count from the text without bytes that are not UTF-8, which
        # the tokenizer drops.
        context = tf.strings.unicode_transcode(
            context, "UTF-8", "UTF-8", errors="ignore"
        )
        tokens = self.tokenizer.tokenize_words_with_offsets(
            tf.concat([context, question], axis=0)
        )
        number = tf.size(question)
        ids, starts, limits = (by_word.merge_dims(1, 2) for by_word in tokens)
        question_ids = ids[number:, : self.task.max_query_length]
        ids, starts, limits = ids[:number], starts[:number], limits[:number]
        example, windows = self._make_windows(ids, question_ids)
        rows = self.features(
            tf.gather(question_ids, example),
            graph_packing.take(ids, example, windows.start, windows.length),
            self.max_seq_length if self.task.pad_to == "max" else None,
        )
        logits = self.logits_in_blocks(rows)
        if self.task.pad_to == "bucket":  # No span begins or ends in padding.
            is_token = rows["input_mask"][:, :, tf.newaxis] == 1
            logits = tf.where(is_token, logits, -float("inf"))

        def by_question(values: Any) -> tf.RaggedTensor:
            return tf.RaggedTensor.from_value_rowids(
                values, example, tf.size(question, tf.int64)
            )

        decoding = self.task.decoding

        def answer(row: tuple[Passage, Windows, Any]) -> Tensors:
            return span_decoding.choose_answer(*row, decoding)

        return tf.map_fn(
            answer,
            (
                Passage(context, starts, limits),
                Windows(*map(by_question, windows)),
                by_question(logits),
            ),
            fn_output_signature=span_decoding.output_signature(decoding),
        )

    def _make_windows(self, ids: Any, question_ids: Any) -> tuple[Any, Windows]:
        """Cuts passages into the windows of `tasks.squad.squad_features`.

        Here a passage without tokens has an empty window, so that every
        question has one. Returns int64 [R], the question of each window, too.
        """
        room = self.max_seq_length - NUM_SPECIAL - question_ids.row_lengths()
        example, start = graph_packing.place_windows(
            ids.row_lengths(), room, tf.minimum(room, self.task.doc_stride)
        )
        rest = tf.gather(ids.row_lengths(), example) - start
        length = tf.minimum(rest, tf.gather(room, example))
        offset = tf.gather(question_ids.row_lengths() + 2, example)
        return example, Windows(start, length, offset)

    def text_signatures(self) -> dict[str, Signature]:
        """Returns `serving_default`."""
        inputs = string_inputs("question", "context")
        return {"serving_default": Signature(self.from_questions, inputs)}
