import functools
import json
import types

import keras
import numpy as np
import pytest
import tensorflow as tf
from support import recorded

from official_bert.modeling.layers import name_scopes
from official_bert.optimization import adam, layerwise
from official_bert.optimization.adam import AdamWeightDecay
from official_bert.optimization.lamb import Lamb
from official_bert.optimization.schedules import LinearWarmupDecay
from official_bert.training import distribution

# One unit in the last place of the largest weights: float32 from 2 to 4.
TOLERANCE = 2.4e-7
# One unit in the last place of a rate of at most 0.01.
RATE_TOLERANCE = 1e-9

SCENARIOS = "nowarmup past_end tiny_grad warmup_clip warmup_noclip zero_grad"
PATHS = [
    "bert/embeddings/word_embeddings",
    "bert/encoder/layer_0/output/dense/kernel",
    "bert/encoder/layer_1/output/dense/kernel",
    "bert/encoder/layer_10/output/dense/kernel",
    "bert/pooler/dense/kernel",
    "output_weights",
]


def variable(path, value):
    scopes, _, last = path.rpartition("/")
    with name_scopes(scopes):
        return keras.Variable(np.asarray(value, "float32"), name=last)


DECAY = LinearWarmupDecay(0.1, num_train_steps=10, num_warmup_steps=0)


def test_two_weights_with_one_path_are_an_error():
    weights = [variable("bert/kernel", [1.0]), variable("bert/kernel", [2.0])]
    with pytest.raises(ValueError, match=r"Two weights .* 'bert/kernel'"):
        AdamWeightDecay(weights, DECAY)


@pytest.mark.parametrize("scenario", SCENARIOS.split())
def test_adamw_equals_the_original_step_by_step(golden, scenario):
    folder = golden / "optimizer"
    settings = json.loads((folder / "scenarios.json").read_text())[scenario]
    arrays = np.load(folder / f"{scenario}.npz")
    initial = recorded.part(arrays, "init/")
    weights = [variable(name, value) for name, value in initial.items()]
    names = ("init_lr", "num_train_steps", "num_warmup_steps")
    schedule = LinearWarmupDecay(*(settings[name] for name in names))
    optimizer = AdamWeightDecay(weights, schedule)
    apply = tf.function(optimizer.apply, autograph=False)
    norms, rates = [], []
    for step in range(settings["steps_run"]):
        named = recorded.part(arrays, f"step{step:02d}/grad/")
        grads = [named.get(weight.path) for weight in weights]
        norm, rate = apply([g if g is None else tf.constant(g) for g in grads])
        norms.append(norm)
        rates.append(rate)
        after = {w.path: w for w in weights} | optimizer.slots
        after = {name: value.numpy() for name, value in after.items()}
        expected = recorded.part(arrays, f"step{step:02d}/after/")
        recorded.assert_all_close(after, expected, rtol=0, atol=TOLERANCE)
    close = np.testing.assert_allclose
    close(rates, arrays["lr"], rtol=0, atol=RATE_TOLERANCE)
    close(norms, arrays["global_norm_as_original"], rtol=1e-6)
    assert optimizer.step.numpy() == settings["steps_run"]


@pytest.mark.parametrize("num_warmup_steps", [0, 4, 15])
def test_learning_rate_equals_the_original_formula(num_warmup_steps):
    schedule = LinearWarmupDecay(0.01, 10, num_warmup_steps)
    steps = np.arange(20)
    # optimization.py of the original: the warm-up uses the unclamped step.
    expected = np.where(
        steps < num_warmup_steps,
        0.01 * steps / max(num_warmup_steps, 1),
        0.01 * (1 - np.minimum(steps, 10) / 10),
    )
    found = [float(schedule(tf.constant(step, tf.int64))) for step in steps]
    np.testing.assert_allclose(found, expected, rtol=0, atol=RATE_TOLERANCE)
    if num_warmup_steps == 15:
        assert found[14] == pytest.approx(0.00933, abs=5e-6)


@pytest.mark.parametrize(
    ("decay", "expected"),
    [
        # transformers' get_cosine_schedule_with_warmup(num_warmup_steps=2).
        ("cosine", [0, 0.05, 0.1, 0.05 + 0.05 / 2**0.5, 0.05, 0, 0]),
        ("constant", [0, 0.05, 0.1, 0.1, 0.1, 0.1, 0.1]),
    ],
)
def test_other_kinds_of_decay_start_at_the_peak(decay, expected):
    schedule = LinearWarmupDecay(0.1, 10, num_warmup_steps=2, decay=decay)
    steps = [0, 1, 2, 4, 6, 10, 11]
    found = [float(schedule(tf.constant(step, tf.int64))) for step in steps]
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-8)


