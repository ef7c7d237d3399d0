"""Every kind of task works with a BiLSTM or with features of a frozen BERT."""

import json

import pytest
from support import recorded, tiny

from official_bert import tasks
from official_bert.config import BertConfig
from official_bert.inference.predictor import Predictor
from official_bert.modeling.pooling_head import NO_POOLING_HEAD, PoolingHead
from official_bert.tasks.choice import ChoiceTask
from official_bert.tasks.squad.squad_task import SquadTask
from official_bert.tasks.tagging import TaggingTask
from official_bert.tasks.text import TextTask
from official_bert.tokenization import BatchTokenizer

CASES = {
    "text": (
        TextTask,
        {"task_type": "classification", "labels": ("a", "b")},
        "good cat",
    ),
    "choice": (
        ChoiceTask,
        {"num_choices": 2},
        {"context": "what is it ?", "choices": ["cat", "red sun"]},
    ),
    "tagging": (TaggingTask, {"labels": ("O", "B-X")}, ["good", "cat"]),
    "squad": (
        SquadTask,
        {"doc_stride": 4, "max_query_length": 6},
        {"question": "what is it ?", "context": "cat dog red " * 10},
    ),
}


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


@pytest.mark.parametrize("kind", CASES)
def test_a_task_without_a_pooling_head_has_no_such_key(kind):
    make, fields, _ = CASES[kind]
    assert make(**fields).pooling_head == NO_POOLING_HEAD
    assert "top" not in make(**fields).to_json()
