import json
import os
import resource

import numpy as np
import pytest
import tensorflow as tf
from support import recorded

from official_bert.errors import InputError
from official_bert.modeling.pretraining_model import PretrainingModel
from official_bert.runs import checkpoints
from official_bert.sources import loading
from official_bert.sources.formats.tf1 import checkpoint as tf1
from official_bert.sources.formats.tf1 import weights as tf1_weights

INDEX, DATA = ".index", ".data-00000-of-00001"
ARRAYS = {
    "a/kernel": np.arange(6, dtype=np.float32).reshape(2, 3),
    "a/kernel/adam_m": np.ones((2, 3), np.float32),
    "global_step": np.array(7, np.int64),
}


def variables():
    return {"a/kernel": tf.Variable(np.zeros((2, 3), np.float32))}


def load(path, **options):
    """Returns the array that a checkpoint or run directory holds."""
    loaded = variables()
    loading.load(loaded, path, may_skip=tf1.OPTIMIZER_STATE, **options)
    return loaded["a/kernel"].numpy()


def save(folder, step, keep=2):
    arrays = {**ARRAYS, "a/kernel": np.full((2, 3), step, np.float32)}
    state = checkpoints.ResumeState(seed=step, examples_seen=8 * step)
    return checkpoints.save(str(folder), step, arrays, state, keep)


@pytest.fixture
def prefix(tmp_path):
    prefix = str(tmp_path / "model.ckpt")
    tf1.write(prefix, ARRAYS)
    return prefix


def test_tensorflow_reads_the_two_files_of_a_checkpoint(prefix, tmp_path):
    reader = tf.train.load_checkpoint(prefix)
    shapes = {name: list(array.shape) for name, array in ARRAYS.items()}
    assert reader.get_variable_to_shape_map() == shapes
    for name, array in ARRAYS.items():
        read = np.asarray(reader.get_tensor(name))
        assert read.dtype == array.dtype
        np.testing.assert_array_equal(read, array)
    names = {f"model.ckpt{part}" for part in (INDEX, DATA)}
    assert set(os.listdir(tmp_path)) == names


def test_weights_in_the_scope_of_a_hub_module_are_loaded_by_name(tmp_path):
    """As the original run_classifier_with_tfhub.py stores them."""
    prefix, kernel = str(tmp_path / "model.ckpt"), ARRAYS["a/kernel"]
    tf1.write(prefix, {"module/bert/kernel": kernel, "output_bias": kernel})
    names = ["bert/kernel", "output_bias"]
    arrays = tf1_weights.open_prefix(prefix)
    assert list(arrays.shapes) == names
    for name in names:
        np.testing.assert_array_equal(arrays.read(name), kernel)
    # Unless the checkpoint has such a weight without the scope, too.
    stored = {"bert/kernel": kernel, "module/bert/kernel": 2 * kernel}
    tf1.write(prefix, stored)
    assert list(tf1_weights.open_prefix(prefix).shapes) == list(stored)


@pytest.mark.parametrize("name", ["base", "relu"])
def test_checkpoint_of_the_original_is_loaded_by_name(golden, name):
    folder = golden / "model" / name
    model = PretrainingModel(recorded.read_config(folder))
    weights = tf1.by_name(model.trainable_variables)
    prefix = str(folder / "bert_model.ckpt")
    assert loading.load(weights, prefix) == (prefix, [])
    for path, weight in weights.items():
        stored = tf.train.load_variable(prefix, path)
        np.testing.assert_array_equal(weight.numpy(), stored)
    listed = json.loads((folder / "variables.json").read_text())
    shapes = [[path, list(w.shape)] for path, w in weights.items()]
    assert sorted(shapes) == sorted(listed["variables"])


