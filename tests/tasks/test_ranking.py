"""Pairs of a query and a document: `--group_column` and `Predictor.rank`."""

import dataclasses
import json

import numpy as np
import pytest
from sklearn.metrics import ndcg_score
from support import tiny
from support.frames import PandasFrame

from official_bert import tasks
from official_bert.commands import run_classifier
from official_bert.errors import InputError
from official_bert.inference.predictor import Predictor
from official_bert.io import json_files
from official_bert.sources import task_file
from official_bert.tasks.calibration import NO_CALIBRATION
from official_bert.tasks.classification import ClassificationTask
from official_bert.tasks.multilabel import MultilabelTask
from official_bert.tasks.text import TextExample
from official_bert.tasks.text_types import TYPES

PAIRS = {"text_a_column": "query", "text_b_column": "document"}
GROUPED = PAIRS | {"group_column": "query"}


def write_pairs(folder, rows, name="train"):
    lines = [f"{query},{text},{label}\n" for query, text, label in rows]
    text = "query,document,label\n" + "".join(lines)
    (folder / f"{name}.csv").write_text(text)


def make(folder, **flags):
    options = {"task_name": "csv", "do_predict": False, **GROUPED, **flags}
    return tasks.get(
        *run_classifier.complete_options(tiny.options(folder, **options))
    )


THREE = [[0.5, 0.25, 0.25], [0.0, 0.5, 0.5]]


@pytest.mark.parametrize(
    ("task_type", "labels", "answers", "scores"),
    [
        ("classification", ("no", "yes"), [[0.2, 0.8], [0.7, 0.3]], [0.8, 0.3]),
        ("classification", ("0", "1", "2"), THREE, [0.75, 1.5]),
        ("regression", (), [[2.5], [-1.0]], [2.5, -1.0]),
    ],
)
def test_relevance_grows_with_the_label_and_metrics_rank_by_it(
    task_type, labels, answers, scores
):
    task = TYPES[task_type](labels=labels)
    answers = [np.array(answer) for answer in answers]
    np.testing.assert_allclose(task.relevance(answers), scores)
    gains = [1, len(labels) - 1 if labels else 3]
    examples = [
        TextExample("", "q", "d", labels[g] if labels else float(g), group="q")
        for g in gains
    ]
    found = task.metrics(examples, answers)
    expected = ndcg_score([gains], [scores], k=10)
    assert found["ndcg@10"] == pytest.approx(expected)
    assert found["mrr@10"] == 1
    single = [example._replace(group=None) for example in examples]
    assert found.items() > task.metrics(single, answers).items()
    assert "mrr@10" not in task.metrics(single, answers)


def test_documents_with_large_logits_of_a_cross_encoder_are_ranked():
    task = TYPES["regression"](labels=(), activation="sigmoid")
    answers = task.activate(np.float32([[20], [22], [21]]))
    assert np.argsort(-task.relevance(answers)).tolist() == [1, 2, 0]


def test_queries_are_held_out_with_all_their_documents(tmp_path):
    rows = [(q, f"document {q} {d}", d) for q in "abcdefghij" for d in range(2)]
    write_pairs(tmp_path, rows)
    flags = {
        "task_name": None,
        "data_dir": None,
        "train_file": str(tmp_path / "train.csv"),
        "dev_share": 0.3,
    }
    task = make(tmp_path, **flags)
    parts = [task.data.read(split) for split in ("train", "dev")]
    training, dev = ({e.group for e in examples} for examples in parts)
    assert len(dev) == 3
    assert len(training) == 7
    assert task.main_metric == "ndcg@10"
    assert make(tmp_path, **flags, best_metric="mrr@10").best_metric == "mrr@10"
    write_pairs(tmp_path, [("q", "a", 1), ("q", "b", 0)])
    with pytest.raises(InputError, match="all rows have the same query"):
        make(tmp_path, **flags)


@pytest.mark.parametrize(
    ("rows", "order", "level"),
    [
        ("q a 2;q b 10;q c 0", "0, 2, 10", "INFO"),
        ("q a low;q b high;q c low", "high, low", "WARNING"),
    ],
)
def test_order_of_relevance_is_that_of_numbers_or_a_warning(
    tmp_path, caplog, rows, order, level
):
    caplog.set_level("INFO", logger="absl")
    write_pairs(tmp_path, [row.split() for row in rows.split(";")])
    make(tmp_path)
    [record] = [r for r in caplog.records if "lowest first" in r.msg]
    assert f"lowest first: {order} (" in record.getMessage()
    assert record.levelname == level


def test_many_queries_with_a_single_document_are_a_warning(tmp_path, caplog):
    rows = [("q", "a", 1), ("q", "b", 0), ("r", "c", 1)]
    for more, is_warned in (([], False), ([("s", "d", 0)], True)):
        write_pairs(tmp_path, [*rows, *more])
        make(tmp_path)
        assert ("2 of 3 queries have a single" in caplog.text) == is_warned


def test_query_is_the_same_group_with_spaces_and_as_a_float(tmp_path):
    write_pairs(tmp_path, [(" q", "a", 1), ("q ", "b", 0)])
    groups = [e.group for e in make(tmp_path).data.read("train")]
    assert groups == ["q", "q"]
    # An id is the same group as an integer and as a float.
    for name, ids in (("a", "1 2"), ("b", "1.0 2.5")):
        rows = zip(ids.split(), (f"{name}c", f"{name}d"), (0, 1), strict=True)
        write_pairs(tmp_path, rows, name)
    both = ",".join(str(tmp_path / f"{name}.csv") for name in "ab")
    flags = {"train_file": both, "task_name": None, "do_eval": False}
    task = make(tmp_path, dev_share=0.0, **flags)
    groups = sorted(e.group for e in task.data.read("train"))
    assert groups == ["1", "1", "2", "2.5"]


