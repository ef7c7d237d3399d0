"""`create_pretraining_data.py`: files in, files out, errors."""

import gzip
import subprocess
import sys

import pytest
from support import ROOT, pretraining_records, recorded

from official_bert.errors import InputError
from official_bert.inputs import records, schemas, tfrecords
from official_bert.pretraining_data import instance_records

TEXT = (
    "The cat sat on the mat .\nIt was warm there .\nThen it slept .\n\n"
    "A dog came by .\nThe dog saw the cat .\nBoth ran .\n"
)
WORDS = (
    "the cat sat on mat . it was warm there then slept a dog came by saw both "
    "ran ##s"
)
SIZES = {"max_seq_length": 16, "max_predictions_per_seq": 3}


@pytest.fixture
def directory(tmp_path):
    return pretraining_records.write_inputs(tmp_path, TEXT, WORDS.split())


def make(directory, output_file=None, **changes):
    return pretraining_records.make(
        directory, output_file or directory / "out", **{**SIZES, **changes}
    )


@pytest.mark.parametrize("compress", [False, True])
def test_instances_go_to_the_outputs_in_turn(directory, monkeypatch, compress):
    [plain] = make(directory)
    data = records.RecordFiles(
        [str(directory / "out")], schemas.pretraining_schema(16, 3)
    )
    records.check_files(data, 25)
    records.check_files(data, 25, limit=None)
    names = [str(directory / name) for name in "abc"]
    monkeypatch.setattr(instance_records, "BATCH_SIZE", 7)
    parts = make(directory, ",".join(names), compress=compress)
    whole = list(tfrecords.read(str(directory / "out")))
    assert len(whole) >= 20  # Two documents, ten rounds.
    for i, name in enumerate(names):
        assert list(tfrecords.read(name)) == whole[i::3]
    is_small = sum(map(len, parts)) < len(plain) / 2
    assert is_small == compress


def test_globs_and_gzip_give_the_same_records_for_the_same_seed(directory):
    expected = make(directory)
    for number, part in enumerate(TEXT.partition("\n\n")):
        path = directory / f"part{number}.gz"
        path.write_bytes(gzip.compress(part.encode()))
    parts = str(directory / "part*.gz")
    assert make(directory, input_file=parts) == expected
    assert make(directory, input_file=parts, random_seed=1) != expected


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("text.txt", b"", r"text\.txt: .* text"),
        ("text.txt", b"\n \n\xe2\x80\x8b\n", r"text\.txt: .* text"),
        ("text.txt", b"fine\nbad \xff\n", r"text\.txt:2: .* UTF-8"),
        ("vocab.txt", b"a\nb\n", r"vocab\.txt: .*without \[PAD\], \[UNK\]"),
        ("config.json", b'{"vocab_size": 24}', "vocab_size=24"),
    ],
)
@pytest.mark.parametrize("num_workers", [0, 1])
def test_unusable_input_is_an_error_and_keeps_the_output(
    directory, name, content, message, num_workers
):
    config = directory / "config.json"
    config.write_text('{"vocab_size": 25}')
    (directory / "out").write_text("before")
    (directory / name).write_bytes(content)
    before = sorted(directory.iterdir())
    how = {"num_workers": num_workers, "bert_config_file": str(config)}
    with pytest.raises(InputError, match=message):
        make(directory, **how)
    assert sorted(directory.iterdir()) == before
    assert (directory / "out").read_text() == "before"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"runner": "DirectRunner", "num_workers": 2}, "--num_workers"),
        ({"beam_options": "--x"}, "--beam_options"),
        ({"runner": "Spark"}, "--runner=Spark"),
        ({"document_blank_lines": 1}, "needs --split_sentences"),
        # Without Beam.
        ({"runner": "DirectRunner"}, r"pip install .*beam.*--num_workers"),
    ],
)
def test_invalid_flags_are_errors(directory, monkeypatch, changes, message):
    monkeypatch.setitem(sys.modules, "apache_beam", None)
    before = sorted(directory.iterdir())
    with pytest.raises(InputError, match=message):
        make(directory, **changes)
    assert sorted(directory.iterdir()) == before


def test_records_equal_those_of_the_originals_command(golden, tmp_path):
    expected = golden / "e2e" / "inputs" / "pretrain.tfrecord"
    make(
        expected.parent,
        tmp_path / "out",
        dupe_factor=3,
        input_file=str(golden / "pretraining_data" / "sample_text.txt"),
        max_predictions_per_seq=10,
        max_seq_length=64,
        random_seed=81,
    )
    ours, theirs = (
        list(map(recorded.decode, tfrecords.read(str(path))))
        for path in (tmp_path / "out", expected)
    )
    assert len(ours) > 20
    assert ours == theirs


@pytest.mark.parametrize("num_workers", [0, 1])
def test_command_does_not_import_tensorflow(directory, num_workers):
    code = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
import create_pretraining_data
from official_bert.options import CreatePretrainingData
create_pretraining_data.main(CreatePretrainingData(
    input_file='text.txt', vocab_file='vocab.txt', output_file='out',
    num_workers={num_workers}, **{SIZES}))
assert not {{'tensorflow', 'keras'}} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], cwd=directory, check=True)
