"""TF1 checkpoints in and out, and strictly."""

import json
import os
import resource

import numpy as np
import pytest
import tensorflow as tf

from official_bert.checkpoints import loading, numbered, tf1
from official_bert.config import BertConfig
from official_bert.errors import InputError
from official_bert.modeling.pretraining_model import PretrainingModel

ARRAYS = {
    "a/kernel": np.arange(6, dtype=np.float32).reshape(2, 3),
    "a/kernel/adam_m": np.ones((2, 3), np.float32),
    "global_step": np.array(7, np.int64),
}


def variables():
    return {"a/kernel": tf.Variable(np.zeros((2, 3), np.float32))}


@pytest.fixture
def prefix(tmp_path):
    prefix = str(tmp_path / "model.ckpt")
    tf1.write(prefix, ARRAYS)
    return prefix


def test_tensorflow_reads_what_we_write(prefix):
    reader = tf.train.load_checkpoint(prefix)
    shapes = reader.get_variable_to_shape_map()
    assert shapes == {n: list(a.shape) for n, a in ARRAYS.items()}
    for name, array in ARRAYS.items():
        read = reader.get_tensor(name)
        assert np.asarray(read).dtype == array.dtype
        np.testing.assert_array_equal(read, array)


def test_writing_leaves_two_files_and_no_other(prefix, tmp_path):
    assert sorted(os.listdir(tmp_path)) == [
        "model.ckpt.data-00000-of-00001",
        "model.ckpt.index",
    ]


def test_a_failed_write_leaves_the_old_one(prefix, tmp_path):
    with pytest.raises(ValueError, match="object"):
        tf1.write(prefix, {"a/kernel": object()})
    assert len(os.listdir(tmp_path)) == 2
    np.testing.assert_array_equal(
        tf.train.load_variable(prefix, "a/kernel"), ARRAYS["a/kernel"]
    )


@pytest.mark.parametrize("name", ["base", "relu"])
def test_loads_the_original_by_name(golden, name):
    folder = golden / "model" / name
    config = BertConfig.from_json_file(str(folder / "bert_config.json"))
    weights = {w.path: w for w in PretrainingModel(config).trainable_variables}
    prefix = str(folder / "bert_model.ckpt")
    assert loading.load(weights, prefix) == []
    for path, weight in weights.items():
        stored = tf.train.load_variable(prefix, path)
        np.testing.assert_array_equal(weight.numpy(), stored)


def test_has_the_names_of_the_original(golden):
    folder = golden / "model" / "base"
    listed = json.loads((folder / "variables.json").read_text())["variables"]
    config = BertConfig.from_json_file(str(folder / "bert_config.json"))
    weights = PretrainingModel(config).trainable_variables
    assert {w.path: list(w.shape) for w in weights} == dict(map(tuple, listed))


def test_loading_assigns(prefix):
    mine = variables()
    loading.load(mine, prefix, may_skip=loading.OPTIMIZER_STATE)
    np.testing.assert_array_equal(mine["a/kernel"], ARRAYS["a/kernel"])


def test_everything_that_does_not_fit_is_listed(prefix):
    mine = {
        "a/kernel": tf.Variable(tf.zeros([3, 2])),
        "b/kernel": tf.Variable(tf.zeros([3, 2])),
    }
    with pytest.raises(InputError) as caught:
        loading.load(mine, prefix)
    message = str(caught.value)
    assert "missing: b/kernel" in message
    assert "unused: global_step" in message
    assert "wrong shape: a/kernel is [2, 3] in the checkpoint" in message
    assert "Usual causes" in message
    assert not mine["a/kernel"].numpy().any()


def test_of_a_long_list_the_first_are_shown(prefix):
    mine = {f"w_{number:02}": tf.Variable(0.0) for number in range(50)}
    with pytest.raises(InputError) as caught:
        loading.load(mine, prefix, may_skip=".")
    message = str(caught.value)
    assert "Received:\n  missing: w_00\n" in message
    assert "  missing: w_39\n  ... and 10 more\nUsual" in message
    assert "w_40" not in message


def test_what_may_be_missing_keeps_its_value(prefix):
    mine = {**variables(), "cls/b": tf.Variable([5.0])}
    made_anew = loading.load(
        mine,
        prefix,
        may_initialize="^cls/",
        may_skip=loading.OPTIMIZER_STATE,
    )
    assert made_anew == ["cls/b"]
    assert mine["cls/b"].numpy() == [5.0]


