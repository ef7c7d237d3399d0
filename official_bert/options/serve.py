"""Options of `serve.py`."""

from official_bert.errors import InputError, missing_package
from official_bert.options.engine import EngineOptions
from official_bert.options.flags import option, path_option, positive
from official_bert.options.model_source import require_finetuned


class Serve(EngineOptions, heading="Prediction and export"):
    """Options of `serve.py`."""

    model_dir: str = path_option(
        "The --output_dir of run_classifier.py or run_squad.py, or a "
        "fine-tuned model exported for OpenVINO."
    )
    host: str = option(
        "The address to listen on. 127.0.0.1: only this machine can connect. "
        "0.0.0.0: every machine that reaches this one can.",
        "127.0.0.1",
    )
    port: int = option(
        "The port to listen on. 0: any free port.", 8000, between=(0, 65535)
    )
    batch_size: int = positive(
        "Sequences per step. Concurrent requests share steps.", 32
    )
    max_request_bytes: int = positive(
        "The longest body of a request; longer ones get status 413.", 1 << 20
    )

    def _check(self) -> None:
        super()._check()
        if problem := missing_package("uvicorn"):
            raise InputError(f"{self.command} {problem}")
        require_finetuned(self.model_dir)
