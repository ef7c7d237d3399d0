"""Replicas, micro-batches, hosts and XLA give the weights of one device."""

import re
import shutil
import signal

import numpy as np
import pytest
from support import hosts, pretraining_runs, recorded, review_runs, tiny
from support.pretraining_runs import event_values
from support.run_outputs import (
    assert_close_weights,
    assert_same_weights,
    read_json_lines,
    rewind,
    weights,
)

from official_bert.modeling.layers import Dropout
from official_bert.runs import checkpoints
from official_bert.tasks.classification import ClassificationTask

pytestmark = pytest.mark.slow

# A large initializer range, so that gradients must be clipped.
CONFIG = pretraining_runs.WITHOUT_DROPOUT | {"initializer_range": 0.5}
SETTINGS = {
    "do_train": True,
    "train_batch_size": 32,
    "num_train_steps": 20,
    "num_warmup_steps": 5,
    "learning_rate": 3e-3,
    "save_checkpoints_steps": 7,
}


def run(folder, output, **changes):
    return pretraining_runs.run(folder, output, **(SETTINGS | changes))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return pretraining_runs.write(tmp_path_factory.mktemp("data"), CONFIG)


@pytest.fixture(scope="module")
def one_device(folder):
    output = run(folder, "one_device")
    norms = [v for (_, n), v in event_values(output).items() if "norm" in n]
    assert max(norms) > 1.2
    return output


def losses(output):
    return [v for (_, tag), v in event_values(output).items() if tag == "loss"]


XLA = {"jit_compile": True}
PARTS = {"distribution_strategy": "mirrored", "gradient_accumulation_steps": 2}
FLAGS = {
    "replicas and micro-batches": PARTS,
    "XLA and micro-batches": XLA | {"gradient_accumulation_steps": 4},
    "all": XLA | PARTS | {"remat": True, "iterations_per_loop": 5},
}


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param(
            flags, id=name, marks=[pytest.mark.nightly] * (name == "all")
        )
        for name, flags in FLAGS.items()
    ],
)
def test_weights_are_those_of_one_device(folder, one_device, tmp_path, changes):
    output = run(folder, tmp_path, **changes)
    assert_close_weights(output, one_device)
    np.testing.assert_allclose(losses(output), losses(one_device), rtol=1e-5)


def test_iterations_per_loop_changes_no_weights(folder, one_device, tmp_path):
    flags = {"eval_file": str(folder / "train.tfrecord"), "eval_every": 4}
    output = run(folder, tmp_path, iterations_per_loop=5, **flags)
    assert_same_weights(output, one_device)
    assert losses(output) == losses(one_device)
    # The loop also ends at checkpoints and evaluations. Five checkpoints are
    # kept.
    names = {path.name for path in output.glob("*.index")}
    assert names == {f"model.ckpt-{n}.index" for n in (8, 12, 14, 16, 20)}
    history = read_json_lines(output / "eval_history.jsonl")
    assert [e["global_step"] for e in history] == [4, 8, 12, 16, 20]


@pytest.mark.usefixtures("without_learning")
def test_run_resumes_with_another_precision(folder, one_device, tmp_path):
    output = shutil.copytree(one_device, tmp_path / "out")
    scale = {"loss_scale/value", "loss_scale/finite_steps"}
    assert not scale & set(weights(output))
    for end, kind in ((22, "float16"), (24, "bfloat16")):
        run(folder, output, num_train_steps=end, mixed_precision=kind)
        expected = scale if kind == "float16" else set()
        assert scale & set(weights(output)) == expected


@pytest.mark.bfloat16
def test_run_with_bfloat16_products_is_near_float32_and_resumes_exactly(
    folder, one_device, tmp_path
):
    flags = {"gradient_accumulation_steps": 2, "remat": True}
    flags["matmul_precision"] = "bfloat16"
    output = run(folder, tmp_path / "out", **flags)
    assert losses(output) != losses(one_device)
    np.testing.assert_allclose(losses(output), losses(one_device), rtol=0.01)
    resumed = shutil.copytree(output, tmp_path / "resumed")
    rewind(resumed, 14)
    run(folder, resumed, **flags)
    assert_same_weights(resumed, output)
    names = {str(value.dtype) for value in weights(output).values()}
    assert names == {"float32", "int64"}  # int64 is `global_step`.


def test_two_hosts_have_the_weights_of_one_device_and_stop_together(
    folder, tmp_path, monkeypatch
):
    """A signal to one of them stops both after the same step."""
    save = checkpoints.save

    def save_and_stop(output_dir, step, *others):
        if step == 7:
            signal.raise_signal(signal.SIGTERM)
        return save(output_dir, step, *others)

    monkeypatch.setattr(checkpoints, "save", save_and_stop)
    steps = {"num_train_steps": 100_000, "keep_checkpoint_max": 10_000}
    one, two = tmp_path / "one", tmp_path / "two"
    with pytest.raises(SystemExit, match=r"^143$"):
        run(folder, one, **steps)
    flags = pretraining_runs.flags(folder, two, **SETTINGS | steps)
    with hosts.started("run_pretraining.py", [flags, flags]) as processes:
        hosts.read_until(processes[0], r"Saved .*model\.ckpt-7$")
        processes[1].terminate()
        errors = hosts.wait(processes, status=143)
    assert_close_weights(two, one, step=7)
    step = int(re.search(r"after step (\d+)", errors[1])[1])
    assert f"Stopped by another host after step {step}" in errors[0]
    assert (two / f"model.ckpt-{step}.index").exists()
    event_values(two)  # Fails unless a single host writes events.


@pytest.mark.parametrize(
    "variant", ["weights", pytest.param("teacher", marks=pytest.mark.nightly)]
)
def test_fine_tuning_on_two_replicas_ends_with_the_weights_of_one_device(
    tmp_path, monkeypatch, variant
):
    """Without dropout, whose masks differ."""
    monkeypatch.setattr(Dropout, "call", lambda self, x, **_: x)
    config = review_runs.CONFIG | {"attention_probs_dropout_prob": 0.0}
    review_runs.write(tmp_path, config)
    flags = {"do_train": True, "learning_rate": 1e-3}
    if variant == "teacher":  # With another vocabulary.
        task = ClassificationTask(labels=("1", "0"))
        flags["teacher"] = tiny.save_finetuned(tmp_path / "teacher", task)
        flags |= {"distill_alpha": 0.7, "distill_temperature": 3.0}
    if variant == "weights":
        lines = (tmp_path / "SST-2" / "train.tsv").read_text().splitlines()
        weights_of_rows = ["weight", *("0312"[i % 4] for i in range(160))]
        rows = zip(lines, weights_of_rows, strict=True)
        text = "".join(map("{0[0]}\t{0[1]}\n".format, rows))
        (tmp_path / "train.tsv").write_text(text)
        flags |= {"task_name": "tsv", "data_dir": str(tmp_path)}
        flags |= {"text_a_column": "sentence", "weight_column": "weight"}
        flags |= {"class_weights": "1=20", "label_smoothing": 0.1}
    one_device, two_replicas = (
        weights(review_runs.run(tmp_path, output, **flags, **changes))
        for output, changes in (("one", {}), ("two", PARTS))
    )
    recorded.assert_all_close(two_replicas, one_device, atol=1e-5)