def test_a_missing_checkpoint_is_named(tmp_path):
    with pytest.raises(InputError, match="nowhere"):
        loading.load(variables(), str(tmp_path / "nowhere"))


def test_a_checkpoint_cut_short_is_refused(prefix):
    data = prefix + ".data-00000-of-00001"
    with open(data, "rb+") as file:
        file.truncate(10)
    with pytest.raises(InputError, match="cut short"):
        loading.load(variables(), prefix, may_skip=loading.OPTIMIZER_STATE)


def test_a_foreign_index_is_refused(tmp_path):
    (tmp_path / "x.index").write_text("hello")
    with pytest.raises(InputError, match="must be a TF1 checkpoint"):
        loading.load(variables(), str(tmp_path / "x"))


def save(folder, step, keep=2):
    resume = numbered.Resume(seed=step, examples_seen=8 * step)
    return numbered.save(str(folder), step, ARRAYS, resume, keep)


def test_numbered_checkpoints(tmp_path):
    assert numbered.latest(str(tmp_path)) is None
    for step in (0, 5, 10):
        save(tmp_path, step)
    prefix = str(tmp_path / "model.ckpt-10")
    assert numbered.latest(str(tmp_path)) == prefix
    assert tf.train.latest_checkpoint(str(tmp_path)) == prefix
    assert numbered.read_resume(prefix) == (10, 80)
    assert not list(tmp_path.glob("model.ckpt-0*"))
    assert len(list(tmp_path.glob("model.ckpt-5*"))) == 3


def test_a_relative_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    os.makedirs("runs/a")
    for step in (1, 2, 3):
        prefix = save("runs/a", step)
    assert numbered.latest("runs/a") == prefix == "runs/a/model.ckpt-3"
    assert len(os.listdir("runs/a")) == 2 * 3 + 1


def test_a_remote_folder(tmp_path):
    folder = f"file://{tmp_path}"
    for step in (1, 2, 3):
        prefix = save(folder, step)
    assert len(os.listdir(tmp_path)) == 2 * 3 + 1
    assert numbered.latest(folder) == prefix
    (tmp_path / "checkpoint").unlink()
    assert numbered.latest(folder) == prefix


@pytest.mark.parametrize("name", ["[a]", "a\\b"])
def test_a_folder_that_tensorflow_cannot_read_takes_none(tmp_path, name):
    (tmp_path / name).mkdir()
    with pytest.raises(InputError, match="path must have no"):
        save(tmp_path / name, 1)
    assert os.listdir(tmp_path / name) == []
    save(tmp_path, 1)
    for path in tmp_path.glob("model.ckpt-1*"):
        path.rename(tmp_path / name / path.name)
    # The reason to refuse it; an error here says that it need not be.
    with pytest.raises(tf.errors.NotFoundError):
        tf.train.load_checkpoint(str(tmp_path / name / "model.ckpt-1"))
    with pytest.raises(InputError, match="path must have no"):
        loading.load(variables(), str(tmp_path / name / "model.ckpt-1"))


def test_how_long_a_checkpoint_was_trained(prefix, tmp_path):
    assert numbered.trained_steps(prefix) == 7
    tf1.write(str(tmp_path / "stripped"), {"a/kernel": ARRAYS["a/kernel"]})
    assert numbered.trained_steps(str(tmp_path / "stripped")) == 0


def test_a_moved_folder_keeps_its_checkpoints(tmp_path):
    (tmp_path / "a").mkdir()
    for step in (1, 2):
        save(tmp_path / "a", step)
    (tmp_path / "a").rename(tmp_path / "b")
    assert numbered.latest(str(tmp_path / "b")) == str(
        tmp_path / "b" / "model.ckpt-2"
    )
    assert "/" not in (tmp_path / "b" / "checkpoint").read_text()


def test_others_checkpoints_have_nothing_to_resume(prefix):
    assert numbered.read_resume(prefix) is None


def test_going_back_forgets_later_checkpoints(tmp_path):
    for step in (5, 10, 15):
        save(tmp_path, step, keep=5)
    (tmp_path / "checkpoint").write_text(
        'model_checkpoint_path: "model.ckpt-5"\n'
        'all_model_checkpoint_paths: "model.ckpt-5"\n'
        'all_model_checkpoint_paths: "model.ckpt-10"\n'
        'all_model_checkpoint_paths: "model.ckpt-15"\n'
    )
    assert numbered.latest(str(tmp_path)).endswith("model.ckpt-5")
    prefix = save(tmp_path, 10, keep=5)
    assert "model.ckpt-15" not in (tmp_path / "checkpoint").read_text()
    assert numbered.latest(str(tmp_path)) == prefix
    assert tf.train.latest_checkpoint(str(tmp_path)) == prefix


