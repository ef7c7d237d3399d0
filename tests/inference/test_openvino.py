"""OpenVINO gives TensorFlow's answers, without TensorFlow."""

import json
import os
import pathlib
import shutil

import numpy as np
import pytest
from absl import logging
from support import command_lines, tiny
from support.predictions import assert_equal_answers, numbers
from support.processes import run_python
from support.run_outputs import read_json, read_json_lines

from official_bert import tasks
from official_bert.commands import convert_checkpoint, extract_features, predict
from official_bert.errors import InputError
from official_bert.export import engine_models, serving
from official_bert.inference import openvino_engine
from official_bert.inference.predictor import Predictor
from official_bert.inference.trained_models import load_finetuned
from official_bert.options import (
    ConvertCheckpoint,
    ExtractFeatures,
    Predict,
    RunClassifier,
)
from official_bert.sources.heads import PoolingHead
from official_bert.tasks.calibration import Calibration
from official_bert.tasks.choice import ChoiceTask
from official_bert.tasks.classification import ClassificationTask
from official_bert.tasks.long_texts import LongDocuments
from official_bert.tasks.multilabel import MultilabelTask
from official_bert.tasks.regression import RegressionTask
from official_bert.tasks.squad.decoding import DecodingOptions
from official_bert.tasks.squad.task import SquadTask
from official_bert.tasks.tagging import TaggingTask

pytest.importorskip("openvino", reason="needs the extra openvino")
pytestmark = pytest.mark.slow

TEXTS = tiny.texts(20, 1, longest=23)
PAIRS = [[a, b] for a, b in zip(TEXTS, TEXTS[::-1], strict=True)]
LABELS = ("no", "yes", "ja")
CALIBRATED = ClassificationTask(labels=LABELS, calibration=Calibration(2.5))
WINDOWS = MultilabelTask(
    labels=LABELS[:2], long_documents=LongDocuments("windows")
)
BILSTM = PoolingHead("weighted_sum_all", 6)
DECODING = DecodingOptions(version_2_with_negative=True)

