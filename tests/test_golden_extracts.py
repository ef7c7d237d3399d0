import json

import numpy as np
import pytest
from support import recorded

from tools.golden import make_extracts


def extract(golden, name):
    return getattr(make_extracts, name)(golden)


@pytest.mark.parametrize("name", ["bert_config", "tokenization"])
def test_committed_text_equals_the_recording(golden, name):
    committed = (recorded.EXTRACT / f"{name}.json").read_text("utf-8")
    assert json.loads(committed) == extract(golden, name)


@pytest.mark.parametrize("name", ["model", "finetuning"])
def test_committed_arrays_equal_the_recording(golden, name):
    committed = np.load(recorded.EXTRACT / f"{name}.npz")
    expected = extract(golden, name)
    assert set(committed) == set(expected)
    # The norms of gradients depend on the processor's order of summation.
    recorded.assert_all_close(committed, expected, rtol=1e-12)
