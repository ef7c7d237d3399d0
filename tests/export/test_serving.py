"""Exported models give the answers of `predict.py` without this project."""

import json
import pathlib
from typing import Any, NamedTuple

import keras
import numpy as np
import pytest
import tensorflow as tf
from support import SPECIAL, record_files, recorded, tiny, write_vocab
from support.processes import run_python

from official_bert.config import BertConfig
from official_bert.errors import InputError
from official_bert.export import engine_models, serving
from official_bert.export.graph_tokenizer import GraphTokenizer
from official_bert.export.serving import squad_signatures, tflite
from official_bert.inference.predictor import Predictor
from official_bert.modeling.finetuning_models import build_model
from official_bert.options import RunClassifier
from official_bert.sources.heads import PoolingHead
from official_bert.tasks.calibration import Calibration
from official_bert.tasks.choice import ChoiceTask
from official_bert.tasks.embedding import EmbeddingTask
from official_bert.tasks.long_texts import LongDocuments
from official_bert.tasks.squad.decoding import DecodingOptions
from official_bert.tasks.squad.task import SquadTask
from official_bert.tasks.tagging import TaggingTask
from official_bert.tasks.task import FinetunedModel
from official_bert.tasks.text_types import TYPES
from official_bert.tokenization import Tokenizer

CLIENT = pathlib.Path(__file__).parents[1] / "support" / "ask_served.py"

LETTERS = "abcdefghijklmnopqrstuvwxyz"
TOKENS = [
    *SPECIAL,
    *(*LETTERS, *(f"##{letter}" for letter in LETTERS)),
    *("the", "smith", "steve", "cou", "##te", "ca", "北", "京", "5", "$"),
    *(".", ",", "'", "(", ")", "-", "!", "?", "1895", "##19", "straße"),
]
# Answers with these words are equal in `predict.py` and in served models.
PLAIN_WORDS = [
    *("the", "Steve", "Smith's", "(1895-1895).", "Ça", "coûte", "5$,"),
    *("北京", "É!", "o'-'o", "a-a", "Straße", "smith" * 39),
    *("x\u00a0y", "steve\u3000the\u2028smith", "\u200b", "ca\u200b\u0085"),
]
ODD_WORDS = [*("한국", "A-a", "##te", "[SEP]", "ΑΣ", "😀", "a≠b")]
MAX_SEQ_LENGTH = 24


def export(finetuned, directory, **flags):
    options = RunClassifier(export_dir=str(directory), **flags)
    return serving.export(finetuned, options)


def texts(number, seed, longest=30, words=(*PLAIN_WORDS, *ODD_WORDS)):
    """Returns random texts: empty ones, and some that are too long."""
    random = np.random.RandomState(seed)
    spaces = [" ", " ", "  ", "\t", "\u202f", "\n"]
    results = ["", " \t "]
    while len(results) < number:
        chosen = random.choice(words, random.randint(1, longest))
        results.append("".join(w + random.choice(spaces) for w in chosen))
    return results


class Case(NamedTuple):
    """A task and inputs of `serving_default`."""

    task: Any
    inputs: dict[str, list[Any]]

    @property
    def rows(self):
        """The inputs by item."""
        values = zip(*self.inputs.values(), strict=True)
        return [dict(zip(self.inputs, row, strict=True)) for row in values]

    @property
    def items(self):
        """The inputs as `predict.py` takes them."""
        if isinstance(self.task, ChoiceTask):
            return self.rows
        if isinstance(self.task, TaggingTask | EmbeddingTask):
            return self.inputs["text"]
        return [[*row.values()] for row in self.rows]


A, B = texts(12, 1), [*texts(11, 2, longest=8)[::-1], "the Smith's"]
# Choices with the same tokens would have equal scores, except for rounding.
CHOICES = [[b, a, f"{b} the {a}"] for a, b in zip(A, B, strict=True)]


def text_case(task_type, labels, *long_documents, **others):
    task = TYPES[task_type](
        labels=labels, long_documents=LongDocuments(*long_documents), **others
    )
    return Case(task, {"text_a": A, "text_b": B})


def tagging_case(*labels, **others):
    return Case(TaggingTask(labels=labels, **others), {"text": A})


def squad_case(*decoding, is_short=False, pad_to="max"):
    task = SquadTask(
        doc_stride=5,
        max_query_length=7,
        decoding=DecodingOptions(*decoding),
        pad_to=pad_to,
    )
    questions = ["", *texts(11, 3, longest=6)]
    contexts = texts(12, 4, longest=60, words=PLAIN_WORDS)
    if is_short:
        contexts = texts(40, 5, longest=2, words=PLAIN_WORDS)
        contexts.append(" ".join(PLAIN_WORDS[:9]))
        questions = ["who?"] * 41
    return Case(task, {"question": questions, "context": contexts})


