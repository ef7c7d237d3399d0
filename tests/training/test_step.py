import dataclasses
import functools
import types

import keras
import numpy as np
import pytest
import tensorflow as tf
from support import pretraining_runs, recorded

from official_bert.modeling.finetuning_models import build_model
from official_bert.modeling.layers import StepContext
from official_bert.modeling.pretraining_model import PretrainingModel
from official_bert.optimization.adam import AdamWeightDecay
from official_bert.optimization.lamb import Lamb
from official_bert.optimization.schedules import LinearWarmupDecay
from official_bert.sources.heads import Head
from official_bert.training import distribution, loop, precision
from official_bert.training.objectives import (
    EmbeddingObjective,
    PretrainingObjective,
)
from official_bert.training.step import TrainingStep, random_bits

CONFIG = dataclasses.replace(
    recorded.SMALL_CONFIG,
    initializer_range=0.3,
    hidden_dropout_prob=0.3,
    attention_probs_dropout_prob=0.3,
)
TWO_LAYERS = dataclasses.replace(CONFIG, num_hidden_layers=2)
WITHOUT_DROPOUT = recorded.without_dropout(CONFIG)
SCHEDULE = LinearWarmupDecay(0.01, num_train_steps=100, num_warmup_steps=0)
OBJECTIVE = PretrainingObjective()


def make_model(config=CONFIG, kind="none", matmul="float32"):
    keras.utils.set_random_seed(0)
    with precision.policy(kind, matmul):
        return PretrainingModel(config)


@pytest.fixture(scope="module")
def batch():
    examples = pretraining_runs.make_examples(8)
    return {
        name: tf.constant([example[name] for example in examples])
        for name in pretraining_runs.SCHEMA
    }


@pytest.fixture(scope="module")
def exact(batch):
    """Gradients in float32, without dropout."""
    return gradients(make_model(WITHOUT_DROPOUT), batch)[1]


def half_of(batch):
    return {name: value[:4] for name, value in batch.items()}


def gradients(model, batch, scale=None, **settings):
    """Returns losses and {path: gradient}, with the masks of one seed."""
    optimizer = AdamWeightDecay(model.trainable_variables, SCHEDULE)
    step = TrainingStep(model, OBJECTIVE, optimizer, 0, **settings)
    losses, found = tf.function(step.gradients, autograph=False)(
        batch, OBJECTIVE.loss_weights(batch), tf.constant([3, 4]), scale
    )
    return losses, {
        w.path: g.numpy() for w, g in zip(optimizer.weights, found, strict=True)
    }


def make_step(model, kind=AdamWeightDecay, jit_compile=None, **settings):
    """Returns an optimizer, and a training step as a function of batches."""
    optimizer = kind(model.trainable_variables, SCHEDULE)
    step = TrainingStep(model, OBJECTIVE, optimizer, 0, **settings)
    return optimizer, tf.function(
        step.run, autograph=False, jit_compile=jit_compile
    )


@pytest.mark.slow
def test_recomputed_layers_run_twice_with_the_same_dropout_masks(batch):
    model = make_model(TWO_LAYERS)
    calls = []
    for layer in model.bert.encoder.layers:
        attend = layer.attention.call
        layer.attention.call = lambda *args, attend=attend, **kwargs: (
            calls.append(1) or attend(*args, **kwargs)
        )
    losses, expected = gradients(model, batch)
    assert len(calls) == 2
    recomputed_losses, found = gradients(model, batch, recomputes_layers=True)
    assert len(calls) == 2 + 4
    assert float(recomputed_losses["loss"]) == float(losses["loss"])
    recorded.assert_all_close(found, expected, rtol=1e-5, atol=1e-7)


def test_weight_that_no_loss_depends_on_is_an_error(batch):
    model = make_model()
    unused = keras.Variable([1.0], name="unused")
    optimizer = AdamWeightDecay([unused], SCHEDULE)
    step = TrainingStep(model, OBJECTIVE, optimizer, 0)
    weights = OBJECTIVE.loss_weights(batch)
    with pytest.raises(ValueError, match="does not depend on unused"):
        step.gradients(batch, weights, tf.constant([3, 4]))


