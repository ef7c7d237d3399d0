"""Multiple choice: rows of C sequences, one score each."""

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
from official_bert.inputs import datasets, padding
from official_bert.inputs.records import RecordFiles
from official_bert.modeling.finetuning_models import SequenceClassifier
from official_bert.tasks import record_files
from official_bert.tasks.choice import ChoiceExample, ChoiceTask
from official_bert.tasks.documents import LongDocuments
from official_bert.tasks.forward import Forward
from official_bert.tasks.task import Outputs, RowFeatures
from official_bert.tokenization import BatchTokenizer

TASK = ChoiceTask(num_choices=3)
EXAMPLES = [
    ChoiceExample("1", "cat dog", ["good", "bad bad", ""], 1),
    ChoiceExample("2", "sun " * 9, ["rain " * 9, "red", "blue blue"], 2),
    ChoiceExample("3", "", ["good", "bad", "cat"], None),
]


@pytest.fixture
def tokenizer(tmp_path):
    path = tmp_path / "vocab.txt"
    path.write_text("\n".join(tiny.VOCAB))
    return BatchTokenizer(str(path), do_lower_case=True)


def words(ids):
    return " ".join(tiny.VOCAB[number] for number in ids)


def test_rows_hold_a_sequence_for_each_choice(tokenizer):
    rows = list(TASK.feature_rows(EXAMPLES, tokenizer, 12))
    assert [r.example for r in rows] == [0, 1, 2]
    assert [words(ids) for ids in rows[0].row["input_ids"]] == [
        "[CLS] cat dog [SEP] good [SEP]",
        "[CLS] cat dog [SEP] bad bad [SEP]",
        "[CLS] cat dog [SEP]",
    ]
    assert rows[0].row["segment_ids"][1] == [0, 0, 0, 0, 1, 1, 1]
    assert rows[0].row["input_mask"][2] == [1, 1, 1, 1]
    # Cut as a pair of its own each, the longer one first.
    assert [words(ids) for ids in rows[1].row["input_ids"]] == [
        f"[CLS] {'sun ' * 5}[SEP] {'rain ' * 4}[SEP]",
        f"[CLS] {'sun ' * 8}[SEP] red [SEP]",
        f"[CLS] {'sun ' * 7}[SEP] blue blue [SEP]",
    ]
    labels = [r.row["label_ids"] for r in rows]
    assert labels == [[1], [2], [0]]


def test_records_there_and_back(tokenizer, tmp_path):
    """Written as in training, read as in training."""
    path = str(tmp_path / "train.tf_record")
    record_files.write_records(path, TASK, EXAMPLES, tokenizer, 12)
    written = RecordFiles([path], TASK.schema(12))
    rows = [r.row for r in TASK.feature_rows(EXAMPLES, tokenizer, 12)]
    expected = padding.pad_batch(TASK.schema(12), rows, 12, 3)
    assert expected["input_ids"].shape == (3, 3, 12)
    [batch] = datasets.finetuning_batches(written, 3, seed=0, num_examples=3)
    # Shuffled; labels tell which is which.
    for number, label in enumerate(batch["label_ids"].numpy()[:, 0]):
        [origin] = np.flatnonzero(expected["label_ids"][:, 0] == label)
        for name, values in expected.items():
            np.testing.assert_array_equal(batch[name][number], values[origin])
    assert batch["input_ids"].dtype == tf.int32


def test_every_choice_is_scored_as_a_pair_by_itself(tokenizer):
    """By the classifier of pairs with one output and the same weights."""
    config = BertConfig(**tiny.CONFIG)
    model = TASK.build_model(config)
    pairs = SequenceClassifier(config, 1)
    for mine, other in zip(
        model.trainable_variables, pairs.trainable_variables, strict=True
    ):
        assert mine.path == other.path
        other.assign(mine)
    [features] = TASK.featurize(EXAMPLES, tokenizer, 12, is_training=False)
    forward = Forward(TASK, model, max_seq_length=12, batch_size=2)
    outputs = forward.run(features)
    batch = features.batch(range(3), 12, 3)
    for choice in range(3):
        one = {
            name: tf.constant(batch[name][:, choice])
            for name in ("input_ids", "input_mask", "segment_ids")
        }
        np.testing.assert_allclose(
            [logits[choice] for logits in outputs.logits],
            pairs(one)[:, 0],
            atol=1e-5,
        )
    answers = TASK.answers(features, outputs)
    logits = np.stack(outputs.logits).astype(float)
    np.testing.assert_allclose(answers, special.softmax(logits, 1), rtol=1e-5)
    losses = -special.log_softmax(logits, 1)[range(3), [1, 2, 0]]
    np.testing.assert_allclose(outputs.losses, losses, rtol=1e-5)
    assert outputs.weights.tolist() == [1.0, 1.0, 1.0]


