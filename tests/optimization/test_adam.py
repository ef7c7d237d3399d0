"""The optimizer equals the 2018 release's trajectories, step by step."""

import contextlib
import json

import keras
import numpy as np
import pytest
import tensorflow as tf

from official_bert.optimization.adam import AdamWeightDecay
from official_bert.optimization.schedules import LinearWarmupDecay

# One unit in the last place of a float32 between 2 and 4: the parameters'.
TOLERANCE = 2.4e-7
# The same of a rate of at most 0.01.
RATE_TOLERANCE = 1e-9

SCENARIOS = [
    "nowarmup",
    "past_end",
    "tiny_grad",
    "warmup_clip",
    "warmup_noclip",
    "zero_grad",
]


def named_variable(name, value):
    """Returns a weight whose path is `name`."""
    *scopes, last = name.split("/")
    with contextlib.ExitStack() as stack:
        for scope in scopes:
            stack.enter_context(keras.name_scope(scope))
        return keras.Variable(value, name=last)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_equals_the_original(golden, scenario):
    folder = golden / "optimizer"
    told = json.loads((folder / "scenarios.json").read_text())[scenario]
    arrays = np.load(folder / f"{scenario}.npz")
    weights = [
        named_variable(name.removeprefix("init/"), arrays[name])
        for name in arrays
        if name.startswith("init/")
    ]
    schedule = LinearWarmupDecay(
        told["init_lr"], told["num_train_steps"], told["num_warmup_steps"]
    )
    optimizer = AdamWeightDecay(weights, schedule)
    apply = tf.function(optimizer.apply)
    for step in range(told["steps_run"]):
        gradients = [
            tf.constant(arrays[name]) if name in arrays else None
            for name in (f"step{step:02d}/grad/{w.path}" for w in weights)
        ]
        norm, rate = apply(gradients)
        after = {w.path: w.numpy() for w in weights} | {
            name: slot.numpy() for name, slot in optimizer.slots.items()
        }
        for name, value in after.items():
            key = f"step{step:02d}/after/{name}"
            if key in arrays:
                np.testing.assert_allclose(
                    value, arrays[key], rtol=0, atol=TOLERANCE, err_msg=key
                )
        np.testing.assert_allclose(
            rate, arrays["lr"][step], rtol=0, atol=RATE_TOLERANCE
        )
        np.testing.assert_allclose(
            norm, arrays["global_norm_as_original"][step], rtol=1e-6
        )
    assert optimizer.step.numpy() == told["steps_run"]


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_one_gradient_that_is_not_finite_shows_in_all_weights(value):
    """As where the original clipped: a step that did nothing would hide it."""
    clipped, _ = tf.clip_by_global_norm([[0.1], [value]], 1.0)
    assert np.isnan(clipped).all()
    weights = [
        named_variable(name, np.ones(1, "float32")) for name in ("a", "b")
    ]
    optimizer = AdamWeightDecay(weights, LinearWarmupDecay(0.1, 10, 0))
    optimizer.apply([tf.constant([0.1]), tf.constant([value], tf.float32)])
    assert np.isnan(weights).all()


def test_equals_its_formula_in_float64():
    random = np.random.RandomState(0)
    w = random.standard_normal(5)
    m = v = np.zeros(5)
    weight = named_variable("a/kernel", w.astype("float32"))
    optimizer = AdamWeightDecay([weight], LinearWarmupDecay(0.1, 10, 3))
    for step in range(12):
        g = random.standard_normal(5) * 3
        optimizer.apply([tf.constant(g, tf.float32)])
        rate = 0.1 * (step / 3 if step < 3 else 1 - min(step, 10) / 10)
        g = g * min(1, 1 / np.linalg.norm(g))
        m = 0.9 * m + 0.1 * g
        v = 0.999 * v + 0.001 * g * g
        w = w - rate * (m / (np.sqrt(v) + 1e-6) + 0.01 * w)
        np.testing.assert_allclose(weight.numpy(), w, atol=1e-5)


@pytest.mark.parametrize(
    ("path", "decays"),
    [
        ("bert/embeddings/word_embeddings", True),
        ("output_weights", True),
        ("head/Bias_kernel", True),
        ("bert/embeddings/LayerNorm/gamma", False),
        ("x/layer_norm/gamma", False),
        ("unbiased_head/kernel", False),
        ("cls/predictions/output_bias", False),
    ],
)
def test_which_weights_decay(path, decays):
    optimizer = AdamWeightDecay([], LinearWarmupDecay(0.1, 10, 3))
    assert optimizer.decays(path) is decays


def test_slots_have_the_names_of_2018():
    weight = named_variable("bert/pooler/dense/kernel", np.ones(2, "float32"))
    optimizer = AdamWeightDecay([weight], LinearWarmupDecay(0.1, 10, 3))
    assert set(optimizer.state()) == {
        "bert/pooler/dense/kernel/adam_m",
        "bert/pooler/dense/kernel/adam_v",
        "global_step",
    }
    assert optimizer.step.dtype == tf.int64