# {name: (task, items)}; the model reads 16 tokens.
CASES = {
    "classification": (CALIBRATED, PAIRS),
    "windows": (WINDOWS, TEXTS),
    "regression": (
        RegressionTask(labels=(), target_mean=7.0, target_deviation=2.5),
        TEXTS,
    ),
    "tagging": (TaggingTask(labels=("O", "B-X", "I-X")), TEXTS),
    "bilstm": (TaggingTask(labels=("O", "B-X"), pooling_head=BILSTM), TEXTS),
    "choice": (
        ChoiceTask(num_choices=3),
        [{"context": a, "choices": [b, f"{b} ?"]} for a, b in PAIRS],
    ),
    "squad": (
        SquadTask(doc_stride=4, max_query_length=4, decoding=DECODING),
        PAIRS,
    ),
}
MASKED = ["it [MASK] red [MASK] ?", "[MASK]", "good [MASK] is"]


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Run directories of fine-tuned models, and of `pretrained`.

    `pretrained` has the exact gelu, like most models of transformers.
    """
    folder = tmp_path_factory.mktemp("runs")
    for name, (task, _) in CASES.items():
        tiny.save_finetuned(folder / name, task)
    config = {**tiny.SMALL, "num_hidden_layers": 2, "hidden_act": "gelu_erf"}
    tiny.save_pretrained(folder / "pretrained", config, 5)
    for run in folder.iterdir():
        (run / "train_options.json").write_text("{}")
    return folder


@pytest.fixture(scope="module")
def exports(runs):
    """Exports of these models; a pre-trained one also as `encoder`."""
    folder = runs.parent / "exports"
    for name in CASES:
        finetuned = load_finetuned(str(runs / name))
        engine_models.write_finetuned(finetuned, str(folder / name))
    pretrained = {"input": str(runs / "pretrained"), "to": "openvino"}
    for name, skip in (("pretrained", None), ("encoder", "^cls/")):
        options = {**pretrained, "output": str(folder / name), "skip": skip}
        convert_checkpoint.main(ConvertCheckpoint(**options))
    return folder


def copy(source, tmp_path):
    return shutil.copytree(source, tmp_path / source.name)


@pytest.mark.bfloat16
def test_bfloat16_answers_are_near(exports):
    directory = exports / "classification"
    exact = Predictor.from_dir(directory, precision="float32")(PAIRS)
    found = Predictor.from_dir(directory, precision="bfloat16")(PAIRS)
    exact, found = ([*numbers(a)] for a in (exact, found))
    np.testing.assert_allclose(found, exact, atol=0.02)


def test_cpu_without_bfloat16_computes_in_float32(exports, monkeypatch, caplog):
    directory = exports / "classification"
    exact = Predictor.from_dir(directory)(PAIRS)
    monkeypatch.setattr(openvino_engine, "_has_bfloat16", lambda _: False)
    assert Predictor.from_dir(directory, precision="bfloat16")(PAIRS) == exact
    assert "no bfloat16 instructions" in caplog.text


@pytest.mark.parametrize("name", ["regression", "choice", "squad"])
def test_onnx_models_give_the_answers_of_tensorflow(runs, tmp_path, name):
    pytest.importorskip("tf2onnx", reason="needs the extra onnx")
    options = {"input": str(runs / name), "output": str(tmp_path / "onnx")}
    convert_checkpoint.main(ConvertCheckpoint(**options, to="onnx"))
    task, _ = tasks.load(read_json(tmp_path / "onnx/task.json"), "onnx")
    finetuned = load_finetuned(str(runs / name))
    expected = Predictor(finetuned)(CASES[name][1])
    engine = engine_models.make_onnx_engine(str(tmp_path / "onnx"), ["logits"])
    found = Predictor(finetuned._replace(task=task), engine=engine)
    assert_equal_answers(found(CASES[name][1]), expected)


@pytest.mark.parametrize("skip", [None, "^cls/"])
def test_pretrained_onnx_models_equal_tensorflow(runs, tmp_path, skip, capsys):
    pytest.importorskip("tf2onnx", reason="needs the extra onnx")
    options = {"input": str(runs / "pretrained"), "skip": skip, "to": "onnx"}
    options["output"] = str(tmp_path / "onnx")
    convert_checkpoint.main(ConvertCheckpoint(**options))
    _, gap = capsys.readouterr().out.strip(".\n").rsplit(" ", 1)
    assert float(gap) < 1e-5
    import onnxruntime

    session = onnxruntime.InferenceSession(str(tmp_path / "onnx/model.onnx"))
    names = [port.name for port in session.get_outputs()]
    encoder = ["layer_0", "layer_1", "pooled_output"]
    assert names == (encoder if skip else ["masked_lm_logits"])


def encoder_flags(directory, **flags):
    """Returns the flags of `extract_features.py` for a model."""
    files = command_lines.files_of_model(directory, directory)
    return {**files, "max_seq_length": 24, **flags}


def commands(models, encoder, tmp_path, ending):
    """Yields commands with flags, which write `NAME.ENDING` in `tmp_path`."""
    pretrained = {"model_dir": str(models / "pretrained")}
    lines = {name: [*map(json.dumps, CASES[name][1])] for name in CASES}
    # The last of 20 items is alone in its chunk.
    others = {"explain": "occlusion", "chunk_size": 19}
    flags = {
        name: {"model_dir": str(models / name), **others} for name in CASES
    }
    lines["blanks"] = [*map(json.dumps, MASKED)]
    flags["blanks"] = {**pretrained, "fill_mask": True, "top_k": 3}
    lines["scores"] = [*map(json.dumps, TEXTS)]
    flags["scores"] = {**pretrained, "score": True}
    lines["vectors"] = TEXTS
    flags["vectors"] = encoder_flags(encoder, layers="-1,0", pooling="mean")
    lines["records"] = TEXTS
    flags["records"] = {**flags["vectors"], "output_format": "tfrecord"}
    for name in lines:
        path = tmp_path / f"{name}.jsonl"
        path.write_text("".join(f"{line}\n" for line in lines[name]))
        output = {"output_file": str(tmp_path / f"{name}.{ending}")}
        command = "extract_features" if lines[name] is TEXTS else "predict"
        yield command, {**flags[name], **output, "input_file": str(path)}


MAINS = {
    "predict": (predict.main, Predict),
    "extract_features": (extract_features.main, ExtractFeatures),
}
WITHOUT_TENSORFLOW = """
import json, sys
sys.modules["tensorflow"] = sys.modules["keras"] = None
from official_bert.commands import extract_features, predict
from official_bert.options import ExtractFeatures, Predict
for command, flags in json.loads(sys.argv[1]):
    main, options = {
        "predict": (predict.main, Predict),
        "extract_features": (extract_features.main, ExtractFeatures),
    }[command]
    main(options(**flags))
