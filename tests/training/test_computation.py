"""The step in 16 bits, compiled whole, recomputed, and on several replicas."""

import dataclasses
import math
import types

import keras
import numpy as np
import pytest
import tensorflow as tf

from official_bert.config import BertConfig
from official_bert.modeling import dropout
from official_bert.modeling.pretraining_model import PretrainingModel
from official_bert.optimization.adam import AdamWeightDecay
from official_bert.optimization.lamb import Lamb
from official_bert.optimization.schedules import LinearWarmupDecay
from official_bert.training import (
    computing,
    distribution,
    loop,
    means,
    precision,
)
from official_bert.training.objectives import PretrainingObjective
from official_bert.training.recomputing import recomputed
from official_bert.training.step import (
    Computation,
    accumulated,
    dropout_seed,
    random_bits,
    train_step,
)

CONFIG = BertConfig(
    vocab_size=30,
    hidden_size=8,
    num_hidden_layers=2,
    num_attention_heads=2,
    intermediate_size=16,
    max_position_embeddings=16,
    hidden_dropout_prob=0.3,
    attention_probs_dropout_prob=0.3,
    initializer_range=0.3,
)
SCHEDULE = LinearWarmupDecay(0.01, num_train_steps=100, num_warmup_steps=0)
OBJECTIVE = PretrainingObjective()


def make_model(config=CONFIG, kind="none"):
    keras.utils.set_random_seed(0)
    with precision.policy(kind):
        return PretrainingModel(config)


@pytest.fixture
def batch():
    random = np.random.RandomState(0)

    def draw(shape, high):
        return tf.constant(random.randint(0, high, shape), tf.int32)

    return {
        "input_ids": draw((8, 12), 30),
        "input_mask": tf.ones((8, 12), tf.int32),
        "segment_ids": draw((8, 12), 2),
        "masked_lm_positions": draw((8, 3), 12),
        "masked_lm_ids": draw((8, 3), 30),
        "masked_lm_weights": tf.cast(draw((8, 3), 2), tf.float32),
        "next_sentence_labels": draw((8, 1), 2),
    }


def gradients(model, batch, computation=None, scale=None):
    optimizer = AdamWeightDecay(model.trainable_variables, SCHEDULE)

    @tf.function
    def find():
        return accumulated(
            model,
            OBJECTIVE,
            optimizer,
            batch,
            OBJECTIVE.weights(batch),
            tf.constant([3, 4]),
            scale,
            computation or Computation(),
        )

    losses, found = find()
    return losses, {
        w.path: g.numpy() for w, g in zip(optimizer.weights, found, strict=True)
    }


def test_recomputed_layers_draw_the_same_masks(batch):
    model = make_model()
    losses, expected = gradients(model, batch)
    model.bert.encoder.recomputed = recomputed
    recomputed_losses, found = gradients(model, batch)
    assert float(recomputed_losses["loss"]) == float(losses["loss"])
    for path, gradient in expected.items():
        np.testing.assert_allclose(
            found[path], gradient, rtol=1e-5, atol=1e-7, err_msg=path
        )


def test_a_recomputed_layer_is_traced_twice(batch):
    """Once forward and once for its gradient."""
    model = make_model()
    calls = []
    for layer in model.bert.encoder.layers:
        attend = layer.attention.call
        layer.attention.call = lambda *args, attend=attend, **kwargs: (
            calls.append(1),
            attend(*args, **kwargs),
        )[1]
    gradients(model, batch)
    assert len(calls) == 2
    model.bert.encoder.recomputed = recomputed
    gradients(model, batch)
    assert len(calls) == 2 + 4


def test_micro_batches_have_masks_of_their_own(batch):
    """Two equal halves would else give what one of them gives."""
    halves = {
        name: tf.concat([value[:4], value[:4]], 0)
        for name, value in batch.items()
    }
    one = {name: value[:4] for name, value in batch.items()}
    model = make_model()
    _, whole = gradients(model, halves, Computation(num_micro_batches=2))
    _, half = gradients(model, one)
    name = "bert/encoder/layer_0/output/dense/kernel"
    assert np.abs(whole[name] - half[name]).max() > 1e-3


