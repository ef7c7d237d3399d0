"""Multiple choice: SWAG, the user's own data, features, answers, a run."""

import csv
import json
import random

import numpy as np
import pytest
import tensorflow as tf
from scipy import special
from support import tiny

from official_bert import tasks
from official_bert.config import BertConfig
from official_bert.errors import InputError
from official_bert.inputs import datasets
from official_bert.inputs.records import RecordFiles
from official_bert.modeling.finetuning_models import SequenceClassifier
from official_bert.tasks import record_files
from official_bert.tasks.choice import ChoiceColumns, ChoiceExample, ChoiceTask
from official_bert.tasks.documents import LongDocuments
from official_bert.tasks.forward import Forward
from official_bert.tasks.task import Outputs, RowFeatures
from official_bert.tokenization import BatchTokenizer

TASK = ChoiceTask(num_choices=3)
SCHEMA = TASK.schema(12, is_training=True)
EXAMPLES = [
    ChoiceExample("1", "cat dog", ["good", "bad bad", ""], 1),
    ChoiceExample("2", "sun " * 9, ["rain " * 9, "red", "blue blue"], 2),
    ChoiceExample("3", "", ["good", "bad", "cat"], None),
]


@pytest.fixture
def tokenizer(make_vocab):
    return BatchTokenizer(make_vocab(*tiny.VOCAB), do_lower_case=True)


@pytest.fixture
def features(tokenizer):
    """The features of `EXAMPLES`."""
    [features] = TASK.featurize(EXAMPLES, tokenizer, 12, is_training=True)
    return features


def words(ids):
    return " ".join(tiny.VOCAB[number] for number in ids)


def test_every_choice_is_a_sequence_with_the_context(features):
    assert [row.example for row in features.rows] == [0, 1, 2]
    first, second, third = (row.row for row in features.rows)
    assert [words(ids) for ids in first["input_ids"]] == [
        "[CLS] cat dog [SEP] good [SEP]",
        "[CLS] cat dog [SEP] bad bad [SEP]",
        "[CLS] cat dog [SEP]",
    ]
    assert first["segment_ids"][1] == [0, 0, 0, 0, 1, 1, 1]
    assert first["input_mask"][2] == [1, 1, 1, 1]
    # Each pair is truncated on its own.
    assert [words(ids) for ids in second["input_ids"]] == [
        f"[CLS] {'sun ' * 5}[SEP] {'rain ' * 4}[SEP]",
        f"[CLS] {'sun ' * 8}[SEP] red [SEP]",
        f"[CLS] {'sun ' * 7}[SEP] blue blue [SEP]",
    ]
    labels = [row["label_ids"] for row in (first, second, third)]
    assert labels == [[1], [2], [0]]


def test_records_are_read_as_written(features, tokenizer, tmp_path):
    path = str(tmp_path / "train.tf_record")
    record_files.write_records(path, TASK, EXAMPLES, tokenizer, 12)
    expected = features.batch(range(3), 12, 3)
    assert expected["input_ids"].shape == (3, 3, 12)
    records = RecordFiles([path], SCHEMA)
    [batch] = datasets.finetuning_batches(records, 3, seed=0, num_examples=3)
    # They are shuffled, and differ in their labels.
    for number, label in enumerate(batch["label_ids"].numpy()[:, 0]):
        [origin] = np.flatnonzero(expected["label_ids"][:, 0] == label)
        for name, values in expected.items():
            np.testing.assert_array_equal(batch[name][number], values[origin])
    assert batch["input_ids"].dtype == tf.int32


def test_every_choice_has_the_score_of_a_pair_classifier(features):
    config = BertConfig(**tiny.CONFIG)
    model = TASK.build_model(config)
    pairs = SequenceClassifier(config, 1)
    variables = zip(
        model.trainable_variables, pairs.trainable_variables, strict=True
    )
    for mine, other in variables:
        assert mine.path == other.path
        other.assign(mine)
    outputs = Forward(TASK, model, max_seq_length=12, batch_size=2).run(
        features
    )
    logits = np.stack(outputs.logits).astype(float)
    batch = features.batch(range(3), 12, 3)
    inputs = ("input_ids", "input_mask", "segment_ids")
    for choice in range(3):
        one = {name: tf.constant(batch[name][:, choice]) for name in inputs}
        np.testing.assert_allclose(
            logits[:, choice], pairs(one)[:, 0], atol=1e-5
        )
    answers = TASK.answers(features, outputs)
    np.testing.assert_allclose(answers, special.softmax(logits, 1), rtol=1e-5)
    losses = -special.log_softmax(logits, 1)[range(3), [1, 2, 0]]
    np.testing.assert_allclose(outputs.losses, losses, rtol=1e-5)
    assert outputs.weights.tolist() == [1.0, 1.0, 1.0]


