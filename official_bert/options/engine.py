"""The engine that predicts: TensorFlow or OpenVINO."""

from official_bert.errors import missing_package
from official_bert.options.flags import Options, choice


def _installed(engine: str) -> str | None:
    return missing_package("openvino") if engine == "openvino" else None


class EngineOptions(Options, heading="Prediction and export", common=False):
    """The flags `--engine` and `--precision`."""

    engine: str = choice(
        "openvino: run a model that was exported for OpenVINO, or convert a "
        "checkpoint; in a run directory, the result is kept. auto: openvino if "
        "it is installed and the model was converted, otherwise tensorflow.",
        "auto|tensorflow|openvino",
        check=_installed,
    )
    precision: str = choice(
        "OpenVINO: the precision of computation. bfloat16 is faster on many "
        "processors. auto: float32.",
        "auto|float32|bfloat16",
    )
