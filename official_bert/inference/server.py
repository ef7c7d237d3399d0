"""A fine-tuned model as an ASGI application, which uvicorn runs (`serve.py`).

The keys are those of TensorFlow Serving::

    POST /predict  {"instances": [...]}  ->  {"predictions": [...]}
    GET  /health                         ->  {"status": "ok"}

The response to an invalid request is {"error": MESSAGE}.
"""

import asyncio
import collections
import email.message
import errno
import itertools
import json
import re
import signal
import socket
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple

import uvicorn
from absl import logging

from official_bert.errors import InputError, quoted
from official_bert.inference.engines import NotFiniteError
from official_bert.inference.predictor import Predictor
from official_bert.io import json_files, signals
from official_bert.options import Serve

# {path: its method}.
_METHODS = {"/predict": "POST", "/health": "GET"}

# How long the server waits after a signal: for another request of clients that
# keep their connections, and then for clients that are still sending a request
# or reading a response.
_SECONDS_TO_TELL = 1
_SECONDS_TO_STOP = 30

# `receive` or `send` of ASGI.
_Channel = Callable[..., Awaitable[Any]]


class _StatusError(Exception):
    """Ends a request with a status other than 200 and 400."""

    def __init__(self, status: int, message: str, **headers: str) -> None:
        super().__init__(message)
        self.status, self.headers = status, headers


class _Waiting(NamedTuple):
    """A request that waits for the answers for its examples."""

    examples: Sequence[Any]
    answers: asyncio.Future[list[dict[str, Any]]]


class Batcher:
    """Answers concurrent requests together.

    While a batch is computed, other requests wait. The next batch has as many
    of them as fit into `batch_size` examples, first come, first served.
    """

    def __init__(self, predictor: Predictor, batch_size: int) -> None:
        self._predictor, self._batch_size = predictor, batch_size
        self._waiting = collections.deque[_Waiting]()
        self._computing = asyncio.Lock()

    async def answer(self, examples: Sequence[Any]) -> list[dict[str, Any]]:
        """Returns the answers for the examples of one request."""
        answers = asyncio.get_running_loop().create_future()
        self._waiting.append(_Waiting(examples, answers))
        async with self._computing:
            # The lock is first come, first served, too. So if this request was
            # in no other batch, it is the first of those that wait.
            if not answers.done():
                await self._compute(self._take_batch())
        return await answers

    def _take_batch(self) -> list[_Waiting]:
        batch = [self._waiting.popleft()]
        free = self._batch_size - len(batch[0].examples)
        while self._waiting and len(self._waiting[0].examples) <= free:
            batch.append(self._waiting.popleft())
            free -= len(batch[-1].examples)
        return batch

    async def _compute(self, batch: list[_Waiting]) -> None:
        """Sets the answers, or an exception, of each request."""
        examples = [
            example for request in batch for example in request.examples
        ]
        try:
            computed = await asyncio.to_thread(self._predictor.answer, examples)
        except Exception as error:
            if len(batch) == 1:
                batch[0].answers.set_exception(error)
            else:  # Other requests do not fail because of one.
                for request in batch:
                    await self._compute([request])
            return
        remaining = iter(computed)
        for request in batch:
            count = len(request.examples)
            request.answers.set_result([*itertools.islice(remaining, count)])


class Application:
    """An ASGI application. Responses close connections if `is_stopping`."""

    def __init__(self, predictor: Predictor, options: Serve) -> None:
        self._predictor, self._limit = predictor, options.max_request_bytes
        self._batcher = Batcher(predictor, options.batch_size)
        self.is_stopping = False

    async def __call__(
        self, scope: dict[str, Any], receive: _Channel, send: _Channel
    ) -> None:
        """Responds to one request."""
        status, headers = 200, {"content-type": "application/json"}
        try:
            content = await self._respond(scope, receive)
        except NotFiniteError as error:  # No fault of the client.
            logging.error(error)
            status, content = 500, {"error": str(error)}
        except InputError as error:
            status, content = 400, {"error": str(error)}
        except _StatusError as error:
            status, content = error.status, {"error": str(error)}
            headers |= error.headers
        except Exception:
            logging.exception("A request failed")
            message = "The server failed. Its log has the cause."
            status, content = 500, {"error": message}
        body = json.dumps(content, ensure_ascii=False).encode("utf-8")
        headers["content-length"] = str(len(body))
        if self.is_stopping:
            headers["connection"] = "close"
        pairs = [(k.encode(), v.encode()) for k, v in headers.items()]
        start = {"type": "http.response.start", "status": status}
        await send({**start, "headers": pairs})
        await send({"type": "http.response.body", "body": body})

    async def _respond(
        self, scope: dict[str, Any], receive: _Channel
    ) -> dict[str, Any]:
        # A request may name the server, too, as those to a proxy do.
        path = re.sub("^https?://[^/]*", "", scope["path"], flags=re.I)
        method = scope["method"]
        if path not in _METHODS:
            paths = " and ".join(_METHODS)
            message = f"There is no {quoted(path)}. The paths are {paths}."
            raise _StatusError(404, message)
        if method.replace("HEAD", "GET") != (allowed := _METHODS[path]):
            message = f"{path} needs {allowed}. Received: {method}."
            raise _StatusError(405, message, allow=allowed)
        if path == "/health":
            return {"status": "ok"}
        headers = {k: v.decode("latin-1") for k, v in scope["headers"]}
        _require_json(headers.get(b"content-type", ""))
        encoding = headers.get(b"content-encoding", "")
        if encoding.lower() not in ("", "identity"):
            message = "The body must not be compressed. Received: "
            raise _StatusError(415, f"{message}Content-Encoding: {encoding}.")
        announced = int(headers.get(b"content-length", 0))
        body = await _read(receive, announced, self._limit)
        return {"predictions": await self._batcher.answer(self._parse(body))}

    def _parse(self, body: bytes) -> list[Any]:
        """Returns the examples in the body of a request."""
        try:
            text = body.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise InputError(
                "The body must be UTF-8. Received: byte "
                f"0x{body[error.start]:02x} at position {error.start}."
            ) from error
        content = json_files.parse(text, "body", has_unique_keys=True)
        instances = isinstance(content, dict) and content.get("instances")
        if not isinstance(instances, list) or len(content) > 1:
            raise InputError(
                'The body must be {"instances": [...]}, with a list of inputs. '
                f"Received: {quoted(content)}."
            )
        return [
            self._predictor.parse(instance, f"instances[{n}]")
            for n, instance in enumerate(instances)
        ]