@pytest.mark.slow
def test_replicas_have_masks_of_their_own(batch):
    """Both get the same four rows, and must see other parts of them."""
    strategy = distribution.get_strategy("mirrored")
    with strategy.scope():
        model = make_model()
        optimizer = AdamWeightDecay(model.trainable_variables, SCHEDULE)
    one = {name: value[:4] for name, value in batch.items()}

    @tf.function
    def losses():
        def on_replica():
            replica = tf.distribute.get_replica_context()
            masks = dropout_seed(5, 0, replica.replica_id_in_sync_group)
            return accumulated(
                model,
                OBJECTIVE,
                optimizer,
                one,
                OBJECTIVE.weights(one),
                masks,
                None,
                Computation(),
            )[0]["loss"]

        return strategy.experimental_local_results(strategy.run(on_replica))

    first, second = losses()
    assert abs(float(first) - float(second)) > 1e-3


def test_every_seed_step_and_replica_draws_masks_of_its_own():
    asked = [(1, 0, 0), (2, 0, 0), (1, 1, 0), (1, 0, 1)]
    seeds = {tuple(dropout_seed(*given).numpy().tolist()) for given in asked}
    assert len(seeds) == len(asked)


def test_steps_and_seeds_see_other_parts_of_a_batch(batch):
    def losses(seed):
        model = make_model()
        still = LinearWarmupDecay(0.0, num_train_steps=9, num_warmup_steps=0)
        optimizer = AdamWeightDecay(model.trainable_variables, still)
        step = tf.function(
            lambda: train_step(model, OBJECTIVE, optimizer, batch, seed)
        )
        return [float(step()["loss"]) for _ in range(2)]

    found = losses(1) + losses(2)
    assert len({round(loss, 4) for loss in found}) == 4


def test_every_layer_draws_masks_of_its_own(batch):
    sites = []

    def bits(site, shape):
        sites.append(site)
        return random_bits(tf.constant([1, 2]), site, shape)

    with dropout.drawing(bits):
        make_model()(batch, training=True)
    # Embeddings, and in each layer the probabilities and both outputs.
    assert len(sites) == len(set(sites)) == 1 + 2 * 3


def test_the_scale_of_the_loss_moves_no_weight(batch):
    """A power of two is lost nowhere in float32."""
    config = dataclasses.replace(
        CONFIG, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0
    )
    found = []
    for scale in (1.0, 2.0**10):
        model = make_model(config)
        optimizer = AdamWeightDecay(model.trainable_variables, SCHEDULE)
        computation = Computation(loss_scale=precision.LossScale(scale))
        scalars = train_step(model, OBJECTIVE, optimizer, batch, 0, computation)
        found.append((scalars["gradient_norm"].numpy(), optimizer.weights))
    (norm, weights), (other_norm, others) = found
    np.testing.assert_allclose(other_norm, norm, rtol=1e-6)
    for one, other in zip(weights, others, strict=True):
        np.testing.assert_allclose(
            other.numpy(), one.numpy(), rtol=1e-5, atol=1e-7
        )


@pytest.mark.parametrize("kind", ["bfloat16", "float16"])
def test_16_bits_are_close_to_32(batch, kind):
    config = dataclasses.replace(
        CONFIG, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0
    )
    _, expected = gradients(make_model(config), batch)
    model = make_model(config, kind)
    assert {w.dtype for w in model.trainable_variables} == {"float32"}
    assert model.bert.encoder.layers[0].compute_dtype == kind
    losses, found = gradients(model, batch, scale=tf.constant(256.0))
    assert losses["loss"].dtype == tf.float32
    for path in expected:
        assert found[path].dtype == np.float32
        found[path] /= 256
    both = [
        np.concatenate([g[p].ravel() for p in expected])
        for g in (expected, found)
    ]
    error = np.linalg.norm(both[0] - both[1]) / np.linalg.norm(both[0])
    # Not 0, which would be 32 bits.
    assert 1e-4 < error < {"bfloat16": 0.05, "float16": 0.005}[kind]