REGRESSION = {"target_mean": 7.0, "target_deviation": 2.5}
THRESHOLDS = Calibration(thresholds=(0.45, 0.55))
BILSTM = PoolingHead("weighted_sum_all", 6)
CHOICE = ChoiceTask(num_choices=3, long_documents=LongDocuments("head_tail"))
CASES = {
    "classification": text_case(
        "classification", ("no", "yes", "ja"), calibration=Calibration(2.5)
    ),
    "multilabel": text_case(
        *("multilabel", ("no", "yes"), "windows", 0, "mean"),
        calibration=THRESHOLDS,
    ),
    "regression": text_case(
        "regression", (), "windows", 3, "max", **REGRESSION
    ),
    "choice": Case(CHOICE, {"context": A, "choices": CHOICES}),
    "embedding": Case(EmbeddingTask(embedding_size=5), {"text": A}),
    "tagging": tagging_case("O", "B-X", "I-X", "B-Y"),
    "tagging_added": tagging_case("O", "B-X", "I-X", "B-Y"),
    "bilstm": tagging_case("O", pooling_head=BILSTM),
    "squad": squad_case(20, 30),
    # Padding is often among the best starts, or never.
    "squad_max": squad_case(5, 9, is_short=True),
    "squad_bucket": squad_case(5, 9, is_short=True, pad_to="bucket"),
    "squad_2": squad_case(20, 30, True, 0.0),
    "squad_2_few": squad_case(5, 4, True, -2.0),
}
# These are exported and tested in another process, the others in this one.
EXPORTED = ("tagging", "squad_2")
TOLERANCES = {
    "probability": {"atol": 1e-5},
    "n_best_probabilities": {"atol": 1e-5},
    "null_odds": {"rtol": 1e-4, "atol": 1e-4},
}


def load(name, directory):
    """Returns a model with random weights, as if it had been fine-tuned."""
    vocab_file = write_vocab(directory, TOKENS)
    config = BertConfig.from_dict({**tiny.CONFIG, "vocab_size": len(TOKENS)})
    task = CASES[name].task
    model = recorded.assign(build_model(task.head, config), 7)
    added = ("ca", "1895", "北") if name == "tagging_added" else ()
    tokenizer = Tokenizer(vocab_file, never_split=added)
    return FinetunedModel(task, model, tokenizer, MAX_SEQ_LENGTH)


def predict(finetuned, items):
    """Returns the answers of `predict.py`, one item after the other."""
    predictor = Predictor(finetuned)
    return [predictor([item])[0] for item in items]


def check(case, served, finetuned):
    """Compares the outputs of a served model, as lists, with predictions."""
    for number, answer in enumerate(predict(finetuned, case.items)):
        row = {name: values[number] for name, values in served.items()}
        expected = as_served(answer)
        assert row.keys() - expected.keys() <= {"score"}
        for name, value in expected.items():
            found = row[name]
            if isinstance(value, list):
                assert {*found[len(value) :]} <= {"", 0.0}  # Padding.
                found = found[: len(value)]
            if np.array(value).dtype.kind == "f":
                tolerance = TOLERANCES.get(name, {"atol": 2e-6})
                np.testing.assert_allclose(found, value, **tolerance)
            else:
                assert found == value
        if "answer" in row:
            text = case.inputs["context"][number][row["start"] : row["end"]]
            assert text == row["answer"]


def as_served(answer):
    """Returns an answer of `predict.py` under the names of outputs."""
    others = ("entities", "offsets")
    answer = {name: answer[name] for name in answer if name not in others}
    if "n_best" in answer:
        best = answer.pop("n_best")
        answer["n_best_answers"] = [b["text"] for b in best]
        answer["n_best_probabilities"] = [b["probability"] for b in best]
    if isinstance(answer.get("probabilities"), dict):
        answer["classes"] = [*answer["probabilities"]]
        answer["probabilities"] = [*answer["probabilities"].values()]
    return answer


