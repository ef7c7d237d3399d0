"""Quantizes models for OpenVINO, and shows what quantization costs.

`--quantize` prints a table, here of BERT-Tiny on SST-2::

    dev, 872 examples               MB  ms / text  accuracy
    float32                       17.8       0.18    0.8222
    int8                           5.1       0.17    0.8291
"""

import contextlib
import itertools
import logging
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from official_bert.inference import engines, openvino_engine
from official_bert.inference.engines import Engine
from official_bert.inference.openvino_engine import OpenVinoEngine
from official_bert.inputs import records, tfrecords
from official_bert.inputs.records import RecordFiles
from official_bert.inputs.schemas import TEXT_INPUTS
from official_bert.io import files
from official_bert.runs import file_names
from official_bert.tasks.data_set import Examples
from official_bert.tasks.task import FinetunedModel

_NUM_CALIBRATION = 300  # Training records that determine ranges of activations.
_NUM_TIMED = 300  # Examples.
BATCH_SIZE = 8

# {name: `alpha` of `write_int8`}. SmoothQuant (Xiao et al., 2023) moves
# outliers of the activations to the weights. That makes small models slower,
# so it is used only if int8 loses more than this share of the metric otherwise.
_SMOOTHING = {"int8": -1.0, "int8, smoothed": 0.95}
_MAX_LOSS = 0.005


class Quantization(NamedTuple):
    """How an export is quantized, and a table of what this costs.

    Exports for regression return numbers in the units of the data. In the
    table, their scale is undone twice, which does not change correlations.

    Attributes:
        finetuned: The model in float32, for its task and tokenizer.
        examples: The development set.
        kind: "float16" or "dynamic" for TensorFlow Lite, "int8" for OpenVINO.
        records: The file of the training records; only for int8.
    """

    finetuned: FinetunedModel
    examples: Examples
    kind: str = ""
    records: str = ""

    def print_header(self) -> None:
        """Prints the header of the table."""
        title = f"dev, {len(self.examples):,} examples"
        metric = self.finetuned.task.main_metric
        print(f"\n{title:25}{'MB':>9}{'ms / text':>11}{metric:>10}")

    def print_row(self, name: str, size: int, engine: Engine) -> float:
        """Prints the row of a model of `size` bytes; returns its metric."""
        answers, milliseconds = self.measure(engine)
        task = self.finetuned.task
        metric: float = task.metrics(self.examples, answers)[task.main_metric]
        numbers = f"{size / 1e6:9.1f}{milliseconds:11.2f}{metric:10.4f}"
        print(f"{name:25}{numbers}", flush=True)
        return metric

    def measure(self, engine: Engine) -> tuple[list[Any], float]:
        """Returns all answers, and the milliseconds per example."""
        # The first pass also compiles the model for all lengths.
        answers, _ = self._answer(engine, None)
        seconds = min(self._answer(engine, _NUM_TIMED)[1] for _ in range(3))
        return answers, 1e3 * seconds / min(_NUM_TIMED, len(answers))

    def _answer(
        self, engine: Engine, limit: int | None
    ) -> tuple[list[Any], float]:
        """Returns the answers to the first examples, and the seconds."""
        task, _, tokenizer, length = self.finetuned
        answers, seconds = [], 0.0
        examples = self.examples[:limit]
        for features in task.featurize(examples, tokenizer, length):
            start = time.perf_counter()
            outputs = engines.run(
                engine,
                features,
                max_seq_length=length,
                batch_size=BATCH_SIZE,
                pad_to=task.pad_to,
            )
            seconds += time.perf_counter() - start
            answers += task.answers(features, [row[0] for row in outputs])
        return answers, seconds


def quantize_openvino(directory: str, quantization: Quantization) -> None:
    """Replaces the model in a directory by one in int8; prints a comparison.

    The operands of its matrix products are int8. The directory has no other
    files.
    """

    def measure(name: str, folder: str) -> float:
        size = files.directory_size(folder)
        engine = OpenVinoEngine(folder, ["logits"])
        return quantization.print_row(name, size, engine)

    quantization.print_header()
    exact = measure("float32", directory)
    batches = list(_calibration_batches(quantization))
    with tempfile.TemporaryDirectory(dir=directory) as new:
        for name, alpha in _SMOOTHING.items():
            folder = os.path.join(new, name)
            files.make_directory(folder)
            write_int8(directory, folder, batches, alpha)
            if measure(name, folder) >= exact * (1 - _MAX_LOSS):
                break
        for name in files.list_directory(folder):
            source = os.path.join(folder, name)
            files.replace(source, os.path.join(directory, name))


def write_int8(
    directory: str,
    output: str,
    batches: Sequence[dict[str, np.ndarray]],
    alpha: float = -1.0,
) -> None:
    """Writes the model of a directory to another one, in int8.

    The batches determine the ranges of activations. `alpha` is the strength of
    SmoothQuant, between 0 and 1; -1: none.
    """
    openvino = openvino_engine.import_openvino()
    os.environ.setdefault("NNCF_CI", "1")  # NNCF sends no usage statistics.
    import nncf

    nncf.set_log_level(logging.ERROR)
    path = os.path.join(directory, file_names.OPENVINO)
    with contextlib.redirect_stdout(sys.stderr):  # Progress bars.
        network = nncf.quantize(
            openvino.Core().read_model(path),
            nncf.Dataset(batches),
            subset_size=len(batches),
            model_type=nncf.ModelType.TRANSFORMER,
            advanced_parameters=nncf.AdvancedQuantizationParameters(
                smooth_quant_alphas=nncf.AdvancedSmoothQuantParameters(
                    matmul=alpha
                )
            ),
        )
    path = os.path.join(output, file_names.OPENVINO)
    openvino.save_model(network, path, compress_to_fp16=False)


def _calibration_batches(
    quantization: Quantization,
) -> Iterator[dict[str, Any]]:
    """Yields evenly spaced training records, each a batch without padding."""
    path, finetuned = quantization.records, quantization.finetuned
    schema = finetuned.task.schema(finetuned.max_seq_length)
    vocab_size = len(finetuned.tokenizer.vocab)
    records.check_files(RecordFiles([path], schema), vocab_size)
    schema = {name: schema[name] for name in TEXT_INPUTS}
    step = max(1, tfrecords.count_records(path) // _NUM_CALIBRATION)
    stop = step * _NUM_CALIBRATION
    for record in itertools.islice(tfrecords.read(path), 0, stop, step):
        batch = records.parse(schema, [record])
        length = int(np.max(np.sum(batch["input_mask"], -1)))
        yield {name: v.numpy()[..., :length] for name, v in batch.items()}
