"""The command `serve.py` in its own process, asked by an HTTP client."""

import concurrent.futures
import contextlib
import http.client
import importlib.metadata
import json
import re
import signal
import subprocess
import sys

import pytest
import yaml
from packaging.requirements import Requirement
from support import ROOT, conversions, tiny
from support.predictions import assert_equal_answers
from support.processes import started
from support.run_outputs import read_json_lines

from official_bert.commands import predict, serve
from official_bert.errors import InputError
from official_bert.inference.predictor import Predictor
from official_bert.options import Predict, Serve

server = pytest.importorskip(
    "official_bert.inference.server", reason="needs the extra server"
)

TEXTS = tiny.texts(200, 1, longest=14)
NUM_CLIENTS = 32

# Blocks modules, then runs the command.
WITHOUT_MODULES = """
import sys
sys.modules.update(dict.fromkeys(sys.argv.pop(1).split(",")))
from official_bert import commands
sys.argv[0] = "serve.py"
commands.run("serve")
"""


def image_packages():
    """Returns the packages in the image of the server, by name."""
    lines = (ROOT / "docker/requirements.txt").read_text().splitlines()
    return {Requirement(x).name: x for x in lines if x[:1].isalpha()}


def modules_outside_image():
    """Returns the modules of required packages that the image lacks."""
    text = (ROOT / "requirements.txt").read_text()
    names = {Requirement(x).name for x in text.splitlines() if x[:1].isalpha()}
    absent = names - image_packages().keys()
    found = importlib.metadata.packages_distributions()
    return [module for module, owners in found.items() if absent & {*owners}]


@pytest.fixture(scope="module")
def exported(models, tmp_path_factory):
    pytest.importorskip("openvino", reason="needs the extra openvino")
    from official_bert.export import engine_models
    from official_bert.inference.trained_models import load_finetuned

    path = tmp_path_factory.mktemp("export") / "1"
    engine_models.write_finetuned(
        load_finetuned(str(models / "tuned")), str(path)
    )
    return str(path)


@contextlib.contextmanager
def serving(model, *flags, without=("none",)):
    """Yields the process of a server and its port."""
    flags = (f"--model={model}", "--port=0", *flags)
    code = ("-c", WITHOUT_MODULES, ",".join(without))
    options = {"stderr": subprocess.PIPE, "cwd": ROOT}
    with started(*code, *flags, **options) as process:
        for line in process.stderr:
            if match := re.search(r"Serving at http://.*:(\d+)/predict", line):
                break
        yield process, int(match[1])
        process.send_signal(signal.SIGTERM)
        process.log = process.stderr.read()
    assert process.returncode == 0
    assert "Traceback" not in process.log


class Client(http.client.HTTPConnection):
    def predict(self, *texts):
        body = json.dumps({"instances": texts})
        headers = {"Content-Type": "application/json"}
        self.request("POST", "/predict", body, headers)
        response = self.getresponse()
        content = json.loads(response.read())
        assert response.status == 200, content
        return content["predictions"]


@pytest.mark.slow
def test_concurrent_answers_equal_those_of_predict_without_tensorflow(
    exported, tmp_path
):
    given, written = tmp_path / "texts.txt", tmp_path / "answers.jsonl"
    given.write_text("".join(f"{text}\n" for text in TEXTS))
    files = {"input_file": str(given), "output_file": str(written)}
    predict.main(Predict(model_dir=exported, **files))
    expected = read_json_lines(written)
    assert [answer.pop("input") for answer in expected] == TEXTS
    assert len({json.dumps(answer) for answer in expected}) > 100
    blocked = modules_outside_image()
    assert {"tensorflow", "keras", "sklearn", "scipy"} <= {*blocked}

    with serving(exported, without=blocked) as (process, port):

        def ask(first):
            client = Client("127.0.0.1", port, timeout=60)
            with contextlib.closing(client):
                for number in range(first, 2000, NUM_CLIENTS):
                    start = number % 190
                    chosen = slice(start, start + 1 + number % 7)
                    found = client.predict(*TEXTS[chosen])
                    assert_equal_answers(found, expected[chosen])

        with concurrent.futures.ThreadPoolExecutor(NUM_CLIENTS) as pool:
            list(pool.map(ask, range(NUM_CLIENTS)))
    assert "Stopped after 2,000 requests" in process.log


