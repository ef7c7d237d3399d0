"""Sentence embeddings: training on pairs, and the models that it writes."""

import csv
import shutil

import numpy as np
import pytest
import tensorflow as tf
from safetensors.numpy import load_file
from sklearn.metrics import ndcg_score
from support import tiny
from support.command_lines import files_of_model
from support.conversions import change_json, convert
from support.run_outputs import (
    assert_close_weights,
    assert_same_weights,
    read_json,
    read_json_lines,
    rewind,
    weights,
)
from support.sentence_transformers import (
    encode_with_sentence_transformers,
    keep_modules,
)

from official_bert import Embedder
from official_bert.commands import extract_features, run_classifier
from official_bert.errors import InputError
from official_bert.inference.predictor import Predictor
from official_bert.options import ExtractFeatures
from official_bert.runs import checkpoints

pytestmark = pytest.mark.slow

# Each word of a text has its counterpart in the match.
WORDS = dict(zip(tiny.WORDS[:4], tiny.WORDS[4:8], strict=True))
PARTS = {"distribution_strategy": "mirrored", "gradient_accumulation_steps": 2}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Pairs of texts of which many have the same match."""
    folder = tmp_path_factory.mktemp("pairs")
    random = np.random.RandomState(0)
    rows = []
    for _ in range(160):
        a, b = random.choice([*WORDS], 2)
        text = f"{a} {b} {random.choice(tiny.WORDS[8:])}"
        rows.append(f"{text},{WORDS[a]} {WORDS[b]},{a}\n")
    text = "query,positive,negative\n" + "".join(rows)
    (folder / "pairs.csv").write_text(text)
    return folder


def run(folder, output, **changes):
    detected = ("task_name", "data_dir", "max_seq_length")
    modes = ("do_train", "do_eval", "do_predict")
    flags = {
        **dict.fromkeys((*detected, *modes)),
        "train_file": str(folder / "pairs.csv"),
        "task_type": "embedding",
        "output_dir": str(output),
        "save_checkpoints_steps": 20,
        "symmetric_loss": True,
        "embedding_size": 12,
        "matryoshka": "6",
        **changes,
    }
    run_classifier.main(tiny.options(folder, **flags))
    return output


@pytest.fixture(scope="module")
def trained(folder):
    return run(folder, folder / "trained")


@pytest.mark.trains
def test_matches_of_held_out_texts_are_found(trained):
    results = read_json(trained / "eval_results.json")
    assert results["documents"] > 10
    assert results["recall@1"] > 0.7
    assert results["ndcg@10"] > 0.85
    assert results["ndcg@10_6"] > 0.5
    assert not (trained / "dev_errors.csv").exists()


@pytest.mark.parametrize(
    "changes",
    [
        PARTS,
        pytest.param(PARTS | {"jit_compile": True}, marks=pytest.mark.nightly),
    ],
)
def test_divided_batches_end_with_the_weights_of_one_device(
    folder, trained, tmp_path, changes
):
    output = run(folder, tmp_path / "out", **changes)
    assert_close_weights(output, trained, atol=1e-4)


def test_matches_are_searched_in_a_corpus_and_negatives_are_mined(
    folder, tmp_path, capsys, request
):
    passages = tiny.texts(300, 1, 6)
    (tmp_path / "corpus.txt").write_text("".join(f"{p}\n" for p in passages))
    flags = {
        "corpus_file": str(tmp_path / "corpus.txt"),
        "mine_negatives": 2,
        "best_metric": "ndcg@10_6",
        "eval_every": 20,
    }
    output = run(folder, tmp_path / "out", num_train_epochs=4.0, **flags)
    results = read_json(output / "eval_results.json")
    held_out = read_json_lines(output / "dev.jsonl")
    matches = [row["positive"] for row in held_out]
    documents = [*dict.fromkeys([*matches, *passages])]
    assert results["documents"] == len(documents)
    embedder = Embedder.from_pretrained(output)
    queries = [*dict.fromkeys(row["query"] for row in held_out)]
    right = np.zeros((len(queries), len(documents)))
    for row in held_out:
        right[queries.index(row["query"]), documents.index(row["positive"])] = 1
    scores = embedder.similarity(embedder(queries), embedder(documents))
    assert results["ndcg@10"] == pytest.approx(
        ndcg_score(right, scores, k=10), abs=1e-6
    )
    history = read_json_lines(output / "eval_history.jsonl")
    best = max(history, key=lambda entry: entry["ndcg@10_6"])
    assert best["ndcg@10_6"] == pytest.approx(results["ndcg@10_6"])

    mined = output / "mined_negatives.csv"
    with open(mined, newline="") as file:
        rows = [*csv.DictReader(file)]
    pairs = {(row["query"], row["positive"]) for row in rows}
    assert not {query for query, _ in pairs} & {*queries}
    assert not pairs & {
        (row["query"], row[name])
        for row in rows
        for name in ("negative_1", "negative_2")
    }
    # Without training, the same pairs are mined again.
    mined.rename(tmp_path / "mined.csv")
    flags["corpus_file"] = str(tmp_path / "other.txt")
    text = (tmp_path / "corpus.txt").read_text()
    (tmp_path / "other.txt").write_text(f"{text}\n")  # A blank line is no text.
    run(folder, output, do_train=False, do_eval=True, **flags)
    shown = capsys.readouterr().err
    for title in ("Evaluating", "Encoding the corpus", "Mining negatives"):
        assert f"{title}: 100%" in shown
    assert read_json(output / "eval_results_other.json") == results
    assert {*mined.read_text().splitlines()} == {
        *(tmp_path / "mined.csv").read_text().splitlines()
    }
    request.getfixturevalue("without_learning")
    second = run(
        folder,
        tmp_path / "second",
        train_file=str(mined),
        dev_file=str(output / "dev.jsonl"),
        num_train_epochs=1.0,
    )
    records = tf.data.TFRecordDataset(str(second / "train.tf_record"))
    [record, *_] = records.as_numpy_iterator()
    example = tf.train.Example.FromString(record)
    assert len(example.features.feature["text_ids"].int64_list.value) == 4


def test_resumed_run_ends_with_the_weights_of_an_uninterrupted_run(
    folder, trained, tmp_path
):
    output = shutil.copytree(trained, tmp_path / "out")
    rewind(output, 40)
    run(folder, output)
    assert_same_weights(output, trained)


TEXTS = ["good cat", "red sun [SEP] is it", "what"]


@pytest.fixture(scope="module")
def expected(trained):
    """The vectors of `predict.py`."""
    answers = Predictor.from_dir(trained)(TEXTS)
    return np.array([answer["vector"] for answer in answers])


@pytest.fixture(scope="module")
def converted(trained, tmp_path_factory):
    """The run in the format of Hugging Face."""
    return convert(
        input=trained,
        output=tmp_path_factory.mktemp("converted") / "hf",
        to="huggingface",
    )


def assert_vectors(model, expected, **arguments):
    found = Embedder.from_pretrained(model, **arguments)(TEXTS)
    np.testing.assert_allclose(found, expected, atol=2e-6)


def extract(folder, **flags):
    """Returns the vectors that the command writes."""
    (folder / "texts.txt").write_text("".join(f"{t}\n" for t in TEXTS))
    paths = {
        "input_file": str(folder / "texts.txt"),
        "output_file": str(folder / "vectors.npy"),
    }
    extract_features.main(ExtractFeatures(**paths, **flags))
    return np.load(folder / "vectors.npy")


def test_later_commands_know_that_the_run_is_an_embedding_model(
    folder, trained, converted, expected, tmp_path
):
    assert expected.shape == (3, 12)
    np.testing.assert_allclose(np.linalg.norm(expected, axis=1), 1, atol=1e-6)
    assert_vectors(trained, expected)
    assert_vectors(converted, expected)
    found = extract(tmp_path, model=str(trained))
    np.testing.assert_allclose(found, expected, atol=2e-6)
    flags = {"model": str(trained), "max_seq_length": 16, "layers": "0"}
    assert extract(tmp_path, **flags, pooling="mean").shape == (3, 32)
    with pytest.raises(InputError, match="--layers=0 does not fit"):
        extract(tmp_path, **flags)
    for size in (0, 8):
        flags = {"do_eval": True, "train_file": None, "embedding_size": size}
        with pytest.raises(InputError, match="trained with `embedding_size`"):
            run(folder, trained, **flags)
    length = read_json(trained / "task.json")["max_seq_length"]
    assert Embedder.from_pretrained(converted).max_seq_length == length


def test_chosen_checkpoint_and_means_have_their_own_dense_layer(
    trained, expected, tmp_path
):
    last = checkpoints.latest(str(trained))
    found = extract(tmp_path, **files_of_model(trained, last))
    np.testing.assert_allclose(found, expected, atol=2e-6)
    earlier = files_of_model(trained, trained / "model.ckpt-20")
    found = extract(tmp_path, **earlier)
    assert np.abs(found - expected).max() > 1e-3
    mean, half = (
        convert(
            input=trained,
            output=tmp_path / dtype,
            to="huggingface",
            average_checkpoints=2,
            dtype=dtype,
        )
        for dtype in ("float32", "float16")
    )
    kernels = [
        weights(trained, step)["embedding_dense/kernel"] for step in (60, 72)
    ]
    dense = load_file(mean / "2_Dense" / "model.safetensors")
    np.testing.assert_allclose(
        dense["linear.weight"], np.mean(kernels, axis=0).T, atol=1e-7
    )
    stored = load_file(half / "2_Dense" / "model.safetensors")
    for name, array in dense.items():
        assert stored[name].dtype == np.float16
        np.testing.assert_array_equal(stored[name], array.astype(np.float16))


@pytest.mark.nightly
def test_sentence_transformers_has_equal_vectors(converted, expected, tmp_path):
    found = encode_with_sentence_transformers(converted, TEXTS, tmp_path)
    np.testing.assert_allclose(found, expected, atol=2e-6)


@pytest.mark.parametrize("kind", ["run", "converted"])
@pytest.mark.usefixtures("without_learning")
def test_training_starts_from_the_settings_and_weights_of_a_model(
    folder, trained, converted, expected, tmp_path, kind
):
    model = trained
    if kind == "converted":
        model = shutil.copytree(converted, tmp_path / "model")
        change_json(
            model / "config_sentence_transformers.json",
            prompts={"query": "what "},
        )
        change_json(model / "sentence_bert_config.json", max_seq_length=40)
        keep_modules(model, 3)  # Without normalization.
    output = run(
        folder,
        tmp_path / "out",
        model=str(model),
        **dict.fromkeys(("bert_config_file", "vocab_file", "embedding_size")),
        learning_rate=0.0,
        num_train_epochs=1.0,
    )
    if kind == "run":
        assert_vectors(output, expected)
        return
    one, other = map(Embedder.from_pretrained, (output, model))
    np.testing.assert_allclose(one(TEXTS), other(TEXTS), atol=2e-6)
    assert one.settings.prompts == {"query": "what "}
    assert one.max_seq_length == 40
    assert np.abs(np.linalg.norm(one(TEXTS), axis=1) - 1).max() > 0.1
    results = read_json(output / "eval_results.json")
    assert results["recall@1"] > 0.7  # By cosine.


def test_openvino_export_has_the_vectors(folder, trained, expected, tmp_path):
    pytest.importorskip("openvino")
    run(
        folder,
        trained,
        train_file=None,
        do_export=True,
        export_openvino=True,
        export_dir=str(tmp_path / "export"),
        **dict.fromkeys(("symmetric_loss", "embedding_size")),
    )
    export = tmp_path / "export" / "1"
    answers = Predictor.from_dir(export)(TEXTS)
    found = [answer["vector"] for answer in answers]
    np.testing.assert_allclose(found, expected, atol=2e-6)
    assert_vectors(export, expected)
    np.testing.assert_allclose(
        extract(tmp_path, model=str(export)), expected, atol=2e-6
    )
    copy = shutil.copytree(trained, tmp_path / "run")
    earlier = files_of_model(copy, copy / "model.ckpt-20")
    extract(tmp_path, engine="openvino", **earlier)
    assert_vectors(copy, expected, engine="openvino")
    bert = convert(input=trained, output=tmp_path / "bert", to="openvino")
    assert_vectors(bert, expected)