def answers(*logits):
    features = RowFeatures(EXAMPLES[: len(logits)], [], TASK.schema(12))
    zeros = np.zeros(len(logits))
    arrays = [np.array(one, np.float32) for one in logits]
    return TASK.answers(features, Outputs(arrays, zeros, zeros))


def test_accuracy():
    found = answers((0, 1, 0), (1, 0, 0))
    assert TASK.metrics(EXAMPLES[:2], found) == {"accuracy": 0.5}
    assert TASK.main_metric == "accuracy"
    # Of test data nobody says that the first choice is the right one.
    found = answers((0, 1, 0), (1, 0, 0), (1, 0, 0))
    assert TASK.metrics(EXAMPLES, found) == {}


def test_predictions(tmp_path):
    found = answers((0, 1, 0), (1, 0, 0), (0, 0, 2))
    TASK.write_predictions(str(tmp_path), "test", EXAMPLES, found)
    written = (tmp_path / "test_predictions.tsv").read_text()
    assert written == "id\tprediction\n1\t1\n2\t0\n3\t2\n"
    lines = (tmp_path / "test_results.tsv").read_text().splitlines()
    assert [len(line.split("\t")) for line in lines] == [3, 3, 3]
    assert sum(map(float, lines[0].split("\t"))) == pytest.approx(1.0)


def test_json_there_and_back():
    task = ChoiceTask(num_choices=5, long_documents=LongDocuments("head_tail"))
    told = json.loads(json.dumps(task.to_json()))
    assert told["kind"] == "choice"
    assert ChoiceTask.from_json(told) == task
    example = TASK.parse(
        {"context": "a", "question": "b", "choices": ["c", "d", "e"]}, "x:1"
    )
    assert example == ChoiceExample("x:1", "a", ["b c", "b d", "b e"])
    [answer] = answers((0.0, 0.0, 1.0))
    found = json.loads(json.dumps(TASK.answer_to_json(example, answer)))
    assert found["choice"] == 2
    assert found["text"] == "b e"
    assert found["probabilities"] == pytest.approx([float(x) for x in answer])


@pytest.mark.parametrize(
    "given",
    [
        "a",
        {"context": "a"},
        {"context": "a", "choices": ["b", "c"]},
        {"context": "a", "choices": ["b", "c", 1]},
        {"choices": ["b", "c", "d"]},
        {"context": "a", "question": 3, "choices": ["b", "c", "d"]},
    ],
)
def test_what_cannot_be_parsed(given):
    with pytest.raises(InputError, match=r"^x:1: "):
        TASK.parse(given, "x:1")


def test_windows_are_for_single_texts():
    with pytest.raises(InputError, match="--long_document=windows"):
        ChoiceTask(num_choices=2, long_documents=LongDocuments("windows"))


def write(folder, split, seed, number, num_choices=3):
    """Learnable: the choice that names an animal is right."""
    rng = random.Random(seed)
    labels = []
    with open(folder / f"{split}.jsonl", "w") as file:
        for _ in range(number):
            label = rng.randrange(num_choices)
            choices = rng.choices(["red", "blue", "sun", "rain"], k=num_choices)
            choices[label] = rng.choice(["cat", "dog"])
            row = {
                "context": rng.choice(["good", "bad"]),
                "question": "what is it ?",
                "choices": choices,
                "label": label,
            }
            print(json.dumps(row), file=file)
            labels.append(label)
    return labels


@pytest.mark.slow
@pytest.mark.parametrize("pad_to", ["max", "bucket"])
def test_a_run(tmp_path, pad_to):
    for seed, (split, number) in enumerate([("train", 240), ("dev", 80)]):
        write(tmp_path, split, seed, number)
    labels = write(tmp_path, "test", 7, 30)
    output, results = tiny.run(
        tmp_path,
        task_name="choices",
        num_train_epochs=4.0,
        pad_to=pad_to,
        max_seq_length=32,
    )
    assert results["accuracy"] > 0.9
    text = (output / "eval_results.txt").read_text()
    assert text.startswith(f"eval_accuracy = {results['accuracy']}")
    told = json.loads((output / "task.json").read_text())
    assert (told["kind"], told["num_choices"]) == ("choice", 3)
    lines = (output / "test_predictions.tsv").read_text().splitlines()[1:]
    found = [int(line.split("\t")[1]) for line in lines]
    assert np.mean(np.equal(found, labels)) > 0.9
    scores = np.loadtxt(output / "test_results.tsv")
    assert scores.shape == (30, 3)
    np.testing.assert_array_equal(scores.argmax(axis=1), found)
    np.testing.assert_allclose(scores.sum(axis=1), 1.0, rtol=1e-5)


def test_how_many_choices_is_what_the_first_example_has(tmp_path):
    write(tmp_path, "train", 0, 3, num_choices=5)
    task = tasks.get(tiny.options(tmp_path, task_name="choices"))
    assert task.num_choices == 5
    assert len(task.examples("train")[2].choices) == 5
