"""The server, asked by an HTTP client; a function of the tokens is the model.

`tests/commands/test_serve.py` runs the command with models.
"""

import asyncio
import contextlib
import http.client
import json
import math
import threading

import pytest
from support import tiny

from official_bert.errors import InputError
from official_bert.inference.predictor import Predictor
from official_bert.options import Serve
from official_bert.tasks.classification import ClassificationTask
from official_bert.tasks.task import FinetunedModel

server = pytest.importorskip(
    "official_bert.inference.server", reason="needs the extra server"
)

JSON = {"Content-Type": "application/json"}
TEXT = {"Content-Type": "text/plain"}
LATIN_1 = {"Content-Type": "application/json; charset=latin-1"}
GZIP = {**JSON, "Content-Encoding": "gzip"}


class Engine:
    """Logits that depend on the tokens; counts the batches."""

    num_batches = 0

    def __call__(self, batch):
        self.num_batches += 1
        sums = (batch["input_ids"] ** 2).sum(1) % 100 / 50 - 1
        return [[[0.0, value] for value in sums]]


@pytest.fixture(scope="module")
def predictor(tmp_path_factory):
    task = ClassificationTask(labels=("no", "yes"), is_pair=False)
    tokenizer = tiny.tokenizer(tmp_path_factory.mktemp("model"))
    return Predictor(FinetunedModel(task, None, tokenizer, 16), engine=Engine())


@contextlib.contextmanager
def serving(predictor, **options):
    """Yields a running server and its port."""
    options = Serve(model_dir="any", **options)
    instance = server.Server(predictor, options)
    with (
        pytest.MonkeyPatch.context() as patch,
        server.listen("127.0.0.1", 0) as listener,
    ):
        patch.setattr(server, "_SECONDS_TO_TELL", 0)
        port = listener.getsockname()[1]
        thread = threading.Thread(target=instance.run, args=[[listener]])
        thread.start()
        try:
            yield instance, port
        finally:
            instance.should_exit = True
            thread.join()


@pytest.fixture(scope="module")
def port(predictor):
    with serving(predictor, max_request_bytes=200_000) as (_, port):
        yield port