@pytest.mark.slow
def test_micro_batches_have_different_dropout_masks(batch):
    """With equal masks, two equal halves would give the gradient of one."""
    half = half_of(batch)
    twice = {name: tf.concat([value, value], 0) for name, value in half.items()}
    model = make_model()
    _, found = gradients(model, twice, num_micro_batches=2)
    _, of_half = gradients(model, half)
    name = "bert/encoder/layer_0/output/dense/kernel"
    assert np.abs(found[name] - of_half[name]).max() > 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["ranking", "symmetric_ranking"])
def test_micro_batches_of_texts_have_the_gradients_of_the_whole_batch(loss):
    """Every match is a negative of all texts; each part has its own masks."""
    head = Head("encoder", 0, loss, temperature=0.3)
    objective = EmbeddingObjective(head)
    keras.utils.set_random_seed(0)
    model = build_model(head, CONFIG)
    ids = tf.random.stateless_uniform([8, 2, 5], [1, 2], 0, 11, tf.int32)
    batch = {
        "input_ids": ids,
        "input_mask": tf.ones_like(ids),
        "segment_ids": tf.zeros_like(ids),
        "text_ids": tf.reshape(tf.range(1, 17), [8, 2]),
        "label_ids": tf.zeros([8, 1]),
    }
    weights, seed = model.learning_variables, tf.constant([3, 4])
    with tf.GradientTape() as tape:
        parts = []
        for number in range(4):
            part = {k: v[2 * number :][:2] for k, v in batch.items()}
            of_part = tf.random.experimental.stateless_fold_in(seed, number)
            bits = functools.partial(random_bits, of_part)
            parts.append(model(part, training=StepContext(bits)))
        losses = objective.losses(tf.concat(parts, 0), batch)
        loss = tf.reduce_mean(losses)
    expected = tape.gradient(loss, weights)
    optimizer = AdamWeightDecay(weights, SCHEDULE)
    step = TrainingStep(model, objective, optimizer, 0, num_micro_batches=4)

    @functools.partial(tf.function, autograph=False)
    def compute():
        vectors = step.vectors(batch, seed)
        sums, of_vectors = objective.vector_gradients(vectors, batch)
        given = {**batch, "vector_gradients": of_vectors}
        total = objective.loss_weights(batch)
        return sums["loss"], step.gradients(given, total, seed)[1]

    total, found = compute()
    np.testing.assert_allclose(total, 8 * loss, rtol=1e-6)
    for weight, one, other in zip(weights, found, expected, strict=True):
        other = tf.convert_to_tensor(other)
        assert np.abs(one - other).max() <= 1e-5, weight.path


@pytest.mark.slow
def test_replicas_have_different_dropout_masks(batch):
    """With equal masks, two equal halves would have the loss of one."""

    def loss(name):
        strategy = distribution.get_strategy(name)
        with strategy.scope():
            _, step = make_step(make_model())
        run = tf.function(strategy.run, autograph=False)
        scalars = run(step, (half_of(batch),))
        return float(distribution.first_replica(strategy, scalars)["loss"])

    assert abs(loss("none") - loss("mirrored")) > 1e-3


@pytest.mark.slow
def test_steps_and_seeds_have_different_dropout_masks(batch):
    model, losses = make_model(), set()
    still = LinearWarmupDecay(0.0, num_train_steps=9, num_warmup_steps=0)
    optimizer = AdamWeightDecay(model.trainable_variables, still)
    for seed, steps in ((1, (0, 1)), (2, (0,))):
        training_step = TrainingStep(model, OBJECTIVE, optimizer, seed)
        run = tf.function(training_step.run, autograph=False)
        for step in steps:
            optimizer.step.assign(step)
            losses.add(round(float(run(batch)["loss"]), 4))
    assert len(losses) == 3


