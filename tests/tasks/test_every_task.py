import json

import pytest
from support import tiny

from official_bert import tasks
from official_bert.config import BertConfig
from official_bert.errors import InputError
from official_bert.modeling.finetuning_models import build_model
from official_bert.sources.heads import PoolingHead
from official_bert.tasks.calibration import Calibration
from official_bert.tasks.choice import ChoiceTask
from official_bert.tasks.classification import ClassificationTask
from official_bert.tasks.embedding import EmbeddingTask
from official_bert.tasks.long_texts import LongDocuments
from official_bert.tasks.multilabel import MultilabelTask
from official_bert.tasks.regression import RegressionTask
from official_bert.tasks.squad.task import SquadTask
from official_bert.tasks.tagging import TaggingTask
from official_bert.tasks.text import TextColumns

KINDS = {
    "text": (ClassificationTask, {"labels": ("a", "b")}),
    "multilabel": (MultilabelTask, {"labels": ("a", "b")}),
    "regression": (RegressionTask, {"labels": ()}),
    "choice": (ChoiceTask, {"num_choices": 3}),
    "tagging": (TaggingTask, {"labels": ("O", "B-X")}),
    "squad": (SquadTask, {"doc_stride": 4, "max_query_length": 6}),
    "embedding": (EmbeddingTask, {}),
}
WITH_POOLING_HEAD = sorted(KINDS.keys() - {"embedding"})
HEAD = PoolingHead("weighted_sum_all", 4)


def make(kind, **changes):
    task, fields = KINDS[kind]
    return task(**{**fields, **changes})


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        *((kind, {}) for kind in KINDS),
        *((kind, {"pooling_head": HEAD}) for kind in WITH_POOLING_HEAD),
        ("embedding", {"pooling": "cls", "prompts": {"query": "find: "}}),
        ("embedding", {"embedding_size": 5, "similarity": "dot"}),
        ("text", {"labels": ("é", "1"), "metric": "matthews"}),
        ("text", {"long_documents": LongDocuments("windows", 7, "max")}),
        ("text", {"columns": TextColumns(("a", "b"), has_header=False)}),
        ("text", {"calibration": Calibration(1.5, (0.5, 0.25))}),
        ("choice", {"long_documents": LongDocuments("head_tail")}),
        ("tagging", {"document_context": True}),
    ],
)
def test_task_is_restored_from_json(kind, fields):
    task = make(kind, **fields)
    described = json.loads(json.dumps(task.to_json()))
    assert kind in (described["kind"], described.get("task_type"))
    assert described.keys().isdisjoint(("data", "show_progress"))
    # Only a task with a pooling head has its key.
    assert ("top" in described) == ("pooling_head" in fields)
    assert tasks.from_json(described) == task


@pytest.mark.parametrize(
    ("kind", "changes", "message"),
    [
        ("text", {"labels": "ab"}, "`labels` must be a list"),
        ("text", {"target_mean": "0"}, "`target_mean` .*finite"),
        ("text", {"is_pair": 1}, "`is_pair` must be a bool"),
        ("text", {"columns": ["a"]}, "`columns` .*only names, has_header"),
        ("text", {"long_documents": {"stride": -1}}, "`stride` .*0 and"),
        ("text", {"metric": "f1"}, "`metric` must be one of accuracy,"),
        ("text", {"task_type": "token"}, "`task_type` must be one of"),
        ("text", {"long_documents": {"mode": "cut"}}, "`mode` .*head_tail"),
        ("text", {"top": {"feature_layers": "first"}}, "`feature_layers`"),
        ("text", {"top": {"bilstm_size": 2**16}}, "`bilstm_size` .*65535"),
        ("text", {"calibration": {"temperature": 0}}, "temperature above 0"),
        ("text", {"calibration": {"thresholds": [0.5]}}, "one for each label"),
        ("choice", {"num_choices": 2**31}, "`num_choices` .*65535"),
        ("tagging", {"document_context": 1}, "`document_context` .*bool"),
        ("tagging", {"token_column": -1}, "`token_column` .*0 and"),
        ("tagging", {"tag_column": -2}, "`tag_column` .*-1 and"),
        ("squad", {"doc_stride": 0}, "`doc_stride` .*1 and"),
        ("squad", {"decoding": "x"}, "`decoding` .*only n_best_size"),
        ("squad", {"pad_to": None}, "`pad_to` must be a str"),
        ("embedding", {"pooling": "max"}, "`pooling` must be one of mean, cls"),
    ],
)
def test_values_of_other_types_are_an_error(kind, changes, message):
    with pytest.raises(ValueError, match=message):
        tasks.from_json(make(kind).to_json() | changes)


def test_model_has_the_pooling_head_of_its_task():
    for kind in WITH_POOLING_HEAD:
        head = make(kind, pooling_head=HEAD).head
        assert head.pooling_head == HEAD
    model = build_model(head, BertConfig.from_dict(tiny.CONFIG))
    assert model.pooling_head == HEAD


@pytest.mark.parametrize("kind", KINDS)
def test_no_examples_have_no_features(kind, tmp_path):
    assert [*make(kind).featurize([], tiny.tokenizer(tmp_path), 16)] == []


CHOICE = {"context": "a", "choices": ["b", "c", "d"]}


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("text", [7, None, [], [1], ["a", "b", "c"], ["a", 2], [None, "b"]]),
        ("text", [{}, {"text_b": "b"}, {"text": 5}, ["a", ["b"]]]),
        ("choice", ["a", {"context": "a"}, {"choices": ["b", "c", "d"]}]),
        ("choice", [{**CHOICE, "choices": list(c)} for c in ("b", "bcde")]),
        ("choice", [{**CHOICE, "choices": "bc"}, {"choices": ["b", "c"]}]),
        ("choice", [{**CHOICE, "choices": ["b", "c", 1]}]),
        ("choice", [{**CHOICE, "question": 3}]),
        ("tagging", [None, 3, {"text": 5}, {"tokens": "a b"}, {}]),
        ("tagging", [["a", 1], ["a", ""]]),
        ("tagging", [{"tokens": ["a"], "before": "b"}]),
        ("tagging", [{"tokens": ["a"], "after": [1]}]),
        ("squad", ["ab", ["q"], ["q", "a", "b"], ["q", 1], {"question": "q"}]),
        ("embedding", [None, 3, ["a", "b"], {}, {"text": 5}]),
    ],
)
def test_input_of_another_form_is_an_error(kind, values):
    for value in values:
        with pytest.raises(InputError, match=r"^x:1: "):
            make(kind).parse(value, "x:1")
