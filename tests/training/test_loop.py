"""Retracing of steps, and diverged training."""

import math
import types

import numpy as np
import pytest
import tensorflow as tf

from official_bert.training import distribution, loop


@pytest.mark.parametrize("name", ["none", "mirrored"])
@pytest.mark.parametrize(
    ("jit_compile", "traced_lengths"),
    [(False, {None}), (True, {2, 3, 5})],
    ids=["dynamic", "static"],
)
def test_step_is_traced_once_or_with_static_shapes_once_per_length(
    monkeypatch, name, jit_compile, traced_lengths
):
    strategy = distribution.get_strategy(name)
    lengths = [2, 3, 2, 5, 3, 2]
    batches = tf.data.Dataset.from_generator(
        lambda: (np.full((4, n), n, np.int32) for n in lengths),
        output_signature=tf.TensorSpec([4, None], tf.int32),
    )
    traced = []

    def train_step(model, objective, optimizer, batch, seed, **how):
        traced.append(batch.shape[1])
        return {"length": tf.reduce_max(batch)}

    monkeypatch.setattr(loop, "train_step", train_step)
    options = types.SimpleNamespace(
        jit_compile=jit_compile,
        resolved_strategy=name,
        steps_per_call=2,
        gradient_accumulation_steps=1,
    )
    trainer = types.SimpleNamespace(
        **dict.fromkeys(("model", "objective", "optimizer", "loss_scale")),
        options=options,
        strategy=strategy,
    )
    sharded = distribution.shard_batches(batches, strategy)
    runner = loop.StepRunner(trainer, 0, sharded.element_spec)
    data = iter(sharded)
    found = [s["length"] for _ in range(3) for s in runner.run(data, 2)]
    assert found == lengths
    assert set(traced) == traced_lengths
    if jit_compile:
        assert len(traced) == 3 * strategy.num_replicas_in_sync


def test_infinite_loss_is_an_error_once_the_loss_scale_is_1():
    options = types.SimpleNamespace(output_dir="out")
    scalars = {"loss": math.nan, "gradient_norm": 1.0}
    loop._require_finite(1, {**scalars, "loss_scale": 2.0}, options)
    for lowest in ({}, {"loss_scale": 1.0}):
        with pytest.raises(loop.DivergedError, match=r"loss .* nan at step 1"):
            loop._require_finite(1, {**scalars, **lowest}, options)