def test_a_listed_checkpoint_outlives_a_failed_second_write(
    tmp_path, monkeypatch
):
    prefix = save(tmp_path, 5)

    def write(*arguments):
        raise InputError("The disk is full.")

    monkeypatch.setattr(tf1, "write", write)
    with pytest.raises(InputError, match="full"):
        save(tmp_path, 5)
    assert numbered.latest(str(tmp_path)) == prefix


def shorten(path, size):
    with open(path, "rb+") as file:
        file.truncate(size)


def spoil(path):
    with open(path, "rb+") as file:
        file.seek(5)
        file.write(b"?")


@pytest.mark.parametrize("part", [".index", ".data-00000-of-00001"])
@pytest.mark.parametrize(
    "damage",
    [
        os.remove,
        spoil,
        lambda path: shorten(path, 0),
        lambda path: shorten(path, 10),
        lambda path: shorten(path, os.path.getsize(path) - 1),
    ],
    ids=["gone", "spoiled", "empty", "start", "all but one byte"],
)
def test_a_bad_checkpoint_is_passed_over(tmp_path, caplog, part, damage):
    good = save(tmp_path, 1)
    bad = save(tmp_path, 2)
    damage(bad + part)
    assert numbered.latest(str(tmp_path)) == good
    assert "Passing over a bad checkpoint" in caplog.text
    assert "model.ckpt-2" in caplog.text
    damage(good + part)
    with pytest.raises(InputError, match="must name an existing checkpoint"):
        numbered.latest(str(tmp_path))
    assert save(tmp_path, 3) == numbered.latest(str(tmp_path))


def test_a_half_written_first_one_is_none(tmp_path):
    save(tmp_path, 0)
    (tmp_path / "checkpoint").unlink()
    for name in tmp_path.glob("model.ckpt-0.*"):
        name.rename(str(name).replace("ckpt-0.", "ckpt-0.tmp-4711.0123abcd."))
    assert numbered.latest(str(tmp_path)) is None


def test_a_full_disk_leaves_the_earlier_ones(tmp_path):
    """The limit of a file's size makes writing fail, as a full disk does."""
    good = save(tmp_path, 1)
    before = sorted(os.listdir(tmp_path))
    arrays = {"a": np.zeros(100_000, np.float32)}
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    for limit in (10, 200_000):  # The small files as well, and the data.
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
        try:
            with pytest.raises(InputError, match=r"ckpt-2.*must be writable"):
                numbered.save(
                    str(tmp_path), 2, arrays, numbered.Resume(1, 16), keep=1
                )
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert numbered.latest(str(tmp_path)) == good
        assert sorted(os.listdir(tmp_path)) == before
    save(tmp_path, 2)
    assert numbered.latest(str(tmp_path)).endswith("model.ckpt-2")


@pytest.mark.parametrize("text", ["", "hello", 'model_checkpoint_path: ""'])
def test_a_list_that_cannot_be_read_is_no_new_start(tmp_path, text):
    save(tmp_path, 1)
    (tmp_path / "checkpoint").write_text(text)
    with pytest.raises(InputError, match="checkpoint: must be as training"):
        numbered.latest(str(tmp_path))


def test_without_a_list_the_highest_number_is_the_newest(tmp_path):
    for step in (5, 9, 10):
        save(tmp_path, step, keep=5)
    (tmp_path / "checkpoint").unlink()
    prefix = str(tmp_path / "model.ckpt-10")
    assert numbered.latest(str(tmp_path)) == prefix


@pytest.mark.parametrize("text", ["{", "{}", "5", '{"seed": 1, "a": 2}'])
def test_a_damaged_resume_file_is_named(tmp_path, text):
    prefix = save(tmp_path, 1)
    with open(prefix + ".resume.json", "w") as file:
        file.write(text)
    with pytest.raises(InputError, match=r"model\.ckpt-1\.resume\.json"):
        numbered.read_resume(prefix)


def test_a_checkpoint_that_is_gone_is_named(tmp_path):
    prefix = save(tmp_path, 1)
    os.remove(prefix + ".index")
    with pytest.raises(InputError, match="must name an existing"):
        numbered.latest(str(tmp_path))
