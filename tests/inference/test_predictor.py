"""`Predictor` gives the answers of `--do_predict`."""

import copy
import operator
import os
import pickle
import shutil

import keras
import numpy as np
import polars
import pytest
from support import recorded, tiny
from support.conversions import change_json
from support.frames import PandasColumn, PandasFrame

from official_bert import Embedder
from official_bert.commands import run_classifier
from official_bert.config import BertConfig
from official_bert.errors import InputError
from official_bert.inference import keras_engine
from official_bert.inference.predictor import Predictor
from official_bert.io.frames import rows_of
from official_bert.modeling.finetuning_models import build_model
from official_bert.options import RunClassifier
from official_bert.tasks import glue
from official_bert.tasks.classification import ClassificationTask
from official_bert.tasks.long_texts import LongDocuments
from official_bert.tasks.multilabel import MultilabelTask
from official_bert.tasks.squad.decoding import DecodingOptions
from official_bert.tasks.squad.task import SquadTask
from official_bert.tasks.tagging import TaggingTask
from official_bert.tasks.task import FinetunedModel


def sentences(number, seed):
    """Returns texts of 1 to 23 words; the model reads 16 tokens."""
    return tiny.texts(number, seed, longest=23)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """The run directory of a model with random weights."""
    task = ClassificationTask(labels=("no", "yes"))
    return tiny.save_finetuned(tmp_path_factory.mktemp("saved") / "out", task)


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    return tiny.tokenizer(tmp_path_factory.mktemp("vocab"))


@pytest.fixture(scope="module")
def predictor(tokenizer):
    """A predictor of two classes."""
    task = ClassificationTask(labels=("no", "yes"))
    return make_predictor(task, tokenizer, batch_size=4)


def make_predictor(task, tokenizer, **changes):
    """Returns a predictor with random weights, for 16 tokens."""
    config = BertConfig.from_dict(tiny.CONFIG)
    model = recorded.assign(build_model(task.head, config), 7)
    finetuned = FinetunedModel(task, model, tokenizer, 16)
    return Predictor(finetuned, **changes)


def test_outputs_that_are_not_finite_are_an_error(tokenizer):
    task = ClassificationTask(labels=("no", "yes"))

    def diverged(batch):
        return [np.full((len(batch["input_ids"]), 2), np.nan, np.float32)]

    with pytest.raises(InputError, match="NaN or infinity"):
        make_predictor(task, tokenizer, engine=diverged)(["a"])


def scores(answers):
    return np.array([[*a["probabilities"].values()] for a in answers])


@pytest.mark.slow
def test_answers_equal_those_of_do_predict(tmp_path):
    task = glue.make(RunClassifier(task_name="sst-2"))
    output = tiny.save_finetuned(tmp_path / "out", task)
    rows = [f"{n}\t{text}" for n, text in enumerate(sentences(40, 2))]
    (tmp_path / "test.tsv").write_text("\n".join(["index\tsentence", *rows]))
    others = dict.fromkeys(("do_train", "do_eval"), False)
    options = tiny.options(tmp_path, tiny.SMALL, task_name="SST-2", **others)
    run_classifier.main(options)
    found = Predictor.from_dir(output, batch_size=3)(sentences(40, 2))
    expected = np.loadtxt(tmp_path / "out" / "test_results.tsv")
    assert len(np.unique(expected.round(4), axis=0)) > 10
    np.testing.assert_allclose(scores(found), expected, atol=2e-6)
    assert [int(a["label"]) for a in found] == [*expected.argmax(axis=1)]


def test_items_must_be_a_list_or_an_array(predictor):
    for items in ("good", b"good", {"text_a": "good"}, None, 5, np.array("a")):
        with pytest.raises(InputError, match="`items` must be a list"):
            predictor(items)
    # pandas has one type for rows and columns.
    row = PandasColumn({"text": "good", "label": 1})
    with pytest.raises(InputError, match=r"Pass \[row\.to_dict\(\)\]"):
        predictor(row)
    for item in ((0, row), (0, np.array(["a", "b"]))):  # As from `iterrows`.
        with pytest.raises(InputError, match=r"items\[0\]: must be a text, a"):
            predictor([item])
    pairs = np.array([["good cat", "bad dog"], ["red sun", "rain"]])
    for array in (pairs, pairs[0]):
        assert predictor(array) == predictor(array.tolist())