def as_lists(outputs):
    """Returns outputs as they leave a server."""
    arrays = {name: tensor.numpy() for name, tensor in outputs.items()}
    return {
        name: np.char.decode(array.astype("S"), "utf-8").tolist()
        if array.dtype == object
        else array.tolist()
        for name, array in arrays.items()
    }


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(CASES.keys() - {"bilstm", *EXPORTED}))
def test_served_answers_equal_predictions(name, tmp_path):
    finetuned = load(name, tmp_path)
    signatures = serving.make_signatures(finetuned).all()
    inputs = {n: tf.constant(v) for n, v in CASES[name].inputs.items()}

    serve = signatures["serving_default"]
    outputs = serve(**inputs)

    check(CASES[name], as_lists(outputs), finetuned)
    nothing = serve(**{n: values[:0] for n, values in inputs.items()})
    assert {len(values) for values in nothing.values()} == {0}


@pytest.mark.parametrize(
    ("context", "first", "last", "answer"),
    [
        ("Ça  Steve \n Smith's 5$", 1, 2, "Steve \n Smith"),
        ("(한국)", 1, 1, "한국"),  # [UNK]; predict.py: "(한국)".
        ("Ça cou\u0302te!", 1, 1, "cou\u0302"),  # predict.py: "cou\u0302te!"
        ("é\u200b-the", 1, 2, "-the"),
        ("the\u00a0smith, a", 1, 1, "smith"),
    ],
)
def test_answer_is_cut_at_the_bounds_of_its_tokens(
    make_vocab, context, first, last, answer
):
    tokenizer = GraphTokenizer(Tokenizer(make_vocab(*TOKENS)))
    ids, starts, limits = (
        by_word.merge_dims(1, 2)[0]
        for by_word in tokenizer.tokenize_words_with_offsets([context])
    )
    logits = np.zeros((1, len(ids) + 4, 2), np.float32)
    logits[0, first + 3, 0] = logits[0, last + 3, 1] = 9.0

    output = squad_signatures.choose_answer(
        squad_signatures.Passage(tf.constant(context), starts, limits),
        squad_signatures.Windows(*tf.constant([[0], [len(ids)], [3]], "int64")),
        tf.constant(logits),
        DecodingOptions(n_best_size=3),
    )

    assert output["answer"].numpy().decode() == answer
    bounds = int(output["start"]), int(output["end"])
    assert context[slice(*bounds)] == answer
    assert output["n_best_answers"].numpy()[0].decode() == answer


@pytest.mark.slow
def test_bytes_that_are_not_utf8_are_ignored(tmp_path):
    signatures = serving.make_signatures(load("squad", tmp_path))
    context = b"na\xefve the \xa0 end of it"
    outputs = signatures.from_text(
        tf.constant(["what ?"] * 2),
        tf.constant([context, context.decode(errors="ignore")]),
    )
    for values in as_lists(outputs).values():
        assert values[0] == values[1]


def test_more_choices_than_in_training_are_an_error(tmp_path):
    signatures = serving.make_signatures(load("choice", tmp_path))
    choices = tf.constant([["a", "b", "c", "d"]])
    with pytest.raises(tf.errors.InvalidArgumentError, match="at most 3 ch"):
        signatures.from_text(tf.constant(["the"]), choices)


@pytest.mark.parametrize("name", ["classification", "choice", "squad"])
def test_serialized_examples_have_the_answers_of_their_ids(name, tmp_path):
    finetuned = load(name, tmp_path)
    signatures = serving.make_signatures(finetuned, export_text=False)
    schema = finetuned.task.schema(finetuned.max_seq_length)
    random = np.random.RandomState(1)
    batch = {
        name: random.randint(0, 2, (3, *feature.shape), np.int32)
        for name, feature in schema.items()
    }
    examples = [
        {name: batch[name][row].ravel() for name in batch} for row in range(3)
    ]

    found = signatures.from_examples(record_files.serialize(examples))

    names = ("input_ids", "input_mask", "segment_ids")
    expected = signatures.from_ids(*(tf.constant(batch[n]) for n in names))
    assert as_lists(found) == as_lists(expected)


def ask(questions, *modules):
    """Asks SavedModels in a process that has TensorFlow only."""
    names = ("directory", "signature", "instances")
    objects = [dict(zip(names, values, strict=True)) for values in questions]
    lines = "".join(json.dumps(question) + "\n" for question in objects)
    done = run_python(*("-I", CLIENT, *modules), input=lines, cwd=CLIENT.anchor)
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.slow
def test_exported_models_answer_without_this_project(tmp_path):
    questions, models = [], {}
    for name in EXPORTED:
        (tmp_path / name).mkdir()
        models[name] = load(name, tmp_path / name)
        path = export(models[name], tmp_path / name / "export")
        questions.append((path, "serving_default", CASES[name].rows))

    answers = ask(questions, "tensorflow_text")

    for (name, finetuned), rows in zip(models.items(), answers, strict=True):
        columns = {key: [row[key] for row in rows] for key in rows[0]}
        check(CASES[name], columns, finetuned)


