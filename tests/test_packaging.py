import email
import os
import re
import sys
import zipfile

import pytest
from packaging.requirements import Requirement
from support import ROOT
from support.processes import run_python

from official_bert import errors, hub, options
from official_bert.commands import demo
from official_bert.config import BertConfig
from official_bert.errors import InputError
from official_bert.options import checks
from official_bert.sources.formats.keras_hub import weights as keras_hub_weights

pytestmark = pytest.mark.slow

api = pytest.importorskip("poetry.core.masonry.api", reason="needs .[dev]")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Returns a directory with the contents of the wheel."""
    directory = tmp_path_factory.mktemp("wheel")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        name = api.build_wheel(str(directory))
    with zipfile.ZipFile(directory / name) as archive:
        archive.extractall(directory / "site-packages")
    return directory / "site-packages"


@pytest.fixture
def metadata(wheel):
    (path,) = wheel.glob("*.dist-info/METADATA")
    return email.message_from_string(path.read_text())


@pytest.fixture
def required(metadata):
    return [Requirement(line) for line in metadata.get_all("Requires-Dist")]


def pinned(file):
    lines = (ROOT / file).read_text().splitlines()
    # keras-nlp is an alias: it requires keras-hub of the same version.
    lines = [line.replace("keras-nlp", "keras-hub") for line in lines]
    return [Requirement(line) for line in lines if line[:1].isalpha()]


def run(wheel, *arguments):
    """Runs Python with the wheel; returns its status and output."""
    env = {**os.environ, "PYTHONPATH": str(wheel), "HF_HUB_OFFLINE": "1"}
    settings = {"status": None, "cwd": wheel.parent, "env": env}
    done = run_python(*arguments, **settings)
    return done.returncode, done.stdout + done.stderr


def run_command(wheel, *arguments):
    return run(wheel, "-m", "official_bert", *arguments)


def test_wheel_has_all_modules_and_data_files(wheel):
    package = ROOT / "official_bert"
    for path in package.rglob("*"):
        if path.is_file() and path.suffix != ".pyc":
            assert (wheel / path.relative_to(ROOT)).is_file()
    names = {path.name for path in wheel.iterdir() if not path.suffix}
    assert names == {"official_bert"}


def test_wheel_runs_every_command(wheel):
    status, output = run_command(wheel)
    commands = {path.stem for path in ROOT.glob("*.py")}
    assert set(re.findall(r"^  (\w+)  +\w", output, re.MULTILINE)) == commands
    for command in ("run_classifier", "predict"):
        status, output = run_command(wheel, command, "--help")
        assert (status, "Traceback" in output) == (0, False)
        assert f"python {command}.py" in output
    status, output = run_command(wheel, "run_clasifier", "--help")
    assert (status, "no command run_clasifier" in output) == (1, True)


def test_command_of_wheel_reads_flagfile_and_writes_results(wheel, tmp_path):
    flags = {
        "input_file": ROOT / "sample_text.txt",
        "vocab_file": tmp_path / "vocab.txt",
        "vocab_size": 200,
    }
    lines = [f"--{name}={value}" for name, value in flags.items()]
    (tmp_path / "flags.cfg").write_text("\n".join(lines))
    flagfile = f"--flagfile={tmp_path}/flags.cfg"
    assert run_command(wheel, "build_vocab", flagfile)[0] == 0
    assert len((tmp_path / "vocab.txt").read_text().split()) == 200


def test_wheel_has_the_demo_model(wheel):
    found = wheel / "official_bert" / "data" / "bert_tiny"
    directory = ROOT / "data" / "bert_tiny"
    names = {path.name for path in directory.iterdir()}
    assert {path.name for path in found.iterdir()} == names
    code = (
        "from official_bert.sources import pretrained\n"
        "print(pretrained.find('bert_tiny_demo').init_checkpoint)"
    )
    assert run(wheel, "-c", code) == (0, f"{found}\n")


def test_version_is_that_of_the_wheel_or_of_the_clone(wheel):
    (info,) = wheel.glob("official_bert-*.dist-info")
    number = info.name.removeprefix("official_bert-").removesuffix(".dist-info")
    code = "import official_bert; print(official_bert.__version__)"
    assert run(wheel, "-c", code) == (0, f"{number}\n")
    # Isolated from site-packages, the clone is not installed.
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r}); {code}"
    assert run(ROOT, "-I", "-S", "-c", code) == (0, f"{number}\n")


def test_wheel_says_who_wrote_it_and_what_it_is(metadata):
    assert metadata["Author"] == "The official_bert authors"
    assert "Typing :: Typed" in metadata.get_all("Classifier")
    assert "BERT" in metadata["Keywords"].split(",")


def test_tested_versions_are_in_the_required_ranges(required):
    ranges = {item.name: item.specifier for item in required}
    for pin in [*pinned("requirements.txt"), *pinned("requirements-dev.txt")]:
        (version,) = pin.specifier
        assert ranges.pop(pin.name, None) is not None or pin.marker
        for item in required:
            if item.name == pin.name:
                assert item.specifier.contains(version.version)


def test_optional_packages_are_in_their_extras_only(required):
    for package, extra in errors.EXTRAS.items():
        name = re.sub("[._]", "-", package)
        (item,) = (item for item in required if item.name == name)
        assert str(item.marker) == f'extra == "{extra}"'


def test_tpu_packages_do_not_install_plain_tensorflow():
    names = {pin.name for pin in pinned("requirements-tpu.txt")}
    add_ons = {"keras-hub", "keras-nlp", "tensorflow-hub", "tensorflow-text"}
    assert names & {"tensorflow", *add_ons} == set()


def test_message_for_missing_package_names_its_extra(monkeypatch, tmp_path):
    for package in errors.EXTRAS:
        monkeypatch.setitem(sys.modules, package, None)
    assert ".[serving-text]" in checks.installed("tensorflow_text")("any")
    assert "'.'" in str(errors.missing_package("no_such_package"))
    with pytest.raises(InputError, match=r"\.\[tfhub\]"):
        hub.HubBert("https://tfhub.dev/google/bert")
    with pytest.raises(InputError, match=r"\.\[keras-hub\]"):
        keras_hub_weights.open_arrays(str(tmp_path), BertConfig(vocab_size=9))
    with pytest.raises(InputError, match=r"\.\[plots\]"):
        demo.main(options.Demo(output_dir=str(tmp_path)))
    with pytest.raises(InputError, match=r"\.\[split-sentences\]"):
        options.CreatePretrainingData(
            input_file=str(ROOT / "sample_text.txt"),
            vocab_file=str(ROOT / "data/bert_tiny/vocab.txt"),
            output_file=str(tmp_path / "out"),
            split_sentences=True,
        ).resolve()
