"""Packed rows give the losses and gradients of their instances alone."""

import numpy as np
import pytest
import tensorflow as tf
from support import recorded

from official_bert.modeling.pretraining_model import PretrainingModel
from official_bert.optimization.adam import AdamWeightDecay
from official_bert.optimization.schedules import LinearWarmupDecay
from official_bert.pretraining_data import packing
from official_bert.training.objectives import PretrainingObjective
from official_bert.training.step import train_step

LIMITS = packing.Limits(64, 14, 5)
NUM_ROWS = 5  # More than needed: some rows are only padding.
EXTRACT = np.load(recorded.EXTRACT / "model.npz")


def unpacked(number):
    """Returns one of ten recorded batches of 8 instances."""
    arrays = recorded.part(EXTRACT, f"batches/batch{number % 10:02d}/")
    return {
        name: array.astype(np.float32 if array.dtype.kind == "f" else np.int32)
        for name, array in arrays.items()
    }


def packed(batch):
    """Returns the same 8 instances in fewer rows."""
    # Packing expects the weights of 1 first; the recorded ones are mixed.
    order = np.argsort(-batch["masked_lm_weights"], axis=1, kind="stable")
    batch = {
        name: np.take_along_axis(values, order, axis=1)
        if name.startswith("masked_lm")
        else values
        for name, values in batch.items()
    }
    rows = packing.pack(batch, LIMITS)
    num_rows = len(rows["input_ids"])
    assert num_rows <= NUM_ROWS
    return {
        name: np.pad(column, ((0, NUM_ROWS - num_rows), (0, 0)))
        for name, column in rows.items()
    }


def new_model():
    model = PretrainingModel(recorded.TRAINING_CONFIG)
    recorded.set_weights(model.trainable_variables, 101)
    return model


def losses_and_gradients(model, batch):
    objective = PretrainingObjective()
    with tf.GradientTape() as tape:
        sums = objective.loss_sums(model, batch, training=True)
        losses = objective.mean_losses(sums, objective.loss_weights(batch))
        loss = tf.add_n(list(losses.values()))
    gradients = tape.gradient(loss, model.trainable_variables)
    return losses, [tf.convert_to_tensor(g) for g in gradients]


@pytest.mark.parametrize("number", [0, 4])
def test_losses_and_gradients_equal_those_of_unpacked_instances(number):
    model = new_model()
    expected = losses_and_gradients(model, tensors(unpacked(number)))
    losses, gradients = losses_and_gradients(
        model, tensors(packed(unpacked(number)))
    )
    for name, loss in expected[0].items():
        np.testing.assert_allclose(losses[name], loss, rtol=1e-6)
    for weight, ours, theirs in zip(
        model.trainable_variables, gradients, expected[1], strict=True
    ):
        np.testing.assert_allclose(
            ours, theirs, atol=2e-6, rtol=1e-5, err_msg=weight.path
        )


def test_evaluation_equals_that_of_unpacked_instances():
    model, objective = new_model(), PretrainingObjective()
    ours, theirs = (
        objective.evaluation_sums(model, tensors(batch))
        for batch in (packed(unpacked(0)), unpacked(0))
    )
    for name, value in theirs.items():
        np.testing.assert_allclose(ours[name], value, rtol=1e-6, err_msg=name)


def tensors(batch):
    return {name: tf.constant(value) for name, value in batch.items()}


def test_50_packed_steps_equal_the_original():
    """The original trained on one instance per row."""
    model = new_model()
    schedule = LinearWarmupDecay(0.002, num_train_steps=50, num_warmup_steps=10)
    optimizer = AdamWeightDecay(model.trainable_variables, schedule)
    objective = PretrainingObjective()
    step = tf.function(
        lambda batch: train_step(model, objective, optimizer, batch, seed=0)
    )
    steps = [step(tensors(packed(unpacked(number)))) for number in range(50)]
    for name, theirs, tolerance in (
        ("masked_lm_loss", "masked_lm_loss", 3e-6),
        ("next_sentence_loss", "next_sentence_loss", 2e-6),
        ("gradient_norm", "global_norm", 1e-5),
    ):
        np.testing.assert_allclose(
            [float(scalars[name]) for scalars in steps],
            EXTRACT[f"curve/{theirs}"],
            rtol=0,
            atol=tolerance,
            err_msg=name,
        )


@pytest.mark.slow
def test_packed_step_compiles_with_xla():
    """As on a TPU."""
    model = new_model()
    optimizer = AdamWeightDecay(
        model.trainable_variables, LinearWarmupDecay(0.002, 50, 10)
    )
    step = tf.function(
        lambda batch: train_step(
            model, PretrainingObjective(), optimizer, batch, seed=0
        ),
        jit_compile=True,
    )
    batch = tensors(packed(unpacked(0)))
    expected, _ = losses_and_gradients(model, batch)
    scalars = step(batch)
    for name, loss in expected.items():
        np.testing.assert_allclose(scalars[name], loss, rtol=1e-5)
