"""The teacher of a smaller model (Hinton et al., 2015): `--teacher`.

Its answers are features of the training records, so it runs only once. It has
its own tokenizer.
"""

import dataclasses
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from absl import logging

from official_bert import tasks
from official_bert.errors import InputError, missing_package
from official_bert.inference import engine_choice, trained_models
from official_bert.inference.embedder import Embedder
from official_bert.inference.predictor import Predictor
from official_bert.inputs.schemas import Feature, Schema
from official_bert.io import files
from official_bert.options import Predict
from official_bert.options.finetuning import FinetuningOptions
from official_bert.sources import pretrained
from official_bert.sources.embedding_settings import EmbeddingSettings
from official_bert.sources.pretrained import ModelFiles
from official_bert.tasks.sentence_vectors import (
    SentencePooling,
    largest_components,
    normalize,
)
from official_bert.tasks.task import ExampleFeature, Features, RowFeatures, Task
from official_bert.tokenization import Tokenizer

# Returns the soft answers for examples.
Answerer = Callable[[Sequence[Any]], Any]


@dataclasses.dataclass(frozen=True)
class TaughtFeatures(RowFeatures):
    """The features of a student, and `rows` with a teacher's answers."""

    features: Features

    @property
    def lengths(self) -> Sequence[int]:
        """The lengths of the student's features."""
        return self.features.lengths

    def batch(
        self, indices: Sequence[int], length: int, batch_size: int
    ) -> dict[str, np.ndarray]:
        """Returns the student's features and the answers."""
        features = self.features.batch(indices, length, batch_size)
        return features | super().batch(indices, length, batch_size)


@dataclasses.dataclass(frozen=True)
class Teacher:
    """A fine-tuned model that answers the training examples of a run.

    Attributes:
        student: The task of the run.
        options: The flags that load the model.
        files: Its files, which must not change when the run resumes.
        labels: Its labels, in the order of its answers.
    """

    student: Task
    options: Predict
    files: tuple[str, ...]
    labels: tuple[str, ...] = ()

    @property
    def fingerprints(self) -> tuple[str, ...]:
        """What the answers depend on."""
        settings = self.labels, self.answers_schema(1)
        return (*map(files.fingerprint, self.files), repr(settings))

    def schema(self, max_seq_length: int) -> Schema:
        """Returns the features of the student, with answers."""
        schema = self.student.schema(max_seq_length)
        return {**schema, **self.answers_schema(max_seq_length)}

    def answers_schema(self, max_seq_length: int) -> Schema:
        """Returns the features with the teacher's answers."""
        answers = self.student.soft_answers_schema(max_seq_length)
        return {"teacher_answers": answers, "has_label": Feature(1)}

    def featurize(
        self, examples: Sequence[Any], tokenizer: Tokenizer, max_seq_length: int
    ) -> Iterator[Features]:
        """Yields the features of the student, with answers.

        `teacher_answers` are probabilities, vectors or, in regression, the
        number that the student learns. `has_label` is 0 for examples without a
        label.
        """
        task: Any = self.student
        schema = self.answers_schema(max_seq_length)
        is_regression = task.head.loss == "regression"
        to_student = task.scale if is_regression else self._in_order
        errors = np.zeros(2)
        answer = self.load(max_seq_length)
        for features in task.featurize(examples, tokenizer, max_seq_length):
            block = features.examples
            answers = [*map(to_student, answer(block))]
            if is_regression:
                errors += _squared_errors(task, block, answers)
            rows = [
                ExampleFeature(
                    number,
                    {
                        "teacher_answers": values,
                        "has_label": [int(task.has_label(block[number]))],
                    },
                )
                for number, values in task.divide_answers(features, answers)
            ]
            yield TaughtFeatures(block, rows, schema, features)
        if errors[0] > errors[1]:
            logging.warning(
                f"--teacher={self.options.model}: its numbers are further from "
                "the labels than the mean of the labels is. They must have the "
                "scale of the labels"
            )

    def load(self, max_seq_length: int) -> Answerer:
        """Loads the model that gives soft answers for a student's examples."""
        options = self.options
        finetuned, engine = engine_choice.load_finetuned(
            options.model_files, options, options.model_dir
        )
        task = finetuned.task.as_teacher(self.student)
        if task.shares_features:
            finetuned = finetuned._replace(max_seq_length=max_seq_length)
        predictor = Predictor(finetuned._replace(task=task), engine=engine)
        return functools.partial(predictor.soft_answers, description="Teacher")

    def _in_order(self, answer: np.ndarray) -> np.ndarray:
        """Returns an answer in the student's order of labels."""
        if self.labels:
            student: Any = self.student
            order = [self.labels.index(label) for label in student.labels]
            answer = answer[..., order]
        return answer


