"""Tables of pairs, pairs with scores and single texts."""

import json
import shutil

import pytest
from support import ROOT, tiny
from support.conversions import change_json
from support.sentence_transformers import keep_modules

from official_bert import tasks
from official_bert.commands import run_classifier
from official_bert.errors import InputError
from official_bert.tasks.embedding import EmbeddingExample

GOLDEN = ROOT / "tests" / "golden" / "sentence_transformers"
README = str(ROOT / "README.md")
OTHER_FILES = {"task_name": "csv", "data_dir": ".", "do_train": True}


def make(folder, train, dev=None, dropout=0.1, **flags):
    """Returns the task of files, {name: text}, and the resolved options."""
    config = {**tiny.CONFIG, "hidden_dropout_prob": dropout}
    files = {"train_file": train, "dev_file": dev}
    for flag, file in files.items():
        if file:
            name, text = file
            (folder / name).write_text(text)
            flags.setdefault(flag, str(folder / name))
    options = tiny.options(
        folder,
        config,
        **{
            **dict.fromkeys(("task_name", "data_dir", "max_seq_length")),
            **dict.fromkeys(("do_train", "do_eval", "do_predict")),
            "task_type": "embedding",
            **flags,
        },
    )
    options, rows = run_classifier.complete_options(options)
    return tasks.get(options, rows), options


def texts_of(task, split="train"):
    return {example.texts for example in task.data.read(split)}


def test_columns_of_pairs_are_detected(tmp_path):
    cases = {
        "names.csv": "id,query,negative_2,positive,negative\n"
        "7,a,x,b,\n8,c,y,d,z\n",
        "order.csv": "id,one,two\nx,a,b\ny,c,d\n",
        "document.csv": "id,document,Query\nx,b,a\ny,d,c\n",
        "keys.jsonl": '{"anchor": "a a", "positive": "b b", "n": 1}\n'
        '{"anchor": "c", "positive": "d", "n": 2}\n',
        "none.tsv": "a\tb\na\tc\nc\td\n",
    }
    expected = {
        "names.csv": {("a", "b", "x", ""), ("c", "d", "y", "z")},
        "keys.jsonl": {("a a", "b b"), ("c", "d")},
        "none.tsv": {("a", "b"), ("a", "c"), ("c", "d")},
    }
    for name, text in cases.items():
        task, options = make(tmp_path, (name, text), dev_share=0.0)
        found = texts_of(task)
        assert found == expected.get(name, {("a", "b"), ("c", "d")}), name
        assert task.num_texts == (4 if name == "names.csv" else 2)
        assert (task.loss, task.main_metric) == ("ranking", "ndcg@10")
        assert options.max_seq_length == 6  # Of one text, not of the pair.


@pytest.mark.parametrize("header", [",q,p,near", "id,query,positive,near"])
def test_column_of_scores_is_used_without_those_of_texts(tmp_path, header):
    rows = "0,a,b,0.5\n1,c,d,0\n"
    file = ("scored.csv", f"{header}\n{rows}")
    task, options = make(tmp_path, file, label_column="near", dev_share=0.0)
    assert options.label_column == "near"
    assert texts_of(task) == {("a", "b"), ("c", "d")}
    assert {e.label for e in task.data.read("train")} == {0.5, 0.0}


@pytest.mark.parametrize(
    ("name", "cells", "is_warned"),
    [
        ("gold_score", ("0.5", "0"), True),
        ("neg_1", ("x", "y"), True),
        ("number", ("7", "8"), False),  # May be an id.
        ("genre", ("x", "y"), False),
        ("gold_label", ("entailment", "neutral"), True),
        ("pos", (["x"], ["y"]), True),
    ],
)
def test_unused_columns_are_a_warning(tmp_path, caplog, name, cells, is_warned):
    others = cells if name == "number" else (*cells, cells[0])
    rows = [
        {"query": f"a {n}", "positive": f"b {n}", name: cell}
        for n, cell in enumerate(others)
    ]
    text = "\n".join(map(json.dumps, rows))
    make(tmp_path, ("train.jsonl", text), dev_share=0.0)
    assert (f"column '{name}' is not used" in caplog.text) == is_warned


@pytest.mark.parametrize(
    ("scores", "flags", "is_warned"),
    [
        ("0 1 2", {}, True),
        ("-1 0 2", {}, True),
        ("0 1 2", {"label_column": "label"}, False),
        ("0 1 1", {}, False),
        ("0 1 5", {}, False),
    ],
)
def test_scores_that_may_be_classes_of_nli_are_a_warning(
    tmp_path, caplog, scores, flags, is_warned
):
    rows = [f"a {n},b {n},{cell}\n" for n, cell in enumerate(scores.split())]
    text = "sentence1,sentence2,label\n" + "".join(rows)
    make(tmp_path, ("train.csv", text), dev_share=0.0, **flags)
    assert ("classes of NLI" in caplog.text) == is_warned


