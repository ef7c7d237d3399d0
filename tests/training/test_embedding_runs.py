"""Sentence embeddings: training on pairs, and the models that it writes."""

import json
import shutil

import numpy as np
import pytest
from support import recorded, tiny
from support.run_outputs import assert_same_weights, rewind, weights

from official_bert import Embedder
from official_bert.commands import (
    convert_checkpoint,
    extract_features,
    run_classifier,
)
from official_bert.inference.predictor import Predictor
from official_bert.options import ConvertCheckpoint, ExtractFeatures

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
    options = tiny.options(
        folder,
        **{
            "task_name": None,
            "data_dir": None,
            "max_seq_length": None,
            "do_train": None,
            "do_eval": None,
            "do_predict": None,
            "train_file": str(folder / "pairs.csv"),
            "task_type": "embedding",
            "output_dir": str(output),
            "save_checkpoints_steps": 20,
            "symmetric_loss": True,
            **changes,
        },
    )
    run_classifier.main(options)
    return output


@pytest.fixture(scope="module")
def trained(folder):
    return run(folder, folder / "trained")


@pytest.mark.trains
def test_matches_of_held_out_texts_are_found(trained):
    results = json.loads((trained / "eval_results.json").read_text())
    assert results["documents"] > 10
    assert results["recall@1"] > 0.7
    assert results["ndcg@10"] > 0.85


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
    found, expected = weights(output), weights(trained)
    for name in list(expected):
        if name.endswith("/key/bias"):  # Only rounding errors, see above.
            del found[name], expected[name]
    recorded.assert_all_close(found, expected, rtol=0, atol=1e-4)


def test_resumed_run_ends_with_the_weights_of_an_uninterrupted_run(
    folder, trained, tmp_path
):
    output = shutil.copytree(trained, tmp_path / "out")
    rewind(output, 40)
    run(folder, output)
    assert_same_weights(output, trained)


def test_later_commands_know_that_the_run_is_an_embedding_model(
    trained, tmp_path
):
    texts = ["good cat", "red sun is it", "what"]
    expected = np.array(
        [answer["vector"] for answer in Predictor.from_dir(trained)(texts)]
    )
    np.testing.assert_allclose(np.linalg.norm(expected, axis=1), 1, atol=1e-6)
    (tmp_path / "texts.txt").write_text("".join(f"{t}\n" for t in texts))
    extract_features.main(
        ExtractFeatures(
            model=str(trained),
            input_file=str(tmp_path / "texts.txt"),
            output_file=str(tmp_path / "vectors.npy"),
        )
    )
    convert_checkpoint.main(
        ConvertCheckpoint(
            input=str(trained), output=str(tmp_path / "hf"), to="huggingface"
        )
    )
    for vectors in (
        np.load(tmp_path / "vectors.npy"),
        Embedder.from_pretrained(trained)(texts),
        Embedder.from_pretrained(tmp_path / "hf")(texts),
    ):
        np.testing.assert_allclose(vectors, expected, atol=2e-6)
    length = json.loads((trained / "task.json").read_text())["max_seq_length"]
    assert Embedder.from_pretrained(tmp_path / "hf").max_seq_length == length


def test_openvino_export_returns_the_vectors(folder, trained, tmp_path):
    pytest.importorskip("openvino")
    run(
        folder,
        trained,
        train_file=None,
        do_export=True,
        export_openvino=True,
        export_dir=str(tmp_path / "export"),
    )
    texts = ["good cat", "red sun is it"]
    found, expected = (
        [answer["vector"] for answer in Predictor.from_dir(directory)(texts)]
        for directory in (tmp_path / "export" / "1", trained)
    )
    np.testing.assert_allclose(found, expected, atol=2e-6)
