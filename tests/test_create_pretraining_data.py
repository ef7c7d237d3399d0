"""The command as its user runs it: files in, files out, errors."""

import gzip
import json
import os
import pathlib
import subprocess
import sys

import pytest
import tensorflow as tf
from support import recorded

import create_pretraining_data
import run_pretraining
from official_bert.errors import InputError
from official_bert.inputs import records, schemas, tfrecords
from official_bert.options import CreatePretrainingData, RunPretraining
from official_bert.pretraining_data import output

TEXT = (
    "The cat sat on the mat .\nIt was warm there .\nThen it slept .\n\n"
    "A dog came by .\nThe dog saw the cat .\nBoth ran .\n"
)
PIECES = (
    "[PAD] [UNK] [CLS] [SEP] [MASK] the cat sat on mat . it was warm there "
    "then slept a dog came by saw both ran ##s"
)
SIZES = {
    "hidden_size": 8,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 16,
    "max_position_embeddings": 16,
    "type_vocab_size": 2,
}


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "text.txt").write_text(TEXT)
    (tmp_path / "vocab.txt").write_text("\n".join(PIECES.split()) + "\n")
    return tmp_path


def make(folder, **changes):
    options = CreatePretrainingData(
        **{
            "input_file": str(folder / "text.txt"),
            "output_file": str(folder / "out.tfrecord"),
            "vocab_file": str(folder / "vocab.txt"),
            "max_seq_length": 16,
            "max_predictions_per_seq": 3,
            **changes,
        }
    )
    create_pretraining_data.main(options)
    return [pathlib.Path(name).read_bytes() for name in options.output_files()]


def test_writes_records_that_fit_the_schema(folder):
    make(folder)
    name = str(folder / "out.tfrecord")
    data = records.RecordFiles([name], schemas.pretraining_schema(16, 3))
    records.check_files(data, 25)
    records.check_all_records(data, 25)
    assert tfrecords.count_records(name) >= 20  # Two documents, ten rounds.


def test_same_seed_same_bytes(folder):
    assert make(folder) == make(folder)
    assert make(folder) != make(folder, random_seed=1)


def test_instances_go_to_the_outputs_in_turn(folder, monkeypatch):
    make(folder)
    names = [str(folder / name) for name in "abc"]
    monkeypatch.setattr(output, "ROWS_AT_ONCE", 7)
    make(folder, output_file=",".join(names))
    whole = list(tf.data.TFRecordDataset(str(folder / "out.tfrecord")))
    for i, name in enumerate(names):
        assert list(tf.data.TFRecordDataset(name)) == whole[i::3]


def test_globs_and_gzip_read_the_same_text(folder):
    expected = make(folder)
    first, second = TEXT.split("\n\n")
    (folder / "part1.gz").write_bytes(gzip.compress(f"{first}\n\n".encode()))
    (folder / "part2.gz").write_bytes(gzip.compress(second.encode()))
    assert make(folder, input_file=str(folder / "part*.gz")) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "must hold text"),
        (b"\n \n", "must hold text"),
        (b"fine\nbad \xff\n", r"text\.txt:2: text must be UTF-8"),
    ],
)
def test_text_that_cannot_be_used(folder, text, message):
    before = make(folder)
    (folder / "text.txt").write_bytes(text)
    with pytest.raises(InputError, match=message):
        make(folder)
    assert (folder / "out.tfrecord").read_bytes() == before[0]


def test_a_vocabulary_without_special_pieces(folder):
    (folder / "vocab.txt").write_text("a\nb\n")
    with pytest.raises(InputError, match=r"without \[PAD\], \[UNK\]"):
        make(folder)


def test_a_model_too_small_for_the_vocabulary(folder):
    config = folder / "bert_config.json"
    config.write_text('{"vocab_size": 24}')
    with pytest.raises(InputError, match="must not be smaller"):
        make(folder, bert_config_file=str(config))
    config.write_text('{"vocab_size": 25}')
    make(folder, bert_config_file=str(config))