def test_the_policy_ends_with_its_block():
    with precision.policy("float16"):
        pass
    assert make_model().bert.compute_dtype == "float32"


def test_an_overflow_moves_nothing_and_halves_the_scale(batch):
    model = make_model(kind="float16")
    optimizer = AdamWeightDecay(model.trainable_variables, SCHEDULE)
    computation = Computation(loss_scale=precision.LossScale(2.0**40))
    step = tf.function(
        lambda: train_step(model, OBJECTIVE, optimizer, batch, 0, computation)
    )
    state = {w.path: w for w in optimizer.weights} | optimizer.slots
    before = {name: value.numpy() for name, value in state.items()}
    scalars = step()
    assert not np.isfinite(scalars["gradient_norm"])
    assert np.isfinite(scalars["loss"])
    assert scalars["loss_scale"] == 2.0**40
    assert computation.loss_scale.value.numpy() == 2.0**39
    for name, value in state.items():
        np.testing.assert_array_equal(value.numpy(), before[name])
    norms = [float(step()["gradient_norm"]) for _ in range(40)]
    assert np.isfinite(norms).sum() > 5
    assert optimizer.step.numpy() == 41
    assert all(np.isfinite(value.numpy()).all() for value in state.values())
    name = "bert/pooler/dense/kernel"
    assert np.abs(state[name].numpy() - before[name]).max() > 1e-3


def test_the_scale_doubles_after_two_thousand_steps():
    scale = precision.LossScale(4.0)
    scale.finite_steps.assign(1998)
    seen = []
    for is_finite in (True, True, True, False, True):
        scale.adapt(tf.constant(is_finite))
        seen.append((scale.value.numpy(), scale.finite_steps.numpy()))
    assert seen == [(4, 1999), (8, 0), (8, 1), (4, 0), (4, 1)]


def test_the_scale_is_at_least_one():
    scale = precision.LossScale(1.0)
    scale.adapt(tf.constant(False))
    assert scale.value.numpy() == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "optimizer_class"), [("float16", AdamWeightDecay), ("none", Lamb)]
)
def test_the_whole_step_is_one_program_of_xla(batch, kind, optimizer_class):
    """Accumulation, dropout, recomputing, clipping, skipping, update."""
    model = make_model(kind=kind)
    model.bert.encoder.recomputed = recomputed
    optimizer = optimizer_class(model.trainable_variables, SCHEDULE)
    scale = precision.LossScale() if kind == "float16" else None
    computation = Computation(num_micro_batches=2, loss_scale=scale)
    step = tf.function(
        lambda batch: train_step(
            model, OBJECTIVE, optimizer, batch, 0, computation
        ),
        jit_compile=True,
    )
    before = model.bert.pooler.dense.kernel.numpy()
    losses = [float(step(batch)["loss"]) for _ in range(2)]
    assert np.isfinite(losses).all()
    assert optimizer.step.numpy() == 2
    assert np.abs(model.bert.pooler.dense.kernel.numpy() - before).max() > 1e-3
    # No shape is left open.
    text = step.experimental_get_compiler_ir(batch)(stage="hlo")
    assert "<=" not in text.partition("\n")[0]


@pytest.mark.parametrize("remat", [True, False])
def test_a_flag_makes_layers_recomputed(remat):
    model = make_model()
    computing.set_recomputing(model, types.SimpleNamespace(remat=remat))
    assert model.bert.encoder.recomputed is (recomputed if remat else None)


def test_no_number_ends_training_once_the_scale_cannot_fall():
    plan = types.SimpleNamespace(output_dir="out")
    scalars = {"loss": math.nan, "gradient_norm": 1.0}
    loop._require_finite(1, {**scalars, "loss_scale": 2.0}, plan)
    for lowest in ({}, {"loss_scale": 1.0}):
        with pytest.raises(loop.DivergedError, match="The loss must be finite"):
            loop._require_finite(1, {**scalars, **lowest}, plan)


def test_without_any_masked_piece_a_mean_is_zero():
    assert means._weight_of("masked_lm_loss", {"masked_lm_loss": 0.0}) == 1.0
    assert means._weight_of("a_accuracy", {"a_loss": 4.0}) == 4.0