def test_schedule_works_in_an_optimizer_of_keras():
    schedule = LinearWarmupDecay(0.1, num_train_steps=10, num_warmup_steps=2)
    optimizer = keras.optimizers.SGD(schedule)
    weight = keras.Variable([1.0])
    for _ in range(4):
        optimizer.apply([tf.ones(1)], [weight])
    # The rates of the steps 0 to 3 are 0, 0.05, 0.08 and 0.07.
    np.testing.assert_allclose(weight, [1 - 0.2], rtol=1e-6)
    config = keras.optimizers.serialize(optimizer)
    loaded = keras.optimizers.deserialize(config)
    assert loaded.get_config() == optimizer.get_config()


def adam_update(w, m, v, t):
    """The original's, without bias correction."""
    return m / (np.sqrt(v) + 1e-6) + 0.01 * w


def corrected_adam_update(w, m, v, t):
    """Algorithm 1 of Kingma and Ba, with decoupled weight decay."""
    return m / (1 - 0.9**t) / (np.sqrt(v / (1 - 0.999**t)) + 1e-6) + 0.01 * w


def lamb_update(w, m, v, t, decay=0.01):
    """Algorithm 2 of the paper; biases have neither decay nor trust ratio."""
    update = corrected_adam_update(w, m, v, t) + (decay - 0.01) * w
    ratio = np.linalg.norm(w) / np.linalg.norm(update) if decay else 1.0
    return ratio * update


CorrectedAdam = functools.partial(AdamWeightDecay, corrects_bias=True)


