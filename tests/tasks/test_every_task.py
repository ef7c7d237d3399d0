"""What holds for every kind of task: task.json, parsing, pooling heads."""

import json

import pytest
from support import recorded, tiny

from official_bert import tasks
from official_bert.config import BertConfig
from official_bert.errors import InputError
from official_bert.inference.predictor import Predictor
from official_bert.modeling.pooling_head import PoolingHead
from official_bert.tasks.choice import ChoiceTask
from official_bert.tasks.documents import LongDocuments
from official_bert.tasks.squad.squad_task import SquadTask
from official_bert.tasks.tagging import TaggingTask
from official_bert.tasks.text import TextTask
from official_bert.tokenization import BatchTokenizer

TEXT = {"task_type": "classification", "labels": ("a", "b")}
CASES = {
    "text": (TextTask, TEXT, "good cat"),
    "choice": (
        ChoiceTask,
        {"num_choices": 3},
        {"context": "what is it ?", "choices": ["cat", "red sun", "it"]},
    ),
    "tagging": (TaggingTask, {"labels": ("O", "B-X")}, ["good", "cat"]),
    "squad": (
        SquadTask,
        {"doc_stride": 4, "max_query_length": 6},
        {"question": "what is it ?", "context": "cat dog red " * 10},
    ),
}
WINDOWS = LongDocuments("windows", 7, "max")


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        *((kind, {}) for kind in CASES),
        ("text", {"task_type": "multilabel"}),
        ("text", {"task_type": "regression", "labels": ()}),
        ("text", {"labels": ("é", "1"), "metric": "matthews"}),
        ("text", {"long_documents": WINDOWS}),
        ("choice", {"long_documents": LongDocuments("head_tail")}),
        ("tagging", {"document_context": True}),
    ],
)
def test_a_task_is_restored_from_json(kind, fields):
    make, others, _ = CASES[kind]
    task = make(**{**others, **fields})
    described = json.loads(json.dumps(task.to_json()))
    assert described["kind"] == kind
    # Only a task with a pooling head has its key.
    assert "top" not in described
    assert tasks.from_json(described) == task


CHOICE = {"context": "a", "choices": ["b", "c", "d"]}


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("text", [7, None, [], [1], ["a", "b", "c"], ["a", 2], [None, "b"]]),
        ("text", [{}, {"text_b": "b"}, {"text": 5}, ["a", ["b"]]]),
        ("choice", ["a", {"context": "a"}, {"choices": ["b", "c", "d"]}]),
        ("choice", [{**CHOICE, "choices": ["b", "c"]}]),
        ("choice", [{**CHOICE, "choices": ["b", "c", 1]}]),
        ("choice", [{**CHOICE, "question": 3}]),
        ("tagging", [None, 3, {"text": "a"}, {"tokens": "a b"}]),
        ("tagging", [["a", 1], ["a", ""]]),
        ("tagging", [{"tokens": ["a"], "before": "b"}]),
        ("tagging", [{"tokens": ["a"], "after": [1]}]),
    ],
)
def test_other_values_are_an_error(kind, values):
    make, fields, _ = CASES[kind]
    for value in values:
        with pytest.raises(InputError, match=r"^x:1: "):
            make(**fields).parse(value, "x:1")


@pytest.mark.parametrize("kind", CASES)
def test_a_task_with_a_pooling_head_is_restored_and_predicts(kind, tmp_path):
    make, fields, item = CASES[kind]
    task = make(**fields, pooling_head=PoolingHead("weighted_sum_all", 4))
    restored = tasks.from_json(json.loads(json.dumps(task.to_json())))
    assert restored == task
    (tmp_path / "vocab.txt").write_text("\n".join(tiny.VOCAB) + "\n")
    model = restored.build_model(BertConfig.from_dict(tiny.CONFIG))
    recorded.set_weights(model.trainable_variables, 7)
    tokenizer = BatchTokenizer(str(tmp_path / "vocab.txt"))
    predictor = Predictor(
        restored, model, tokenizer, max_seq_length=16, batch_size=2
    )
    [one], [first, _, _] = predictor([item]), predictor([item] * 3)
    assert one.keys() == first.keys()
