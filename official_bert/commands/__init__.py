"""The commands: one module each, with a docstring and `main(options)`.

The scripts at the top level and `python -m official_bert COMMAND` call `run`.
"""

import importlib

from official_bert import options
from official_bert.options import cli
from official_bert.options.flags import Options

# {name of the command: its options}, in the order of the documentation.
COMMANDS: dict[str, type[Options]] = {
    "run_classifier": options.RunClassifier,
    "run_squad": options.RunSquad,
    "run_classifier_with_tfhub": options.RunClassifierWithTfhub,
    "predict": options.Predict,
    "serve": options.Serve,
    "extract_features": options.ExtractFeatures,
    "build_vocab": options.BuildVocab,
    "create_pretraining_data": options.CreatePretrainingData,
    "run_pretraining": options.RunPretraining,
    "convert_checkpoint": options.ConvertCheckpoint,
    "export_tfhub": options.ExportTfhub,
    "visualize_attention": options.VisualizeAttention,
    "demo": options.Demo,
}


def run(name: str) -> None:
    """Runs a command with the flags of this process."""
    cli.run(importlib.import_module(f"{__name__}.{name}").main, COMMANDS[name])


def purpose(name: str) -> str:
    """Returns the first line of a command's docstring."""
    module = importlib.import_module(f"{__name__}.{name}")
    return str(module.__doc__).splitlines()[0]
