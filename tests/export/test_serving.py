"""A version loads and answers where nothing of this project is."""

import json
import pathlib
import subprocess
import sys

import keras
import pytest
import tensorflow as tf
from support import served_models

from official_bert.errors import InputError
from official_bert.export import serving

STRANGER = pathlib.Path(__file__).parents[1] / "support" / "ask_served.py"


def ask(questions, *modules):
    """Asks SavedModels in a process that has TensorFlow only."""
    result = subprocess.run(
        [sys.executable, "-I", STRANGER, *modules],
        input="".join(json.dumps(question) + "\n" for question in questions),
        capture_output=True,
        text=True,
        cwd=STRANGER.anchor,
        check=True,
    )
    return [json.loads(line) for line in result.stdout.splitlines()]


def instances(case):
    columns = zip(*case.inputs.values(), strict=True)
    return [dict(zip(case.inputs, row, strict=True)) for row in columns]


@pytest.mark.slow
def test_a_stranger_gets_the_answers_of_predict(tmp_path):
    questions, expected = [], []
    for name in ("windows", "multilabel", "choice", "tagging", "squad_2"):
        case = served_models.CASES[name]
        (tmp_path / name).mkdir()
        trained = served_models.load(case.task, tmp_path / name)
        folder = str(tmp_path / name / "export")
        version = serving.export(trained, folder)
        questions.append(
            {
                "folder": version.path,
                "signature": "serving_default",
                "instances": instances(case),
            }
        )
        expected.append((case, served_models.expected(trained, case.items)))

    found = ask(questions, "tensorflow_text")

    for (case, answers), answer in zip(expected, found, strict=True):
        rows = answer["predictions"]
        columns = {name: [row[name] for row in rows] for name in rows[0]}
        served_models.check(case, columns, answers)


@pytest.mark.slow
def test_without_texts_tensorflow_alone_will_do(tmp_path):
    case = served_models.CASES["truncate_tail"]
    trained = served_models.load(case.task, tmp_path)
    folder = tmp_path / "export"
    exported = serving.export(trained, str(folder), export_text=False)
    words = ["[CLS]", "the", "smith", "[SEP]"]
    row = {
        "input_ids": [served_models.PIECES.index(word) for word in words],
        "input_mask": [1] * 4,
        "segment_ids": [0] * 4,
    }

    found = ask(
        [
            {
                "folder": exported.path,
                "signature": name,
                "instances": [row, row],
            }
            for name in ("serving_default", "ids")
        ]
    )

    [answer] = served_models.expected(trained, ["the Smith"])
    for given in found:
        for row in given["predictions"]:
            assert row["label"] == answer["label"]
            assert row["classes"] == ["no", "yes", "ja"]
            assert row["probabilities"] == pytest.approx(
                [*answer["probabilities"].values()], abs=2e-6
            )
    assert exported.signatures == ["examples", "ids", "serving_default"]
    assert exported.tflite_difference is None
    assert (folder / "1/assets/labels.txt").read_text() == "no\nyes\nja\n"
    assert (folder / "1/assets/vocab.txt").read_text().split("\n")[0] == "[PAD]"
    task = json.loads((folder / "1/assets.extra/task.json").read_text())
    assert task["max_seq_length"] == served_models.MAX_SEQ_LENGTH
    assert task["labels"] == ["no", "yes", "ja"]


def test_a_model_on_a_hub_module_is_refused(tmp_path):
    trained = served_models.load(
        served_models.CASES["regression"].task, tmp_path
    )
    trained.model.bert = keras.layers.Identity()
    with pytest.raises(InputError, match="Received: one on a Hub module"):
        serving.export(trained, str(tmp_path / "export"))


def test_a_version_appears_when_all_of_it_is_there(tmp_path, monkeypatch):
    trained = served_models.load(
        served_models.CASES["regression"].task, tmp_path
    )
    folder = tmp_path / "export"
    (folder / "7").mkdir(parents=True)
    (folder / "10").mkdir()
    (folder / "notes").touch()
    seen = []

    def save(module, path, functions):
        seen.extend(p.name for p in folder.iterdir())
        pathlib.Path(path, "saved_model.pb").touch()
        raise tf.errors.ResourceExhaustedError(None, None, "no room")

    with monkeypatch.context() as patched:
        patched.setattr(tf.saved_model, "save", save)
        with pytest.raises(InputError, match=r"11: must be .*no room"):
            serving.export(trained, str(folder), export_text=False)

    assert not any(name == "11" for name in seen)
    # TensorFlow Serving takes what is no number for no version.
    assert [name for name in seen if not name.isdecimal()] != []
    assert sorted(p.name for p in folder.iterdir()) == ["10", "7", "notes"]
    exported = serving.export(trained, str(folder), export_text=False)
    assert exported.path == str(folder / "11")
    assert serving.next_version(str(folder)) == 12


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["truncate_tail", "choice", "tagging", "squad"]
)
def test_lite_says_the_same(name, tmp_path):
    trained = served_models.load(served_models.CASES[name].task, tmp_path)

    exported = serving.export(
        trained, str(tmp_path / "export"), export_text=False, export_tflite=True
    )

    assert exported.tflite_difference < 1e-5
    content = (tmp_path / "export/1/model.tflite").read_bytes()
    assert content[4:8] == b"TFL3"


@pytest.mark.slow
def test_lite_takes_no_lstm(tmp_path):
    trained = served_models.load(served_models.CASES["bilstm"].task, tmp_path)
    folder = tmp_path / "export"
    with pytest.raises(InputError, match=r"--export_tflite.*Received: "):
        serving.export(
            trained, str(folder), export_text=False, export_tflite=True
        )
    assert list(folder.iterdir()) == []


@pytest.mark.slow
def test_tflite_differences_are_seen(tmp_path, monkeypatch):
    trained = served_models.load(
        served_models.CASES["regression"].task, tmp_path
    )
    from official_bert.export.serving import tflite

    whole = tflite._difference

    def later(rows, content):
        weight = rows.served.model.output_bias
        weight.assign(weight + 0.25)
        return whole(rows, content)

    monkeypatch.setattr(tflite, "_difference", later)
    exported = serving.export(
        trained, str(tmp_path / "export"), export_text=False, export_tflite=True
    )
    assert exported.tflite_difference == pytest.approx(0.25, abs=1e-4)
