"""Quantized exports: their files, their answers, and the printed comparison."""

import json
import re
import shutil

import numpy as np
import pytest
from support import tiny

from official_bert import tasks
from official_bert.commands import run_classifier
from official_bert.errors import InputError
from official_bert.export import quantization, serving
from official_bert.export.serving import tflite
from official_bert.inference.predictor import Predictor
from official_bert.inference.trained_models import load_finetuned
from official_bert.options import RunClassifier

DEV = tiny.texts(60, 2, longest=9)
EXPORT = {
    "task_name": "SST-2",
    "do_train": False,
    "do_predict": False,
    "do_export": True,
    "export_text": False,
}


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A directory with data, and a run in `out` that has not learned."""
    folder = tmp_path_factory.mktemp("trained")
    for split, texts in (("train", tiny.texts(400, 1, 9)), ("dev", DEV)):
        rows = [f"{text}\t{int('good' in text)}\n" for text in texts]
        text = "".join(["sentence\tlabel\n", *rows])
        (folder / f"{split}.tsv").write_text(text)
    flags = {**EXPORT, "do_train": True, "do_eval": False, "do_export": False}
    with pytest.MonkeyPatch.context() as patch:
        tiny.count_steps(patch)
        run_classifier.main(tiny.options(folder, **flags))
    return folder


@pytest.fixture(scope="module")
def float32_size(trained):
    """The size of the TFLite model without quantization."""
    pytest.importorskip("ai_edge_litert", reason="needs the extra tflite")
    flags = {"do_eval": False, "export_tflite": True}
    export_dir = str(trained / "float32")
    options = tiny.options(trained, **EXPORT, **flags, export_dir=export_dir)
    run_classifier.main(options)
    return (trained / "float32" / "1" / "model.tflite").stat().st_size


@pytest.fixture
def folder(trained, tmp_path):
    """A copy of `trained`."""
    return shutil.copytree(trained, tmp_path / "copy")


def export(folder, capsys, **flags):
    """Exports; returns {row of the printed table: accuracy}."""
    run_classifier.main(tiny.options(folder, **EXPORT, **flags))
    _, table = capsys.readouterr().out.split("MB  ms / text  accuracy\n")
    rows = dict(re.findall(r"(.+?) +[\d.]+ +[\d.]+ +([\d.]+)\n", table))
    results = json.loads((folder / "out" / "eval_results.json").read_text())
    assert rows["float32"] == f"{results['accuracy']:.4f}"
    return {name: float(accuracy) for name, accuracy in rows.items()}


def probabilities(directory):
    answers = Predictor.from_dir(directory)(DEV)
    return np.array([[*a["probabilities"].values()] for a in answers])


@pytest.mark.slow
def test_int8_model_is_compared_and_answers_alike(folder, capsys, monkeypatch):
    pytest.importorskip("nncf", reason="needs the extra nncf")
    flags = {"export_openvino": True, "quantize": "int8"}
    # Whether rounding changes an answer depends on the processor.
    monkeypatch.setattr(quantization, "_MAX_LOSS", 1.0)
    assert [*export(folder, capsys, **flags)] == ["float32", "int8"]
    # If the loss is too large, outliers are smoothed.
    monkeypatch.setattr(quantization, "_MAX_LOSS", -1.0)
    names = ["float32", "int8", "int8, smoothed"]
    assert [*export(folder, capsys, **flags)] == names
    exact = probabilities(folder / "out")
    for version in "12":
        directory = folder / "out" / "export_openvino" / version
        assert len([*directory.iterdir()]) == 6
        gap = np.abs(probabilities(directory) - exact).max()
        assert 1e-5 < gap < 0.05


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["float16", "dynamic"])
def test_quantized_tflite_model_is_compared_and_answers_alike(
    folder, capsys, kind, float32_size
):
    flags = {"export_tflite": True, "do_eval": True}
    rows = export(folder, capsys, **flags, quantize=kind)
    assert [*rows] == ["float32", kind]
    quantized = (folder / "out/export/1/model.tflite").read_bytes()
    assert len(quantized) < float32_size
    finetuned = load_finetuned(str(folder / "out"))
    signatures = serving.make_signatures(finetuned, export_text=False)
    assert 1e-5 < tflite.largest_difference(signatures, quantized) < 0.05


@pytest.mark.slow
def test_int8_without_training_records_is_an_error(folder):
    (folder / "out" / "train.tf_record").unlink()
    flags = {**EXPORT, "export_openvino": True, "quantize": "int8"}
    with pytest.raises(InputError, match=r"int8 needs .*train\.tf_record"):
        tiny.options(folder, **flags).resolve()


def test_quantizing_a_model_of_sentence_embeddings_is_an_error():
    options = RunClassifier(
        task_name="csv", task_type="embedding", quantize="int8"
    )
    message = r"--quantize=int8 is for classification, .* Omit it"
    with pytest.raises(InputError, match=message):
        tasks.get(options)
