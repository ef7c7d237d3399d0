"""The teacher of a smaller model (Hinton et al., 2015): `--teacher`.

Its answers are features of the training records, so it runs only once. It has
its own tokenizer.
"""

import dataclasses
import functools
import os
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from official_bert import tasks
from official_bert.errors import InputError, missing_package
from official_bert.inference import engine_choice, trained_models
from official_bert.inference.engine_choice import EngineChoice
from official_bert.inference.predictor import Predictor
from official_bert.inputs.schemas import Feature, Schema
from official_bert.io import files
from official_bert.options import Predict, RunClassifier
from official_bert.runs import file_names
from official_bert.sources import checkpoint_paths, formats, task_file
from official_bert.sources.formats.huggingface import files as huggingface_files
from official_bert.tasks.task import RowFeatures, Task

# Files on which the answers of a model depend, besides weights of other formats
# than TF1. An index has the checksums of its weights.
_FILES = (
    f"*{file_names.INDEX}",
    *(file_names.OPENVINO, "model.bin", huggingface_files.CONFIG),
)


@dataclasses.dataclass(frozen=True)
class Teacher:
    """A fine-tuned model that answers the training examples of a run.

    Attributes:
        student: The task of the run.
        labels: The labels of the teacher, in the order of its answers.
        options: The flags that load it.
        files: Its files, which must not change when the run resumes.
    """

    student: Task
    labels: tuple[str, ...]
    options: Predict
    files: tuple[str, ...]

    @functools.cached_property
    def fingerprints(self) -> tuple[str, ...]:
        """What the answers depend on."""
        return (*map(files.fingerprint, self.files), repr(self.labels))

    @property
    def schema(self) -> Schema:
        """The features that `answer` adds."""
        task = self.student
        size = getattr(task, "num_choices", task.head.num_outputs)
        return {
            "teacher_answers": Feature(size, is_float=True),
            "has_label": Feature(1),
        }

    def answer(self, blocks: Iterable[RowFeatures]) -> Iterator[RowFeatures]:
        """Adds answers to the features of the student's examples.

        `teacher_answers` are probabilities or, in regression, the number that
        the student learns. `has_label` is 0 for examples without a label.
        """
        predictor = self._load()
        if self.student.kind == "choice":
            size = self.student.num_choices  # type: ignore[attr-defined]
            task: Any = predictor.task  # Its number of choices may differ.
            predictor.task = dataclasses.replace(task, num_choices=size)
        for features in blocks:
            answers = predictor.task_answers(features.examples, "Teacher")
            added = [
                {
                    "teacher_answers": self._as_student(answer),
                    "has_label": [int(example.label is not None)],
                }
                for example, answer in zip(
                    features.examples, answers, strict=True
                )
            ]
            rows = [
                row._replace(values={**row.values, **added[row.example]})
                for row in features.rows
            ]
            schema = {**features.schema, **self.schema}
            yield RowFeatures(features.examples, rows, schema)

    def _load(self) -> Predictor:
        options = self.options
        finetuned, engine = engine_choice.load_finetuned(
            options.model_files,
            EngineChoice(options.engine, options.precision),
            options.model_dir,
        )
        return Predictor(finetuned, engine=engine)

    def _as_student(self, answer: np.ndarray) -> np.ndarray:
        """Returns an answer in the student's order of labels, and scale."""
        task: Any = self.student
        if task.head.loss == "regression":
            return (answer - task.target_mean) / task.target_deviation
        if self.labels:
            answer = answer[[self.labels.index(label) for label in task.labels]]
        return answer


def with_teacher(task: Task, options: RunClassifier) -> Task:
    """Returns the task of a run with the teacher of `--teacher`.

    Raises `InputError` if this is not a model that was fine-tuned for the task.
    """
    engine = "auto" if missing_package("openvino") else "openvino"
    precision = "auto" if engine == "auto" else options.matmul_precision
    try:
        predict = Predict(
            model=options.teacher, engine=engine, precision=precision
        ).resolve()
        predict.download_weights()
        directory = predict.model_dir
        if directory:
            description = task_file.read(directory)
        else:
            directory = predict.model_files.init_checkpoint
            description = trained_models.describe_huggingface(
                predict.model_files
            )
    except InputError as error:
        raise InputError(
            f"--teacher={options.teacher} must be a fine-tuned model. The "
            f"error of predict.py: {error}"
        ) from error
    taught, _ = tasks.load(description, directory)
    _require_same_task(taught, task, options)
    weights = checkpoint_paths.directory(predict.model_files.init_checkpoint)
    paths = [
        os.path.join(weights, name)
        for name in files.list_directory(weights)
        if checkpoint_paths.has_any([name], _FILES)
        or formats.has_other_weights([name])
    ]
    labels = getattr(taught, "labels", ())
    teacher = Teacher(task, labels, predict, (*paths, *predict.input_files()))
    return dataclasses.replace(task, teacher=teacher)


def _require_same_task(
    teacher: Task, student: Task, options: RunClassifier
) -> None:
    """Raises `InputError` unless both tasks are the same.

    Labels may have another order.
    """
    for name in ("kind", "task_type", "labels", "is_pair"):
        known, received = (
            getattr(task, name, None) for task in (student, teacher)
        )
        if name == "labels" and known and received:
            known, received = sorted(known), sorted(received)
        is_unknown = name == "is_pair" and None in (known, received)
        if known != received and not is_unknown:
            raise InputError(
                f"--teacher={options.teacher}: its `{name}` must be that of "
                f"the student, {known!r}. Received: {received!r}. Use a model "
                "that was fine-tuned for the same task, with the same labels."
            )