@pytest.mark.parametrize(
    ("rows", "flags", "message"),
    [
        ("q a 1;q b 0", {"text_b_column": None}, "=query needs pairs of texts"),
        ("q a 1;q b 0", {"group_column": "id"}, r"train\.csv: .* 'id'"),
        ("q a x;q b y", {"task_type": "multilabel"}, "Received: text, mult"),
        ("q a 1;r b 0", {}, "'query' of .* the same value in all rows of a q"),
        ("q a 1;q b -1", {"task_type": "regression"}, "3: .* least 0.*: '-1'"),
        ("q a 1;q b 0", {"task_name": "mrpc"}, "=query is for .* own texts"),
    ],
)
def test_groups_that_cannot_be_ranked_are_an_error(
    tmp_path, rows, flags, message
):
    write_pairs(tmp_path, [row.split() for row in rows.split(";")])
    with pytest.raises(InputError, match=message):
        make(tmp_path, **flags)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A reranker: the documents that begin with "good" are relevant."""
    folder = tmp_path_factory.mktemp("ranking")
    random = np.random.RandomState(0)
    for name, count in (("train", 60), ("dev", 12)):
        rows = []
        for number in range(count):
            word = tiny.WORDS[number % 4]
            for first in tiny.WORDS[:4]:
                text = f"{first} {random.choice(tiny.WORDS[4:])}"
                rows.append((f"{word} {number}", text, int(first == "good")))
        write_pairs(folder, rows, name)
    flags = {"task_name": "csv", "do_predict": False, **GROUPED}
    return tiny.run(folder, **flags)


@pytest.mark.slow
@pytest.mark.trains
def test_reranker_learns_and_ranks_the_documents_of_a_query(trained):
    output, results = trained
    assert results["ndcg@10"] > 0.9
    assert results["mrr@10"] > 0.85
    assert json.loads((output / "task.json").read_text())["best_metric"]
    predictor = Predictor.from_dir(output, engine="tensorflow")
    documents = ["cat sun", "good rain", "bad red", "good rain"]
    found = predictor.rank("cat 1", documents)
    pairs = [["cat 1", document] for document in documents]
    answers = predictor(pairs)
    for result in found:
        probability = answers[result["index"]]["probabilities"]["1"]
        assert result["score"] == pytest.approx(probability, abs=1e-6)
    assert [result["index"] for result in found[:2]] == [1, 3]
    scores = [result["score"] for result in found]
    assert scores == sorted(scores, reverse=True)
    assert json.loads(json.dumps(found)) == found
    assert predictor.rank("cat 1", documents, k=1) == found[:1]
    assert predictor.rank("cat 1", iter(())) == []


def test_calibration_keeps_the_order_of_documents_with_three_labels(tmp_path):
    task = ClassificationTask(labels=("0", "1", "2"), is_pair=True)
    output = tiny.save_finetuned(tmp_path / "model", task)
    documents = ["cat sun", "good rain", "bad red", "rain"]
    found = Predictor.from_dir(output).rank("cat", documents)
    calibration = NO_CALIBRATION._replace(temperature=8.0)
    calibrated = dataclasses.replace(task, calibration=calibration)
    content = task_file.read(output) | calibrated.to_json()
    json_files.write(task_file.path_in(output), content)
    predictor = Predictor.from_dir(output)
    assert predictor.task.calibration.temperature == 8
    assert predictor.rank("cat", documents) == found


@pytest.mark.slow
def test_ranking_needs_a_model_of_pairs_and_documents(trained, tmp_path):
    predictor = Predictor.from_dir(trained[0], engine="tensorflow")
    for documents in ("good", {"good": 1}, None):
        with pytest.raises(InputError, match="`documents` must be a list"):
            predictor.rank("cat", documents)
    # Its items are the names of columns.
    with pytest.raises(InputError, match="`documents` must not be a DataFra"):
        predictor.rank("cat", PandasFrame({"document": ["good"]}))
    for k in (0, 2.5):
        with pytest.raises(InputError, match=f"`k` must be .*{k}"):
            predictor.rank("cat", ["good"], k)
    with pytest.raises(InputError, match=r"documents\[1\]: must be a text\. R"):
        predictor.rank("cat", ["good", {"text": "bad"}])
    with pytest.raises(InputError, match=r"query: must be a text\. .*'dog'"):
        predictor.rank(["cat", "dog"], ["good"])
    task = MultilabelTask(labels=("a", "b"))
    other = Predictor.from_dir(tiny.save_finetuned(tmp_path / "m", task))
    with pytest.raises(InputError, match="`rank` needs a model for"):
        other.rank("cat", ["good"])


@pytest.mark.slow
def test_evaluation_without_training_ranks_too(trained):
    output, results = trained
    flags = {"task_name": "csv", "do_train": False, "do_predict": False}
    run_classifier.main(tiny.options(output.parent, **flags, **GROUPED))
    found = json.loads((output / "eval_results.json").read_text())
    assert found["mrr@10"] == results["mrr@10"]
