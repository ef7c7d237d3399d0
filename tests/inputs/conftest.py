"""TensorFlow's global seed, which also determines the order of datasets."""

import pytest

from official_bert.training import checkpointing


@pytest.fixture(autouse=True)
def seed():
    """Other tests may have set 0, with which datasets cannot be shuffled."""
    checkpointing.set_seed(1)
