"""Replicas, micro-batches, hosts and XLA give the weights of one device."""

import json

import numpy as np
import pytest
import tensorflow as tf
from support import hosts, record_files

import run_pretraining
from official_bert.errors import InputError
from official_bert.options import RunPretraining

CONFIG = {
    "vocab_size": 50,
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "max_position_embeddings": 16,
    "type_vocab_size": 2,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
    # Gradients that must be clipped.
    "initializer_range": 0.3,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A directory with a config, and records with 1 to 4 masked tokens."""
    folder = tmp_path_factory.mktemp("data")
    (folder / "bert_config.json").write_text(json.dumps(CONFIG))
    random = np.random.RandomState(0)
    examples = []
    for _ in range(200):
        length, masked = random.randint(6, 13), random.randint(1, 5)
        examples.append(
            {
                "input_ids": random.randint(0, 50, 12).tolist(),
                "input_mask": [1] * length + [0] * (12 - length),
                "segment_ids": [0] * 5 + [1] * 7,
                "masked_lm_positions": [1, 2, 4, 5],
                "masked_lm_ids": random.randint(0, 50, 4).tolist(),
                "masked_lm_weights": [1.0] * masked + [0.0] * (4 - masked),
                "next_sentence_labels": [random.randint(2)],
            }
        )
    record_files.write(folder / "train.tfrecord", examples)
    return folder


def options(folder, output, **changes):
    return {
        "bert_config_file": str(folder / "bert_config.json"),
        "input_file": str(folder / "train.tfrecord"),
        "output_dir": str(output),
        "do_train": True,
        "max_seq_length": 12,
        "max_predictions_per_seq": 4,
        "train_batch_size": 32,
        "num_train_steps": 20,
        "num_warmup_steps": 5,
        "learning_rate": 3e-3,
        "save_checkpoints_steps": 7,
        **changes,
    }


def run(folder, output, **changes):
    run_pretraining.main(RunPretraining(**options(folder, output, **changes)))
    return weights(output)


def weights(output):
    reader = tf.train.load_checkpoint(str(output / "model.ckpt-20"))
    return {
        name: reader.get_tensor(name)
        for name in reader.get_variable_to_shape_map()
    }


def scalars(output, name):
    [events] = output.glob("events.out.tfevents*")
    return {
        event.step: tf.make_ndarray(value.tensor).item()
        for event in tf.compat.v1.train.summary_iterator(str(events))
        for value in event.summary.value
        if value.tag == name
    }


@pytest.fixture(scope="module")
def whole(folder, tmp_path_factory):
    """The state and the losses of 20 steps on one device."""
    output = tmp_path_factory.mktemp("whole")
    state = run(folder, output)
    assert max(scalars(output, "gradient_norm").values()) > 1.5
    return state, scalars(output, "loss")


def assert_close(state, whole):
    assert set(state) == set(whole)
    for name, value in whole.items():
        np.testing.assert_allclose(
            state[name], value, rtol=0, atol=2e-5, err_msg=name
        )


@pytest.mark.parametrize(
    "changes",
    [
        {"distribution_strategy": "mirrored"},
        {"gradient_accumulation_steps": 4},
        pytest.param(
            {
                "distribution_strategy": "mirrored",
                "gradient_accumulation_steps": 2,
            },
            marks=pytest.mark.slow,
        ),
        {"remat": True},
        pytest.param({"jit_compile": True}, marks=pytest.mark.slow),
        pytest.param(
            {
                "jit_compile": True,
                "distribution_strategy": "mirrored",
                "gradient_accumulation_steps": 2,
                "iterations_per_loop": 5,
                "remat": True,
            },
            marks=pytest.mark.slow,
        ),
    ],
    ids=lambda changes: ",".join(f"{k}={v}" for k, v in changes.items()),
)
def test_twenty_steps_end_with_the_same_weights(
    folder, whole, tmp_path, changes
):
    state = run(folder, tmp_path, **changes)
    assert_close(state, whole[0])
    for step, loss in scalars(tmp_path, "loss").items():
        assert loss == pytest.approx(whole[1][step], rel=1e-5)


@pytest.mark.parametrize("steps", [3, 10])
def test_iterations_per_loop_changes_no_bit(folder, whole, tmp_path, steps):
    """A loop also ends at each checkpoint, every seventh step."""
    state = run(folder, tmp_path, iterations_per_loop=steps)
    for name, value in whole[0].items():
        np.testing.assert_array_equal(state[name], value, err_msg=name)
    assert scalars(tmp_path, "loss") == whole[1]
    names = {path.name for path in tmp_path.glob("*.index")}
    assert names == {f"model.ckpt-{step}.index" for step in (0, 7, 14, 20)}


@pytest.mark.slow
def test_run_resumes_in_another_precision_but_not_optimizer(folder, tmp_path):
    run(folder, tmp_path, num_train_steps=20)
    scale = {"loss_scale/value", "loss_scale/finite_steps"}
    assert not scale & set(weights(tmp_path))
    for end, kind in ((22, "float16"), (24, "bfloat16")):
        run(folder, tmp_path, num_train_steps=end, mixed_precision=kind)
        names = tf.train.load_checkpoint(
            str(tmp_path / f"model.ckpt-{end}")
        ).get_variable_to_shape_map()
        assert scale & set(names) == (scale if kind == "float16" else set())
    with pytest.raises(InputError, match=r"missing: bert/.*/lamb_m"):
        run(folder, tmp_path, num_train_steps=25, optimizer="lamb")


@pytest.mark.slow
def test_two_hosts_end_with_the_same_weights(folder, whole, tmp_path):
    flags = options(folder, tmp_path, do_eval=True, max_eval_steps=5)
    codes, errors = hosts.wait(
        hosts.start("run_pretraining.py", [flags, flags])
    )
    assert codes == [0, 0], errors
    assert_close(weights(tmp_path), whole[0])
    assert len(list(tmp_path.glob("events.out.tfevents*"))) == 1
