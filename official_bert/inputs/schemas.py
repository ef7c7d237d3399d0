"""Names, lengths and dtypes of the features in records, without TensorFlow."""

from collections.abc import Mapping
from typing import NamedTuple

from official_bert.options import CreatePretrainingData, RunPretraining

# Features of every text that a model reads.
TEXT_INPUTS = ("input_ids", "input_mask", "segment_ids")


class Feature(NamedTuple):
    """One feature of a record."""

    length: int  # The number of values (for each choice).
    flag: str | None = None  # The command-line flag that sets the length.
    is_float: bool = False  # Whether the values are float32 rather than int64.
    num_choices: int = 1  # C, for multiple choice.

    @property
    def is_sequence(self) -> bool:
        """Whether there is one value for each token of a text."""
        return self.flag == "max_seq_length"

    @property
    def shape(self) -> list[int]:
        """[length] or, with several choices, [C, length]."""
        choices = [self.num_choices] if self.num_choices > 1 else []
        return [*choices, self.length]


Schema = Mapping[str, Feature]


def text_schema(max_seq_length: int, num_choices: int = 1) -> Schema:
    """Returns the features of a text or pair, or of several choices."""
    tokens = Feature(max_seq_length, "max_seq_length", num_choices=num_choices)
    return dict.fromkeys(TEXT_INPUTS, tokens)


def pretraining_schema(
    max_seq_length: int, max_predictions_per_seq: int
) -> Schema:
    """Returns the features of an instance whose tokens are masked."""
    predictions = Feature(max_predictions_per_seq, "max_predictions_per_seq")
    return {
        **text_schema(max_seq_length),
        "masked_lm_positions": predictions,
        "masked_lm_ids": predictions,
        "masked_lm_weights": predictions._replace(is_float=True),
        "next_sentence_labels": Feature(1),
    }


def unmasked_schema(max_seq_length: int) -> Schema:
    """Returns the features of an instance that is masked during training.

    `word_starts` is the position of the first token of each token's word, or of
    the token itself if single tokens are masked; 0 for [CLS], [SEP] and
    padding. `num_to_predict` is the number of tokens to mask. The record also
    holds a `Masking`.
    """
    text = text_schema(max_seq_length)
    return {
        **text,
        "word_starts": text["input_ids"],
        "num_to_predict": Feature(1),
        "next_sentence_labels": Feature(1),
    }


def record_schema(
    options: CreatePretrainingData | RunPretraining, is_masked: bool
) -> Schema:
    """Returns the features of the records that options describe."""
    schema = unmasked_schema(options.max_seq_length)
    if is_masked:
        schema = pretraining_schema(
            options.max_seq_length, options.max_predictions_per_seq
        )
    if options.pack_sequences:
        schema = packed_schema(schema, options.max_sequences_per_row)
    return schema


class Masking(NamedTuple):
    """How training masks unmasked instances.

    Each field is a feature of every record, so that training needs no flags.
    """

    max_predictions_per_seq: int
    max_ngram: int
    mask_id: int
    vocab_size: int  # Ids of random tokens are below this.
    mask_share: float
    random_share: float


def packed_schema(schema: Schema, max_sequences: int) -> Schema:
    """Returns the features of a record that holds several packed instances.

    `schema` has the features of one instance. `input_mask` numbers the
    instances from 1; `next_sentence_positions` are the positions of their
    [CLS]. Unused entries have weight 0.
    """
    instances = Feature(max_sequences, "max_sequences_per_row")
    packed = {
        **schema,
        "next_sentence_labels": instances,
        "next_sentence_positions": instances,
        "next_sentence_weights": instances._replace(is_float=True),
    }
    if "num_to_predict" in schema:
        packed["num_to_predict"] = instances
    return packed