@pytest.mark.parametrize("kind", [polars.DataFrame, PandasFrame])
def test_frame_adds_the_label_and_its_probability(predictor, kind, caplog):
    texts = ["good cat", "bad dog", None]
    df = kind({"n": [1, 2, 3], "text": texts})
    answers = predictor(["good cat", "bad dog", ""])
    assert predictor(df["text"]) == answers
    found = predictor.frame(df)
    assert rows_of(found, "df") == [
        {
            "n": n,
            "text": text or "",
            "label": answer["label"],
            "probability": max(answer["probabilities"].values()),
        }
        for n, text, answer in zip([1, 2, 3], texts, answers, strict=True)
    ]
    assert caplog.text.count("Empty texts: items[2].") == 3
    assert [*df.columns] == ["n", "text"]
    empty = predictor.frame(kind({"n": [], "text": []}))
    assert [*empty.columns] == ["n", "text", "label", "probability"]
    assert rows_of(empty, "df") == []
    if kind is polars.DataFrame:
        assert empty["label"].dtype == polars.String
    with pytest.raises(InputError, match=r'a column, such as df\["text"\]'):
        predictor(df)
    with pytest.raises(InputError, match=r"has the columns label, prob"):
        predictor.frame(found)
    again = predictor.frame(found, prefix="new_")
    assert [*again.columns][-2:] == ["new_label", "new_probability"]
    with pytest.raises(InputError, match=r"`df` must be .*\['good'\]"):
        predictor.frame(["good"])


def test_columns_of_words_or_texts_are_tagged(tokenizer):
    predictor = make_predictor(TaggingTask(labels=("O", "X")), tokenizer)
    df = PandasFrame({"words": [["good", "cat"], ["bad"]], "text": ["a", "b"]})
    assert predictor(df["words"]) == predictor([["good", "cat"], ["bad"]])
    assert predictor(df["text"]) == predictor(["a", "b"])
    words = np.array(["good", "cat"])
    for cells in ({"tokens": words}, {"tokens": tuple(words)}):
        assert predictor([cells]) == predictor([["good", "cat"]])
    with pytest.raises(InputError, match=r"Received: \{'0': \['good'\]\}"):
        predictor([{0: ["good"]}])


def test_frame_has_all_parts_of_the_answers_of_other_tasks(tokenizer):
    task = MultilabelTask(labels=("no", "yes"))
    predictor = make_predictor(task, tokenizer)
    found = predictor.frame(polars.DataFrame({"text": ["good", "bad dog"]}))
    answers = predictor(["good", "bad dog"])
    assert found.drop("text").to_dicts() == [
        {**answer, "probabilities": pytest.approx(answer["probabilities"])}
        for answer in answers
    ]


def test_best_checkpoint_of_a_run_is_used_and_named(
    saved, tmp_path, monkeypatch, caplog
):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(saved, "run")
    (tmp_path / "run" / "best").mkdir()
    for path in (tmp_path / "run").glob("model.ckpt-*"):
        path.rename(path.parent / "best" / path.name)
    (tmp_path / "run" / "checkpoint").rename("run/best/checkpoint")
    caplog.set_level("INFO", logger="absl")
    texts = sentences(5, 2)
    assert Predictor.from_dir("run")(texts) == Predictor.from_dir(saved)(texts)
    assert "Engine: TensorFlow: run/best" in caplog.messages


def test_run_directory_is_loaded_by_both_functions_only(saved):
    texts = sentences(5, 2)
    expected = Predictor.from_dir(saved)(texts)
    assert Predictor.from_pretrained(saved)(texts) == expected
    with pytest.raises(TypeError, match="use `from_dir`"):
        Predictor(saved)


def test_numbers_and_names_of_other_values_are_errors(predictor, saved):
    with pytest.raises(InputError, match=r"`chunk_size`.* 2\.5"):
        list(predictor.stream(["good"], chunk_size=2.5))
    for changes, message in (
        ({"batch_size": 0}, "`batch_size` must be .*0"),
        ({"batch_size": 2.5}, r"`batch_size` must be .*2\.5"),
        ({"engine": "tf"}, "--engine=tf must be one of"),
        ({"precision": "bf16"}, "--precision=bf16 must be one of"),
    ):
        for load in (Predictor.from_dir, Predictor.from_pretrained):
            with pytest.raises(InputError, match=message):
                load(saved, **changes)


@pytest.mark.parametrize(
    ("file", "message"),
    [
        ("saved_model.pb", "out/2 is a SavedModel"),
        ("model.xml", r"out has versions of .* model\. .*, such as .*out/2\."),
    ],
)
def test_directory_of_exported_versions_is_an_error(tmp_path, file, message):
    (tmp_path / "out" / "2").mkdir(parents=True)
    (tmp_path / "out" / "2" / file).touch()
    for load in (Predictor.from_dir, Embedder.from_pretrained):
        with pytest.raises(InputError, match=message):
            load(tmp_path / "out")


def test_fork_of_a_process_with_a_model_is_an_error(predictor, monkeypatch):
    monkeypatch.setattr(os, "getpid", lambda: 0)
    with pytest.raises(InputError, match="a fork, TensorFlow hangs"):
        predictor(["good"])


def test_pickle_and_copy_are_errors_that_name_how_to_load_a_model(predictor):
    for function in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match=r"Predictor\.from_pretrained"):
            function(predictor)