@pytest.mark.slow
def test_nothing_is_lost_at_sigterm(exported):
    """Clients get complete responses, then none: no part of one."""
    expected = Predictor.from_dir(exported)(TEXTS)
    with serving(exported) as (process, port):

        def ask(first):
            count, client = 0, Client("127.0.0.1", port, timeout=60)
            reconnects = first % 2
            # A new connection may be reset while the server stops listening.
            # On a kept connection, the last response has `Connection: close`.
            ending = ConnectionError if reconnects else ConnectionRefusedError
            try:
                while True:
                    index = (first + count) % len(TEXTS)
                    found = client.predict(TEXTS[index])
                    assert_equal_answers(found, [expected[index]])
                    count += 1
                    if first == count == 20:
                        process.send_signal(signal.SIGTERM)
                    if reconnects:
                        client.close()
            except ending:
                return count
            finally:
                client.close()

        with concurrent.futures.ThreadPoolExecutor(NUM_CLIENTS) as pool:
            counts = list(pool.map(ask, range(NUM_CLIENTS)))
    assert min(counts) > 0
    assert f"Stopped after {sum(counts):,} requests" in process.log


@pytest.mark.slow
def test_run_directory_is_served_with_tensorflow(tuned):
    with serving(tuned, "--engine=tensorflow", "--host=::1") as (_, port):
        client = Client("::1", port, timeout=60)
        found = client.predict(*TEXTS[:3])
        client.close()
    assert_equal_answers(
        found, Predictor.from_dir(tuned, engine="tensorflow")(TEXTS[:3])
    )


@pytest.mark.slow
def test_model_of_transformers_and_flags_of_answers_work_as_in_predict(folder):
    conversions.released(folder / "a", "question_answering", 2)
    model = str(conversions.to_hf(folder / "a", "question_answering"))
    question = {"question": "a b", "context": "c d e f g"}
    with serving(model, "--n_best_size=2") as (_, port):
        client = Client("127.0.0.1", port, timeout=60)
        [found] = client.predict(question)
        client.close()
    [expected] = Predictor.from_pretrained(model)([question])
    assert found["answer"] == expected["answer"]
    assert len(expected["n_best"]) > len(found["n_best"]) == 2


def test_invalid_flag_is_an_error_before_loading_the_model(tuned, monkeypatch):
    monkeypatch.setattr(Predictor, "from_options", None)

    def message(**flags):
        with pytest.raises(InputError) as error:
            serve.main(Serve(**{"model_dir": tuned, **flags}))
        return str(error.value)

    with server.listen("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        assert message(port=port) == (
            f"--port={port} is in use. Choose another port, or 0 for any free "
            "one."
        )
    # An address for documentation, which no machine has.
    assert message(host="192.0.2.1", port=0).startswith(
        "--host=192.0.2.1 --port=0: the server cannot listen there. Cannot "
        "assign requested address"
    )
    assert "must be an existing run directory" in message(model_dir="none")
    assert "is not supported by a model for" in message(n_best_size=2)
    assert (
        "For a pre-trained model, use predict.py with --fill_mask or --score; "
        "for vectors of texts, extract_features.py."
    ) in message(model_dir=None, model="bert_tiny_demo")
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    assert message() == (
        "serve.py needs the package uvicorn. Run pip install -e '.[server]'."
    )


def test_images_have_the_tested_packages_and_valid_flags():
    pinned = [
        *(ROOT / "requirements.txt").read_text().splitlines(),
        *(ROOT / "requirements-dev.txt").read_text().splitlines(),
    ]
    for line in image_packages().values():
        assert line in pinned or f'{line}; python_version >= "3.11"' in pinned
    text = (ROOT / "docker/server.Dockerfile").read_text()
    entry_point = json.loads(re.search(r"^ENTRYPOINT (.*)", text, re.M)[1])
    assert entry_point[:2] == ["official_bert", "serve"]
    compose = yaml.safe_load((ROOT / "docker/compose.yaml").read_text())
    service = compose["services"]["server"]
    assert (ROOT / service["build"]["dockerfile"]).exists()
    assert service["ports"] == [f"127.0.0.1:8000:{Serve(model_dir='m').port}"]
