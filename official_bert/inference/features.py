"""BERT's vectors of texts, line by line: what `extract_features.py` does."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from official_bert import files, progress
from official_bert.errors import InputError
from official_bert.inference import bert_alone, features_output
from official_bert.inference.features_output import LineVectors
from official_bert.inputs import padding, text_inputs
from official_bert.inputs.schemas import text_schema
from official_bert.modeling.encoder import Bert
from official_bert.options import ExtractFeatures
from official_bert.options.extract_features import POOLINGS, require_pooling
from official_bert.tasks import documents
from official_bert.threads import parallel_map
from official_bert.tokenization import BatchTokenizer

_PAIR = re.compile(r"(.*) \|\|\| (.*)")

# A chunk is sorted by length. It holds so many lines, if their vectors take no
# more than so many bytes.
_CHUNK_LINES = 4096
_CHUNK_BYTES = 2**27


class Reading(NamedTuple):
    """What of the model's outputs is wanted.

    Attributes:
        layers: Numbers of layers, from 0, or from -1 downwards.
        pooling: none, cls, mean or max.
        is_normalized: Whether vectors have length 1.
    """

    layers: Sequence[int] = (-1,)
    pooling: str = "none"
    is_normalized: bool = False


class FeatureExtractor:
    """A pre-trained BERT that gives the vectors of texts.

    ```
    extractor = FeatureExtractor(bert, tokenizer, Reading(pooling="mean"))
    for found in extractor.stream(["Who was Jim Henson?", "A ||| pair"]):
        found.values  # float32 [1, H]
    ```

    Args:
        bert: With its weights.
        tokenizer: Of the model.
        reading: What is wanted of it.
        max_seq_length: Longer texts are cut off.
        batch_size: Sequences at once.

    Raises:
        InputError: The model has no such layers, or there is no such pooling,
            or a model from left to right is asked for that of [CLS].
    """

    def __init__(
        self,
        bert: Bert,
        tokenizer: BatchTokenizer,
        reading: Reading,
        *,
        max_seq_length: int = 128,
        batch_size: int = 32,
    ) -> None:
        require_pooling(reading.pooling, bert.config)
        _check_reading(reading, bert.config.num_hidden_layers)
        self.bert = bert
        self.tokenizer = tokenizer
        self.reading = reading
        self.max_seq_length = max_seq_length
        self.batch_size = batch_size
        self._marks = text_inputs.special_ids(tokenizer.vocab)
        ids = tf.TensorSpec([None, None], tf.int32)
        self._compiled = tf.function(self._run, input_signature=[ids] * 3)

    def stream(self, lines: Iterable[str]) -> Iterator[LineVectors]:
        """Yields the vectors of every line, in their order.

        A chunk of lines is held in memory, and what is found for it.

        Args:
            lines: Texts, or pairs with ` ||| ` between.

        Raises:
            InputError: A single text was given, or nothing of the kind.
        """
        if isinstance(lines, str | bytes) or not isinstance(lines, Iterable):
            raise InputError(
                f"The lines must be a list of texts. Received: {lines!r}. Put "
                "it into a list."
            )
        number = 0
        for rows in self._chunks(lines):
            found = self._vectors(rows)
            for row in rows:
                ids = row["input_ids"]
                tokens = self.tokenizer.convert_ids_to_tokens(ids)
                # What is written may be forgotten.
                yield LineVectors(number, tokens, found.pop(0))
                number += 1

    def _chunks(self, lines: Iterable[str]) -> Iterator[list[padding.Row]]:
        """Yields rows of features, as many as memory has room for."""
        size = len(self.reading.layers) * self.bert.config.hidden_size * 4
        rows: list[padding.Row] = []
        num_bytes = 0
        for row in self._rows(lines):
            rows.append(row)
            is_pooled = self.reading.pooling != "none"
            num_bytes += size * (1 if is_pooled else len(row["input_ids"]))
            if len(rows) == _CHUNK_LINES or num_bytes >= _CHUNK_BYTES:
                yield rows
                rows, num_bytes = [], 0
        if rows:
            yield rows

    def _rows(self, lines: Iterable[str]) -> Iterator[padding.Row]:
        ids = self.tokenizer.tokenize_lines_to_ids(
            text for line in lines for text in split_pair(line)
        )
        for ids_a, ids_b in zip(ids, ids, strict=True):
            [pair] = documents.cut(
                ids_a, ids_b, self.max_seq_length, documents.TRUNCATE_TAIL
            )
            yield text_inputs.text_features(*pair, self._marks)

    def _vectors(self, rows: Sequence[padding.Row]) -> list[Any]:
        """Returns an array for each row, as `LineVectors.values`."""
        lengths = [padding.row_length(row) for row in rows]
        batches = padding.batches_by_length(lengths, self.batch_size)

        def find(numbers: list[int]) -> Any:
            batch = padding.pad_batch(
                text_schema(self.max_seq_length),
                [rows[number] for number in numbers],
                lengths[numbers[0]],
                len(numbers),
            )
            return self._compiled(*map(tf.constant, batch.values())).numpy()

        found: list[Any] = [None] * len(rows)
        for numbers, values in zip(
            batches, parallel_map(find, batches), strict=True
        ):
            for number, array in zip(numbers, values, strict=True):
                if self.reading.pooling == "none":
                    # A copy, or the whole batch would stay with it.
                    array = array[: lengths[number]].copy()
                found[number] = array
        return found

    def _run(self, input_ids: Any, input_mask: Any, segment_ids: Any) -> Any:
        """Returns float32 [B, S, layers, H], or pooled [B, layers, H]."""
        outputs = self.bert(input_ids, input_mask, segment_ids).encoder_outputs
        layers = tf.stack([outputs[i] for i in self.reading.layers], axis=2)
        pooled = pool(layers, input_mask, self.reading.pooling)
        if self.reading.is_normalized:
            # A vector of zeros stays one.
            pooled = tf.math.l2_normalize(pooled, axis=-1, epsilon=1e-24)
        return pooled


def _check_reading(reading: Reading, num_hidden_layers: int) -> None:
    if reading.pooling not in POOLINGS:
        raise InputError(
            f"`pooling` must be one of {', '.join(POOLINGS)}. Received: "
            f"{reading.pooling!r}."
        )
    known = range(-num_hidden_layers, num_hidden_layers)
    if not reading.layers or not all(n in known for n in reading.layers):
        raise InputError(
            f"`layers` must be numbers from {known[0]} to {known[-1]}, one or "
            f"more. Received: {reading.layers!r}."
        )


def split_pair(line: str) -> tuple[str, str]:
    """Returns text A and text B, or nothing for it.

    The last ` ||| ` of a line divides it, its ends stripped, as in 2018.
    """
    line = line.strip()
    match = _PAIR.fullmatch(line)
    return (match[1], match[2]) if match else (line, "")


def pool(layers: Any, input_mask: Any, pooling: str) -> Any:
    """Makes one vector of those of all pieces, [CLS] and [SEP] among them.

    Args:
        layers: float Tensor [B, S, layers, H].
        input_mask: int Tensor [B, S].
        pooling: none, cls, mean or max.

    Returns:
        float Tensor [B, layers, H]; for none, `layers`.
    """
    if pooling == "none":
        return layers
    if pooling == "cls":
        return layers[:, 0]
    is_real = tf.cast(input_mask, tf.bool)[:, :, tf.newaxis, tf.newaxis]
    if pooling == "max":
        return tf.reduce_max(tf.where(is_real, layers, -np.inf), axis=1)
    total = tf.reduce_sum(tf.where(is_real, layers, 0.0), axis=1)
    count = tf.reduce_sum(tf.cast(is_real, tf.float32), axis=1)
    return total / count


def load(options: ExtractFeatures) -> FeatureExtractor:
    """Returns what the options name, ready to run.

    Raises:
        InputError: Vocabulary, config and checkpoint do not fit.
    """
    bert, tokenizer = bert_alone.load_files(
        options.bert_config_file,
        options.vocab_file,
        options.init_checkpoint,
        do_lower_case=options.do_lower_case,
        # No vector comes from it.
        may_initialize="^bert/pooler/",
    )
    return FeatureExtractor(
        bert,
        tokenizer,
        Reading(options.layer_indexes, options.pooling, options.normalize),
        max_seq_length=options.max_seq_length,
        batch_size=options.batch_size,
    )


def run(options: ExtractFeatures) -> None:
    """Writes the vectors of all lines.

    Raises:
        InputError: Something does not fit, or is no text; no file is written.
    """
    path = options.input_file
    num_lines = sum(1 for _ in files.read_lines(path))
    if not num_lines:
        raise InputError(f"{path}: must hold lines of text. Received: none.")
    extractor = load(options)
    write = features_output.WRITERS[options.resolved_format]
    found = progress.bar(
        extractor.stream(files.read_lines(path)),
        description="Extracting",
        total=num_lines,
        unit="line",
    )
    with files.writing(options.output_file) as file:
        write(file, found, options.layer_indexes, num_lines)