def answers(*logits):
    features = RowFeatures(EXAMPLES[: len(logits)], [], SCHEMA)
    zeros = np.zeros(len(logits))
    arrays = [np.array(one, np.float32) for one in logits]
    return TASK.answers(features, Outputs(arrays, zeros, zeros))


def test_the_metric_is_accuracy_if_all_labels_are_known():
    assert TASK.main_metric == "accuracy"
    two = answers((0, 1, 0), (1, 0, 0))
    assert TASK.metrics(EXAMPLES[:2], two) == {"accuracy": 0.5}
    three = answers((0, 1, 0), (1, 0, 0), (1, 0, 0))
    assert TASK.metrics(EXAMPLES, three) == {}


def test_objects_are_parsed_and_answered():
    example = TASK.parse(
        {"context": "a", "question": "b", "choices": ["c", "d", "e"]}, "x:1"
    )
    assert example == ChoiceExample("x:1", "a", ["b c", "b d", "b e"])
    [answer] = answers((0.0, 0.0, 1.0))
    shown = json.loads(json.dumps(TASK.answer_to_json(example, answer)))
    assert (shown["choice"], shown["text"]) == (2, "b e")
    assert shown["probabilities"] == pytest.approx([float(x) for x in answer])


HEADER = [
    *("", "video-id", "fold-ind", "startphrase", "sent1", "sent2"),
    *("gold-source", "ending0", "ending1", "ending2", "ending3", "label"),
]
ROW = ["0", "v1", "34", "She opens it. He", "She opens it.", "He", "gold"]
ENDINGS = ['sees "a dog", red.', "eats.", "sits.", "stands."]


def write_csv(path, *rows):
    with open(path, "w", newline="") as file:
        csv.writer(file).writerows(rows)


def swag(folder):
    return tasks.get(tiny.options(folder, task_name="SWAG"))


def test_text_b_of_swag_is_the_beginning_with_an_ending(tmp_path):
    for name in ("train", "val"):
        write_csv(tmp_path / f"{name}.csv", HEADER, [*ROW, *ENDINGS, "2"])
    write_csv(tmp_path / "test.csv", HEADER[:-1], [*ROW, *ENDINGS])
    task = swag(tmp_path)
    assert task.num_choices == 4
    texts = ['He sees "a dog", red.', "He eats.", "He sits.", "He stands."]
    for split, label in (("train", 2), ("dev", 2), ("test", None)):
        expected = ChoiceExample(f"{split}-2", "She opens it.", texts, label)
        assert task.examples(split) == [expected]


@pytest.mark.parametrize(
    ("rows", "column"),
    [
        *(
            ((HEADER, [*ROW, *ENDINGS, label]), "label")
            for label in ("4", "-1", "1.5", "", "a", "nan")
        ),
        ((["sent1", "label"], ["a", "0"]), "sent2"),
    ],
)
def test_malformed_rows_of_swag_are_reported(tmp_path, rows, column):
    write_csv(tmp_path / "val.csv", *rows)
    with pytest.raises(InputError, match=rf"val\.csv:2: .*'{column}'"):
        swag(tmp_path).examples("dev")


def choices(folder, *lines, split="train", **columns):
    """Returns the examples of the user's own data."""
    text = "\n".join(map(json.dumps, lines))
    (folder / f"{split}.jsonl").write_text(text)
    options = tiny.options(
        folder,
        task_name="choices",
        do_train=split == "train",
        do_eval=split == "dev",
        do_predict=split == "test",
        **columns,
    )
    return tasks.get(options).examples(split)


OWN = {"context": "a", "choices": ["b", "c"], "label": 1}


def test_question_and_id_are_optional_and_the_label_in_test_data(tmp_path):
    asked = {**OWN, "question": "d ?", "id": 7}
    assert choices(tmp_path, OWN, asked) == [
        ChoiceExample("train-1", "a", ["b", "c"], 1),
        ChoiceExample("7", "a", ["d ? b", "d ? c"], 1),
    ]
    del asked["label"]
    [example] = choices(tmp_path, asked, split="test")
    assert example == ChoiceExample("7", "a", ["d ? b", "d ? c"])
    with pytest.raises(InputError, match=r"dev\.jsonl:1: .*'label'"):
        choices(tmp_path, asked, split="dev")


HELLASWAG = {
    "ind": 24,
    "ctx_a": "A man is on a roof.",
    "ctx_b": "he",
    "ctx": "A man is on a roof. he",
    "endings": ["rips up tiles.", "plays a level."],
    "label": 1,
}