@pytest.mark.parametrize("split", ["dev", "test"])
def test_pairs_of_the_training_data_are_a_warning(tmp_path, caplog, split):
    pairs = "query,positive\na,b\nc,d\n"
    triplets = "query,positive,negative\na,b,x\nc,e,x\n"
    test_file = str(tmp_path / "dev.csv")
    task, _ = make(
        tmp_path, ("a.csv", triplets), ("dev.csv", pairs), test_file=test_file
    )
    task.data.read(split)
    assert "dev.csv: 1 of 2 texts are also in the training data" in caplog.text


@pytest.mark.parametrize(
    ("name", "text", "lines"),
    [
        ("a.csv", "query,positive,negative\na,b,\nC d, c D,\ne,f,f\n", "3, 4"),
        ("a.csv", "sentence1,sentence2,score\na,a,5\nb,c,1\n", None),
        ("a.txt", "good\nbad\n", None),
    ],
)
def test_texts_that_are_their_own_match_or_negative_are_a_warning(
    tmp_path, caplog, name, text, lines
):
    make(tmp_path, (name, text), dev_share=0.0)
    problem = (
        f"pairs have a text twice, as its own match or negative: lines {lines}"
    )
    assert (problem in caplog.text) == (lines is not None)
    assert ("have a text twice" in caplog.text) == (lines is not None)


def test_files_may_have_different_columns(tmp_path):
    lines = "good cat\n\nbad dog\n"
    scored = "sentence1,sentence2,score\na,b,1.5\nc,d,3\n"
    task, _ = make(tmp_path, ("t.txt", lines), ("dev.csv", scored))
    assert texts_of(task) == {("good cat",) * 2, ("bad dog",) * 2}
    assert task.data.read("dev") == [
        EmbeddingExample("dev-2", ("a", "b"), 1.5),
        EmbeddingExample("dev-3", ("c", "d"), 3.0),
    ]
    assert (task.loss, task.main_metric) == ("ranking", "spearmanr")
    pairs = "q,a\nx y,z\nu v,w\n"
    task, _ = make(tmp_path, ("s.csv", scored), ("q.csv", pairs))
    assert (task.loss, task.main_metric) == ("cosent", "ndcg@10")
    assert task.score_range == (1.5, 3.0)
    equal = "query,positive,score\na,b,2\nc,d,2\n"
    with pytest.raises(InputError, match=r"dev\.csv: .*'score' must have diff"):
        make(tmp_path, ("q.csv", pairs), ("dev.csv", equal))


def test_objects_may_have_different_negatives_but_all_need_scores(tmp_path):
    rows = [
        {"query": "a", "positive": "b"},
        {"query": "c", "positive": "d", "negative": None, "negative_2": "x"},
        {"query": "e", "positive": "f", "negative": "y", "negative_2": "z"},
    ]
    lines = "\n".join(map(json.dumps, rows))
    task, _ = make(tmp_path, ("train.jsonl", lines), dev_share=0.0)
    assert texts_of(task) == {("a", "b"), ("c", "d", "x"), ("e", "f", "y", "z")}
    scored = json.dumps({**rows[0], "score": 1})
    message = r"train\.jsonl:1: must have a column 'score'"
    with pytest.raises(InputError, match=message):
        make(tmp_path, ("train.jsonl", f"{lines}\n{scored}"), dev_share=0.0)


def test_settings_are_those_of_the_model(tmp_path):
    model = shutil.copytree(GOLDEN, tmp_path / "model")
    pairs = ("train.csv", "query,positive\na,b\nc,d\n")
    flags = {"init_checkpoint": str(model), "dev_share": 0.0}
    with pytest.raises(InputError, match="only mean or cls pooling can be tr"):
        make(tmp_path, pairs, **flags)
    assert make(tmp_path, pairs, pooling="mean", **flags)[0].pooling == "mean"
    keep_modules(model, 2)
    (model / "1_Pooling" / "config.json").write_text('{"pooling_mode": "cls"}')
    change_json(
        model / "config_sentence_transformers.json", default_prompt_name=None
    )
    task, options = make(tmp_path, pairs, **flags)
    assert task.to_json() == {
        "kind": "embedding",
        "pooling": "cls",
        "embedding_size": 0,
        "normalize": False,
        "prompts": {"query": "s r ", "document": ""},
        "similarity": "dot",
    }
    assert options.max_seq_length == 9  # The texts have 3 tokens.
    changed = {"pooling": "mean", "embedding_size": 7, "max_seq_length": 5}
    task, options = make(tmp_path, pairs, **flags, **changed)
    assert task.head.pooling == "mean"
    assert task.head.embedding_size == 7
    assert not task.head.normalize
    assert options.max_seq_length == 5


