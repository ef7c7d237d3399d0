import contextlib
import gzip
import os
import re
import resource
import signal
import subprocess
import sys
import time

import pytest
from support import ROOT, pretraining_records, recorded
from support.processes import run_python, started

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
    schema = schemas.pretraining_schema(16, 3)
    data = records.RecordFiles([str(directory / "out")], schema)
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
    ("token", "flags", "advice"),
    [
        ("Berlin", {}, ["Add --nodo_lower_case"]),
        ("berlin", {}, []),
        ("Berlin", {"do_lower_case": False}, []),
        ("berlin", {"do_lower_case": False}, ["Omit --nodo_lower_case"]),
        ("münchen", {}, ["Add --strip_accents=false"]),
        ("münchen", {"strip_accents": "false"}, []),
        ("München", {"strip_accents": "false"}, ["Add --nodo_lower_case"]),
    ],
)
def test_text_of_another_casing_than_the_vocabulary_is_a_warning(
    directory, caplog, token, flags, advice
):
    with open(directory / "vocab.txt", "a", encoding="utf-8") as file:
        file.write(f"{token}\n")
    make(directory, **flags)
    found = re.findall("(?:Add|Omit) --(?:nodo|strip).*", caplog.text)
    assert found == advice


def test_tables_and_few_predictions_are_a_warning(directory, caplog):
    for length in (20, 30):
        caplog.clear()
        make(directory, max_seq_length=length)
        warned = "--max_predictions_per_seq=3 limits" in caplog.text
        assert warned == (length == 30)
    path = directory / "text.jsonl"
    (directory / "text.txt").rename(path)
    make(directory, input_file=str(path))
    assert f"{path} is not read as a table" in caplog.text


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
    flags = {"num_workers": num_workers, "bert_config_file": str(config)}
    with pytest.raises(InputError, match=message):
        make(directory, **flags)
    assert sorted(directory.iterdir()) == before
    assert (directory / "out").read_text() == "before"


def test_wrong_pattern_or_missing_package_is_an_error(directory, monkeypatch):
    with pytest.raises(InputError, match=r"\*\.txt must not include .*vocab"):
        make(directory, input_file=str(directory / "*.txt"))
    monkeypatch.setitem(sys.modules, "apache_beam", None)
    message = r"pip install .*beam.*--num_workers"
    with pytest.raises(InputError, match=message):
        make(directory, runner="DirectRunner")


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


def test_command_does_not_import_tensorflow(directory):
    code = f"""
import sys
from official_bert.commands import create_pretraining_data
from official_bert.options import CreatePretrainingData
for num_workers in (0, 1):
    create_pretraining_data.main(CreatePretrainingData(
        input_file='text.txt', vocab_file='vocab.txt', output_file='out',
        num_workers=num_workers, **{SIZES}))
assert not {{'tensorflow', 'keras'}} & set(sys.modules)
"""
    run_python("-c", code, cwd=directory)


def contents(directory):
    return {path.name: path.read_bytes() for path in directory.iterdir()}


@contextlib.contextmanager
def start(directory, *arguments, limit=None):
    """Starts the command in its own process group."""
    with started(
        ROOT / "create_pretraining_data.py",
        f"--input_file={directory / 'text.txt'}",
        f"--output_file={directory / 'a'},{directory / 'b'}",
        f"--vocab_file={directory / 'vocab.txt'}",
        *(f"--{name}={size}" for name, size in SIZES.items()),
        *arguments,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        if limit is not None:  # As if the disk were full.
            limits = (limit, limit)
            resource.prlimit(process.pid, resource.RLIMIT_FSIZE, limits)
        yield process


@pytest.mark.parametrize(
    ("workers", "limit"), [("0", 300), ("1", 20_000), ("2", 20_000)]
)
def test_full_disk_is_reported_and_keeps_the_output(directory, workers, limit):
    (directory / "a").write_text("before")
    before = contents(directory)
    flags = f"--num_workers={workers}", "--dupe_factor=400"
    with start(directory, *flags, limit=limit) as process:
        stderr = process.communicate()[1]
    assert process.returncode == 1
    [message] = [line for line in stderr.splitlines() if "error: " in line]
    assert "File too large" in message
    assert "Traceback" not in stderr
    assert contents(directory) == before


def test_full_disk_at_the_end_replaces_no_file(directory):
    # The first file is so small that it is written when it is closed. The other
    # file fits.
    seed = "--random_seed=3"  # The first file has one more record.
    with start(directory, seed) as process:
        assert "Wrote" in process.communicate()[1]
    sizes = [(directory / name).stat().st_size for name in "ab"]
    assert sizes[1] < sizes[0] < 8192
    for name in "ab":
        (directory / name).write_text("before")
    before = contents(directory)
    with start(directory, seed, limit=sizes[0] - 1) as process:
        assert "File too large" in process.communicate()[1]
    assert process.returncode == 1
    assert contents(directory) == before


@pytest.mark.slow
@pytest.mark.parametrize(
    ("workers", "send", "number", "status"),
    [
        (0, os.killpg, signal.SIGINT, 130),
        (0, os.killpg, signal.SIGTERM, 143),
        (2, os.killpg, signal.SIGINT, 130),
        (2, os.killpg, signal.SIGTERM, 143),
        (2, os.kill, signal.SIGTERM, 143),
    ],
)
def test_interruption_leaves_no_files(directory, workers, send, number, status):
    before = contents(directory)
    # Half a minute of work.
    flags = f"--num_workers={workers}", "--dupe_factor=20000"
    with start(directory, *flags) as process:
        output = ""
        while "Making instances" not in output:  # A line ends after 10 seconds.
            output += process.stderr.read(1)
            assert process.poll() is None
        send(process.pid, number)
        # Standard error ends with the last process that may write to it.
        assert "Traceback" not in process.communicate(timeout=30)[1]
    assert process.returncode == status
    assert contents(directory) == before
    deadline = time.monotonic() + 5
    while running := processes_of_group(process.pid):
        assert time.monotonic() < deadline, running
        time.sleep(0.1)


def processes_of_group(group):
    command = ["ps", "-eo", "pgid=,stat=,args="]
    listed = subprocess.check_output(command, text=True)
    rows = [line.split(maxsplit=2) for line in listed.splitlines()]
    return [r for r in rows if r[0] == str(group) and r[1][0] != "Z"]
