"""`export_tfhub.py` writes both modules, or ends with an error."""

import json
import math

import pytest
import tensorflow as tf
from support import hub_modules

import export_tfhub
from official_bert.checkpoints import run_directory, weights
from official_bert.errors import InputError
from official_bert.options import ExportTfhub


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    directory = tmp_path_factory.mktemp("model")
    hub_modules.write_files(directory, has_moments=True)
    return directory


def options(directory, **changes):
    given = {
        "bert_config_file": str(directory / "bert_config.json"),
        "vocab_file": str(directory / "vocab.txt"),
        "init_checkpoint": str(directory / "bert_model.ckpt"),
        "max_seq_length": 16,
        **changes,
    }
    return ExportTfhub(**given)


@pytest.mark.slow
def test_encoder_and_preprocessor_fit(directory, tmp_path, capsys):
    encoder, preprocessor = str(tmp_path / "a/e"), str(tmp_path / "a/p")
    both = {"export_path": encoder, "preprocessor_path": preprocessor}
    export_tfhub.main(options(directory, **both, do_lower_case=False))

    printed = capsys.readouterr().out
    shapes = weights.shapes(hub_modules.CONFIG)
    sizes = [math.prod(shapes[n]) for n in shapes if n.startswith("bert/")]
    assert f"{sum(sizes):,} weights" in printed
    assert "with the masked LM head" in printed
    assert "Left out: cls/seq_relationship/output_bias" in printed
    pytest.importorskip("tensorflow_text")
    pieces = tf.saved_model.load(preprocessor)(["good cat", "Good cat"])
    module = tf.saved_model.load(encoder)
    assert pieces["input_word_ids"].numpy()[:, :4].tolist() == [
        [2, 5, 7, 3],
        [2, 1, 7, 3],  # Not lower-cased.
    ]
    assert module(pieces)["sequence_output"].shape == (2, 16, 48)
    assert not bool(module.do_lower_case)

    with pytest.raises(InputError, match=r"--export_path=.* must be new"):
        options(directory, **both)
    export_tfhub.main(options(directory, export_path=encoder, overwrite=True))
    assert bool(tf.saved_model.load(encoder).do_lower_case)


@pytest.mark.slow
def test_model_dir_names_checkpoint_vocabulary_and_casing(
    directory, tmp_path, capsys
):
    for name in ("bert_config.json", "vocab.txt"):
        (tmp_path / name).write_text((directory / name).read_text())
    for path in directory.glob("bert_model.ckpt.*"):
        name = path.name.replace("bert_model.ckpt", "model.ckpt-9")
        (tmp_path / name).write_bytes(path.read_bytes())
    (tmp_path / "checkpoint").write_text(
        'model_checkpoint_path: "model.ckpt-9"'
    )
    (tmp_path / "task.json").write_text(json.dumps({"do_lower_case": False}))
    path = str(tmp_path / "e")
    export_tfhub.main(ExportTfhub(model_dir=str(tmp_path), export_path=path))
    assert not bool(tf.saved_model.load(path).do_lower_case)


def test_model_dir_is_its_best_and_init_checkpoint_its_newest_checkpoint(
    directory, tmp_path, monkeypatch
):
    for name in ("bert_config.json", "vocab.txt"):
        (tmp_path / name).write_text((directory / name).read_text())
    for part in (tmp_path, tmp_path / "best"):
        part.mkdir(exist_ok=True)
        run_directory.save(str(part), 9, {"a": 1.0}, resume=None, keep=1)
    found = []

    def load(_, prefix, **_others):
        found.append(prefix)
        raise InputError("stop")

    monkeypatch.setattr("official_bert.checkpoints.loading.load", load)
    run = str(tmp_path)
    path = str(tmp_path / "e")
    for given in (
        ExportTfhub(model_dir=run, export_path=path),
        options(directory, init_checkpoint=run, export_path=path),
    ):
        with pytest.raises(InputError, match="stop"):
            export_tfhub.main(given)
    assert found == [f"{run}/best", run]


def test_inputs_are_never_replaced(directory):
    for path in (directory, directory.parent):
        with pytest.raises(InputError, match="_path="):
            options(directory, export_path=str(path), overwrite=True)
    assert (directory / "vocab.txt").exists()
    best = str(directory / "best")
    with pytest.raises(InputError, match="_path="):
        ExportTfhub(
            model_dir=str(directory), preprocessor_path=best, max_seq_length=16
        )


def test_bad_options_are_errors_before_anything_is_written(directory, tmp_path):
    new = str(tmp_path / "new")
    both = {"export_path": new, "preprocessor_path": str(tmp_path / "other")}
    for changes, message in [
        ({}, "--export_path, --preprocessor_path"),
        (
            {"export_path": new, "init_checkpoint": None},
            "--init_checkpoint must be given",
        ),
        (
            {"export_path": new, "model_dir": new},
            "--model_dir=.* conflicts with --bert_config_file=",
        ),
        (
            {"export_path": new, "preprocessor_path": new},
            "--preprocessor_path=.* --export_path",
        ),
        (
            {"export_path": new, "preprocessor_path": new + "/p"},
            "--preprocessor_path=.* --export_path",
        ),
        (
            {**both, "max_seq_length": 65},
            "64 positions",
        ),
        ({"preprocessor_path": new, "max_seq_length": 65}, "64 positions"),
        (
            {"export_path": str(directory / "vocab.txt")},
            "--export_path=.*vocab.txt",
        ),
        ({"export_path": new, "vocab_file": new}, "vocab_file, or vocab.txt"),
        ({"export_path": new, "init_checkpoint": new}, "--init_checkpoint="),
    ]:
        with pytest.raises(InputError, match=message):
            options(directory, **changes)
    assert not list(tmp_path.iterdir())
