import json
import random

import numpy as np
import pytest
import tensorflow as tf
from scipy import special
from support import tiny, write_json_lines
from support.run_outputs import read_json

from official_bert import tasks
from official_bert.config import BertConfig
from official_bert.errors import InputError
from official_bert.inference.forward import Forward
from official_bert.modeling import finetuning_models
from official_bert.tasks.choice import ChoiceColumns, ChoiceExample, ChoiceTask
from official_bert.tasks.long_texts import LongDocuments

TASK = ChoiceTask(num_choices=3)
EXAMPLES = [
    ChoiceExample("1", "cat dog", ["good", "bad bad", ""], 1),
    ChoiceExample("2", "sun " * 9, ["rain " * 9, "red", "blue blue"], 2),
    ChoiceExample("3", "", ["good", "bad", "cat"], None),
]


@pytest.fixture
def features(tokenizer):
    [features] = TASK.featurize(EXAMPLES, tokenizer, 12)
    return features


def words(ids):
    return " ".join(tiny.VOCAB[number] for number in ids)


def test_every_choice_is_a_sequence_with_the_context(features):
    assert [row.example for row in features.rows] == [0, 1, 2]
    first, second, third = (row.values for row in features.rows)
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


def test_evaluation_of_few_examples_has_a_small_batch(features):
    forward = Forward(TASK.head, None, max_seq_length=12, batch_size=10**9)
    sizes = []

    def run(batch):
        sizes.append(len(batch["input_ids"]))
        return [tf.zeros(sizes)] * 3

    forward._run = run
    assert len(forward.run(features).logits) == 3
    assert sizes == [4]


@pytest.mark.slow
def test_every_choice_has_the_score_of_a_pair_classifier(features):
    config = BertConfig(**tiny.CONFIG)
    model = finetuning_models.build_model(TASK.head, config)
    pair_classifier = finetuning_models.SequenceClassifier(config, 1)
    pair_classifier.set_weights(model.get_weights())
    forward = Forward(TASK.head, model, max_seq_length=12, batch_size=2)
    traced, compute = [], forward._on_replica
    forward._on_replica = lambda batch: traced.append(1) or compute(batch)
    outputs = forward.run(features)
    assert len(traced) == 1  # For both lengths.
    logits = np.stack(outputs.logits).astype(float)
    batch = features.batch(range(3), 12, 3)
    inputs = ("input_ids", "input_mask", "segment_ids")
    for choice in range(3):
        pair = {name: tf.constant(batch[name][:, choice]) for name in inputs}
        expected = pair_classifier(pair)[:, 0]
        np.testing.assert_allclose(logits[:, choice], expected, atol=1e-5)
    answers = TASK.answers(features, outputs.logits)
    np.testing.assert_allclose(answers, special.softmax(logits, 1), rtol=1e-5)
    losses = -special.log_softmax(logits, 1)[range(3), [1, 2, 0]]
    np.testing.assert_allclose(outputs.losses, losses, rtol=1e-5)
    assert outputs.weights.tolist() == [1.0, 1.0, 1.0]


def test_metric_is_accuracy_if_all_labels_are_known():
    assert TASK.main_metric == "accuracy"
    answers = np.array([[0.2, 0.5, 0.3], [0.4, 0.3, 0.3], [0.4, 0.3, 0.3]])
    assert TASK.metrics(EXAMPLES[:2], answers[:2]) == {"accuracy": 0.5}
    assert TASK.metrics(EXAMPLES, answers) == {}


def test_baseline_is_a_random_choice():
    examples = [ChoiceExample("", "", ["a"] * n, 0) for n in (2, 4)]
    assert TASK.baseline(examples, examples) == {"accuracy": 0.375}
    assert TASK.baseline_name == "a random choice"