def test_hellaswag_is_read_with_its_column_names(tmp_path):
    names = {"context_column": "ctx_a", "choices_column": "endings"}
    names |= {"question_column": "ctx_b", "id_column": "ind"}
    names |= {"label_column": "gold"}
    given = {**HELLASWAG, "gold": "0", "id": "x"}
    [example] = choices(tmp_path, given, **names)
    texts = ["he rips up tiles.", "he plays a level."]
    assert example == ChoiceExample("24", "A man is on a roof.", texts, 0)
    # For predicting, the model knows these and the default names.
    options = tiny.options(tmp_path, task_name="choices", **names)
    task = tasks.from_json(json.loads(json.dumps(tasks.get(options).to_json())))
    default = {"context": given["ctx_a"], "choices": given["endings"]}
    for item in (given, {**default, "question": "he"}):
        assert task.parse(item, "x") == example._replace(guid="x", label=None)


@pytest.mark.parametrize(
    ("names", "given"),
    [
        ({"question": "q"}, {"context": "a", "q": "d?", "choices": ["b", "c"]}),
        ({"context": "x"}, {"x": "a", "question": "d?", "choices": ["b", "c"]}),
    ],
)
def test_some_columns_may_keep_their_default_names(names, given):
    task = ChoiceTask(num_choices=2, columns=ChoiceColumns(**names))
    expected = ChoiceExample("1", "a", ["d? b", "d? c"])
    assert task.parse(given, "1") == expected


@pytest.mark.parametrize(
    ("changes", "column"),
    [
        ({"choices_column": "choices"}, "choices"),
        ({"context_column": "context"}, "context"),
        ({"question_column": "ctx_c"}, "ctx_c"),
        ({"label_column": "gold"}, "gold"),
        ({"id_column": "id"}, "id"),
        ({"label_column": "ind"}, "ind"),
        ({"choices_column": "ctx"}, "ctx"),
        ({"context_column": "ind"}, "ind"),
    ],
)
def test_wrong_column_flags_are_reported(tmp_path, changes, column):
    names = {"context_column": "ctx", "choices_column": "endings", **changes}
    with pytest.raises(InputError, match=rf"train\.jsonl:1: .*'{column}'"):
        choices(tmp_path, HELLASWAG, **names)


@pytest.mark.parametrize(
    ("changes", "received"),
    [
        ({"label": 2}, "2"),
        ({"label": True}, "True"),
        ({"choices": ["a", "b", "c"]}, "list of 2"),
        ({"choices": ["a", 5]}, "5"),
        ({"context": None}, "None"),
    ],
)
def test_malformed_examples_are_reported(tmp_path, changes, received):
    with pytest.raises(InputError, match=rf"train\.jsonl:2: .*{received}"):
        choices(tmp_path, OWN, {**OWN, **changes})


def test_one_choice_and_windows_are_an_error(tmp_path):
    with pytest.raises(InputError, match=r"train\.jsonl:1: .*'choices'"):
        choices(tmp_path, {**OWN, "choices": ["b"], "label": 0})
    with pytest.raises(InputError, match="--long_document=windows"):
        ChoiceTask(num_choices=2, long_documents=LongDocuments("windows"))


def write_choices(folder, split, seed, number):
    """Writes examples whose right choice is an animal; returns the labels."""
    rng = random.Random(seed)
    rows = []
    for _ in range(number):
        label = rng.randrange(5)
        texts = rng.choices(["red", "blue", "sun", "rain"], k=5)
        texts[label] = rng.choice(["cat", "dog"])
        rows.append({**OWN, "question": "it ?", "choices": texts})
        rows[-1]["label"] = label
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    (folder / f"{split}.jsonl").write_text(lines)
    return [row["label"] for row in rows]


@pytest.mark.slow
@pytest.mark.parametrize("pad_to", ["max", "bucket"])
def test_a_run_learns_five_choices(tmp_path, pad_to):
    for seed, (split, number) in enumerate([("train", 240), ("dev", 80)]):
        write_choices(tmp_path, split, seed, number)
    labels = write_choices(tmp_path, "test", 7, 30)
    output, results = tiny.run(
        tmp_path,
        task_name="choices",
        num_train_epochs=4.0,
        pad_to=pad_to,
        max_seq_length=32,
    )
    assert results["accuracy"] > 0.9
    text = (output / "eval_results.txt").read_text()
    assert text.startswith("eval_accuracy = ")
    described = json.loads((output / "task.json").read_text())
    assert (described["kind"], described["num_choices"]) == ("choice", 5)
    header, *lines = (output / "test_predictions.tsv").read_text().splitlines()
    assert header == "id\tprediction"
    predicted = [int(line.split("\t")[1]) for line in lines]
    assert np.mean(np.equal(predicted, labels)) > 0.9
    scores = np.loadtxt(output / "test_results.tsv")
    assert scores.shape == (30, 5)
    np.testing.assert_array_equal(scores.argmax(axis=1), predicted)
    np.testing.assert_allclose(scores.sum(axis=1), 1.0, rtol=1e-5)
