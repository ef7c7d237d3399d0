"""30 recorded steps of fine-tuning a classifier and a SQuAD model."""

import json

import numpy as np
import pytest
import tensorflow as tf
from support import recorded

from official_bert.modeling.finetuning_models import (
    SequenceClassifier,
    SpanModel,
)
from official_bert.optimization.adam import AdamWeightDecay
from official_bert.optimization.schedules import LinearWarmupDecay
from official_bert.tasks.squad.squad_task import SquadTask
from official_bert.tasks.text import TextTask
from official_bert.training.objectives import FinetuningObjective
from official_bert.training.step import train_step

TASKS = {
    "classifier": TextTask(task_type="classification", labels=("a", "b", "c")),
    "squad": SquadTask(),
}
MODELS = {"classifier": SequenceClassifier, "squad": SpanModel}

# Twice the recorded difference of another back end (tolerance.json), since both
# runs may be off by it. For squad's loss that difference, 1.5e-6, is less than
# the effect of rounding: of ten runs in which half of all initial weights were
# one unit in the last place off, five had losses off by 3e-6 to 5.4e-6.
TOLERANCES = {
    "classifier": {"loss": 1.4e-5, "global_norm": 1.5e-4, "lr": 1e-10},
    "squad": {"loss": 6e-6, "global_norm": 2e-4, "lr": 1e-10},
}


@pytest.fixture(scope="module", params=TASKS)
def trained(request):
    """Runs the steps; returns task, recorded arrays, curves, trained parts."""
    name = request.param
    extract = np.load(recorded.EXTRACT / "finetuning.npz")
    arrays = recorded.part(extract, f"{name}/")
    task = TASKS[name]
    model = task.build_model(recorded.TRAINING_CONFIG)
    # The recorded runs have no dropout.
    model.dropout.rate = 0.0
    recorded.set_weights(model.trainable_variables, 101)
    heads = recorded.part(arrays, "extra_init/")
    for weight in model.trainable_variables:
        if weight.path in heads:
            weight.assign(heads.pop(weight.path))
    assert not heads
    schedule = LinearWarmupDecay(1e-3, num_train_steps=30, num_warmup_steps=3)
    optimizer = AdamWeightDecay(model.learning_variables, schedule)
    objective = FinetuningObjective(task)
    step = tf.function(
        lambda batch: train_step(model, objective, optimizer, batch, seed=0)
    )
    batches = recorded.finetuning_batches(arrays)
    steps = [step(batches[number % 6]) for number in range(30)]
    names = {"loss": "loss", "global_norm": "gradient_norm"}
    curves = {
        theirs: [float(s[ours]) for s in steps]
        for theirs, ours in {**names, "lr": "learning_rate"}.items()
    }
    return name, arrays, curves, model, optimizer


@pytest.mark.parametrize("curve", ["loss", "global_norm", "lr"])
def test_curve_equals_the_original(trained, curve):
    name, arrays, curves, _, _ = trained
    np.testing.assert_allclose(
        curves[curve],
        arrays[f"curve/{curve}"],
        rtol=0,
        atol=TOLERANCES[name][curve],
    )


def test_final_weights_and_slots_equal_the_original(trained, golden):
    name, _, _, model, optimizer = trained
    folder = golden / "training"
    reader = tf.train.load_checkpoint(
        str(folder / f"{name}_dense" / "model.ckpt-30")
    )
    state = {w.path: w for w in model.trainable_variables} | optimizer.state()
    assert set(state) == set(reader.get_variable_to_shape_map())
    noise = json.loads((folder / "tolerance.json").read_text())
    noise = noise[name]["shim2.21"]["final_max_abs"]
    for path, variable in state.items():
        last = path.rsplit("/", 1)[-1]
        kind = last if last in ("adam_m", "adam_v") else "parameter"
        np.testing.assert_allclose(
            variable.numpy(),
            reader.get_tensor(path),
            rtol=0,
            atol=2 * noise[kind],
            err_msg=path,
        )
