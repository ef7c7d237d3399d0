"""extract_features.py: vectors, output formats, errors."""

import shutil

import numpy as np
import pytest
import tensorflow as tf
from support import ROOT, command_lines, recorded, tiny
from support.conversions import change_json
from support.run_outputs import read_json_lines, weights
from support.sentence_transformers import keep_modules

from official_bert.commands import extract_features
from official_bert.config import BertConfig
from official_bert.errors import InputError
from official_bert.inference import feature_extraction
from official_bert.inference.feature_extraction import FeatureExtractor
from official_bert.inference.trained_models import load_encoder
from official_bert.options import ExtractFeatures
from official_bert.runs import checkpoints
from tools.golden.make_sentence_transformers import TEXTS

ST_MODEL = ROOT / "tests" / "golden" / "sentence_transformers"
CONFIG = {**tiny.CONFIG, "num_hidden_layers": 2}
TEXT = "good cat\n\nred sun ? ||| it is rain\nwhat is it ?\n"


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A directory with a model of random weights, and some text."""
    directory = tmp_path_factory.mktemp("model")
    (directory / "text.txt").write_text(TEXT)
    tiny.save_pretrained(directory, CONFIG, 3)
    return directory


@pytest.fixture
def folder(model, tmp_path):
    """A copy of the directory, which tests may change."""
    return shutil.copytree(model, tmp_path, dirs_exist_ok=True)


def make_options(folder, **changes):
    flags = {
        **command_lines.files_of_model(folder, folder / "model.ckpt-3"),
        "input_file": str(folder / "text.txt"),
        "output_file": str(folder / "out.jsonl"),
        "layers": "-1",
        "max_seq_length": 16,
    }
    return ExtractFeatures(**{**flags, **changes})


def run(folder, name, **changes):
    """Runs the command and returns the path of its output."""
    path = folder / name
    changes = {"output_file": str(path), **changes}
    extract_features.main(make_options(folder, **changes))
    return path


# Each line, and its tokens if `max_seq_length` is 16.
LINES = {
    "good cat": "[CLS] good cat [SEP]",
    "": "[CLS] [SEP]",
    "red sun ? ||| it is rain": "[CLS] red sun ? [SEP] it is rain [SEP]",
    "what " * 30: f"[CLS] {'what ' * 14}[SEP]",
    "cat ||| dog ||| sun": "[CLS] cat [UNK] [UNK] [UNK] dog [SEP] sun [SEP]",
    "bad": "[CLS] bad [SEP]",
    "rain " * 9 + "||| " + "dog " * 11: (
        f"[CLS] {'rain ' * 7}[SEP] {'dog ' * 6}[SEP]"
    ),
}


def layer_outputs(bert, tokens):
    """Returns the float64 outputs of all layers for one sequence, [L, S, H]."""
    ids = [[tiny.VOCAB.index(token) for token in tokens]]
    # The first [SEP] belongs to text A.
    length_a = tokens.index("[SEP]") + 1
    segments = [[0] * length_a + [1] * (len(tokens) - length_a)]
    output = bert(tf.constant(ids), None, tf.constant(segments))
    layers = [layer[0] for layer in output.encoder_outputs]
    return np.asarray(layers, np.float64)


POOLED = {
    "cls": lambda vectors: vectors[:, 0],
    "mean": lambda vectors: vectors.mean(axis=1),
    "max": lambda vectors: vectors.max(axis=1),
    "none": lambda vectors: vectors.transpose(1, 0, 2),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("pooling", "normalize"),
    [("none", False), ("cls", False), ("mean", False), ("max", True)],
)
def test_batches_do_not_change_vectors(model, monkeypatch, pooling, normalize):
    # A chunk of five lines and one of two, in batches of up to three.
    monkeypatch.setattr(feature_extraction, "_CHUNK_LINES", 5)
    changes = {"layers": "-1,0,-2", "pooling": pooling, "batch_size": 3}
    options = make_options(model, **changes, normalize=normalize)
    bert, _, _ = load_encoder(options.model_files)
    found = list(FeatureExtractor(options).stream(LINES))
    assert [line.number for line in found] == list(range(7))
    for line, tokens in zip(found, LINES.values(), strict=True):
        assert line.tokens == tokens.split()
        layers = layer_outputs(bert, tokens.split())[[-1, 0, 0]]
        expected = POOLED[pooling](layers)
        if normalize:
            expected /= np.linalg.norm(expected, axis=-1, keepdims=True)
        np.testing.assert_allclose(line.values, expected, atol=1e-5)
        assert line.values.dtype == np.float32
        if pooling == "none":
            # A view would keep the array of the batch in memory.
            assert line.values.flags.owndata


@pytest.mark.parametrize(
    ("line", "pair"),
    [
        (" a ||| b ||| c ", ("a ||| b", "c")),
        ("x|||y", ("x|||y", "")),
        (" ||| only b", ("||| only b", "")),
        ("only a ||| ", ("only a |||", "")),
        ("a |||  b", ("a", " b")),
        ("\t", ("", "")),
    ],
)
def test_last_separator_of_a_line_separates_the_texts(line, pair):
    assert feature_extraction.split_pair(line) == pair


def test_input_is_read_chunk_by_chunk(model, monkeypatch):
    monkeypatch.setattr(feature_extraction, "_CHUNK_LINES", 50)
    lines = iter(tiny.texts(2000, 0, longest=19))
    options = make_options(model, pooling="cls")
    next(FeatureExtractor(options).stream(lines))
    assert 1000 < len(list(lines)) < 2000


@pytest.mark.slow
def test_truncated_lines_are_counted_in_a_warning(folder, caplog):
    run(folder, "out.jsonl", max_seq_length=6)  # Line 4 has exactly 6 tokens.
    assert "1 of 4 texts are truncated to 6 tokens. --max_seq_l" in caplog.text
    caplog.clear()
    run(folder, "out.jsonl", max_seq_length=10)
    assert "truncated" not in caplog.text


@pytest.mark.slow
def test_text_that_the_vocabulary_lacks_is_a_warning(folder, caplog):
    for unknown, warning in (
        (" chat", "20.0% of the tokens are [UNK]"),
        ("", ""),
    ):
        caplog.clear()
        (folder / "text.txt").write_text(f"good cat{unknown}\n")
        run(folder, "out.jsonl")
        assert ("[UNK]" in caplog.text) == bool(warning)
        assert warning in caplog.text


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
def test_checkpoint_needs_no_pooler(folder):
    expected = run(folder, "a.jsonl").read_bytes()
    prefixes = ("bert/embeddings/", "bert/encoder/")
    arrays = weights(folder)
    kept = {n: a for n, a in arrays.items() if n.startswith(prefixes)}
    (folder / "bare").mkdir()
    checkpoints.save(str(folder / "bare"), 1, kept, None, keep=1)
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
        ("--layers=2", "--layers=2 .* from -2 to 1"),
        ("--layers=-3", "--layers=-3 .* from -2 to 1"),
        ("--layers=", "--layers= must list numbers"),
        ("--layers=a", "--layers=a .*-2 to 1"),
        ("--use_tpu", "--use_tpu"),
        ("--output_format=npy", "--pooling=auto"),
        ("--output_file=no.npy", "--pooling=auto"),
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


def test_layers_and_pooling_depend_on_the_model(folder, monkeypatch):
    monkeypatch.chdir(folder)
    line = MODEL.replace("--layers=0", "")
    assert command_lines.parse(ExtractFeatures, line).layers == "-1,-2"
    config = BertConfig.from_dict({**CONFIG, "is_left_to_right": True})
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


def st_flags(folder, model=ST_MODEL):
    """Writes the texts; returns the flags for a model."""
    (folder / "texts.txt").write_text("\n".join(TEXTS) + "\n")
    paths = {"input_file": "texts.txt", "output_file": "out.npy"}
    paths = {name: str(folder / path) for name, path in paths.items()}
    return {"model": str(model), **paths}


@pytest.mark.slow
def test_auto_writes_the_vectors_of_sentence_transformers(tmp_path, caplog):
    flags = st_flags(tmp_path)
    extract_features.main(ExtractFeatures(**flags))
    found = np.load(flags["output_file"])
    recorded = np.load(ST_MODEL / "vectors.npz")
    np.testing.assert_allclose(found, recorded["model"], atol=2e-6)
    assert "overrides" not in caplog.text

    changes = {"max_seq_length": 5, "normalize": True, "layers": "0"}
    ExtractFeatures(**flags, **changes).resolve()
    assert "--max_seq_length=5 overrides the setting of the m" in caplog.text
    assert "--layers=0 overrides" in caplog.text
    assert "--normalize" not in caplog.text
    ExtractFeatures(**flags, **changes, pooling="mean").resolve()
    assert "--pooling=mean is used without the settings" in caplog.text


def test_normalized_vectors_have_length_1_if_the_model_truncates_them(tmp_path):
    model = shutil.copytree(ST_MODEL, tmp_path / "model")
    keep_modules(model, 2)
    (model / "1_Pooling" / "config.json").write_text('{"pooling_mode": "mean"}')
    change_json(model / "config_sentence_transformers.json", truncate_dim=3)
    options = ExtractFeatures(**st_flags(tmp_path, model), normalize=True)
    extract_features.main(options)
    found = np.load(options.output_file)
    expected = np.load(ST_MODEL / "vectors.npz")["mean"][:, :3]
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(found, expected, atol=2e-6)
