"""`benchmarks/tpu_compile.py`: its search, and the TPU compiler itself."""

import math

import pytest
from support.processes import python_with

from benchmarks import tpu_compile
from benchmarks.tpu_steps import Case, Step
from official_bert.sources import weight_names

TINY = Case("pretraining", 128, "tiny", "float32", False)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["squad", "classifier"])
def test_steps_of_finetuning_become_hlo(kind):
    assert Step(TINY._replace(kind=kind)).lower(2)


@pytest.fixture(scope="module")
def compiler():
    """A Python with `requirements-tpu-compile.txt`."""
    return python_with("jax, libtpu", "TPU_COMPILE_PYTHON")


@pytest.mark.nightly
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_step_compiles_for_a_tpu_with_the_expected_costs(compiler, precision):
    case = TINY._replace(precision=precision)
    size = 8
    found = tpu_compile.compile_hlo(compiler, Step(case).lower(size))
    config = case.config
    hidden, layers = config.hidden_size, config.num_hidden_layers
    # Weights and both moments, updated in place.
    heads = ("bert/", "cls/predictions", "cls/seq_relationship")
    shapes = weight_names.shapes(config)
    sizes = [math.prod(shapes[n]) for n in shapes if n.startswith(heads)]
    state = 3 * 4 * sum(sizes)
    assert state <= found["aliased"] <= found["arguments"] <= 1.01 * state
    # Matrix products: forward, and twice as many backward. The last layer has
    # queries only for [CLS] and masked tokens, but keys and values for all.
    attending = (layers - 1) * case.length + 1 + 20
    encoder = attending * (10 * hidden**2 + 2 * case.length * hidden)
    encoder += layers * case.length * 2 * hidden**2
    words = hidden * (hidden + config.vocab_size)
    products = size * (encoder + 20 * words + hidden**2)
    assert found["operations"] == pytest.approx(6 * products, rel=0.1)
    # Weights, moments and gradients are read and written.
    assert found["traffic"] > 2 * state
    assert tpu_compile.memory(found) < 16e9
    remat = Step(case._replace(remat=True)).lower(size)
    remat = tpu_compile.compile_hlo(compiler, remat)
    assert remat["operations"] > 1.05 * found["operations"]


@pytest.mark.nightly
def test_batch_too_large_for_a_tpu_is_an_error(compiler):
    hlo = Step(TINY).lower(4096)
    assert "error" in tpu_compile.compile_hlo(compiler, hlo)