def test_layers_have_different_dropout_masks(batch):
    sites = []

    def bits(site, x):
        sites.append(site)
        return random_bits(tf.constant([1, 2]), site, x)

    make_model(TWO_LAYERS)(batch, training=StepContext(bits))
    # The embeddings, and in each layer the probabilities and two outputs.
    assert len(sites) == len(set(sites)) == 1 + 2 * 3


@pytest.mark.slow
def test_loss_scale_does_not_change_the_update(batch):
    found = []
    for scale in (1.0, 2.0**10):  # Powers of two are exact in float32.
        model, scale = make_model(WITHOUT_DROPOUT), precision.LossScale(scale)
        optimizer, step = make_step(model, loss_scale=scale)
        found.append([step(batch)["gradient_norm"], *optimizer.weights])
    (norm, *_), (other_norm, *_) = found
    np.testing.assert_allclose(other_norm, norm, rtol=1e-6)
    for value, other_value in zip(*found, strict=True):
        np.testing.assert_allclose(other_value, value, rtol=1e-5, atol=1e-7)


@pytest.mark.slow
@pytest.mark.bfloat16
@pytest.mark.parametrize(
    ("kind", "largest_error"), [("bfloat16", 0.05), ("float16", 0.005)]
)
def test_16_bit_gradients_are_close_to_32_bit_ones(
    batch, exact, kind, largest_error
):
    model = make_model(WITHOUT_DROPOUT, kind)
    assert {w.dtype for w in model.trainable_variables} == {"float32"}
    assert model.bert.encoder.layers[0].compute_dtype == kind
    with precision.policy(kind):
        pass  # The policy ends with its block.
    assert make_model().bert.compute_dtype == "float32"
    losses, found = gradients(model, batch, scale=tf.constant(256.0))
    assert losses["loss"].dtype == tf.float32
    assert {g.dtype for g in found.values()} == {np.dtype(np.float32)}
    expected, rounded = (
        np.concatenate([g[p].ravel() / scale for p in exact])
        for g, scale in ((exact, 1), (found, 256))
    )
    error = np.linalg.norm(expected - rounded) / np.linalg.norm(expected)
    # With an error of 0, the gradients would have 32 bits.
    assert 1e-4 < error < largest_error


@pytest.mark.slow
@pytest.mark.bfloat16
@pytest.mark.parametrize(
    "settings", [{}, {"num_micro_batches": 4, "recomputes_layers": True}]
)
def test_gradients_of_bfloat16_products_point_where_those_of_float32_do(
    batch, exact, settings
):
    model = make_model(WITHOUT_DROPOUT, matmul="bfloat16")
    _, found = gradients(model, batch, **settings)
    for path, expected in exact.items():
        if "key/bias" in path:  # Zero; see test_equal_weights.py.
            continue
        gradient = found[path]
        norms = np.linalg.norm(gradient) * np.linalg.norm(expected)
        assert np.vdot(gradient, expected) >= 0.999 * norms, path
        assert gradient.dtype == np.float32
        assert np.abs(gradient - expected).max() > 0


@pytest.mark.slow
@pytest.mark.bfloat16
def test_all_values_except_products_are_float32(batch):
    exact, output = (
        make_model(WITHOUT_DROPOUT, matmul=kind).bert(
            batch["input_ids"], return_attention=True
        )
        for kind in ("float32", "bfloat16")
    )
    np.testing.assert_array_equal(
        output.embedding_output, exact.embedding_output
    )
    difference = output.sequence_output - exact.sequence_output
    assert 0 < np.abs(difference).max() < 0.1
    sums = np.sum(output.attention_probs[0], axis=-1)
    np.testing.assert_allclose(sums, 1.0, atol=1e-6)
    model = make_model(matmul="bfloat16")
    optimizer, step = make_step(model)
    step(batch)
    tensors = [*output[:2], *model(batch), *model.weights]
    tensors += optimizer.slots.values()
    dtypes = [keras.backend.standardize_dtype(t.dtype) for t in tensors]
    assert {*dtypes} == {"float32"}


