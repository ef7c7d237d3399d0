"""Every kind of task can have a BiLSTM, or a frozen BERT, and tells so."""

import json

import pytest
from support import recorded, tiny

from official_bert import tasks
from official_bert.config import BertConfig
from official_bert.inference.predictor import Predictor
from official_bert.modeling.pooling_head import PoolingHead
from official_bert.options.run_squad import RunSquad
from official_bert.tasks.choice import ChoiceTask
from official_bert.tasks.squad import task as squad
from official_bert.tasks.tagging import TaggingTask
from official_bert.tasks.text import TextTask
from official_bert.tokenization import BatchTokenizer

TOP = PoolingHead("weighted_sum_all", 4)


@pytest.mark.parametrize(
    ("task", "item"),
    [
        (
            TextTask(
                task_type="classification", labels=("a", "b"), pooling_head=TOP
            ),
            "good cat",
        ),
        (
            ChoiceTask(num_choices=2, pooling_head=TOP),
            {"context": "what is it ?", "choices": ["cat", "red sun"]},
        ),
        (TaggingTask(labels=("O", "B-X"), pooling_head=TOP), ["good", "cat"]),
        (
            squad.SquadTask(doc_stride=4, max_query_length=6, pooling_head=TOP),
            {"question": "what is it ?", "context": "cat dog red " * 10},
        ),
    ],
    ids=["text", "choice", "tagging", "squad"],
)
def test_it_comes_back_and_answers(task, item, tmp_path):
    again = tasks.from_json(json.loads(json.dumps(task.to_json())))
    assert again == task
    (tmp_path / "vocab.txt").write_text("\n".join(tiny.VOCAB) + "\n")
    model = again.build_model(BertConfig.from_dict(tiny.CONFIG))
    assert len(model.learning_variables) == 12 + 2 + 2
    recorded.set_weights(model.trainable_variables, 7)
    tokenizer = BatchTokenizer(str(tmp_path / "vocab.txt"))
    asked = Predictor(again, model, tokenizer, max_seq_length=16, batch_size=2)
    alone, [together, _, _] = asked([item]), asked([item] * 3)
    assert alone[0].keys() == together.keys()


def test_without_one_a_task_is_described_as_before():
    for task in (
        TextTask(task_type="classification", labels=("a", "b")),
        ChoiceTask(num_choices=2),
        TaggingTask(labels=("O",)),
        squad.SquadTask(),
    ):
        assert "top" not in task.to_json()


def test_run_squad_has_the_flags(tmp_path):
    (tmp_path / "bert_config.json").write_text(json.dumps(tiny.CONFIG))
    (tmp_path / "vocab.txt").write_text("\n".join(tiny.VOCAB) + "\n")
    (tmp_path / "train.json").write_text('{"data": []}')
    options = RunSquad(
        bert_config_file=str(tmp_path / "bert_config.json"),
        vocab_file=str(tmp_path / "vocab.txt"),
        output_dir=str(tmp_path / "out"),
        train_file=str(tmp_path / "train.json"),
        do_train=True,
        max_seq_length=16,
        max_query_length=6,
        bilstm_size=4,
    )
    assert squad.make(options).pooling_head == PoolingHead("none", 4)