def test_all_missing_unused_and_misshapen_weights_are_listed(prefix):
    weights = {"a/kernel": tf.Variable(tf.zeros([3, 2]))}
    weights |= {f"w_{number:02}": tf.Variable(0.0) for number in range(50)}
    with pytest.raises(InputError) as caught:
        loading.load(weights, prefix)
    message = str(caught.value)
    assert "\n  missing: w_00\n" in message
    assert "  missing: w_39\n  ... and 13 more\n" in message
    with pytest.raises(InputError) as caught:
        loading.load(weights, prefix, may_initialize="^w_")
    assert "unused: global_step" in str(caught.value)
    wrong = "wrong shape: a/kernel is [2, 3] in the checkpoint and [3, 2]"
    assert wrong in str(caught.value)
    assert not weights["a/kernel"].numpy().any()


def test_variable_of_another_shape_is_initialized_if_both_flags_match(prefix):
    weights = {"a/kernel": tf.Variable([1.0]), "cls/b": tf.Variable([5.0])}
    new, skip = "^a/kernel$|^cls/", f"^a/kernel$|{tf1.OPTIMIZER_STATE}"
    for patterns in [(new, tf1.OPTIMIZER_STATE), ("^cls/", skip)]:
        flags = dict(zip(("may_initialize", "may_skip"), patterns, strict=True))
        with pytest.raises(InputError, match="wrong shape: a/kernel"):
            loading.load(weights, prefix, **flags)
    loaded = loading.load(weights, prefix, may_initialize=new, may_skip=skip)
    assert loaded.initialized == ["a/kernel", "cls/b"]
    assert [variable.numpy() for variable in weights.values()] == [[1.0], [5.0]]


def test_texts_instead_of_numbers_are_an_error(tmp_path):
    prefix = str(tmp_path / "texts")
    tf1.write(prefix, {"a/kernel": np.full((2, 3), b"a")})
    kernel = {"a/kernel": tf.Variable(tf.zeros([2, 3]))}
    with pytest.raises(InputError, match=r"texts: `a/kernel` .* numbers"):
        loading.load(kernel, prefix)
    tf1.verify(prefix)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_weights_that_are_not_finite_are_an_error_if_used(prefix, value):
    kernel = ARRAYS["a/kernel"].copy()
    kernel[1, 2] = value
    tf1.write(prefix, {**ARRAYS, "b": kernel})
    unused = f"^b$|{tf1.OPTIMIZER_STATE}"
    loading.load(variables(), prefix, may_skip=unused)
    tf1.write(prefix, {**ARRAYS, "a/kernel": kernel})
    with pytest.raises(InputError, match=f"^{prefix}: a/kernel must .* finite"):
        load(prefix)


def test_missing_foreign_or_incomplete_checkpoint_is_an_error(tmp_path):
    (tmp_path / "x.index").write_text("hello")
    for name in ("nowhere", "x"):
        with pytest.raises(InputError, match=str(tmp_path / name)):
            load(str(tmp_path / name))
    save(tmp_path, 0)
    (tmp_path / "checkpoint").unlink()
    for path in tmp_path.glob("model.ckpt-0.*"):
        path.rename(str(path).replace("ckpt-0.", "ckpt-0.tmp-0123abcd."))
    assert checkpoints.latest(str(tmp_path)) is None


@pytest.mark.parametrize("scheme", ["", "file://"])
def test_newest_checkpoints_are_kept_and_found(tmp_path, scheme):
    folder = f"{scheme}{tmp_path}"
    assert checkpoints.latest(folder) is None
    assert loading.load_newest(variables(), folder, resumes=True) is None
    for step in (0, 5, 10):
        prefix = save(folder, step)
    assert checkpoints.latest(folder) == prefix == f"{folder}/model.ckpt-10"
    assert tf.train.latest_checkpoint(folder) == prefix
    assert checkpoints.read_resume_state(prefix) == (10, 80)
    assert len(os.listdir(tmp_path)) == 2 * 3 + 1
    # Paths without directories, so that the directory can be moved.
    assert "/" not in (tmp_path / "checkpoint").read_text()
    assert (load(folder) == 10).all()
    (tmp_path / "checkpoint").unlink()  # As text, 5 would come after 10.
    assert checkpoints.latest(folder) == prefix