@pytest.mark.nightly
def test_model_without_text_signatures_needs_tensorflow_alone(tmp_path):
    finetuned = load("classification", tmp_path)
    directory = tmp_path / "export"
    path = export(finetuned, directory, export_text=False)
    tokens = ["[CLS]", "the", "smith", "[SEP]"]
    row = {
        "input_ids": [TOKENS.index(token) for token in tokens],
        "input_mask": [1] * 4,
        "segment_ids": [0] * 4,
    }

    served = ask((path, name, [row] * 2) for name in ("serving_default", "ids"))

    [expected] = predict(finetuned, ["the Smith"])
    for row in [row for rows in served for row in rows]:
        assert row["label"] == expected["label"]
        found = dict(zip(row["classes"], row["probabilities"], strict=True))
        assert found == pytest.approx(expected["probabilities"], abs=2e-6)
    names = {"examples", "ids", "serving_default"}
    assert tf.saved_model.load(path).signatures.keys() == names
    version = directory / "1"
    assert (version / "assets/labels.txt").read_text() == "no\nyes\nja\n"
    assert (version / "assets/vocab.txt").read_text().startswith("[PAD]\n")
    assert not (version / "model.tflite").exists()
    task = json.loads((version / "assets.extra/task.json").read_text())
    assert task["max_seq_length"] == MAX_SEQ_LENGTH
    assert task["labels"] == ["no", "yes", "ja"]


def test_export_of_a_model_on_a_hub_module_is_an_error(tmp_path):
    finetuned = load("regression", tmp_path)
    finetuned.model.bert = keras.layers.Identity()
    with pytest.raises(InputError, match="Hub modules cannot be exported"):
        export(finetuned, tmp_path / "export")


def test_exported_version_appears_only_when_complete(tmp_path, monkeypatch):
    finetuned = load("regression", tmp_path)
    directory = tmp_path / "export"
    for name in ("7", "10", "notes"):
        (directory / name).mkdir(parents=True)
    seen = []

    def save(module, path, functions):
        seen.extend(p.name for p in directory.iterdir())
        pathlib.Path(path, "saved_model.pb").touch()
        raise tf.errors.ResourceExhaustedError(None, None, "no room")

    with monkeypatch.context() as patched:
        patched.setattr(tf.saved_model, "save", save)
        with pytest.raises(InputError, match=r"11: .*no room"):
            export(finetuned, directory, export_text=False)

    # TensorFlow Serving ignores names that are not numbers.
    assert {name for name in seen if name.isdecimal()} == {"7", "10"}
    assert len(seen) > 3
    assert {p.name for p in directory.iterdir()} == {"10", "7", "notes"}
    path = export(finetuned, directory, export_text=False)
    assert path == str(directory / "11")


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["classification", "choice", "tagging", "squad"]
)
def test_tflite_model_equals_the_original(name, tmp_path):
    loaded = load(name, tmp_path)
    export(loaded, tmp_path, export_text=False, export_tflite=True)

    content = (tmp_path / "1/model.tflite").read_bytes()
    assert content[4:8] == b"TFL3"
    signatures = serving.make_signatures(loaded, export_text=False)
    assert tflite.largest_difference(signatures, content) < 1e-5
    for weight in loaded.model.trainable_variables:
        weight.assign(weight + 0.1)
    assert tflite.largest_difference(signatures, content) > 0.01


def test_exported_model_must_have_finite_outputs():
    names = ("input_ids", "input_mask", "segment_ids")

    def compare(value):
        return engine_models.largest_difference(
            lambda *_: {"logits": tf.constant([0.25])},
            lambda _: lambda _: [np.float32([value])],
            [tf.TensorSpec([None, None], tf.int32, name) for name in names],
            BertConfig(9),
        )

    assert compare(0.5) == 0.25
    with pytest.raises(InputError, match="NaN or infinity"):
        compare(np.nan)


@pytest.mark.slow
def test_tflite_export_of_a_bilstm_is_an_error_and_writes_nothing(tmp_path):
    finetuned = load("bilstm", tmp_path)
    directory = tmp_path / "export"
    with pytest.raises(InputError, match="--export_tflite"):
        export(finetuned, directory, export_text=False, export_tflite=True)
    assert not directory.exists()
