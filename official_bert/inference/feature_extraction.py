"""Feature vectors of lines of text (`extract_features.py`)."""

import io
import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import orjson

from official_bert.errors import InputError
from official_bert.inference import engine_choice, engines
from official_bert.inputs import text_inputs, tfrecords
from official_bert.inputs.padding import Unpadded
from official_bert.io import files, progress
from official_bert.options import ExtractFeatures
from official_bert.sources.embedding_settings import EmbeddingSettings
from official_bert.tasks.long_texts import warn_of_truncation
from official_bert.tasks.sentence_vectors import SentencePooling, normalize
from official_bert.tokenization import Tokenizer, convert_to_unicode
from official_bert.tokenization.vocab import warn_if_unknown

# Limits of a chunk of lines, which are sorted by length to make batches.
_CHUNK_LINES = 4096
_CHUNK_BYTES = 2**27


class LineVectors(NamedTuple):
    """The vectors of a line."""

    number: int  # The number of the line, from 0.
    tokens: Sequence[str]  # Including [CLS] and [SEP].
    values: npt.NDArray[np.float32]  # [S, layers, H], or pooled [layers, D].


class FeatureExtractor:
    """Computes vectors of texts with the model that the options name."""

    def __init__(self, options: ExtractFeatures) -> None:
        self.options = options
        self.config = options.model_files.config
        depth = self.config.num_hidden_layers
        layers = [number % depth for number in options.layer_indexes]
        self.settings = options.embedding or EmbeddingSettings()
        self.engine, self.tokenizer = engine_choice.load_embedder(
            options.model_files, self.settings, layers, options
        )
        self.num_truncated = self.num_tokens = self.num_unknown = 0
        self._pooling = None
        if options.embedding:
            size = self.config.hidden_size
            self._pooling = SentencePooling(self.settings, size)

    def stream(self, lines: Iterable[str]) -> Iterator[LineVectors]:
        """Yields the vectors of each line, in order.

        A line is a text, or two texts separated by ` ||| `. One chunk of lines
        is in memory at a time.
        """
        numbers = itertools.count()
        for rows in self._chunks(lines):
            vectors = engines.run_rows(
                self.engine, rows, self.options.batch_size, self._pool
            )
            for row in rows:
                tokens = self.tokenizer.convert_ids_to_tokens(row["input_ids"])
                # Popped, so that written vectors are freed.
                yield LineVectors(next(numbers), tokens, vectors.pop(0))

    def _chunks(self, lines: Iterable[str]) -> Iterator[list[Unpadded]]:
        unknown = self.tokenizer.vocab["[UNK]"]
        num_layers = len(self.options.layer_indexes)
        vector_bytes = 4 * num_layers * self.config.hidden_size
        rows: list[Unpadded] = []
        num_vectors = 0
        for row, is_truncated in text_rows(
            map(split_pair, lines),
            self.tokenizer,
            self.options.max_seq_length,
            self.settings,
        ):
            rows.append(row)
            ids = row["input_ids"]
            self.num_truncated += is_truncated
            self.num_tokens += len(ids)
            self.num_unknown += ids.count(unknown)
            num_vectors += 1 if self._pooling else len(ids)
            is_large = num_vectors * vector_bytes >= _CHUNK_BYTES
            if is_large or len(rows) == _CHUNK_LINES:
                yield rows
                rows, num_vectors = [], 0
        if rows:
            yield rows

    def _pool(
        self, outputs: Sequence[np.ndarray], batch: Any
    ) -> Iterable[np.ndarray]:
        """Returns [S, layers, H], or pooled [layers, D], of each text."""
        layers, mask = engines.require_finite(outputs), batch["input_mask"]
        if pooling := self._pooling:
            layers = [pooling(vectors, mask) for vectors in layers]
        stacked = np.stack(layers, axis=-2)
        if self.options.normalize and not self.settings.normalize:
            stacked = normalize(stacked)  # Also truncated vectors.
        if pooling:
            return stacked
        # Copies, which do not keep the array of the batch in memory.
        return [v[:n].copy() for v, n in zip(stacked, mask.sum(1), strict=True)]


