"""SWAG as it is published, and multiple choice of a user's own."""

import csv
import json

import pytest
from support import tiny

from official_bert import tasks
from official_bert.errors import InputError
from official_bert.tasks.choice import ChoiceColumns, ChoiceExample, ChoiceTask

HEADER = [
    *("", "video-id", "fold-ind", "startphrase", "sent1", "sent2"),
    *("gold-source", "ending0", "ending1", "ending2", "ending3", "label"),
]
ROW = ["0", "v1", "34", "She opens it. He", "She opens it.", "He", "gold"]
ENDINGS = ['sees "a dog", red.', "eats.", "sits.", "stands."]


def write(path, *rows):
    with open(path, "w", newline="") as file:
        csv.writer(file).writerows(rows)


def swag(folder):
    return tasks.get(tiny.options(folder, task_name="SWAG"))


def test_pairs_of_swag(tmp_path):
    """Text B is the beginning of the sentence with one ending."""
    for name in ("train", "val"):
        write(tmp_path / f"{name}.csv", HEADER, [*ROW, *ENDINGS, "2"])
    write(tmp_path / "test.csv", HEADER[:-1], [*ROW, *ENDINGS])
    task = swag(tmp_path)
    assert task.num_choices == 4
    texts = ['He sees "a dog", red.', "He eats.", "He sits.", "He stands."]
    for split, label in (("train", 2), ("dev", 2), ("test", None)):
        expected = ChoiceExample(f"{split}-2", "She opens it.", texts, label)
        assert task.examples(split) == [expected]


@pytest.mark.parametrize("label", ["4", "-1", "1.5", "", "a", "nan"])
def test_labels_of_swag_are_numbers_of_choices(tmp_path, label):
    write(tmp_path / "val.csv", HEADER, [*ROW, *ENDINGS, label])
    with pytest.raises(InputError, match=r"val\.csv:2: column 'label' must be"):
        swag(tmp_path).examples("dev")


def test_files_of_another_layout_are_refused(tmp_path):
    write(tmp_path / "train.csv", ["sent1", "label"], ["a", "0"])
    with pytest.raises(InputError, match=r"train\.csv:2: .*'sent2'"):
        swag(tmp_path).examples("train")


def choices(folder, *lines, split="train", **columns):
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


def test_choices(tmp_path):
    given = {"context": "a", "choices": ["b", "c"], "label": 1}
    asked = {**given, "question": "d ?", "id": 7}
    assert choices(tmp_path, given, asked) == [
        ChoiceExample("train-1", "a", ["b", "c"], 1),
        ChoiceExample("7", "a", ["d ? b", "d ? c"], 1),
    ]
    del asked["label"]
    assert choices(tmp_path, asked, split="test") == [
        ChoiceExample("7", "a", ["d ? b", "d ? c"])
    ]


HELLASWAG = {
    "ind": 24,
    "ctx_a": "A man is on a roof.",
    "ctx_b": "he",
    "ctx": "A man is on a roof. he",
    "endings": ["rips up tiles.", "plays a level."],
    "label": 1,
}


def test_choices_in_columns_of_other_names(tmp_path):
    """HellaSwag as it is published, with as many endings as one likes."""
    names = {"context_column": "ctx", "choices_column": "endings"}
    [found] = choices(tmp_path, HELLASWAG, **names)
    assert found == ChoiceExample(
        "train-1", HELLASWAG["ctx"], HELLASWAG["endings"], 1
    )
    names |= {"context_column": "ctx_a", "question_column": "ctx_b"}
    names |= {"id_column": "ind", "label_column": "gold"}
    given = {**HELLASWAG, "gold": "0", "id": "x"}
    [found] = choices(tmp_path, given, **names)
    texts = ["he rips up tiles.", "he plays a level."]
    assert found == ChoiceExample("24", "A man is on a roof.", texts, 0)
    # Whoever asks the model may say so, too, or use the usual names.
    options = tiny.options(
        tmp_path, task_name="choices", do_train=True, **names
    )
    described = json.loads(json.dumps(tasks.get(options).to_json()))
    task = tasks.from_json(described)
    usual = {"context": given["ctx_a"], "choices": given["endings"]}
    for item in (given, {**usual, "question": "he"}):
        assert task.parse(item, "x") == found._replace(guid="x", label=None)


@pytest.mark.parametrize(
    ("names", "given"),
    [
        ({"question": "q"}, {"context": "a", "q": "d?", "choices": ["b", "c"]}),
        ({"context": "x"}, {"x": "a", "question": "d?", "choices": ["b", "c"]}),
    ],
)
def test_some_columns_of_other_names(names, given):
    task = ChoiceTask(num_choices=2, columns=ChoiceColumns(**names))
    found = task.parse(given, "1")
    assert found == ChoiceExample("1", "a", ["d? b", "d? c"])


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"choices_column": "choices"}, "must have a column 'choices'"),
        ({"context_column": "context"}, "must have a column 'context'"),
        ({"question_column": "ctx_c"}, "must have a column 'ctx_c'"),
        ({"label_column": "gold"}, "must have a column 'gold'"),
        ({"id_column": "id"}, "must have a column 'id'"),
        (
            {"label_column": "ind"},
            "column .ind. must be the number",
        ),
        ({"choices_column": "ctx"}, "column 'ctx' must be a list"),
        ({"context_column": "ind"}, "'ind', 'question' and 'endings' must be"),
    ],
)
def test_wrong_columns_of_choices_are_named(tmp_path, changes, complaint):
    names = {"context_column": "ctx", "choices_column": "endings", **changes}
    with pytest.raises(InputError, match=complaint) as caught:
        choices(tmp_path, HELLASWAG, **names)
    message = str(caught.value)
    assert message.startswith(f"{tmp_path / 'train.jsonl'}:1: ")
    if "must have a column" in message:
        assert "--..._column" in message


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"label": 2}, "column 'label' must be the number of a choice, 0 to 1"),
        ({"label": True}, "column 'label' must be a number"),
        ({"choices": ["a", "b", "c"]}, "a list of 2 texts"),
        ({"choices": ["a", 5]}, "must be texts. Received: 5"),
        ({"context": None}, "must be texts. Received: None"),
    ],
)
def test_wrong_choices_are_named(tmp_path, changes, complaint):
    given = {"context": "a", "choices": ["b", "c"], "label": 1}
    with pytest.raises(InputError, match=complaint) as caught:
        choices(tmp_path, given, {**given, **changes})
    assert str(caught.value).startswith(f"{tmp_path / 'train.jsonl'}:2: ")


def test_one_choice_is_none(tmp_path):
    given = {"context": "a", "choices": ["b"], "label": 0}
    with pytest.raises(InputError, match=r"jsonl:1: .* at least two texts"):
        choices(tmp_path, given)
    with pytest.raises(InputError, match=r"must have a column 'label'"):
        choices(tmp_path, {"context": "a", "choices": ["b", "c"]}, split="dev")