def test_another_backend_of_keras_is_an_error(monkeypatch):
    monkeypatch.setattr(keras.backend, "backend", lambda: "jax")
    with pytest.raises(InputError, match="backend jax"):
        keras_engine.make(list)


def test_batch_of_few_items_is_small(tokenizer):
    sizes = []

    def engine(batch):
        sizes.append(len(batch["input_ids"]))
        return [np.zeros([sizes[-1], 2], np.float32)]

    task = ClassificationTask(labels=("no", "yes"))
    finetuned = FinetunedModel(task, None, tokenizer, 16)
    predictor = Predictor(finetuned, batch_size=12, engine=engine)
    for number in (1, 3, 9, 20):
        assert len(predictor(["good"] * number)) == number
    assert sizes == [1, 4, 12, 12, 12]


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["truncate_tail", "windows"])
def test_warning_says_once_that_texts_are_truncated(tokenizer, caplog, mode):
    task = ClassificationTask(
        labels=("no", "yes"), long_documents=LongDocuments(mode)
    )
    predictor = make_predictor(task, tokenizer)
    message = "Up to 1 of 10 texts are truncated to 16 tokens"
    predictor(["cat"] * 38 + ["cat " * 15] * 2)  # 5%.
    assert "are truncated to" not in caplog.text
    predictor(["cat"] * 9 + ["cat " * 15])
    predictor(["cat " * 15])
    assert caplog.text.count("are truncated to") == (mode != "windows")
    assert (message in caplog.text) == (mode != "windows")


def test_warning_says_once_that_words_are_unknown(tokenizer, caplog):
    predictor = make_predictor(
        ClassificationTask(labels=("no", "yes")), tokenizer
    )
    predictor(["good"] * 99 + ["žluťoučký kůň"])
    assert not caplog.messages
    predictor(["good", "žluťoučký kůň"])
    predictor(["žluťoučký kůň"])
    [message] = caplog.messages
    assert "28.6% of the first tokens are [UNK]" in message


def test_stream_reads_one_chunk_ahead(predictor):
    assert predictor([]) == []
    texts = sentences(9, 4)
    arriving = iter(texts)
    stream = predictor.stream(arriving, chunk_size=3)
    assert operator.length_hint(arriving) == 9
    found = [next(stream)]
    assert operator.length_hint(arriving) == 6
    found += stream
    np.testing.assert_allclose(
        scores(found), scores(predictor(texts)), atol=1e-6
    )


def test_invalid_item_is_named_by_its_index(predictor):
    with pytest.raises(InputError, match=r"^items\[1\]: .*7"):
        predictor(["good", 7])
    stream = predictor.stream(["good", "bad", "cat", 7], chunk_size=2)
    assert len([next(stream), next(stream)]) == 2
    with pytest.raises(InputError, match=r"^items\[3\]: .*7"):
        next(stream)


@pytest.mark.parametrize("version_2", [False, True])
def test_empty_passage_is_answered_as_in_a_batch(tokenizer, version_2, capsys):
    options = DecodingOptions(version_2_with_negative=version_2)
    task = SquadTask(doc_stride=4, max_query_length=6, decoding=options)
    predictor = make_predictor(task, tokenizer)
    blank, other = ["what is it ?", " \t "], ["what is it ?", "cat dog"]
    [alone], [with_others, _] = predictor([blank]), predictor([blank, other])
    assert alone == with_others
    assert [alone[n] for n in ("answer", "start", "end")] == ["", -1, -1]
    assert alone["probability"] == float(version_2)
    assert len(alone["n_best"]) == version_2
    assert alone.get("null_odds") == (1e6 if version_2 else None)
    assert capsys.readouterr().err == ""  # No progress bar.


@pytest.mark.parametrize(
    ("pattern", "content", "message"),
    [
        ("*", None, "out"),
        ("vocab.txt", None, "vocab.txt"),
        ("bert_config.json", None, "bert_config.json"),
        ("task.json", None, "task.json"),
        ("*ck*", None, "checkpoint"),
        ("task.json", '{\n"kind": }', "task.json:2"),
        ("task.json", "[]", "task.json"),
        ("task.json", {"kind": "poem"}, "'poem'"),
        ("task.json", {"labels": None}, "task.json: .*labels"),
        ("task.json", {"labels": ["a"]}, "output_"),
        ("task.json", {"max_seq_length": 999}, "999"),
        ("vocab.txt", "\n".join("ab" * 99), "vocab.txt"),
    ],
)
def test_damaged_run_is_an_error(saved, tmp_path, pattern, content, message):
    out = shutil.copytree(saved, tmp_path / "out")
    for path in out.glob(pattern):
        if isinstance(content, dict):
            change_json(path, **content)
        elif content is not None:
            path.write_text(content)
        elif path.is_file():
            path.unlink()
    with pytest.raises(InputError, match=message):
        Predictor.from_dir(str(out))(["good"])
