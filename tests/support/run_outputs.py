"""Reads, compares and rewinds the output directories of runs."""

import json
import re

import tensorflow as tf

from official_bert.runs import checkpoints
from support import recorded


def read_json(path):
    return json.loads(path.read_text())


def read_json_lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def weights(folder, step=None):
    """Returns {name: array} of a checkpoint, the latest by default."""
    prefix = f"{folder}/model.ckpt-{step}"
    if step is None:
        prefix = checkpoints.latest(str(folder))
    reader = tf.train.load_checkpoint(prefix)
    names = reader.get_variable_to_shape_map()
    return {name: reader.get_tensor(name) for name in names}


def assert_same_weights(one, other):
    """Compares the latest checkpoints of two run directories bit by bit."""
    expected, found = weights(one), weights(other)
    assert set(expected) == set(found)
    recorded.assert_all_close(found, expected, rtol=0, atol=0)


def assert_close_weights(output, expected, step=None, atol=2e-5):
    """Compares checkpoints of two run directories, the latest by default."""
    found, expected = weights(output, step), weights(expected, step)
    assert set(found) == set(expected)
    for name in list(expected):
        # The softmax does not depend on the bias of keys, so its gradient is
        # only rounding error, which Adam scales up.
        if name.endswith("/key/bias"):
            del expected[name]
    recorded.assert_all_close(found, expected, rtol=0, atol=atol)


def rewind(folder, step):
    """Removes later checkpoints, as if the run had stopped after a step."""
    for path in folder.glob("model.ckpt-*"):
        if int(re.match(r"model\.ckpt-(\d+)", path.name)[1]) > step:
            path.unlink()
    (folder / "checkpoint").unlink()