@pytest.mark.parametrize(
    ("cpuinfo", "warns"),
    [
        ("flags\t\t: fpu avx512f avx512_vnni\n", True),
        ("flags\t\t: fpu avx512f avx512_bf16\n", False),
        ("flags\t\t: fpu amx_bf16 avx512f\n", False),
        ("Features\t: fp asimd bf16\n", False),  # ARM
        (None, False),  # Not Linux.
    ],
)
def test_processor_without_bfloat16_gives_a_warning(
    tmp_path, monkeypatch, caplog, cpuinfo, warns
):
    path = tmp_path / "cpuinfo"
    if cpuinfo:
        path.write_text(cpuinfo)
    monkeypatch.setattr(precision, "_CPU_INFO", str(path))
    with precision.policy("none", "bfloat16"):
        pass
    assert ("has no bfloat16 instructions" in caplog.text) == warns


@pytest.mark.slow
def test_overflow_skips_the_update_and_halves_the_loss_scale(batch):
    model, scale = make_model(kind="float16"), precision.LossScale(2.0**40)
    optimizer, step = make_step(model, loss_scale=scale)
    state = {w.path: w for w in optimizer.weights} | optimizer.slots
    before = {name: value.numpy() for name, value in state.items()}
    scalars = step(batch)
    assert not np.isfinite(scalars["gradient_norm"])
    assert np.isfinite(scalars["loss"])
    assert (scalars["loss_scale"], scale.value.numpy()) == (2.0**40, 2.0**39)
    recorded.assert_all_close(state, before, rtol=0)
    norms = [float(step(batch)["gradient_norm"]) for _ in range(40)]
    assert np.isfinite(norms).sum() > 5
    assert optimizer.step.numpy() == 41
    assert all(np.isfinite(value.numpy()).all() for value in state.values())
    name = "bert/pooler/dense/kernel"
    assert np.abs(state[name].numpy() - before[name]).max() > 1e-3


@pytest.mark.parametrize(
    ("value", "steps", "is_finite", "expected"),
    [
        (4.0, 1998, True, (4, 1999)),
        (4.0, 1999, True, (8, 0)),  # Doubles after 2000 finite steps.
        (8.0, 1, False, (4, 0)),
        (1.0, 0, False, (1, 0)),
    ],
)
def test_loss_scale_doubles_and_halves(value, steps, is_finite, expected):
    scale = precision.LossScale(value)
    scale.finite_steps.assign(steps)
    scale.update(tf.constant(is_finite))
    found = (scale.value.numpy(), scale.finite_steps.numpy())
    assert found == expected


@pytest.mark.slow
def test_step_compiles_with_xla_and_has_static_shapes(batch):
    """With accumulation, dropout, recomputation, clipping and loss scale."""
    model = make_model(kind="float16")
    # LAMB has all operations of AdamWeightDecay, and more.
    optimizer, step = make_step(
        model,
        functools.partial(Lamb, clip_norm=1.0),
        jit_compile=True,
        num_micro_batches=2,
        loss_scale=precision.LossScale(),
        recomputes_layers=True,
    )
    before = model.bert.pooler.kernel.numpy()
    losses = [float(step(batch)["loss"]) for _ in range(2)]
    assert np.isfinite(losses).all()
    assert optimizer.step.numpy() == 2
    assert np.abs(model.bert.pooler.kernel.numpy() - before).max() > 1e-3
    # `<=` marks a dynamic dimension.
    text = step.experimental_get_compiler_ir(batch)(stage="hlo")
    assert "<=" not in text


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

    def run(batch):
        traced.append(batch.shape[1])
        return {"length": tf.reduce_max(batch)}

    step = types.SimpleNamespace(run=run)
    monkeypatch.setattr(loop, "TrainingStep", lambda *_, **settings: step)
    options = types.SimpleNamespace(
        jit_compile=jit_compile,
        resolved_strategy=name,
        steps_per_call=2,
        gradient_accumulation_steps=1,
        remat=False,
    )
    trainer = types.SimpleNamespace(
        **dict.fromkeys(("model", "objective", "optimizer", "loss_scale")),
        removes_padding=False,
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
