"""Answers and metrics of the engines that predict, on development sets.

  python -m benchmarks.engines RUN_DIR ...

RUN_DIR is an output directory of `run_classifier.py` or `run_squad.py`, trained
with --do_eval or, for SQuAD, with --predict_file. `differing` is the number of
answers that differ from TensorFlow's: labels, sentences with another tag, or
the texts of answers to questions. Times are measured as in `--quantize`.
"""

import os
import sys
import tempfile
from typing import Any

from benchmarks.step import machine
from official_bert import tasks
from official_bert.commands import run_classifier
from official_bert.export import engine_models
from official_bert.export.quantization import BATCH_SIZE, Quantization
from official_bert.inference.engines import Engine
from official_bert.inference.forward import Forward
from official_bert.inference.openvino_engine import OpenVinoEngine
from official_bert.inference.trained_models import load_finetuned
from official_bert.options import RunClassifier, RunSquad
from official_bert.runs.directory import RunDirectory
from official_bert.tasks.squad import task as squad_task
from official_bert.tasks.task import Task


def read_examples(directory: str) -> Any:
    """Returns the development set of a run."""
    task: Task
    if RunDirectory(directory).record.command == RunSquad.command:
        task = squad_task.make(
            RunSquad(output_dir=directory, do_eval=True).resolve()
        )
    else:
        task = tasks.get(
            *run_classifier.complete_options(
                RunClassifier(output_dir=directory, do_eval=True)
            )
        )
    return task.data.read("dev")


def main(*directories: str) -> None:
    print(machine())
    print(
        f"{'run':8}{'examples':>9}  {'engine':20}{'ms / text':>10}"
        f"{'metric':>22}{'differing':>11}"
    )
    for directory in directories:
        compare(directory)


def compare(directory: str) -> None:
    """Prints the rows of a run."""
    finetuned, examples = load_finetuned(directory), read_examples(directory)
    task, name = finetuned.task, os.path.basename(os.path.normpath(directory))
    comparison = Quantization(finetuned, examples)
    with tempfile.TemporaryDirectory() as folder:
        engine_models.write_finetuned(finetuned, folder)
        engines: dict[str, Engine] = {
            "TensorFlow": Forward(
                task.head,
                finetuned.model,
                max_seq_length=finetuned.max_seq_length,
                batch_size=BATCH_SIZE,
            ),
            **{
                f"OpenVINO {precision}": OpenVinoEngine(
                    folder, ["logits"], precision
                )
                for precision in ("float32", "bfloat16")
            },
        }
        expected: list[Any] = []
        for engine_name, engine in engines.items():
            answers, milliseconds = comparison.measure(engine)
            found = task.predictions(answers) or [a.text for a in answers]
            expected = expected or found
            pairs = zip(found, expected, strict=True)
            differing = sum(one != other for one, other in pairs)
            metric = task.metrics(examples, answers)[task.main_metric]
            print(
                f"{name:8}{len(examples):9,}  {engine_name:20}"
                f"{milliseconds:10.2f}{task.main_metric:>12}{metric:10.4f}"
                f"{differing:11,}",
                flush=True,
            )


if __name__ == "__main__":
    main(*sys.argv[1:])
