"""Two devices for all tests; fixtures for recorded results and real data."""

import json
import lzma
import pathlib
import signal
from typing import Any

import pytest
import tensorflow as tf
from support import ROOT, write_vocab
from support.recorded import EXTRACT

SHARED = ROOT.parent / "shared"

# Two replicas on one processor. TensorFlow accepts this only before its first
# operation.
tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices("CPU")[0],
    [tf.config.LogicalDeviceConfiguration()] * 2,
)


def pytest_configure() -> None:
    """Lets Ctrl-C reach the commands that tests start.

    Shells start background jobs with SIGINT ignored.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)


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