def _squared_errors(
    task: Any, examples: Sequence[Any], answers: Sequence[np.ndarray]
) -> np.ndarray:
    """Returns the squared errors of the answers, and of the mean as an answer.

    `answers` are in the scale of the student, in which the mean is 0.
    """
    pairs = [
        (task.scale(example.label), answer[0])
        for example, answer in zip(examples, answers, strict=True)
        if example.label is not None
    ]
    labels, numbers = np.reshape(pairs, (-1, 2)).T
    return np.array([np.sum((numbers - labels) ** 2), np.sum(labels**2)])


@dataclasses.dataclass(frozen=True)
class EmbeddingTeacher(Teacher):
    """An embedding model, whose vectors the student learns.

    If they have more than the `size` dimensions of the student, they are
    projected on the principal components of the first examples' vectors.
    """

    size: int = 0

    def answers_schema(self, max_seq_length: int) -> Schema:
        """Returns the feature with vectors."""
        vectors = Feature(self.size, is_float=True)
        return {**super().answers_schema(1), "teacher_answers": vectors}

    def load(self, max_seq_length: int) -> Answerer:
        """Loads the model that gives vectors [N, `size`] of N single texts."""
        options = self.options
        embedder = Embedder.from_pretrained(
            str(options.model),
            engine=options.engine,
            precision=options.precision,
        )
        components: np.ndarray | None = None

        def answer(examples: Sequence[Any]) -> np.ndarray:
            nonlocal components
            vectors = normalize(embedder([e.texts[0] for e in examples]))
            if self.size == embedder.size:
                return vectors
            if components is None:
                components = largest_components(vectors, self.size)
            return normalize(vectors @ components)

        return answer


def with_teacher(task: Task, options: FinetuningOptions) -> Any:
    """Returns the task of a run with the teacher of `--teacher`.

    Raises `InputError` if this is not a model that was trained for the task.
    """
    engine = "auto" if missing_package("openvino") else "openvino"
    precision = "auto" if engine == "auto" else options.matmul_precision
    predict = Predict(model=options.teacher, engine=engine, precision=precision)
    make: Any = _make_embedding if task.kind == "embedding" else _make_finetuned
    return dataclasses.replace(task, teacher=make(task, options, predict))


def _make_finetuned(
    task: Task, options: FinetuningOptions, predict: Predict
) -> Teacher:
    try:
        predict = predict.resolve()
        predict.download_weights()
        read = trained_models.read_task(predict.model_files, predict.model_dir)
    except InputError as error:
        raise InputError(
            f"--teacher={options.teacher} must be a fine-tuned model. {error}"
        ) from error
    taught, _ = tasks.load(*read)
    _require_same_task(taught, task, options)
    if task.shares_features:
        _require_same_tokens(predict.model_files, options)
    paths = engine_choice.source_files(predict.model_files)
    return Teacher(task, predict, paths, getattr(taught, "labels", ()))


def _make_embedding(
    task: Any, options: FinetuningOptions, predict: Predict
) -> EmbeddingTeacher:
    if not options.bert_config_file:
        raise options.error("teacher", "needs run_classifier.py. Omit it.")
    model = str(options.teacher)
    model_files = pretrained.find(model)
    pretrained.download_weights(model, model_files.init_checkpoint)
    settings = model_files.embedding or EmbeddingSettings()
    found = SentencePooling(settings, model_files.config.hidden_size).size
    size = task.embedding_size or options.model_config().hidden_size
    if found < size:
        message = (
            f"must have vectors of at least {size} dimensions, like the "
            f"student. Received: {found}. Choose a larger teacher, or set "
            f"--embedding_size={found}."
        )
        raise options.error("teacher", message)
    student = dataclasses.replace(task, num_texts=1)
    paths = engine_choice.source_files(model_files)
    return EmbeddingTeacher(student, predict, paths, size=size)


def _require_same_tokens(
    teacher: ModelFiles, options: FinetuningOptions
) -> None:
    """Raises `InputError` unless teacher and student read the same tokens."""
    own, other = options.model_files.tokenizer, teacher.tokenizer
    if (own.vocab, own.settings) != (other.vocab, other.settings):
        raise InputError(
            f"--teacher={options.teacher}: its vocabulary and casing must be "
            "those of the student, because it answers for tokens. Received: "
            f"{teacher.vocab_file}. Use another teacher or student."
        )
    teacher.config.require_length(options.max_seq_length)


def _require_same_task(
    teacher: Task, student: Task, options: FinetuningOptions
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
