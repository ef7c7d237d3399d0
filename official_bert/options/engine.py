"""The engine that predicts: TensorFlow or OpenVINO."""

from official_bert.options import checks, flags


class EngineOptions(
    flags.Options, heading="Prediction and export", common=False
):
    """The flags `--engine` and `--precision`."""

    engine: str = flags.choice(
        "openvino: run a model that was exported for OpenVINO, or convert a "
        "checkpoint; in a run directory, the result is kept. auto: openvino if "
        "it is installed and the model was converted, otherwise tensorflow.",
        "auto|tensorflow|openvino",
        check=checks.installed("openvino", needed_for="openvino"),
    )
    precision: str = flags.choice(
        "OpenVINO: the precision of computation. bfloat16 is faster on many "
        "processors. auto: float32.",
        "auto|float32|bfloat16",
    )