def test_an_interrupted_run_leaves_nothing(folder, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(output, "encode_examples", interrupt)
    before = sorted(folder.iterdir())
    with pytest.raises(KeyboardInterrupt):
        make(folder)
    assert sorted(folder.iterdir()) == before


@pytest.mark.parametrize("num_workers", [0, 1])
def test_compressed_records_train_a_model(folder, num_workers):
    plain = make(folder, num_workers=num_workers)
    zipped = make(folder, num_workers=num_workers, compress=True)
    assert gzip.decompress(zipped[0]) == plain[0]
    assert len(zipped[0]) < len(plain[0]) / 2
    config = {**SIZES, "vocab_size": 25}
    (folder / "bert_config.json").write_text(json.dumps(config))
    run_pretraining.main(
        RunPretraining(
            bert_config_file=str(folder / "bert_config.json"),
            input_file=str(folder / "out.tfrecord"),
            output_dir=str(folder / "model"),
            max_seq_length=16,
            max_predictions_per_seq=3,
            train_batch_size=4,
            num_train_steps=2,
            num_warmup_steps=1,
            max_eval_steps=1,
            do_train=True,
            do_eval=True,
        )
    )
    results = (folder / "model" / "eval_results.txt").read_text()
    assert "global_step = 2" in results


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"runner": "DirectRunner", "num_workers": 2},
            "--num_workers=2 conflicts",
        ),
        ({"beam_options": "--x"}, "--beam_options=--x needs --runner"),
        ({"runner": "Spark"}, "--runner=Spark .*DirectRunner, Fl"),
        ({"num_workers": -1}, "--num_workers=-1"),
        ({"input_file": "/no/such/text"}, "'/no/such/text' does not exist"),
        ({"vocab_file": "/no/such/file"}, "--vocab_file=/no/such/file"),
    ],
)
def test_flags_that_cannot_be(folder, changes, message):
    before = sorted(folder.iterdir())
    with pytest.raises(InputError, match=message):
        make(folder, **changes)
    assert sorted(folder.iterdir()) == before


def test_beam_that_is_not_installed(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "apache_beam", None)
    before = sorted(folder.iterdir())
    with pytest.raises(InputError, match=r"pip install .*beam.*--num_workers"):
        make(folder, runner="DirectRunner")
    assert sorted(folder.iterdir()) == before


def test_the_recorded_command_line(golden, tmp_path):
    """The records are those that the 2018 release wrote."""
    output = tmp_path / "out.tfrecord"
    create_pretraining_data.main(
        CreatePretrainingData(
            dupe_factor=3,
            input_file=str(golden / "pretraining_data" / "sample_text.txt"),
            max_predictions_per_seq=10,
            max_seq_length=64,
            output_file=str(output),
            random_seed=81,
            vocab_file=str(golden / "e2e" / "inputs" / "vocab.txt"),
        )
    )
    expected = golden / "e2e" / "inputs" / "pretrain.tfrecord"
    ours, theirs = (
        [
            recorded.decode(r)
            for r in tf.data.TFRecordDataset(str(path)).as_numpy_iterator()
        ]
        for path in (output, expected)
    )
    assert len(ours) > 20
    assert ours == theirs


ROOT = pathlib.Path(create_pretraining_data.__file__).parent


def test_tensorflow_is_not_imported(folder):
    """It takes longer to import than thousands of instances to make."""
    code = (
        "import sys, create_pretraining_data\n"
        "from official_bert.options import CreatePretrainingData\n"
        "create_pretraining_data.main(CreatePretrainingData("
        "input_file='text.txt', vocab_file='vocab.txt', output_file='out',"
        "max_seq_length=16, max_predictions_per_seq=3, num_workers={}))\n"
        "assert not {{'tensorflow', 'keras'}} & set(sys.modules)"
    )
    for num_workers in (0, 1):
        subprocess.run(
            [sys.executable, "-c", code.format(num_workers)],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            check=True,
        )


@pytest.mark.slow
def test_the_command_line(folder):
    command = [
        sys.executable,
        str(ROOT / "create_pretraining_data.py"),
        f"--input_file={folder / 'text.txt'}",
        f"--output_file={folder / 'out'}",
        f"--vocab_file={folder / 'vocab.txt'}",
        "--do_lower_case=True",
        "--max_seq_length=16",
        "--max_predictions_per_seq=3",
        "--masked_lm_prob=0.15",
        "--random_seed=12345",
        "--dupe_factor=5",
    ]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert "Wrote" in result.stderr
    command[6] = "--max_seq_length=4"
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 1
    assert result.stderr.startswith(
        "create_pretraining_data.py: error: --max_seq_length=4"
    )
