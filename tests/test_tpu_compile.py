"""What `benchmarks/tpu_compile.py` says, against counting by hand."""

import itertools
import os
import subprocess
import sys

import pytest

from benchmarks import tpu_compile
from benchmarks.tpu_steps import Case, Step

TINY = Case("pretraining", 128, "tiny", "float32", False)


@pytest.mark.parametrize("guess", [1, 40, 4096])
def test_the_largest_batch_is_found_wherever_one_begins(guess):
    sizes = list(itertools.takewhile(lambda size: size <= 500, _sizes()))
    for limit in [0, *sizes, 501]:
        tried = []

        def needs(size, limit=limit, tried=tried):
            tried.append(size)
            return size <= limit, (size + 3) / (limit + 3.5)

        wanted = max((size for size in sizes if size <= limit), default=0)
        assert tpu_compile.largest(needs, guess) == wanted
        assert len(tried) == len(set(tried)) <= 7


def _sizes():
    return iter([1, 2, 3, *(d << e for e in range(8) for d in range(4, 8))])


def test_results_are_kept_and_read_again(tmp_path):
    path = str(tmp_path / "results.json")
    for size, compiled in [(8, {"code": 1}), (64, {"error": "Ran out"})]:
        tpu_compile.Results(path).add(TINY, size, compiled)
    again = tpu_compile.Results(path)
    assert again.largest(TINY) == (8, {"code": 1})
    assert [again.is_fit(TINY, size) for size in (8, 64, 16)] == [
        True,
        False,
        None,
    ]


@pytest.fixture(scope="module")
def compiler():
    """A Python that has the TPU's compiler."""
    python = os.environ.get("TPU_COMPILE_PYTHON", sys.executable)
    command = [python, "-c", "import jax, libtpu"]
    if subprocess.run(command, capture_output=True).returncode:
        pytest.skip(
            "needs requirements-tpu-compile.txt, installed here or in a Python "
            "that the environment variable TPU_COMPILE_PYTHON names"
        )
    return python


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_a_tpu_takes_the_step(compiler, precision):
    case = TINY._replace(precision=precision)
    size = 8
    found = tpu_compile.compile_hlo(compiler, Step(case).lower(size))
    config = case.config
    hidden, layers = config.hidden_size, config.num_hidden_layers
    # Weights and both moments, all of them updated in place.
    state = 3 * 4 * config.num_parameters(with_heads=True)
    assert state <= found["aliased"] <= found["arguments"] <= 1.01 * state
    # Matrix products: forward, and twice as many backward. In the last layer
    # only [CLS] and the masked pieces attend; keys and values are of all.
    attending = (layers - 1) * case.length + 1 + 20
    encoder = attending * (10 * hidden**2 + 2 * case.length * hidden)
    encoder += layers * case.length * 2 * hidden**2
    words = hidden * (hidden + config.vocab_size)
    products = size * (encoder + 20 * words + hidden**2)
    assert found["operations"] == pytest.approx(6 * products, rel=0.1)
    # Weights and moments are read and written, gradients too.
    assert found["traffic"] > 2 * state
    assert tpu_compile.memory(found) < 16e9


@pytest.mark.slow
def test_a_tpu_refuses_what_is_too_large(compiler):
    step = Step(TINY)
    assert "error" in tpu_compile.compile_hlo(compiler, step.lower(4096))


@pytest.mark.slow
def test_remat_computes_again(compiler):
    plain, remat = (
        tpu_compile.compile_hlo(
            compiler, Step(TINY._replace(remat=remat)).lower(8)
        )
        for remat in (False, True)
    )
    assert remat["operations"] > 1.05 * plain["operations"]