def test_objects_are_parsed_and_answered():
    value = {"context": "a", "question": "b", "choices": ["c", "d", "e"]}
    example = TASK.parse(value, "x:1")
    assert example == ChoiceExample("x:1", "a", ["c", "d", "e"], question="b")
    assert example.texts == ["b c", "b d", "b e"]
    answer = np.array([0.25, 0.25, 0.5], np.float32)
    result = json.loads(json.dumps(TASK.answer_to_json(example, answer)))
    probabilities = [0.25, 0.25, 0.5]
    assert result == {"choice": 2, "text": "e", "probabilities": probabilities}


def test_text_b_of_swag_is_the_beginning_followed_by_an_ending(tmp_path):
    header = "sent1,sent2,ending0,ending1,ending2,ending3"
    row = 'She opens it.,He,"sees ""a dog"", red.",eats.,sits.,stands.'
    for name in ("train", "val"):
        (tmp_path / f"{name}.csv").write_text(f"{header},label\n{row},2\n")
    (tmp_path / "test.csv").write_text(f"{header}\n{row}\n")
    task = tasks.get(tiny.options(tmp_path, task_name="SWAG"))
    assert task.num_choices == 4
    texts = ['He sees "a dog", red.', "He eats.", "He sits.", "He stands."]
    for split, label in (("train", 2), ("dev", 2), ("test", None)):
        expected = ChoiceExample(f"{split}-2", "She opens it.", texts, label)
        assert task.data.read(split) == [expected]


def own_task(folder, **flags):
    return tasks.get(tiny.options(folder, task_name="choices", **flags))


def choices(folder, *lines, split="train", **columns):
    """Returns the examples of the user's own data."""
    write_json_lines(folder / f"{split}.jsonl", lines)
    modes = {"train": "do_train", "dev": "do_eval", "test": "do_predict"}
    flags = dict.fromkeys(modes.values(), False) | {modes[split]: True}
    return own_task(folder, **flags, **columns).data.read(split)


OWN = {"context": "a", "choices": ["b", "c"], "label": 1}


def test_question_id_and_the_label_of_test_data_are_optional(tmp_path):
    with_question = {**OWN, "question": "d ?", "id": 7}
    assert choices(tmp_path, OWN, with_question) == [
        ChoiceExample("train-1", "a", ["b", "c"], 1),
        ChoiceExample("7", "a", ["b", "c"], 1, "d ?"),
    ]
    del with_question["label"]
    [example] = choices(tmp_path, with_question, split="test")
    assert example == ChoiceExample("7", "a", ["b", "c"], None, "d ?")
    with pytest.raises(InputError, match=r"dev\.jsonl:1: .*'label'"):
        choices(tmp_path, with_question, split="dev")


def test_text_that_is_not_used_beside_a_question_is_a_warning(tmp_path, caplog):
    # COPA, of SuperGLUE.
    row = {"premise": "The dog ran.", "question": "cause", "label": 1}
    row |= {"choice1": "It was red.", "choice2": "It saw a cat.", "idx": 3}
    [example] = choices(tmp_path, row, context_column="premise")
    assert example.context == "The dog ran."
    assert example.texts == ["cause It was red.", "cause It saw a cat."]
    assert not caplog.messages
    choices(tmp_path, row)
    assert "the texts in premise are not used" in caplog.text


def test_hellaswag_is_read_with_its_column_names(tmp_path):
    endings = ["rips up tiles.", "plays a level."]
    row = {"ind": 24, "ctx_a": "A man is on a roof.", "ctx_b": "he"}
    row |= {"endings": endings, "gold": "0", "label": 1, "id": "x"}
    names = {"context_column": "ctx_a", "choices_column": "endings"}
    names |= {"question_column": "ctx_b", "id_column": "ind"}
    names["label_column"] = "gold"
    [example] = choices(tmp_path, row, **names)
    expected = ChoiceExample("24", "A man is on a roof.", endings, 0, "he")
    assert example == expected
    # For predicting, the model knows these and the default names.
    described = own_task(tmp_path, **names).to_json()
    task = tasks.from_json(json.loads(json.dumps(described)))
    default = {"context": row["ctx_a"], "choices": row["endings"]}
    mixed = {**row, **default}
    del mixed["ctx_a"], mixed["endings"]
    for item in (row, {**default, "question": "he"}, mixed):
        assert task.parse(item, "x") == example._replace(guid="x", label=None)


