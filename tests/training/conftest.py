"""Flags of runs on several hosts."""

import pytest
from support import pretraining_runs


@pytest.fixture
def flags(tmp_path):
    """The flags of a pre-training run with a long evaluation."""
    pretraining_runs.write(tmp_path)
    steps = dict.fromkeys(("num_train_steps", "save_checkpoints_steps"), 20)
    modes = {"do_train": True, "do_eval": True, "max_eval_steps": 100_000}
    return pretraining_runs.flags(tmp_path, **steps, **modes)
