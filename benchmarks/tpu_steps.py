"""The training steps of `tpu_compile.py`, lowered by TensorFlow."""

import itertools
from typing import Any, NamedTuple
from unittest import mock

import keras
import tensorflow as tf
from tensorflow.python.ops import gen_stateless_random_ops_v2 as random_ops

from benchmarks.sizes import SIZES
from benchmarks.step import training_step
from official_bert.config import BertConfig
from official_bert.inputs import schemas
from official_bert.modeling.finetuning_models import build_model
from official_bert.modeling.pretraining_model import PretrainingModel
from official_bert.options import RunClassifier
from official_bert.tasks import glue
from official_bert.tasks.squad.task import SquadTask
from official_bert.tasks.task import Task
from official_bert.training import precision
from official_bert.training.objectives import (
    FinetuningObjective,
    Objective,
    PretrainingObjective,
)

NUM_PREDICTIONS = {128: 20, 512: 77}


class Case(NamedTuple):
    """A training step without its batch size."""

    kind: str
    length: int
    size: str
    precision: str
    remat: bool

    @property
    def name(self) -> str:
        """The name on the command line and in RESULTS."""
        parts = [self.kind, str(self.length), self.size, self.precision]
        return "-".join([*parts, "remat"] if self.remat else parts)

    @property
    def config(self) -> BertConfig:
        """The model's config."""
        return SIZES[self.size]


CASES = [
    Case(kind, length, size, dtype, remat)
    for size, dtype, remat, (kind, length) in itertools.product(
        ["base", "large"],
        ["bfloat16", "float32"],
        [False, True],
        [
            ("pretraining", 128),
            ("pretraining", 512),
            ("classifier", 128),
            ("squad", 384),
        ],
    )
]


class Step:
    """The step of a case, for batches of any size."""

    def __init__(self, case: Case) -> None:
        keras.backend.clear_session()
        model: Any
        objective: Objective
        with precision.policy(case.precision.replace("float32", "none")):
            if case.kind == "pretraining":
                objective = PretrainingObjective()
                model = PretrainingModel(case.config)
                self._schema = schemas.pretraining_schema(
                    case.length, NUM_PREDICTIONS[case.length]
                )
            else:
                task: Task = SquadTask()
                if case.kind != "squad":
                    task = glue.make(RunClassifier(task_name="mnli"))
                objective = FinetuningObjective(task.head)
                model = build_model(task.head, case.config)
                self._schema = task.schema(case.length)
        _, self._step = training_step(
            model, objective, case.remat, jit_compile=True
        )

    def lower(self, batch_size: int) -> bytes:
        """Returns the step's `HloModuleProto`; weights are updated in place."""
        batch = {
            name: tf.zeros(
                [batch_size, *feature.shape],
                tf.float32 if feature.is_float else tf.int32,
            )
            for name, feature in self._schema.items()
        }
        with mock.patch.object(
            random_ops, "stateless_random_get_key_counter", _key_and_counter
        ):
            lowered = self._step.experimental_get_compiler_ir(batch)
            return bytes(lowered(stage="hlo_serialized"))


def _key_and_counter(seed: Any, name: str | None = None) -> tuple[Any, Any]:
    """Splits seeds as TensorFlow does on TPUs; on CPUs it mixes them."""
    del name
    key = tf.reshape(tf.bitcast(seed, tf.uint64), [1])
    return key, tf.zeros([2], tf.uint64)