def lamb_update_of_biases(*arguments):
    return lamb_update(*arguments, decay=0.0)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize(
    ("kind", "path", "update", "num_train_steps"),
    [
        (AdamWeightDecay, "a/kernel", adam_update, 10),
        (CorrectedAdam, "a/kernel", corrected_adam_update, 10),
        (Lamb, "a/kernel", lamb_update, 20),
        (Lamb, "a/LayerNorm/beta", lamb_update_of_biases, 20),
    ],
)
def test_optimizer_equals_its_formula_for_gradients_of_any_scale(
    kind, path, update, num_train_steps, scale
):
    """Adam clips gradients, LAMB does not."""
    random = np.random.RandomState(1)
    w = random.standard_normal((3, 4))
    weight = variable(path, w)
    optimizer = kind([weight], LinearWarmupDecay(0.1, num_train_steps, 3))
    apply = tf.function(optimizer.apply, autograph=False)
    m = v = np.zeros_like(w)
    for step in range(12):
        g = random.standard_normal((3, 4)) * scale
        norm, _ = apply([tf.constant(g, tf.float32)])
        np.testing.assert_allclose(norm, np.linalg.norm(g), rtol=1e-6)
        if kind is not Lamb:
            g = g / max(1, np.linalg.norm(g))
        m = 0.9 * m + 0.1 * g
        v = 0.999 * v + 0.001 * g**2
        decayed = 1 - min(step, num_train_steps) / num_train_steps
        rate = 0.1 * (step / 3 if step < 3 else decayed)
        w = w - rate * update(w, m, v, step + 1)
        np.testing.assert_allclose(weight.numpy(), w, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("min_size", [1, 1000])
@pytest.mark.parametrize("name", ["none", "mirrored"])
def test_weights_of_one_shape_have_their_own_moments(
    monkeypatch, name, min_size
):
    monkeypatch.setattr(adam, "_MIN_SIZE_FOR_XLA", min_size)
    strategy = distribution.get_strategy(name)
    with strategy.scope():
        weights = [variable(path, [0.0, 0.0]) for path in "ab"]
        optimizer = AdamWeightDecay(weights, DECAY, clip_norm=None)

    def update():
        optimizer.apply([tf.constant([1.0, 2.0]), tf.constant([3.0, 4.0])])

    tf.function(strategy.run, autograph=False)(update)
    for path, gradient in (("a", [1, 2]), ("b", [3, 4])):
        m, v = (optimizer.slots[f"{path}/adam_{x}"].numpy() for x in "mv")
        np.testing.assert_allclose(m, np.multiply(0.1, gradient), rtol=1e-6)
        np.testing.assert_allclose(v, 0.001 * np.square(gradient), rtol=1e-4)


def test_update_is_traced_once_for_weights_of_one_shape(monkeypatch):
    traced = []
    direction = AdamWeightDecay._direction
    monkeypatch.setattr(
        AdamWeightDecay,
        "_direction",
        lambda *arguments: traced.append(1) or direction(*arguments),
    )
    weights = [variable(path, [0.0, 0.0]) for path in "abc"]
    optimizer = AdamWeightDecay(weights, DECAY)
    gradients = [tf.constant([1.0, 2.0])] * 3
    tf.function(optimizer.apply, autograph=False)(gradients)
    assert len(traced) == 1


@pytest.mark.parametrize("kind", [AdamWeightDecay, Lamb])
def test_repr_does_not_read_all_weights(kind):
    """TensorFlow calls it to name functions that it traces often."""
    optimizer = kind([variable("a", [1.0])], DECAY)
    assert "Variable" not in repr(optimizer)


def test_lamb_updates_a_weight_of_zeros_with_a_ratio_of_1():
    weight = variable("a/kernel", np.zeros(3))
    # The first bias-corrected update is the gradient's sign.
    for gradient in ([0.0, 0.0, 0.0], [1.0, -2.0, 3.0]):
        Lamb([weight], DECAY).apply([tf.constant(gradient)])
        expected = -0.1 * np.sign(gradient)
        np.testing.assert_allclose(weight.numpy(), expected, rtol=1e-5)


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_gradient_that_is_not_finite_makes_all_weights_nan(value):
    """As with the original clipping. Skipping the step would hide it."""
    weights = [variable(name, np.ones(1)) for name in ("a", "b")]
    optimizer = AdamWeightDecay(weights, DECAY)
    optimizer.apply([tf.constant([0.1]), tf.constant([value], tf.float32)])
    assert np.isnan(weights).all()


def test_layer_norm_and_biases_do_not_decay():
    decaying = [*PATHS, "head/Bias_kernel"]
    others = ["bert/embeddings/LayerNorm/gamma", "x/layer_norm/gamma"]
    others += ["unbiased_head/kernel", "cls/predictions/output_bias"]
    optimizer = AdamWeightDecay([], DECAY)
    assert list(filter(optimizer.decays, decaying + others)) == decaying


@pytest.mark.parametrize(
    ("freeze", "trained"),
    [
        ("", [0, 1, 2, 3, 4, 5]),
        ("embeddings", [1, 2, 3, 4, 5]),
        ("1", [0, 1, 3, 4, 5]),
        ("embeddings,0-1", [3, 4, 5]),
        ("10,pooler", [0, 1, 2, 5]),
        ("embeddings,0-11,pooler", [5]),
    ],
)
def test_frozen_weights_are_left_out(freeze, trained):
    weights = [types.SimpleNamespace(path=path) for path in PATHS]
    found = layerwise.unfrozen(weights, freeze)
    assert [w.path for w in found] == [PATHS[i] for i in trained]


@pytest.mark.parametrize(
    ("num_layers", "reset"), [(0, []), (2, [3, 4]), (11, [1, 2, 3, 4])]
)
def test_top_weights_are_those_of_top_layers_and_the_pooler(num_layers, reset):
    weights = [types.SimpleNamespace(path=path) for path in PATHS]
    found = layerwise.top_weights(weights, num_layers, 11)
    assert found == [PATHS[i] for i in reset]


def test_rate_scales_decrease_from_the_top_layer_to_the_embeddings():
    scales = layerwise.rate_scales(PATHS, 0.5, 12)
    powers = [13, 12, 11, 2, 0, 0]
    assert list(scales.values()) == [0.5**power for power in powers]


@pytest.mark.parametrize("kind", [AdamWeightDecay, Lamb])
def test_rate_scale_of_a_half_halves_the_update(kind):
    weights = [variable(path, [1, -2]) for path in ("a/kernel", "b/kernel")]
    optimizer = kind(weights, DECAY, rate_scales={"a/kernel": 0.5})
    optimizer.apply([tf.constant([0.3, 0.4])] * 2)
    half, whole = (w.numpy() - [1, -2] for w in weights)
    np.testing.assert_allclose(half, whole / 2, rtol=1e-5)
    assert abs(half).min() > 0.01