def test_checkpoint_that_a_killed_run_left_is_removed(tmp_path, monkeypatch):
    def die(_):
        raise SystemExit

    save(tmp_path, 0, keep=1)
    with monkeypatch.context() as patch:
        patch.setattr(tf1, "remove", die)
        with pytest.raises(SystemExit):
            save(tmp_path, 5, keep=1)
    assert (load(str(tmp_path)) == 5).all()
    prefix = save(tmp_path, 10, keep=1)
    assert checkpoints.latest(str(tmp_path)) == prefix
    assert len(os.listdir(tmp_path)) == 3 + 1


@pytest.mark.parametrize("name", ["bert_model.ckpt", "bert_model.ckpt-5"])
def test_checkpoints_with_other_names_are_kept(tmp_path, name):
    tf1.write(str(tmp_path / name), ARRAYS)
    (tmp_path / "checkpoint").write_text(f'model_checkpoint_path: "{name}"\n')
    assert checkpoints.latest(str(tmp_path)) == str(tmp_path / name)
    prefix = save(tmp_path, 10, keep=1)
    assert (tmp_path / f"{name}.index").exists()
    assert checkpoints.latest(str(tmp_path)) == prefix


@pytest.mark.parametrize("name", ["[a]", "a\\b"])
def test_directory_that_tensorflow_cannot_read_is_an_error(tmp_path, name):
    (tmp_path / name).mkdir()
    with pytest.raises(InputError, match="backslash"):
        save(tmp_path / name, 1)
    assert os.listdir(tmp_path / name) == []
    save(tmp_path, 1)
    for path in tmp_path.glob("model.ckpt-1*"):
        path.rename(tmp_path / name / path.name)
    # If TensorFlow can read it one day, the check is no longer needed.
    with pytest.raises(tf.errors.NotFoundError):
        tf.train.load_checkpoint(str(tmp_path / name / "model.ckpt-1"))
    with pytest.raises(InputError, match="backslash"):
        load(str(tmp_path / name / "model.ckpt-1"))


def test_checkpoint_of_another_program_may_lack_resume_state_and_step(prefix):
    assert checkpoints.read_resume_state(prefix) is None
    assert checkpoints.read_global_step(prefix) == 7
    tf1.write(prefix, {"a/kernel": ARRAYS["a/kernel"]})
    assert checkpoints.read_global_step(prefix) == 0


def test_saving_an_earlier_step_forgets_later_checkpoints(tmp_path):
    for step in (5, 10, 15):
        save(tmp_path, step, keep=5)
    list_file = tmp_path / "checkpoint"
    text = list_file.read_text()
    list_file.write_text(text.replace("model.ckpt-15", "model.ckpt-5", 1))
    assert checkpoints.latest(str(tmp_path)).endswith("model.ckpt-5")
    prefix = save(tmp_path, 10, keep=5)
    assert "model.ckpt-15" not in list_file.read_text()
    assert checkpoints.latest(str(tmp_path)) == prefix
    assert tf.train.latest_checkpoint(str(tmp_path)) == prefix


def overwrite(path):
    with open(path, "rb+") as file:
        file.seek(5)
        file.write(b"?")


@pytest.mark.parametrize("part", [INDEX, DATA])
@pytest.mark.parametrize(
    "damage",
    [
        os.remove,
        overwrite,
        lambda path: os.truncate(path, 0),
        lambda path: os.truncate(path, 10),
        lambda path: os.truncate(path, os.path.getsize(path) - 1),
    ],
    ids=["missing", "overwritten", "empty", "start", "all but one byte"],
)
def test_damaged_checkpoint_is_passed_over(tmp_path, caplog, part, damage):
    folder = str(tmp_path)
    good, bad = save(tmp_path, 1), save(tmp_path, 2)
    mine = {name: tf.Variable(array) for name, array in ARRAYS.items()}
    damage(bad + part)
    # Finding the newest checkpoint reads no data; loading does.
    assert checkpoints.latest(folder) == (good if part == INDEX else bad)
    assert loading.load_newest(mine, folder, resumes=False) == (good, [])
    assert (mine["a/kernel"].numpy() == 1).all()
    [warning] = caplog.messages
    assert warning.startswith("Skipping a damaged checkpoint")
    assert "model.ckpt-2" in warning
    with pytest.raises(InputError, match=r"model\.ckpt-2"):
        loading.load(mine, bad)
    damage(good + part)
    with pytest.raises(InputError, match=r"checkpoint: all .*\n.*ckpt-2"):
        loading.load(mine, folder)
    assert (load(save(tmp_path, 3)) == 3).all()