def ask(port, body=b"", headers=JSON, method="POST", path="/predict"):
    """Returns the status, the headers and the body of a response."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    with contextlib.closing(connection):
        connection.request(method, path, body, headers)
        response = connection.getresponse()
        return response.status, response.headers, response.read()


def predict(port, *instances):
    status, headers, body = ask(port, json.dumps({"instances": instances}))
    assert (status, headers["Content-Type"]) == (200, "application/json")
    return json.loads(body)["predictions"]


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        ("", 400, "body:1: must be valid JSON. Expecting value at column 1."),
        ('{"instances":\n["good"', 400, "body:2: must be valid JSON."),
        ('{"instances": ["a\tb"]}', 400, "Invalid control character at column"),
        ("[" * 100_000, 400, "body: must be valid JSON."),
        ('{"instances": ["\\ud800"]}', 400, "has a lone surrogate"),
        ('{"instances": [{"text": "a", "text": "b"}]}', 400, "'text' twice"),
        (b'{"instances": ["caf\xe9"]}', 400, "Received: byte 0xe9 at position"),
        ('["good"]', 400, 'must be {"instances": [...]}, with a list'),
        ("{}", 400, 'must be {"instances": [...]}'),
        ('{"instances": "good"}', 400, "Received: {'instances': 'good'}."),
        ('{"instances": ["good"], "top_k": 1}', 400, "'top_k': 1}."),
        ('{"instances": ["good", 7]}', 400, "instances[1]: must be a text"),
        ("x" * 200_001, 413, "must have at most 200,000 bytes."),
        ([b"x" * 100_000] * 3, 413, "must have at most 200,000 bytes."),
        ([b"x" * 100_000] * 90, 413, "must have at most 200,000 bytes."),
    ],
)
def test_invalid_body_gets_a_status_and_the_reason(port, body, status, message):
    found, headers, content = ask(port, body)
    assert (found, headers["Content-Type"]) == (status, "application/json")
    assert message in json.loads(content)["error"]
    assert len(predict(port, "good")) == 1


def test_message_about_an_instance_advises_no_flag_of_another_command(port):
    body = json.dumps({"instances": [["good", "cat"]]})
    status, _, content = ask(port, body)
    message = (
        "instances[0]: must be one text, like the training data. Received: "
        "['good', 'cat']."
    )
    assert (status, json.loads(content)) == (400, {"error": message})


@pytest.mark.parametrize(
    ("method", "path", "content_type", "status", "message"),
    [
        ("POST", "/", JSON, 404, "The paths are /predict and /health."),
        ("POST", "/predict/", JSON, 404, "There is no '/predict/'."),
        ("GET", "/predict", JSON, 405, "/predict needs POST. Received: GET."),
        ("POST", "/health", JSON, 405, "/health needs GET. Received: POST."),
        ("POST", "/predict", {}, 415, "Received: none."),
        ("POST", "/predict", TEXT, 415, "in UTF-8. Received: text/plain."),
        ("POST", "/predict", LATIN_1, 415, "/json; charset=latin-1."),
        ("POST", "/predict", GZIP, 415, "must not be compressed. Received"),
    ],
)
def test_other_request_gets_a_status_and_the_reason(
    port, method, path, content_type, status, message
):
    body = '{"instances": ["good"]}'
    found, headers, content = ask(port, body, content_type, method, path)
    assert (found, headers["Content-Type"]) == (status, "application/json")
    assert message in json.loads(content)["error"]
    allowed = {"/predict": "POST", "/health": "GET"}.get(path)
    assert headers["Allow"] == (allowed if status == 405 else None)


def test_valid_requests_may_differ_in_form(port, predictor):
    assert ask(port, method="GET", path="/health")[::2] == (
        *(200, b'{"status": "ok"}'),
    )
    assert ask(port, method="HEAD", path="/health")[::2] == (200, b"")
    # RFC 9112, section 3.2.2: a server must accept the absolute form.
    path = "HTTP://localhost:80/health"
    assert ask(port, method="GET", path=path)[0] == 200
    assert predict(port) == []
    body = '\ufeff{"instances": ["good", "bad"]}'.encode()
    for data, charset in ((body, "UTF-8"), ([body[:9], body[9:]], "utf8")):
        headers = {"Content-Type": f"Application/JSON; charset={charset}"}
        headers["Content-Encoding"] = "Identity"
        status, _, content = ask(port, data, headers)
        assert status == 200
        found = json.loads(content)["predictions"]
        assert found == predictor(["good", "bad"])


class Calls(list):
    """Answers each example with itself; fails for some. Records the calls."""

    def answer(self, examples):
        self.append(examples)
        if "bad" in examples:
            raise InputError("bad")
        if "worse" in examples:
            raise KeyError("worse")
        return examples


def answer_all(calls, batch_size, requests):
    async def answer():
        batcher = server.Batcher(calls, batch_size)
        tasks = (batcher.answer(examples) for examples in requests)
        return await asyncio.gather(*tasks, return_exceptions=True)

    return asyncio.run(answer())


def test_waiting_requests_are_one_batch_if_they_fit():
    calls = Calls()
    requests = [["a"], ["b", "c"], ["d", "e"], ["f"], [*"ghijk"], [], ["l"]]
    assert answer_all(calls, 4, requests) == requests
    assert calls == [["a"], [*"bcde"], ["f"], [*"ghijk"], ["l"]]


def test_request_that_fails_does_not_fail_others():
    requests = [["a"], ["b"], ["bad"], ["c"]]
    first, second, error, last = answer_all(Calls(), 4, requests)
    assert [first, second, last] == [["a"], ["b"], ["c"]]
    assert isinstance(error, InputError)


def test_fault_of_the_server_gets_status_500(predictor, monkeypatch, caplog):
    monkeypatch.setattr(predictor, "answer", Calls().answer)
    monkeypatch.setattr(predictor, "parse", lambda value, where: value)
    with serving(predictor) as (_, port):
        for instance, status in (("worse", 500), ("bad", 400), ("a", 200)):
            body = json.dumps({"instances": [instance]})
            assert ask(port, body)[0] == status
    assert "KeyError: 'worse'" in caplog.text


def test_outputs_that_are_not_finite_get_status_500(
    predictor, monkeypatch, caplog
):
    monkeypatch.setattr(predictor, "_engine", lambda _: [[[0.0, math.nan]]])
    with serving(predictor) as (_, port):
        status, _, content = ask(port, '{"instances": ["good"]}')
    message = json.loads(content)["error"]
    assert (status, message in caplog.text) == (500, True)
    assert message.startswith("The outputs of the model must be finite")
