"""Options of `run_classifier_with_tfhub.py`."""

import dataclasses
import os

from official_bert.cli import COMPATIBILITY, option
from official_bert.options.run_classifier import RunClassifier

# Options that change the graph of the model, which a module has fixed.
_GRAPH_OPTIONS = (
    "mixed_precision",
    "remat",
    "left_to_right",
    "feature_layers",
    "do_export",
)


def _module(handle: str) -> str | None:
    """Accepts a TF Hub module: a directory or an address."""
    if os.path.isdir(handle):
        if not os.path.exists(os.path.join(handle, "saved_model.pb")):
            return (
                "must be a TF Hub module, but has no saved_model.pb. "
                "export_tfhub.py makes a module from a checkpoint."
            )
    elif "://" not in handle:
        return "must be an existing directory or an address. Check the path."
    return None


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunClassifierWithTfhub(RunClassifier):
    """Options of `run_classifier_with_tfhub.py`."""

    command = "run_classifier_with_tfhub.py"
    module_command = ""

    bert_hub_module_handle: str = option(
        "The TF Hub module of BERT: a directory written by export_tfhub.py, or "
        "an address.",
        check=_module,
    )
    # Required by `run_classifier.py`.
    bert_config_file: str | None = option(  # type: ignore[assignment]
        "Unused: the module has its own configuration.",
        None,
        heading=COMPATIBILITY,
    )
    vocab_file: str | None = option(  # type: ignore[assignment]
        "Unused: the module has its own vocabulary.",
        None,
        heading=COMPATIBILITY,
    )
    init_checkpoint: str | None = option(
        "Unused: the module has its own weights.", None, heading=COMPATIBILITY
    )
    do_lower_case: bool = option(
        "Unused: the module defines whether to lower-case the text.",
        True,
        heading=COMPATIBILITY,
    )

    def _check_model(self) -> None:
        """Checks the options that a module supports, instead of its files."""
        for name in _GRAPH_OPTIONS:
            if self.is_set(name):
                message = (
                    "needs run_classifier.py: the module's graph is fixed."
                )
                raise self.error(name, message)
