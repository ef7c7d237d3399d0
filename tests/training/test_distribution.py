"""Who gets which part of a batch, how often a step is traced, and no TPU."""

import os
import socket

import numpy as np
import pytest
import tensorflow as tf

from official_bert.errors import InputError
from official_bert.options.training import DeviceOptions
from official_bert.training import distribution
from official_bert.training.inner_loop import InnerLoop
from official_bert.training.plan import Plan


def plan(**changes):
    return Plan(
        **{
            "output_dir": "",
            "num_steps": 20,
            "batch_size": 4,
            "save_steps": 7,
            "keep": 1,
            "seed": 0,
            "first_step": 0,
            "first_example": 0,
            **changes,
        }
    )


def test_replicas_get_their_parts_in_order():
    strategy = distribution.get_strategy("mirrored")
    batches = tf.data.Dataset.range(12).batch(4, drop_remainder=True)
    dealt = distribution.deal_out(batches, strategy)
    found = [
        [
            part.numpy().tolist()
            for part in strategy.experimental_local_results(b)
        ]
        for b in dealt
    ]
    assert found == [[[0, 1], [2, 3]], [[4, 5], [6, 7]], [[8, 9], [10, 11]]]


@pytest.mark.parametrize(
    ("size", "parts", "message"),
    [
        (7, 1, "number of devices. Received: 7, with 2"),
        (6, 2, "devices times --gradient_accumulation_steps=2. Received: 6"),
    ],
)
def test_a_batch_is_shared_evenly(size, parts, message):
    strategy = distribution.get_strategy("mirrored")
    distribution.require_divisible(8, strategy, "train_batch_size", parts)
    with pytest.raises(InputError, match=message):
        distribution.require_divisible(
            size, strategy, "train_batch_size", parts
        )


@pytest.mark.parametrize(
    ("changes", "looks"),
    [
        ({"steps_per_call": 1}, [*range(1, 21)]),
        ({"steps_per_call": 5}, [5, 7, 12, 14, 19, 20]),
        ({"steps_per_call": 1000}, [7, 14, 20]),
        ({"steps_per_call": 1000, "eval_every": 4}, [4, 7, 8, 12, 14, 16, 20]),
    ],
)
def test_an_inner_loop_ends_at_borders(changes, looks):
    found, step = [], 0
    while step < 20:
        step += plan(**changes).steps_until_look(step)
        found.append(step)
    assert found == looks


@pytest.mark.parametrize("name", ["none", "mirrored"])
@pytest.mark.parametrize(
    ("is_static", "traced"),
    [(False, {None}), (True, {2, 3, 5})],
    ids=["free", "static"],
)
def test_how_often_a_step_is_traced(name, is_static, traced):
    """Once for all lengths, or once for each, which it then knows."""
    strategy = distribution.get_strategy(name)
    lengths = [2, 3, 2, 5, 3, 2]
    batches = tf.data.Dataset.from_generator(
        lambda: (np.full((4, n), n, np.int32) for n in lengths),
        output_signature=tf.TensorSpec([4, None], tf.int32),
    )
    shapes = []

    def step(batch):
        shapes.append(batch.shape[1])
        return {"length": tf.reduce_max(batch)}

    dealt = distribution.deal_out(batches, strategy)
    steps = InnerLoop(
        step,
        dealt.element_spec,
        plan(is_static=is_static, steps_per_call=2),
        strategy,
    )
    data = iter(dealt)
    found = [s["length"] for _ in range(3) for s in steps(data, 2)]
    assert found == lengths
    assert set(shapes) == traced
    if is_static:
        assert len(shapes) == 3 * strategy.num_replicas_in_sync


@pytest.mark.slow
def test_without_a_tpu():
    with pytest.raises(InputError, match="there must be a TPU on this machine"):
        distribution.choose(DeviceOptions(use_tpu=True))


def test_a_tpu_that_refuses():
    with socket.create_server(("localhost", 0)) as server:
        address = f"grpc://localhost:{server.getsockname()[1]}"
    with pytest.raises(InputError, match=f"TPU called '{address}'.* refused"):
        distribution.choose(DeviceOptions(use_tpu=True, tpu_name=address))


def test_one_host_agrees_with_itself():
    strategy = distribution.get_strategy("mirrored")
    distribution.require_agreement(strategy, 0, {})
    distribution.wait_for_all(strategy)
    assert distribution.asked_anywhere(strategy, "SIGTERM") == "SIGTERM"
    assert distribution.is_chief(strategy)
    assert distribution.own_folder(strategy, "out") == "out"


def test_a_workers_folder_goes_with_it(monkeypatch):
    at_exit = []
    monkeypatch.setattr(distribution, "is_chief", lambda _: False)
    monkeypatch.setattr("atexit.register", lambda *call: at_exit.append(call))
    folder = distribution.own_folder(tf.distribute.get_strategy(), "out")
    with open(os.path.join(folder, "train.tf_record"), "w"):
        pass
    for function, *arguments in at_exit:
        function(*arguments)
    assert not os.path.exists(folder)
