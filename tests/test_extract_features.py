"""extract_features.py: the recorded result, output formats, errors."""

import json

import numpy as np
import pytest
import tensorflow as tf
from support import command_lines, recorded, tiny

import extract_features
from official_bert.checkpoints import run_directory
from official_bert.config import BertConfig
from official_bert.errors import InputError
from official_bert.modeling.encoder import Bert
from official_bert.modeling.pretraining_model import PretrainingModel
from official_bert.options import ExtractFeatures

TEXT = "good cat\n\nred sun ? ||| it is rain\nwhat is it ?\n"


def walk(found, expected, place=""):
    """Yields pairs of numbers; asserts that everything else is equal."""
    assert type(found) is type(expected), place
    if isinstance(found, dict):
        assert list(found) == list(expected), place
        for key in found:
            yield from walk(found[key], expected[key], f"{place}/{key}")
    elif isinstance(found, list):
        assert len(found) == len(expected), place
        for number, pair in enumerate(zip(found, expected, strict=True)):
            yield from walk(*pair, f"{place}/{number}")
    elif isinstance(found, float):
        yield found, expected
    else:
        assert found == expected, place


def test_recorded_command_line_gives_the_recorded_file(golden, tmp_path):
    folder = golden / "e2e"
    commands = json.loads((folder / "commands.json").read_text())
    given = dict(
        argument.removeprefix("--").split("=")
        for argument in commands["extract_features"][1:]
    )
    options = ExtractFeatures(
        **{
            **given,
            "bert_config_file": str(folder / given["bert_config_file"]),
            "init_checkpoint": str(folder / given["init_checkpoint"]),
            "input_file": str(folder / given["input_file"]),
            "vocab_file": str(folder / given["vocab_file"]),
            "output_file": str(tmp_path / "features.jsonl"),
            "batch_size": int(given["batch_size"]),
            "max_seq_length": int(given["max_seq_length"]),
        }
    )
    extract_features.main(options)
    expected = folder / "expected" / "extract_features.jsonl"
    ours = (tmp_path / "features.jsonl").read_text().splitlines()
    theirs = expected.read_text().splitlines()
    pairs = []
    for line, other in zip(ours, theirs, strict=True):
        pairs += walk(json.loads(line), json.loads(other))
    found, wanted = np.array(pairs).T
    assert len(pairs) == 22272
    np.testing.assert_allclose(found, wanted, atol=1e-5, rtol=0)
    assert np.mean(found == wanted) > 0.5


@pytest.fixture
def folder(tmp_path):
    """A model with random weights, and some text."""
    (tmp_path / "text.txt").write_text(TEXT)
    model = PretrainingModel(BertConfig.from_dict(tiny.CONFIG))
    tiny.save(tmp_path, model, tiny.CONFIG, 3)
    return tmp_path


def options(folder, **changes):
    return ExtractFeatures(
        **{
            "input_file": str(folder / "text.txt"),
            "output_file": str(folder / "out.jsonl"),
            "bert_config_file": str(folder / "bert_config.json"),
            "vocab_file": str(folder / "vocab.txt"),
            "init_checkpoint": str(folder / "model.ckpt-3"),
            "layers": "-1",
            "max_seq_length": 16,
            **changes,
        }
    )


def run(folder, name, **changes):
    path = folder / name
    extract_features.main(options(folder, output_file=str(path), **changes))
    return path


def read_lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_pooled_vectors_are_equal_in_jsonl_and_npy(folder):
    changes = {"pooling": "mean", "layers": "0,-1", "normalize": True}
    lines = read_lines(run(folder, "out.jsonl", **changes))
    array = np.load(run(folder, "out.npy", **changes))
    assert array.dtype == np.float32
    assert array.shape == (4, 2 * 32)
    assert [line["linex_index"] for line in lines] == [0, 1, 2, 3]
    for line, row in zip(lines, array, strict=True):
        assert [layer["index"] for layer in line["layers"]] == [0, -1]
        values = [x for layer in line["layers"] for x in layer["values"]]
        np.testing.assert_allclose(values, row, atol=1e-6)
    assert abs(np.linalg.norm(array, axis=1) - np.sqrt(2)).max() < 1e-5
    mapped = np.load(folder / "out.npy", mmap_mode="r")
    np.testing.assert_array_equal(mapped, array)


def test_tfrecords_hold_the_vectors_of_jsonl(folder):
    lines = read_lines(run(folder, "out.jsonl"))
    path = run(folder, "out.records", output_format="tfrecord")
    for line, serialized in zip(
        lines, tf.data.TFRecordDataset(str(path)), strict=True
    ):
        record = recorded.decode(serialized.numpy())
        tokens = [token["token"] for token in line["features"]]
        values = [t["layers"][0]["values"] for t in line["features"]]
        assert record["linex_index"] == [line["linex_index"]]
        assert [token.decode() for token in record["tokens"]] == tokens
        found = np.reshape(record["layer_-1"], (len(tokens), 32))
        np.testing.assert_allclose(found, values, atol=1e-6)
    path = run(folder, "out.tfrecord", pooling="cls")
    [first, *_] = tf.data.TFRecordDataset(str(path))
    pooled = recorded.decode(first.numpy())["layer_-1"]
    np.testing.assert_allclose(
        pooled, lines[0]["features"][0]["layers"][0]["values"], atol=1e-6
    )


def test_checkpoint_needs_no_pooler(folder):
    expected = run(folder, "a.jsonl").read_bytes()
    bert = Bert(BertConfig.from_dict(tiny.CONFIG))
    bert.build()
    recorded.set_weights(bert.trainable_variables, 3)
    arrays = {
        w.path: w.numpy()
        for w in bert.trainable_variables
        if "pooler" not in w.path
    }
    (folder / "bare").mkdir()
    run_directory.save(str(folder / "bare"), 1, arrays, None, keep=1)
    found = run(folder, "b.jsonl", init_checkpoint=str(folder / "bare"))
    assert found.read_bytes() == expected


MODEL = (
    "--input_file=text.txt --output_file=out.jsonl --vocab_file=vocab.txt "
    "--bert_config_file=bert_config.json --init_checkpoint=model.ckpt-3 "
    "--max_seq_length=16"
)


@pytest.mark.parametrize(
    ("command_line", "message"),
    [
        ("--layers=1", "--layers=1 .* from -1 to 0"),
        ("--layers=-2", "--layers=-2 .* from -1 to 0"),
        ("--layers=", "--layers= "),
        ("--layers=a", "--layers=a .*-1 to 0"),
        ("--layers=0 --use_tpu", "--use_tpu"),
        ("--layers=0 --output_format=npy", "--pooling=none"),
        ("--layers=0 --output_file=no.npy", "--pooling=none"),
        ("--layers=0 --output_file=text.txt", "--output_file=text.txt"),
        ("--layers=0 --pooling=sum", "--pooling=sum"),
        ("--layers=0 --max_seq_length=65", "--max_seq_length=65 .*64"),
        ("--layers=0 --input_file=nowhere.txt", "--input_file=nowhere.txt"),
        ("--layers=0 --input_file=/dev/null", "--input_file=/dev/null"),
        ("--layers=0 --init_checkpoint=none", "--init_checkpoint=none"),
        (
            "--layers=0 --init_checkpoint=cased_L/x",
            "--init_checkpoint=.*/x ",
        ),
    ],
)
def test_invalid_flags_are_an_error(folder, monkeypatch, command_line, message):
    monkeypatch.chdir(folder)
    with pytest.raises(InputError, match=message):
        command_lines.parse(ExtractFeatures, f"{MODEL} {command_line}")


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
