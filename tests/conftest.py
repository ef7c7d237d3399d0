"""Two devices for all tests; fixtures for recorded results and real data."""

import json
import lzma
import os
import pathlib
import shlex
import signal
import sys
import types
import unicodedata
from typing import Any

import pytest
import tensorflow as tf
from support import ROOT, SPECIAL, command_lines, recorded_texts, write_vocab
from support.recorded import EXTRACT

from official_bert.commands import run_classifier
from official_bert.io import processes
from official_bert.options import RunClassifier

SHARED = ROOT.parent / "shared"

# Two replicas on one processor. TensorFlow accepts this only before its first
# operation.
tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices("CPU")[0],
    [tf.config.LogicalDeviceConfiguration()] * 2,
)

if "INITIAL_NOISE" in os.environ:
    from support.initial_noise import sitecustomize  # In this process.

    directory = os.path.dirname(sitecustomize.__file__)  # In commands.
    os.environ["PYTHONPATH"] = os.pathsep.join([directory, str(ROOT)])


def pytest_configure() -> None:
    """Lets Ctrl-C reach the commands that tests start.

    Shells start background jobs with SIGINT ignored.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skips tests that would abort under a limit of the instructions.

    TensorFlow chooses products in bfloat16 by the processor, and OpenVINO uses
    them; below this limit, oneDNN has none for TensorFlow.
    """
    limit = os.environ.get("ONEDNN_MAX_CPU_ISA", "")
    if "AVX2" in limit and item.get_closest_marker("bfloat16"):
        pytest.skip(f"ONEDNN_MAX_CPU_ISA={limit} has no products in bfloat16")


def _shared(name: str) -> pathlib.Path:
    directory = SHARED / name
    if not directory.is_dir():
        pytest.skip(f"needs the directory {directory}")
    return directory


@pytest.fixture(scope="session")
def golden() -> pathlib.Path:
    """Arrays and records that the original implementation produced."""
    return _shared("golden")


@pytest.fixture(scope="session")
def shared_data() -> pathlib.Path:
    """Real data: vocabularies, corpora, tasks."""
    return _shared("data")


@pytest.fixture
def without_learning(monkeypatch):
    """Lets training count its steps, without compiling or running them."""
    from support import tiny

    tiny.count_steps(monkeypatch)


@pytest.fixture
def started_runs(monkeypatch):
    """Runs sweeps and folds in this process; returns the options of runs."""
    started = []

    def start_command(name, flags):
        assert name == "run_classifier"
        options = command_lines.parse(RunClassifier, shlex.join(flags))
        started.append(options)
        run_classifier.main(options)
        return types.SimpleNamespace(wait=lambda: 0)

    monkeypatch.setattr(processes, "start_command", start_command)
    return started


@pytest.fixture
def make_vocab(tmp_path):
    """Returns a function that writes tokens to a vocabulary file."""

    return lambda *tokens: write_vocab(tmp_path, tokens)


@pytest.fixture(scope="session")
def tokenization_extract() -> Any:
    """Recorded tokens of the texts that are stored with the tests."""
    path = EXTRACT / "tokenization.json"
    return json.loads(path.read_text(encoding="utf-8"))


@pytest.fixture(scope="session")
def vocab_files(shared_data, tmp_path_factory):
    """{name: file} of the released vocabularies."""
    directory = shared_data / "vocab"
    unpacked = tmp_path_factory.mktemp("vocab") / "multi_cased.txt"
    unpacked.write_bytes(
        lzma.decompress((directory / "multi_cased.txt.xz").read_bytes())
    )
    return {
        "uncased": str(directory / "uncased.txt"),
        "cased": str(directory / "cased.txt"),
        "chinese": str(directory / "chinese.txt"),
        "multi_cased": str(unpacked),
    }


@pytest.fixture(scope="session")
def all_records(golden):
    """Recorded strings and tokens that this Python can reproduce."""
    path = golden / "tokenization" / "tokenized.jsonl.gz"
    every = list(recorded_texts.lines(path))
    # `pydiff` lists versions of Python with other results, such as "3.10.13";
    # Unicode tables change only between minor versions.
    running = f"{sys.version_info.major}.{sys.version_info.minor}."
    kept = [
        record
        for record in every
        if not any(v.startswith(running) for v in record.get("pydiff", []))
    ]
    assert len(kept) == len(every) or unicodedata.unidata_version != "14.0.0"
    return kept


@pytest.fixture
def recorded_tokens(request, make_vocab):
    """Some records, the name of a vocabulary, its file and `do_lower_case`.

    The parameter starts with "complete", or with "extract" for the records that
    are kept with the tests, and ends with the vocabulary.
    """
    source, name = request.param.split()
    if source == "complete":
        records = request.getfixturevalue("all_records")
        vocab_file = request.getfixturevalue("vocab_files")[name]
    else:
        extract = request.getfixturevalue("tokenization_extract")
        records = extract["records"]
        vocab = extract["vocabularies"][name]
        missing = [token for token in SPECIAL if token not in vocab]
        vocab_file = make_vocab(*vocab, *missing)
    return records, name, vocab_file, name != "multi_cased"