def _require_json(content_type: str) -> None:
    """Raises `_StatusError` unless the body is JSON.

    A web page of another site can send other types without permission.
    """
    message = email.message.Message()
    message["content-type"] = content_type
    is_json = message.get_content_type() == "application/json"
    charset = message.get_content_charset("utf-8")
    if not is_json or charset not in ("utf-8", "utf8"):
        raise _StatusError(
            415,
            "Content-Type must be application/json, in UTF-8. Received: "
            f"{content_type or 'none'}. With curl, add "
            '-H "Content-Type: application/json".',
        )


async def _read(receive: _Channel, announced: int, limit: int) -> bytes:
    """Returns a body; `announced` is its size according to the client, or 0."""
    body, is_complete = bytearray(), False
    while max(announced, len(body)) <= limit:
        if is_complete:
            return bytes(body)
        message = await receive()
        if message["type"] == "http.disconnect":  # Nobody reads this response.
            raise _StatusError(400, "The client closed the connection.")
        body += message["body"]
        is_complete = not message["more_body"]
    message = (
        f"The body must have at most {limit:,} bytes. Send fewer instances per "
        "request, or start the server with a larger --max_request_bytes."
    )
    raise _StatusError(413, message)


class Server(uvicorn.Server):
    """Runs the application of a model until it receives a signal."""

    def __init__(self, predictor: Predictor, options: Serve) -> None:
        self._application = Application(predictor, options)
        super().__init__(
            uvicorn.Config(
                self._application,
                loop="asyncio",
                http="h11",
                ws="none",
                lifespan="off",
                access_log=False,
                log_config=None,
                server_header=False,
                timeout_graceful_shutdown=_SECONDS_TO_STOP,
            )
        )

    async def shutdown(
        self, sockets: list[socket.socket] | None = None
    ) -> None:
        """Responds to the requests that were received, then stops."""
        for server in self.servers:
            server.close()
        # A client that keeps its connection may be sending another request. The
        # response tells it to send no more; then its connection can be closed.
        self._application.is_stopping = True
        await asyncio.sleep(_SECONDS_TO_TELL)
        await super().shutdown(sockets)


def run(options: Serve) -> None:
    """Serves a model until the process receives SIGINT or SIGTERM.

    Raises `InputError` if the address is in use or the model is invalid.
    """
    with listen(options.host, options.port) as listener:
        predictor = Predictor.from_options(options, options.batch_size, None)
        server = Server(predictor, options)
        host = f"[{options.host}]" if ":" in options.host else options.host
        port = listener.getsockname()[1]
        logging.info(f"Serving at http://{host}:{port}/predict")
        # uvicorn raises the signal again when it has stopped. This handler
        # does nothing then.
        with signals.temporary_handler(
            server.handle_exit, signal.SIGINT, signal.SIGTERM
        ):
            server.run(sockets=[listener])
    number = server.server_state.total_requests
    logging.info(f"Stopped after {number:,} requests")


def listen(host: str, port: int) -> socket.socket:
    """Returns a socket that listens; raises `InputError` if it cannot."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            message = "is in use. Choose another port, or 0 for any free one."
            raise InputError(f"--port={port} {message}") from error
        raise InputError(
            f"--host={host} --port={port}: the server cannot listen there. "
            f"{error.strerror}."
        ) from error