NAMES = {"question_column": "Q", "label_column": "L"}
NUMBERS = {"has_header": False, "question_column": "0", "label_column": "4"}
TABLES = {
    "question,A,B,C,label\nd ?,b,c,e,C\nd ?,b,c,,B\n": {},
    "label,question,choice_0,choice_1,choice_2\n2,d ?,b,c,e\n1,d ?,b,c, \n": {},
    # Columns in another order.
    "question,C,A,B,label\nd ?,e,b,c,C\nd ?,,b,c,B\n": {},
    "question,ending2,ending0,ending1,label\nd ?,e,b,c,2\nd ?,,b,c,1\n": {},
    "Q,A,B,C,L\nd ?,b,c,e,C\nd ?,b,c,,B\n": NAMES,
    "d ?,b,c,e,C\nd ?,b,c,,1\n": {**NUMBERS, "choices_column": "1,2,3"},
}


@pytest.mark.parametrize("text", TABLES)
@pytest.mark.parametrize("separator", [",", "\t"])
def test_table_has_a_column_for_each_choice(tmp_path, text, separator):
    name = "train.csv" if separator == "," else "train.tsv"
    (tmp_path / name).write_text(text.replace(",", separator))
    task = own_task(tmp_path, **TABLES[text])
    first, second = task.data.read("train")
    assert first[1:] == ("d ?", ["b", "c", "e"], 2, "")
    assert second[1:] == ("d ?", ["b", "c"], 1, "")
    # predict.py knows the columns, and the keys of JSON objects.
    names = [task.columns.question, *task.columns.choices.split(",")]
    assert task.columns.required == (*names,)
    row = dict(zip(names, ["d ?", "b", "c", "e"], strict=True))
    keys = {"question": "d ?", "choices": ["b", "c", "e"]}
    for value in (row, keys):
        assert task.parse(value, "x")[1:3] == first[1:3]


def test_given_columns_of_choices_are_names_or_numbers(tmp_path):
    path = tmp_path / "train.csv"
    path.write_text("question,C,A,B,label\nd ?,e,b,c,C\n")
    [example] = own_task(tmp_path, choices_column="C,A,B").data.read("train")
    assert example.choices[example.label] == "e"  # A letter is a name.
    path.write_text("d ?,b,c,0\n")
    with pytest.raises(InputError, match=r"--choices_column=1,2 .*nohas_head"):
        own_task(tmp_path, choices_column="1,2")
    # Columns by number have their names in other tables.
    path.write_text("question,A,B,label\nd ?,b,c,B\n")
    (tmp_path / "dev.csv").write_text("label,B,A,question\nB,c,b,d ?\n")
    flags = {"has_header": True, "label_column": "3", "question_column": "0"}
    task = own_task(tmp_path, **flags, choices_column="1,2")
    expected = ("d ?", ["b", "c"], 1, "")
    for split in ("train", "dev"):
        assert [e[1:] for e in task.data.read(split)] == [expected]
    assert task.columns.required == ("question", "A", "B")


def test_numbers_that_may_begin_with_1_are_a_warning(tmp_path, caplog):
    rows = [{**OWN, "choices": ["b", "c", "d"], "label": n} for n in (2, 1)]
    for first, is_warned in ((0, False), (1, True)):
        choices(tmp_path, *rows, {**rows[0], "label": first})
        assert ("begin with 1, subtract 1 from all" in caplog.text) == is_warned


