"""What records hold: names, lengths and kinds of their features.

Apart from `records`, so that writing them needs no TensorFlow.
"""

from collections.abc import Mapping
from typing import NamedTuple


class Feature(NamedTuple):
    """One feature of a record: how many values, and of which kind.

    Attributes:
        length: The number of values.
        flag: The command line's name of that number, if it has one.
        is_float: Whether the values are float32 rather than int64.
        num_choices: How many times so many there are, one after the other.
    """

    length: int
    flag: str | None = None
    is_float: bool = False
    num_choices: int = 1

    @property
    def is_sequence(self) -> bool:
        """Whether there is one value for each piece of a text."""
        return self.flag == "max_seq_length"

    @property
    def shape(self) -> list[int]:
        """The shape of the values, without the batch."""
        choices = [self.num_choices] if self.num_choices > 1 else []
        return [*choices, self.length]


Schema = Mapping[str, Feature]


def pretraining_schema(
    max_seq_length: int, max_predictions_per_seq: int
) -> Schema:
    """Returns the features of an instance for masked LM and next sentence."""
    predictions = Feature(max_predictions_per_seq, "max_predictions_per_seq")
    return {
        **text_schema(max_seq_length),
        "masked_lm_positions": predictions,
        "masked_lm_ids": predictions,
        "masked_lm_weights": predictions._replace(is_float=True),
        "next_sentence_labels": Feature(1),
    }


def packed_schema(
    max_seq_length: int, max_predictions_per_seq: int, max_sequences: int
) -> Schema:
    """Returns the features of several instances in one row.

    `input_mask` is the number, from 1, of the instance that a piece belongs
    to; `next_sentence_positions` are where instances begin. The weights of
    instances that are not there are 0, like those of masked pieces.
    """
    instances = Feature(max_sequences, "max_sequences_per_row")
    return {
        **pretraining_schema(max_seq_length, max_predictions_per_seq),
        "next_sentence_labels": instances,
        "next_sentence_positions": instances,
        "next_sentence_weights": instances._replace(is_float=True),
    }


def text_schema(max_seq_length: int, num_choices: int = 1) -> Schema:
    """Returns the features of a text or pair, or of several choices."""
    sequence = Feature(
        max_seq_length, "max_seq_length", num_choices=num_choices
    )
    return {
        "input_ids": sequence,
        "input_mask": sequence,
        "segment_ids": sequence,
    }