def test_untrained_model_replaces_a_damaged_one_only_to_train(tmp_path):
    folder = str(tmp_path)
    mine = {name: tf.Variable(array) for name, array in ARRAYS.items()}
    start = save(tmp_path, 0)
    assert loading.load_newest(mine, folder, resumes=False) == (start, [])
    os.truncate(save(tmp_path, 1) + DATA, 10)
    assert loading.load_newest(mine, folder, resumes=True) == (start, [])
    for read in (load, tf1_weights.open_arrays):
        with pytest.raises(InputError, match=r"after step 0 are .*\n.*ckpt-1"):
            read(folder)


def test_checkpoint_that_does_not_fit_is_an_error_not_damaged(tmp_path):
    save(tmp_path, 1)
    checkpoints.save(str(tmp_path), 2, {"b": 1.0}, None, keep=2)
    with pytest.raises(InputError, match=r"ckpt-2.*(\n.*)*missing: a/kernel"):
        load(str(tmp_path))


def test_best_checkpoint_is_preferred_if_there_is_one(tmp_path):
    folder = str(tmp_path)
    with pytest.raises(InputError, match=f"{folder} must contain a checkpoint"):
        tf1_weights.open_arrays(folder)
    tf1.write(f"{folder}/bert_model.ckpt", ARRAYS)  # Of the initial model.
    assert tf1_weights.open_arrays(folder).where.endswith("bert_model.ckpt")
    last = save(tmp_path, 2)
    assert tf1_weights.open_arrays(folder).where == last
    (tmp_path / "best").mkdir()
    assert tf1_weights.open_arrays(folder).where == last
    best = save(tmp_path / "best", 1)
    assert tf1_weights.open_arrays(folder).where == best
    assert (load(f"{folder}/best") == 1).all()


def test_full_disk_keeps_earlier_checkpoints(tmp_path):
    """A limit on the size of files makes writing fail, as a full disk does."""
    good = save(tmp_path, 1)
    before = sorted(os.listdir(tmp_path))
    arrays = {"a": np.zeros(100_000, np.float32)}
    state = checkpoints.ResumeState(1, 16)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    for step, limit in [(2, 10), (2, 200_000), (1, 200_000)]:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
        try:
            with pytest.raises(InputError, match=f"ckpt-{step}"):
                checkpoints.save(str(tmp_path), step, arrays, state, keep=1)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert checkpoints.latest(str(tmp_path)) == good
        assert (load(good) == 1).all()
        assert sorted(os.listdir(tmp_path)) == before
    save(tmp_path, 2)
    assert checkpoints.latest(str(tmp_path)).endswith("model.ckpt-2")


@pytest.mark.parametrize("text", ["", "a", 'model_checkpoint_path: ""', None])
def test_unreadable_list_does_not_restart_a_run(tmp_path, text):
    prefix = save(tmp_path, 1)
    if text is None:  # A good list of a checkpoint that is gone.
        os.remove(prefix + INDEX)
    else:
        (tmp_path / "checkpoint").write_text(text)
    with pytest.raises(InputError, match=f"{tmp_path}/checkpoint"):
        checkpoints.latest(str(tmp_path))


@pytest.mark.parametrize(
    "text",
    [
        *("{", "{}", '{"seed": 1, "a": 2}'),
        '{"seed": 1, "examples_seen": -1}',
        '{"seed": 1, "examples_seen": 9223372036854775808}',
    ],
)
def test_damaged_resume_state_is_named(tmp_path, text):
    prefix = save(tmp_path, 1)
    with open(prefix + ".resume.json", "w") as file:
        file.write(text)
    with pytest.raises(InputError, match=r"model\.ckpt-1\.resume\.json"):
        checkpoints.read_resume_state(prefix)
