"""extract_features.py: the recorded result, output formats, errors."""

import json

import numpy as np
import pytest
import tensorflow as tf
from support import command_lines, recorded, tiny
from support.run_outputs import read_json_lines, weights

import extract_features
from official_bert.checkpoints import run_directory
from official_bert.config import BertConfig
from official_bert.errors import InputError
from official_bert.modeling.pretraining_model import PretrainingModel
from official_bert.options import ExtractFeatures

TEXT = "good cat\n\nred sun ? ||| it is rain\nwhat is it ?\n"


def test_recorded_command_line_gives_the_recorded_file(
    golden, tmp_path, monkeypatch
):
    options = command_lines.recorded(
        ExtractFeatures, "extract_features", golden, monkeypatch, tmp_path
    )
    extract_features.main(options)
    original = golden / "e2e" / "expected" / "extract_features.jsonl"
    # The original writes spaces between values.
    found, wanted = recorded.assert_equal_texts(
        compact(tmp_path / "features.jsonl", tmp_path / "found"),
        compact(original, tmp_path / "expected"),
        atol=1e-5,
        rtol=0,
    )
    assert len(found) == 22272
    assert np.mean(found == wanted) > 0.5


def compact(source, target):
    target.write_text("\n".join(map(json.dumps, read_json_lines(source))))
    return target


@pytest.fixture
def folder(tmp_path):
    """A model with random weights, and some text."""
    (tmp_path / "text.txt").write_text(TEXT)
    model = PretrainingModel(BertConfig.from_dict(tiny.CONFIG))
    tiny.save(tmp_path, model, tiny.CONFIG, 3)
    return tmp_path


def run(folder, name, **changes):
    """Runs the command and returns the path of its output."""
    given = {
        "input_file": str(folder / "text.txt"),
        "bert_config_file": str(folder / "bert_config.json"),
        "vocab_file": str(folder / "vocab.txt"),
        "init_checkpoint": str(folder / "model.ckpt-3"),
        "layers": "-1",
        "max_seq_length": 16,
    }
    path = folder / name
    options = ExtractFeatures(**{**given, "output_file": str(path), **changes})
    extract_features.main(options)
    return path


def test_pooled_vectors_are_equal_in_jsonl_and_npy(folder):
    changes = {"pooling": "mean", "layers": "0,-1", "normalize": True}
    lines = read_json_lines(run(folder, "out.jsonl", **changes))
    array = np.load(run(folder, "out.npy", **changes), mmap_mode="r")
    assert array.dtype == np.float32
    assert array.shape == (4, 2 * 32)
    assert [line["linex_index"] for line in lines] == [0, 1, 2, 3]
    for line, row in zip(lines, array, strict=True):
        assert [layer["index"] for layer in line["layers"]] == [0, -1]
        values = [x for layer in line["layers"] for x in layer["values"]]
        np.testing.assert_allclose(values, row, atol=1e-6)
    assert abs(np.linalg.norm(array, axis=1) - np.sqrt(2)).max() < 1e-5


def records(path):
    dataset = tf.data.TFRecordDataset(str(path))
    return [recorded.decode(serialized.numpy()) for serialized in dataset]


def test_tfrecords_hold_the_vectors_of_jsonl(folder):
    lines = read_json_lines(run(folder, "out.jsonl"))
    path = run(folder, "out.records", output_format="tfrecord")
    for line, record in zip(lines, records(path), strict=True):
        tokens = [token["token"] for token in line["features"]]
        values = [t["layers"][0]["values"] for t in line["features"]]
        assert record["linex_index"] == [line["linex_index"]]
        assert [token.decode() for token in record["tokens"]] == tokens
        found = np.reshape(record["layer_-1"], (len(tokens), 32))
        np.testing.assert_allclose(found, values, atol=1e-6)
    [pooled, *_] = records(run(folder, "out.tfrecord", pooling="cls"))
    cls = lines[0]["features"][0]["layers"][0]["values"]
    np.testing.assert_allclose(pooled["layer_-1"], cls, atol=1e-6)


def test_checkpoint_needs_no_pooler(folder):
    expected = run(folder, "a.jsonl").read_bytes()
    prefixes = ("bert/embeddings/", "bert/encoder/")
    arrays = weights(folder)
    kept = {n: a for n, a in arrays.items() if n.startswith(prefixes)}
    (folder / "bare").mkdir()
    run_directory.save(str(folder / "bare"), 1, kept, None, keep=1)
    found = run(folder, "b.jsonl", init_checkpoint=str(folder / "bare"))
    assert found.read_bytes() == expected


MODEL = (
    "--input_file=text.txt --output_file=out.jsonl --vocab_file=vocab.txt "
    "--bert_config_file=bert_config.json --init_checkpoint=model.ckpt-3 "
    "--max_seq_length=16 --layers=0"
)


@pytest.mark.parametrize(
    ("command_line", "message"),
    [
        ("--layers=1", "--layers=1 .* from -1 to 0"),
        ("--layers=-2", "--layers=-2 .* from -1 to 0"),
        ("--layers=", "--layers= must list numbers"),
        ("--layers=a", "--layers=a .*-1 to 0"),
        ("--use_tpu", "--use_tpu"),
        ("--output_format=npy", "--pooling=none"),
        ("--output_file=no.npy", "--pooling=none"),
        ("--output_file=text.txt", "--output_file=text.txt"),
        ("--pooling=sum", "--pooling=sum"),
        ("--max_seq_length=65", "--max_seq_length=65 .*64"),
        ("--input_file=nowhere.txt", "--input_file=nowhere.txt"),
        ("--input_file=/dev/null", "--input_file=/dev/null"),
        ("--init_checkpoint=none", "--init_checkpoint=none"),
        ("--init_checkpoint=cased_L/x", "--init_checkpoint=.*/x "),
    ],
)
def test_invalid_flags_are_an_error(folder, monkeypatch, command_line, message):
    monkeypatch.chdir(folder)
    with pytest.raises(InputError, match=message):
        command_lines.parse(ExtractFeatures, f"{MODEL} {command_line}")


def test_cls_pooling_of_a_left_to_right_model_is_an_error(folder):
    config = BertConfig.from_dict({**tiny.CONFIG, "is_left_to_right": True})
    (folder / "bert_config.json").write_text(config.to_json_string())
    with pytest.raises(InputError, match="--pooling=cls"):
        run(folder, "out.jsonl", pooling="cls")


def test_invalid_input_is_an_error_and_leaves_no_output(folder):
    text = folder / "text.txt"
    for data, message in (
        (b"good\n" * 3 + b"\xff\n", r"text\.txt:4: text must be UTF-8"),
        (b"", r"text\.txt: "),
    ):
        text.write_bytes(data)
        with pytest.raises(InputError, match=message):
            run(folder, "out.jsonl")
    (folder / "vocab.txt").write_text("\n".join(tiny.VOCAB[3:]) + "\n")
    text.write_text(TEXT)
    with pytest.raises(InputError, match=r"vocab\.txt: .*\[CLS\]"):
        run(folder, "out.jsonl")
    assert not list(folder.glob("out*"))