assert not {n for n in sys.modules if n.startswith("openvino.tools.ovc")}
"""


def test_commands_write_the_answers_of_tensorflow_without_it(
    runs, exports, tmp_path
):
    without = [*commands(exports, exports / "encoder", tmp_path, "found")]
    run_python("-c", WITHOUT_TENSORFLOW, json.dumps(without))
    for command, flags in commands(
        runs, runs / "pretrained", tmp_path, "expected"
    ):
        main, options = MAINS[command]
        main(options(**flags))
        path = pathlib.Path(flags["output_file"])
        found = path.with_suffix(".found")
        if path.stem == "records":
            assert found.stat().st_size == path.stat().st_size
            continue
        found, expected = map(read_json_lines, (found, path))
        shown = dict.fromkeys(("input", "explanation"))
        answers = {json.dumps(answer | shown) for answer in expected}
        assert len(answers) > (10 if path.stem in CASES else 2)
        # Sums of logarithms have larger rounding errors.
        assert_equal_answers(found, expected, atol=1e-5, rtol=1e-5)


def test_gradients_of_an_export_are_an_error(exports, tmp_path):
    (tmp_path / "a.txt").write_text("good cat\n")
    options = Predict(
        model_dir=str(exports / "tagging"),
        input_file=str(tmp_path / "a.txt"),
        explain="integrated_gradients",
    )
    with pytest.raises(InputError, match=r"needs TensorFlow.*=occlusion"):
        predict.main(options)


@pytest.fixture
def log(caplog):
    """The log, in which TensorFlow's export does not reset the level."""
    before = logging.get_verbosity()
    logging.set_verbosity(logging.INFO)
    yield caplog
    logging.set_verbosity(before)


def test_conversion_is_kept_until_the_checkpoint_changes(runs, tmp_path, log):
    run = copy(runs / "classification", tmp_path)

    def engine_of(engine):
        log.clear()
        answers = Predictor.from_dir(run, engine=engine)(PAIRS)
        converted = "Converting" in log.text
        return answers, "Engine: OpenVINO" in log.text, converted

    first, *found = engine_of("auto")
    assert found == [False, False]
    assert engine_of("openvino")[1:] == (True, True)
    assert engine_of("openvino")[1:] == (True, False)
    same, *found = engine_of("auto")
    assert found == [True, False]
    assert_equal_answers(same, first)

    task, _ = CASES["classification"]
    model = tiny.build_model(task.head, tiny.BertConfig.from_dict(tiny.SMALL))
    tiny.save(run, model, tiny.SMALL, 6)  # Another checkpoint.
    assert engine_of("auto")[1:] == (False, False)
    other, *found = engine_of("openvino")
    assert found == [True, True]
    changed = Predictor.from_dir(run, engine="tensorflow")(PAIRS)
    assert_equal_answers(other, changed)
    with pytest.raises(AssertionError):
        assert_equal_answers(other, first)


def test_nothing_is_written_in_a_read_only_folder(runs, tmp_path, monkeypatch):
    run = copy(runs / "classification", tmp_path)
    names = sorted(os.listdir(run))
    monkeypatch.setattr(os, "access", lambda *_: False)
    found = Predictor.from_dir(run, engine="openvino")(PAIRS)
    expected = Predictor.from_dir(run, engine="tensorflow")(PAIRS)
    assert_equal_answers(found, expected)
    assert sorted(os.listdir(run)) == names


