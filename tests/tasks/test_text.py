import json
import math

import numpy as np
import pytest
from scipy import special
from support import tiny

from official_bert.tasks.classification import ClassificationTask
from official_bert.tasks.long_texts import LongDocuments
from official_bert.tasks.multilabel import MultilabelTask
from official_bert.tasks.regression import RegressionTask
from official_bert.tasks.task import ExampleFeature, RowFeatures
from official_bert.tasks.text import TextExample

CLASSES = ClassificationTask(labels=("no", "yes", "maybe"))
TOPICS = MultilabelTask(labels=("sun", "rain", "wind"))
SCORE = RegressionTask(labels=())


def windowed(pooling="mean"):
    return ClassificationTask(
        labels=("no", "yes"),
        long_documents=LongDocuments("windows", 0, pooling),
    )


@pytest.mark.parametrize(
    ("task", "label", "expected"),
    [
        (CLASSES, "maybe", [2]),
        (CLASSES, None, [0]),
        (TOPICS, ("wind", "sun"), [1, 0, 1]),
        (TOPICS, (), [0, 0, 0]),
        (TOPICS, None, [0, 0, 0]),
        (SCORE, 2.5, [2.5]),
        (SCORE, None, [0]),
    ],
)
def test_labels_become_features(tokenizer, task, label, expected):
    example = TextExample("dev-1", "Good cat", "bad", label)
    [(number, row)] = task.feature_rows([example], tokenizer, 16)
    assert number == 0
    assert row["label_ids"] == expected
    words = ["[CLS]", "good", "cat", "[SEP]", "bad", "[SEP]"]
    assert row["input_ids"] == [tiny.VOCAB.index(word) for word in words]
    feature = task.schema(16)["label_ids"]
    assert feature.length == len(expected)
    assert feature.is_float == (task is SCORE)


def test_windows_are_features_of_one_example(tokenizer):
    texts = ["sun " * 10, "rain", "red " * 9]
    examples = [TextExample("", text, None, "yes") for text in texts]
    rows = list(windowed().feature_rows(examples, tokenizer, 8))
    assert [row.example for row in rows] == [0, 0, 0, 1, 2, 2]
    assert [len(r.values["input_ids"]) for r in rows] == [8, 8, 8, 3, 8, 8]
    assert all(r.values["label_ids"] == [1] for r in rows)


@pytest.mark.parametrize(
    ("pooling", "first"), [("mean", [1.5, 1.0]), ("max", [2.0, 3.0])]
)
def test_logits_of_windows_are_pooled(pooling, first):
    logits = [(1.0, 3.0), (2.0, -1.0), (0.0, 5.0)]
    found = answers(windowed(pooling), *logits, numbers=(0, 0, 1))
    expected = special.softmax([first, [0.0, 5.0]], axis=1)
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def answers(task, *logits, numbers=None):
    numbers = numbers or range(len(logits))
    examples = [TextExample("", "x")] * len(set(numbers))
    rows = [ExampleFeature(number, {}) for number in numbers]
    features = RowFeatures(examples, rows, task.schema(8))
    return task.answers(features, [np.float32(row) for row in logits])


def test_answers_are_the_best_label_or_all_likely_labels_or_a_number():
    def shown(task, *logits):
        [answer] = answers(task, logits)
        found = task.answer_to_json(TextExample("", "x"), answer)
        return json.loads(json.dumps(found))

    found = shown(CLASSES, 0.0, math.log(2.0), 0.0)
    assert found["label"] == "yes"
    expected = {"no": 0.25, "yes": 0.5, "maybe": 0.25}
    assert found["probabilities"] == pytest.approx(expected)
    found = shown(TOPICS, 0.0, math.log(2.0), -math.log(2.0))
    assert found["labels"] == ["sun", "rain"]
    expected = {"sun": 0.5, "rain": 2 / 3, "wind": 1 / 3}
    assert found["probabilities"] == pytest.approx(expected)
    assert shown(TOPICS, -1.0, -1.0, -1.0)["labels"] == []
    assert shown(SCORE, 2.5) == {"score": 2.5}
    assert answers(CLASSES) == []


def metrics(task, labels, *logits):
    examples = [TextExample("", "x", None, label) for label in labels]
    found = task.metrics(examples, answers(task, *logits))
    return json.loads(json.dumps(found))


def test_metrics_depend_on_the_task_type():
    labels = ["no", "yes", "yes"]
    found = metrics(CLASSES, labels, (1, 0, 0), (0, 1, 0), (0, 0, 1))
    assert found["accuracy"] == pytest.approx(2 / 3)
    assert found["per_class"]["yes"]["recall"] == 0.5
    assert found["confusion_matrix"] == [[1, 0, 0], [0, 1, 1], [0, 0, 0]]
    found = metrics(TOPICS, [("sun",), ()], (1, -1, -1), (1, -1, -1))
    assert found["exact_match"] == 0.5
    assert found["micro_f1"] == pytest.approx(2 / 3)
    found = metrics(SCORE, [0.0, 1.0, 3.0], (1.0,), (3.0,), (7.0,))
    assert found["pearson"] == pytest.approx(1.0)
    main_metrics = [task.main_metric for task in (CLASSES, TOPICS, SCORE)]
    assert main_metrics == ["accuracy", "micro_f1", "pearson"]


def test_texts_pairs_and_objects_are_parsed():
    single = {"text_a": "a", "text_b": None}
    for value in ("a", ["a"], ["a", None], {"text": "a"}, single):
        assert CLASSES.parse(value, "x:1") == TextExample("x:1", "a", None)
    both = {"text_a": "a", "text_b": "b"}, {"text": "a", "text_pair": "b"}
    for value in (["a", "b"], *both):
        assert CLASSES.parse(value, "x:1") == TextExample("x:1", "a", "b")
