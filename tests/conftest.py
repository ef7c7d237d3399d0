"""Where the tests find recorded results and vocabularies, and devices."""

import json
import lzma
import pathlib
import signal
from typing import Any

import pytest
import tensorflow as tf
from support.recorded import EXTRACT

SHARED = pathlib.Path(__file__).resolve().parents[2] / "shared"

# Two replicas on one processor. TensorFlow takes this only before its first
# operation, so it cannot wait for the tests that need it.
tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices("CPU")[0],
    [tf.config.LogicalDeviceConfiguration()] * 2,
)


def pytest_configure() -> None:
    """Lets Ctrl-C work in the commands that tests start.

    Shells start what runs in the background with it ignored, for good.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _shared(name: str) -> pathlib.Path:
    folder = SHARED / name
    if not folder.is_dir():
        pytest.skip(f"needs the recorded results in {folder}")
    return folder


@pytest.fixture(scope="session")
def golden() -> pathlib.Path:
    """Arrays and records made by the 2018 release itself."""
    return _shared("golden")


@pytest.fixture(scope="session")
def shared_data() -> pathlib.Path:
    """Real data: vocabularies, corpora, tasks."""
    return _shared("data")


@pytest.fixture
def make_vocab(tmp_path):
    """A function of tokens that returns a vocabulary file with them."""

    def make(*tokens: str) -> str:
        path = tmp_path / "vocab.txt"
        path.write_text("".join(f"{t}\n" for t in tokens), encoding="utf-8")
        return str(path)

    return make


@pytest.fixture(scope="session")
def tokenization_extract() -> Any:
    """Recorded pieces of texts that are kept with the tests."""
    path = EXTRACT / "tokenization.json"
    return json.loads(path.read_text(encoding="utf-8"))


@pytest.fixture(scope="session")
def vocab_files(shared_data, tmp_path_factory):
    """{name: file} of the released vocabularies."""
    folder = shared_data / "vocab"
    unpacked = tmp_path_factory.mktemp("vocab") / "multi_cased.txt"
    unpacked.write_bytes(
        lzma.decompress((folder / "multi_cased.txt.xz").read_bytes())
    )
    return {
        "uncased": str(folder / "uncased.txt"),
        "cased": str(folder / "cased.txt"),
        "chinese": str(folder / "chinese.txt"),
        "multi_cased": str(unpacked),
    }
