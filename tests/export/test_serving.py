"""Exported models answer as `predict.py`, without this project."""

import json
import pathlib
import subprocess
import sys

import keras
import numpy as np
import pytest
import tensorflow as tf
from support import record_files, served_models

from official_bert.errors import InputError
from official_bert.export import serving
from official_bert.export.graph_tokenizer import GraphTokenizer
from official_bert.export.serving import exporting, span_decoding, tflite
from official_bert.export.serving.span_decoding import Passage, Windows
from official_bert.tasks.squad.squad_decoding import DecodingOptions

CLIENT = pathlib.Path(__file__).parents[1] / "support" / "ask_served.py"


def as_lists(outputs):
    """Returns outputs as they leave a server."""

    def decoded(value):
        if isinstance(value, list):
            return [decoded(part) for part in value]
        return value.decode() if isinstance(value, bytes) else value

    return {name: decoded(v.numpy().tolist()) for name, v in outputs.items()}


@pytest.mark.parametrize(
    "name", sorted(served_models.CASES.keys() - {"bilstm"})
)
def test_served_answers_equal_predictions(name, tmp_path):
    case = served_models.CASES[name]
    finetuned = served_models.load(case.task, tmp_path)
    signatures = exporting.make_signatures(finetuned).text_signatures()
    inputs = {n: tf.constant(values) for n, values in case.inputs.items()}

    outputs = signatures["serving_default"].function(**inputs)

    predictions = served_models.predict(finetuned, case.items)
    served_models.check(case, as_lists(outputs), predictions)


@pytest.mark.parametrize(
    ("context", "first", "last", "answer"),
    [
        ("Ça  Steve \n Smith's 5$", 1, 2, "Steve Smith"),
        ("(한국)", 1, 1, "한국"),  # [UNK]; predict.py: "(한국)".
        ("Ça cou\u0302te!", 1, 1, "cou\u0302"),  # predict.py: "cou\u0302te!"
        ("é\u200b-the", 1, 2, "-the"),  # predict.py: "é\u200b-the"
        ("the\u00a0smith, a", 1, 1, "smith"),
    ],
)
def test_answer_is_cut_at_the_bounds_of_its_tokens(
    make_vocab, context, first, last, answer
):
    tokenizer = GraphTokenizer(make_vocab(*served_models.TOKENS), True)
    ids, starts, limits = (
        by_word.merge_dims(1, 2)[0]
        for by_word in tokenizer.tokenize_words_with_offsets([context])
    )
    logits = np.zeros((1, len(ids) + 4, 2), np.float32)
    logits[0, first + 3, 0] = logits[0, last + 3, 1] = 9.0

    output = span_decoding.choose_answer(
        Passage(tf.constant(context), starts, limits),
        Windows(*(tf.constant([n], tf.int64) for n in (0, len(ids), 3))),
        tf.constant(logits),
        DecodingOptions(n_best_size=3),
    )

    assert output["answer"].numpy().decode() == answer
    bounds = int(output["start"]), int(output["end"])
    assert " ".join(context[slice(*bounds)].split()) == answer
    assert output["n_best_answers"].numpy()[0].decode() == answer


def test_bytes_that_are_not_utf8_do_not_count(tmp_path):
    finetuned = served_models.load(served_models.CASES["squad"].task, tmp_path)
    signatures = exporting.make_signatures(finetuned)
    context = b"na\xefve the \xa0 end of it"
    outputs = signatures.from_questions(
        tf.constant(["what ?"] * 2),
        tf.constant([context, context.decode(errors="ignore")]),
    )
    for values in as_lists(outputs).values():
        assert values[0] == values[1]


@pytest.mark.parametrize("name", ["classification", "choice", "squad"])
def test_examples_are_answered_as_their_ids(name, tmp_path):
    task = served_models.CASES[name].task
    finetuned = served_models.load(task, tmp_path)
    signatures = exporting.make_signatures(finetuned, export_text=False)
    schema = task.schema(finetuned.max_seq_length, is_training=False)
    random = np.random.RandomState(1)
    examples = [
        {
            name: random.randint(0, 2, np.prod(feature.shape))
            for name, feature in schema.items()
        }
        for _ in range(3)
    ]
    inputs = signatures.ids_inputs()
    ids = {
        feature: tf.reshape(
            [example[feature] for example in examples],
            [3, *([3] if name == "choice" else []), finetuned.max_seq_length],
        )
        for feature in inputs
    }

    found = signatures.from_examples(record_files.serialize(examples))

    ids = {feature: tf.cast(v, tf.int32) for feature, v in ids.items()}
    expected = signatures.from_ids(**ids)
    assert as_lists(found) == as_lists(expected)


def ask(questions, *modules):
    """Asks SavedModels in a process that has TensorFlow only."""
    result = subprocess.run(
        [sys.executable, "-I", CLIENT, *modules],
        input="".join(json.dumps(question) + "\n" for question in questions),
        capture_output=True,
        text=True,
        cwd=CLIENT.anchor,
        check=True,
    )
    answers = [json.loads(line) for line in result.stdout.splitlines()]
    return [answer["predictions"] for answer in answers]


