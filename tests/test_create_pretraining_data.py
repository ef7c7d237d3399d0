"""The command as its user runs it: files in, files out, errors."""

import gzip
import pathlib
import subprocess
import sys

import pytest
import recorded
import tensorflow as tf

import create_pretraining_data
from official_bert.errors import InputError
from official_bert.inputs import records
from official_bert.options import CreatePretrainingData

TEXT = (
    "The cat sat on the mat .\nIt was warm there .\nThen it slept .\n\n"
    "A dog came by .\nThe dog saw the cat .\nBoth ran .\n"
)
PIECES = (
    "[PAD] [UNK] [CLS] [SEP] [MASK] the cat sat on mat . it was warm there "
    "then slept a dog came by saw both ran ##s"
)


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
    data = records.RecordFiles([name], records.pretraining_schema(16, 3))
    records.check_files(data, 25)
    records.check_all_records(data, 25)
    assert records.count_records(name) >= 20  # Two documents, ten rounds.


def test_same_seed_same_bytes(folder):
    assert make(folder) == make(folder)
    assert make(folder) != make(folder, random_seed=1)


def test_instances_go_to_the_outputs_in_turn(folder):
    make(folder)
    names = [str(folder / "a"), str(folder / "b")]
    make(folder, output_file=",".join(names))
    whole = list(tf.data.TFRecordDataset(str(folder / "out.tfrecord")))
    for i, name in enumerate(names):
        assert list(tf.data.TFRecordDataset(name)) == whole[i::2]


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

    monkeypatch.setattr(records, "encode", interrupt)
    before = sorted(folder.iterdir())
    with pytest.raises(KeyboardInterrupt):
        make(folder)
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


@pytest.mark.slow
def test_the_command_line(folder):
    root = pathlib.Path(create_pretraining_data.__file__).parent
    command = [
        sys.executable,
        str(root / "create_pretraining_data.py"),
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
        "create_pretraining_data.py: error: --max_seq_length must be at least 5"
    )