def test_data_may_have_its_own_labels_of_choices_as_in_arc(tmp_path):
    named = {"text": ["b", "c"], "label": ["1", "2"]}
    line = {"question": "d ?", "choices": named, "answerKey": "1"}
    [example] = choices(tmp_path, line, label_column="answerKey")
    assert example[1:] == ("d ?", ["b", "c"], 0, "")
    for labels, answer in ([[1.0, 2.0], 1.0], [["B ", "A "], "B "]):
        named["label"], line["answerKey"] = labels, answer
        [example] = choices(tmp_path, line, label_column="answerKey")
        assert example.label == 0
    for names in (None, 5, "12", ["1"], ["1", "2", "3"]):
        line["choices"] = {**named, "label": names}
        with pytest.raises(InputError, match=r"jsonl:1: .*lists .text. and"):
            choices(tmp_path, line, label_column="answerKey")


@pytest.mark.slow
def test_missing_choices_count_neither_in_the_loss_nor_in_the_answer(tokenizer):
    short = EXAMPLES[0]._replace(choices=["good", "bad bad"])
    wide = ChoiceTask(num_choices=5)
    model = finetuning_models.build_model(TASK.head, BertConfig(**tiny.CONFIG))
    found = []
    for task in (ChoiceTask(num_choices=2), wide):
        [features] = task.featurize([short], tokenizer, 12)
        forward = Forward(task.head, model, max_seq_length=12, batch_size=2)
        outputs = forward.run(features)
        [answer] = task.answers(features, outputs.logits)
        found.append((outputs.losses, answer))
    (loss, answer), (padded_loss, padded) = found
    np.testing.assert_allclose(padded_loss, loss, rtol=1e-6)
    np.testing.assert_allclose(padded, [*answer, 0, 0, 0], rtol=1e-6)
    result = wide.answer_to_json(short, padded)
    assert len(result["probabilities"]) == 2
    shorter = {"question": "d ?", "A": "b", "B": " c "}
    columns = ChoiceColumns(choices="A,B,C")
    task = ChoiceTask(num_choices=3, columns=columns)
    assert task.parse(shorter, "x").choices == ["b", "c"]
    with pytest.raises(InputError, match=r"must be texts\. Received: 0"):
        task.parse({**shorter, "C": 0}, "x")
    for question, received in ((None, "none"), ("", "an empty question")):
        with pytest.raises(InputError, match=rf"texts\. Received: {received}"):
            task.parse({**shorter, "question": question}, "x")


def test_windows_of_long_texts_are_an_error_in_multiple_choice():
    with pytest.raises(InputError, match="--long_document=windows"):
        ChoiceTask(num_choices=2, long_documents=LongDocuments("windows"))


def write_choices(folder, split, seed, number):
    """Writes examples whose right choice is an animal; returns the labels."""
    rng = random.Random(seed)
    labels = rng.choices(range(5), k=number)
    rows = []
    for label in labels:
        texts = rng.choices(["red", "blue", "sun", "rain"], k=5)
        texts[label] = rng.choice(["cat", "dog"])
        row = {"context": "a", "question": "it ?", "choices": texts}
        rows.append({**row, "label": label})
    write_json_lines(folder / f"{split}.jsonl", rows)
    return labels


@pytest.mark.trains
@pytest.mark.slow
def test_run_learns_multiple_choice(tmp_path):
    write_choices(tmp_path, "train", 0, 240)
    write_choices(tmp_path, "dev", 1, 80)
    labels = write_choices(tmp_path, "test", 7, 30)
    flags = {"num_train_epochs": 4.0, "pad_to": "bucket", "max_seq_length": 32}
    output, results = tiny.run(tmp_path, task_name="choices", **flags)
    assert results["accuracy"] > 0.9
    described = read_json(output / "task.json")
    assert (described["kind"], described["num_choices"]) == ("choice", 5)
    predicted = [int(label) for _, label in tiny.predictions(output)]
    assert np.mean(np.equal(predicted, labels)) > 0.9
    scores = np.loadtxt(output / "test_results.tsv")
    assert scores.shape == (30, 5)
    np.testing.assert_array_equal(scores.argmax(axis=1), predicted)
    np.testing.assert_allclose(scores.sum(axis=1), 1.0, rtol=1e-5)