@pytest.mark.slow
def test_exported_models_answer_without_this_project(tmp_path):
    names = ("multilabel", "tagging", "squad_2")
    questions, models = [], []
    for name in names:
        case = served_models.CASES[name]
        (tmp_path / name).mkdir()
        models.append(served_models.load(case.task, tmp_path / name))
        version = serving.export(models[-1], str(tmp_path / name / "export"))
        rows = zip(*case.inputs.values(), strict=True)
        questions.append(
            {
                "directory": version.path,
                "signature": "serving_default",
                "instances": [
                    dict(zip(case.inputs, row, strict=True)) for row in rows
                ],
            }
        )
        loaded = tf.saved_model.load(version.path)
        function = loaded.signatures["serving_default"]
        nothing = function(
            **{n: tf.constant(v)[:0] for n, v in case.inputs.items()}
        )
        assert [len(values) for values in nothing.values()] == [0] * len(
            nothing
        )

    answers = ask(questions, "tensorflow_text")

    for name, finetuned, rows in zip(names, models, answers, strict=True):
        case = served_models.CASES[name]
        columns = {key: [row[key] for row in rows] for key in rows[0]}
        predictions = served_models.predict(finetuned, case.items)
        served_models.check(case, columns, predictions)


@pytest.mark.slow
def test_model_without_text_signatures_needs_tensorflow_alone(tmp_path):
    case = served_models.CASES["classification"]
    finetuned = served_models.load(case.task, tmp_path)
    directory = tmp_path / "export"
    exported = serving.export(finetuned, str(directory), export_text=False)
    tokens = ["[CLS]", "the", "smith", "[SEP]"]
    row = {
        "input_ids": [served_models.TOKENS.index(token) for token in tokens],
        "input_mask": [1] * 4,
        "segment_ids": [0] * 4,
    }

    answers = ask(
        {"directory": exported.path, "signature": name, "instances": [row, row]}
        for name in ("serving_default", "ids")
    )

    [expected] = served_models.predict(finetuned, ["the Smith"])
    for rows in answers:
        for row in rows:
            assert row["label"] == expected["label"]
            assert row["classes"] == ["no", "yes", "ja"]
            assert row["probabilities"] == pytest.approx(
                [*expected["probabilities"].values()], abs=2e-6
            )
    assert exported.signatures == ["examples", "ids", "serving_default"]
    assert exported.tflite_difference is None
    assets = directory / "1/assets"
    assert (assets / "labels.txt").read_text() == "no\nyes\nja\n"
    assert (assets / "vocab.txt").read_text().split("\n")[0] == "[PAD]"
    task = json.loads((directory / "1/assets.extra/task.json").read_text())
    assert task["max_seq_length"] == served_models.MAX_SEQ_LENGTH
    assert task["labels"] == ["no", "yes", "ja"]


def test_export_of_a_model_on_a_hub_module_is_an_error(tmp_path):
    case = served_models.CASES["regression"]
    finetuned = served_models.load(case.task, tmp_path)
    finetuned.model.bert = keras.layers.Identity()
    with pytest.raises(InputError, match=r"--do_export: .* Hub module"):
        serving.export(finetuned, str(tmp_path / "export"))


def test_version_appears_when_it_is_complete(tmp_path, monkeypatch):
    case = served_models.CASES["regression"]
    finetuned = served_models.load(case.task, tmp_path)
    directory = tmp_path / "export"
    (directory / "7").mkdir(parents=True)
    (directory / "10").mkdir()
    (directory / "notes").touch()
    seen = []

    def save(module, path, functions):
        seen.extend(p.name for p in directory.iterdir())
        pathlib.Path(path, "saved_model.pb").touch()
        raise tf.errors.ResourceExhaustedError(None, None, "no room")

    with monkeypatch.context() as patched:
        patched.setattr(tf.saved_model, "save", save)
        with pytest.raises(InputError, match=r"11: .*no room"):
            serving.export(finetuned, str(directory), export_text=False)

    # TensorFlow Serving ignores names that are not numbers.
    assert {name for name in seen if name.isdecimal()} == {"7", "10"}
    assert len(seen) > 3
    assert {p.name for p in directory.iterdir()} == {"10", "7", "notes"}
    exported = serving.export(finetuned, str(directory), export_text=False)
    assert exported.path == str(directory / "11")
    assert serving.next_version(str(directory)) == 12


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["classification", "choice", "tagging", "squad"]
)
def test_tflite_model_equals_the_original(name, tmp_path):
    case = served_models.CASES[name]
    finetuned = served_models.load(case.task, tmp_path)
    exported = serving.export(
        finetuned, str(tmp_path), export_text=False, export_tflite=True
    )

    assert exported.tflite_difference < 1e-5
    content = (tmp_path / "1/model.tflite").read_bytes()
    assert content[4:8] == b"TFL3"
    for weight in finetuned.model.trainable_variables:
        weight.assign(weight + 0.1)
    signatures = exporting.make_signatures(finetuned, export_text=False)
    assert tflite._difference(signatures, content) > 0.01


@pytest.mark.slow
def test_tflite_export_of_a_bilstm_is_an_error_and_writes_nothing(tmp_path):
    case = served_models.CASES["bilstm"]
    finetuned = served_models.load(case.task, tmp_path)
    directory = tmp_path / "export"
    with pytest.raises(InputError, match="--export_tflite"):
        serving.export(
            finetuned, str(directory), export_text=False, export_tflite=True
        )
    assert list(directory.iterdir()) == []