PAIRS = "query,positive\na,b\nc,d\n"
SCORED = "text_a,text_b,score\n" + "".join(f"a{n},b,{n}\n" for n in range(40))
GROUPS = {"text_a_column": "query", "text_b_column": "positive"}
NER = {"task_name": "ner", "max_seq_length": 9}
OTHER = {**OTHER_FILES, "train_file": None, "max_seq_length": 9}
SIZES = {"matryoshka": "6,4", "best_metric": "ndcg@10_8"}


@pytest.mark.parametrize(
    ("train", "flags", "message"),
    [
        ("a,b,c\nx y,u v,w\nz,s,t\n", {}, "cannot be detected. Add --text_c"),
        ("a|b\nx y|u v\nz|s\n", {}, r"are a\|b\. '\|' seems t"),
        ("query,negative\nx y,u v\nz,w\n", {}, "'negative' needs a second"),
        ("query,positive\nx,\nz,w\n", {}, r":2: column 'positive' .*empty"),
        ("text,score\nx,1\nz,2\n", {}, "'score' needs a second text"),
        ("one,two,score\na,b,1\nc,d,\n", {}, r":3: column 'score' must not be"),
        ("one,two,score\na,b,1\nc,d,1\n", {}, "must have different scores"),
        ("query,positive,x\na,b,c\n", {"text_b_column": "x"}, "needs --text_c"),
        ("text\na\nb\n", {"dev_share": 0.1}, "single texts cannot be evalua"),
        ("text\na\nb\n", {"dropout": 0.0}, "single texts .* with dropout"),
        ("a,b,score\nx,y,1\nz,w,2\n", {"symmetric_loss": True}, "without sc"),
        (SCORED, {"corpus_file": README, "dev_share": 0.1}, "README.md is for"),
        (SCORED, {"mine_negatives": 1}, "=1 needs pairs without scores"),
        ("text\na\nb\n", {"train_batch_size": 1}, "=1 compares no pair with"),
        ("query,positive\na,b\nc,B\n", {}, "have different texts and diff"),
        ("query,positive\na,b\na,b\n", {"dev_share": 0.1}, "the same text"),
        ("text,w\na,1\nb,2\n", {"weight_column": "w"}, "=w is for .* embed"),
        (PAIRS, {**GROUPS, "group_column": "query"}, "=query is for .*: embed"),
        ("text\na\nb\n", {"mine_negatives": 1}, "needs pairs without scores"),
        (PAIRS, {"temperature": 0.1, "task_type": "auto"}, "needs --task_typ"),
        (PAIRS, {"embedding_size": 9, "task_type": "auto"}, "needs --task_ty"),
        (PAIRS, {"folds": 2, "dev_share": None}, "=2 does not support embed"),
        (PAIRS, NER, "needs your own texts"),
        (PAIRS, OTHER, "needs your own texts"),
        (PAIRS, {"matryoshka": "64,a"}, "matryoshka=64,a must be numbers"),
        (PAIRS, SIZES, "=ndcg@10_8 must be .* mrr@10, ndcg@10, ndcg@10_6, n"),
        (PAIRS, {"temperature": 0.0}, "temperature=0.0 must be at least"),
        (PAIRS, {"text_a_column": "q"}, "'q'"),
        (PAIRS, {"bilstm_size": 3}, "bilstm_size"),
        (PAIRS, {"matryoshka": "8,32"}, "vectors, 32"),
        (PAIRS, {"class_weights": "a=1"}, "class_w"),
        (PAIRS, {"best_metric": "f1"}, "recall@1, r"),
        (
            PAIRS,
            {"corpus_file": "c.txt", "dev_share": 0.1},
            "=c.txt must be an",
        ),
        (PAIRS, {"corpus_file": README}, "needs an evaluation. Add --dev_file"),
        (PAIRS, {"corpus_file": "c.csv"}, "c.csv must be .* not a table"),
        (PAIRS, {"long_document": "windows"}, "windows is for .*: embedding,"),
    ],
)
def test_other_tables_and_flags_are_errors(tmp_path, train, flags, message):
    flags = {"dev_share": 0.0, **flags}
    with pytest.raises(InputError, match=message):
        make(tmp_path, ("train.csv", train), **flags)


def test_equal_first_texts_are_held_out_together(tmp_path):
    rows = "".join(f"q{n // 4},p{n}\n" for n in range(80))
    task, _ = make(tmp_path, ("train.csv", f"query,positive\n{rows}"))
    held_out, training = (
        {query for query, _ in texts_of(task, split)}
        for split in ("dev", "train")
    )
    assert len(held_out) == 2
    assert not held_out & training
    [line, *_] = task.data.held_out_files()["dev.jsonl"].splitlines()
    assert json.loads(line).keys() == {"query", "positive"}