@pytest.mark.parametrize("name", ["model.xml", "model.bin", "text"])
def test_damaged_model_is_an_error(exports, tmp_path, name):
    export = copy(exports / "classification", tmp_path)
    if name == "text":
        (export / "model.xml").write_bytes(b"no model")
    else:
        os.truncate(export / name, (export / name).stat().st_size // 2)
    with pytest.raises(InputError, match=r"model\.xml.* damaged"):
        Predictor.from_dir(export)


def test_answers_do_not_change_with_the_file_of_the_weights(exports, tmp_path):
    export = copy(exports / "classification", tmp_path)
    predictor = Predictor.from_dir(export)
    expected = predictor(PAIRS)
    size = (export / "model.bin").stat().st_size
    with open(export / "model.bin", "r+b") as file:
        file.write(bytes(size))
    assert predictor(PAIRS) == expected


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("classification", "regression"),
        ("classification", "windows"),
        ("classification", "squad"),
        ("classification", "choice"),
        ("choice", "classification"),
    ],
)
def test_task_of_another_model_is_an_error(exports, tmp_path, name, other):
    export = copy(exports / name, tmp_path)
    shutil.copy(exports / other / "task.json", export)
    with pytest.raises(InputError, match=r"must have the shape .* task\.json"):
        Predictor.from_dir(export)


def test_engine_must_fit_the_model(runs, exports, tmp_path, monkeypatch):
    run, export = (d / "classification" for d in (runs, exports))
    (tmp_path / "a.txt").write_text("good cat\n")
    flags = encoder_flags(exports / "pretrained", layers="-1,0")
    flags["input_file"] = str(tmp_path / "a.txt")
    flags["output_file"] = str(tmp_path / "a.jsonl")
    with pytest.raises(InputError, match=r"computes masked_lm_logits, not lay"):
        extract_features.main(ExtractFeatures(**flags))

    def assert_error(message, directory, **flags):
        with pytest.raises(InputError, match=message):
            Predictor.from_dir(directory, **flags)

    assert_error("without a checkpoint", export, engine="tensorflow")
    message = "--precision=bfloat16 needs OpenVINO"
    assert_error(message, run, precision="bfloat16")
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    assert_error("OpenVINO model needs the package", export)
    assert_error("--engine=openvino needs the pack", run, engine="openvino")
    assert_error(r"checkpoint needs .* tensorflow", run)


def test_run_is_exported_as_versions(tmp_path, runs):
    run = copy(runs / "classification", tmp_path)
    finetuned = load_finetuned(str(run))
    folder = str(tmp_path / "versions")
    options = RunClassifier(export_dir=folder, export_openvino=True)
    for version in ("1", "2"):
        path = serving.export(finetuned, options)
        assert os.path.basename(path) == version
    assert sorted(os.listdir(path)) == [
        *("bert_config.json", "model.bin", "model.xml", "task.json"),
        *("tokenizer_config.json", "vocab.txt"),
    ]
    found = Predictor.from_dir(path)(PAIRS)
    expected = Predictor.from_dir(run, engine="tensorflow")(PAIRS)
    assert_equal_answers(found, expected)


FIRST_CALLS = """
import sys, threading
import numpy as np
from official_bert.inference.openvino_engine import OpenVinoEngine
is_batch_job = sys.argv[2] == "True"
engine = OpenVinoEngine(sys.argv[1], ["logits"], is_batch_job=is_batch_job)
ones = np.ones((2, 8), np.int32)
batch = dict.fromkeys(("input_ids", "input_mask", "segment_ids"), ones)
barrier, outputs = threading.Barrier(4), []
sys.setswitchinterval(1e-6)
def call():
    barrier.wait()
    outputs.append(engine(batch)[0].tolist())
threads = [threading.Thread(target=call) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert outputs == outputs[:1] * 4
"""


def test_threads_may_make_their_first_calls_at_the_same_time(exports):
    """Without a lock, a quarter of such processes wait forever."""
    for is_batch_job in [False, True] * 3:
        arguments = (str(exports / "classification"), str(is_batch_job))
        run_python("-c", FIRST_CALLS, *arguments, timeout=60)
