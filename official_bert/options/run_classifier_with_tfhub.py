"""Options of `run_classifier_with_tfhub.py`."""

import os

from official_bert.options import flags
from official_bert.options.run_classifier import RunClassifier


def _hub_module(handle: str) -> str | None:
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


class RunClassifierWithTfhub(RunClassifier, heading="Data", common=False):
    """Options of `run_classifier_with_tfhub.py`."""

    module_command = ""

    bert_hub_module_handle: str = flags.path_option(
        "A TF Hub module: a directory from export_tfhub.py, or an address.",
        check=_hub_module,
        on_resume="fixed",
    )
    model: str | None = flags.optional_path(
        "Not supported: the module is the model.",
        check=lambda _: "is not supported: the module is the model. Omit it.",
        heading=flags.LEGACY,
        inherited=False,
        in_sweep=False,
    )
    fit_max_seq_length: bool = flags.switch(
        "Not supported: set --max_seq_length.",
        check=lambda _: "is not supported: set --max_seq_length.",
        on_resume="free",
    )
    # Required by `run_classifier.py`.
    bert_config_file: str | None = flags.optional_path(  # type: ignore[assignment]
        "Unused: the module has its own configuration."
    )
    vocab_file: str | None = flags.optional_path(  # type: ignore[assignment]
        "Unused: the module has its own vocabulary.", changes_results=False
    )
    init_checkpoint: str | None = flags.optional_path(
        "Unused: the module has its own weights.",
        inherited=False,
        changes_results=False,
    )
    do_lower_case: bool = flags.option(
        "Unused: the module has its own casing.", True, changes_results=False
    )

    def _fill_from_model(self, model: str) -> flags.Self:
        return self  # --model is an error.

    def _check_model(self) -> None:
        """Checks that a module supports the options; there are no files."""
        message = "needs run_classifier.py: a module's graph is fixed."
        self.require_unset(self.names(with_module=False), message)