def text_rows(
    pairs: Iterable[Sequence[str | bytes]],
    tokenizer: Tokenizer,
    max_seq_length: int,
    settings: EmbeddingSettings,
    prompt_name: str | None = None,
) -> Iterator[tuple[Unpadded, bool]]:
    """Returns `pair_features` of texts with the prompt of the settings.

    The second text of a pair may be empty.
    """
    prompts = (settings.prompt(prompt_name), "")
    texts = (
        prompt + convert_to_unicode(text)
        for pair in pairs
        for prompt, text in zip(prompts, pair, strict=True)
    )
    if settings.lowercases_text:
        texts = (text.lower() for text in texts)
    return text_inputs.pair_features(tokenizer, texts, max_seq_length)


def split_pair(line: str) -> tuple[str, str]:
    """Splits a line at its last ` ||| `. If it has none, text B is "".

    As in the original implementation, the line is stripped.
    """
    line = line.strip()
    text_a, separator, text_b = line.rpartition(" ||| ")
    return (text_a, text_b) if separator else (line, "")


def run(options: ExtractFeatures) -> None:
    """Writes the vectors of all lines.

    Raises `InputError` if the input is invalid; then nothing is written.
    """
    path = options.input_file
    num_lines = sum(1 for _ in files.read_lines(path))
    if not num_lines:
        raise InputError(f"{path}: must contain lines of text. Received: none.")
    extractor = FeatureExtractor(options)
    lines = progress.bar(
        extractor.stream(files.read_lines(path)),
        description="Extracting",
        total=num_lines,
        unit=" lines",
    )
    with files.writing(options.output_file) as file:
        for line in lines:
            if options.resolved_format == "npy":
                file.write(npy_bytes(line, num_lines))
            elif options.resolved_format == "tfrecord":
                file.write(tfrecord_bytes(line, options.layer_indexes))
            else:
                file.write(json_bytes(line, options.layer_indexes))
    warn_if_unknown(extractor.num_unknown, extractor.num_tokens, "the tokens")
    if extractor.num_truncated:
        positions = extractor.config.max_position_embeddings
        limit = extractor.settings.length(positions)
        advice = f". --max_seq_length may be up to {limit}"
        if options.max_seq_length == limit:
            advice = ", the model's limit"
        number = f"{extractor.num_truncated} of {num_lines}"
        warn_of_truncation(number, options.max_seq_length, advice)


def json_bytes(line: LineVectors, layers: Sequence[int]) -> bytes:
    """Returns a JSON object with the keys of the 2018 release.

    Values are rounded to six decimals. The second form is for pooled vectors::

        {"linex_index": 0, "features": [{"token": "[CLS]", "layers":
            [{"index": -1, "values": [0.1, ...]}, ...]}, ...]}
        {"linex_index": 0, "layers": [{"index": -1, "values": [0.1, ...]}, ...]}
    """

    def to_json(vectors: npt.NDArray[np.float64]) -> list[dict[str, Any]]:
        pairs = zip(layers, vectors, strict=True)
        return [{"index": index, "values": values} for index, values in pairs]

    # In float64, this gives the same result as Python's `round`.
    values = line.values.astype(np.float64).round(6)
    record: dict[str, Any] = {"linex_index": line.number}
    if values.ndim == 2:
        record["layers"] = to_json(values)
    else:
        record["features"] = [
            {"token": token, "layers": to_json(vectors)}
            for token, vectors in zip(line.tokens, values, strict=True)
        ]
    options = orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_APPEND_NEWLINE
    return orjson.dumps(record, option=options)


def npy_bytes(line: LineVectors, num_lines: int) -> bytes:
    """Returns a row of a float32 array [num_lines, layers * H].

    The header of the file precedes the first row.
    """
    file = io.BytesIO()
    if line.number == 0:
        shape = (num_lines, line.values.size)
        header = {"descr": "<f4", "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(file, header)
    return file.getvalue() + line.values.astype("<f4").tobytes()


def tfrecord_bytes(line: LineVectors, layers: Sequence[int]) -> bytes:
    """Returns a record with a `tf.train.Example`.

    Features: `linex_index`, int64 [1]; `tokens`, bytes [S]; and the vectors of
    each layer, such as `layer_-1`, float32 [S * H], or [H] if pooled.
    """
    columns = {
        "linex_index": np.array([[line.number]]),
        "tokens": np.array([[*map(str.encode, line.tokens)]], object),
    }
    for layer in set(layers):  # A layer may be given twice.
        values = line.values[..., layers.index(layer), :]
        columns[f"layer_{layer}"] = values.reshape(1, -1)
    [example] = tfrecords.encode_examples(columns)
    return tfrecords.frame(example)
