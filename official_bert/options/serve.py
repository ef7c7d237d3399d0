"""Options of `serve.py`."""

from official_bert.errors import require_package
from official_bert.options.answers import AnswerOptions
from official_bert.options.flags import option, positive


class Serve(AnswerOptions, heading="Prediction and export"):
    """Options of `serve.py`."""

    host: str = option(
        "The address to listen on. 127.0.0.1: only this machine can connect. "
        "0.0.0.0: every machine that reaches this one can.",
        "127.0.0.1",
    )
    port: int = option(
        "The port to listen on. 0: any free port.", 8000, between=(0, 65535)
    )
    max_request_bytes: int = positive(
        "The longest body of a request; longer ones get status 413.", 1 << 20
    )

    def _check(self) -> None:
        require_package("uvicorn", self.command)
        super()._check()
