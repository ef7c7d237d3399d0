"""Options of `run_classifier_with_tfhub.py`."""

import dataclasses
import os

from official_bert.cli import option
from official_bert.errors import InputError
from official_bert.options.run_classifier import RunClassifier

# What a module, whose graph is made already, cannot follow.
_OF_OUR_GRAPH = (
    "mixed_precision",
    "remat",
    "left_to_right",
    "feature_layers",
    "do_export",
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunClassifierWithTfhub(RunClassifier):
    """Options of `run_classifier_with_tfhub.py`."""

    command = "run_classifier_with_tfhub.py"
    module_command = ""  # It has a module itself.

    bert_hub_module_handle: str = option(
        "The TF Hub module of BERT: a folder, as export_tfhub.py writes it, or "
        "an address."
    )
    # Of `run_classifier.py`, and not needed: the module has them all.
    bert_config_file: str | None = option(  # type: ignore[assignment]
        "Not read: the module is what it is.", None
    )
    vocab_file: str | None = option(  # type: ignore[assignment]
        "Not read: the module has its vocabulary.", None
    )
    init_checkpoint: str | None = option(
        "Not read: the module has its weights.", None
    )
    do_lower_case: bool = option(
        "Not read: the module says whether to lower-case the text.", True
    )

    def _check_model(self) -> None:
        """Looks at the module in place of config, vocabulary and checkpoint."""
        handle = self.bert_hub_module_handle
        if os.path.isdir(handle):
            if not os.path.exists(os.path.join(handle, "saved_model.pb")):
                raise InputError(
                    "--bert_hub_module_handle must be a TF Hub module. "
                    f"Received: {handle!r}, a folder without saved_model.pb. "
                    "export_tfhub.py makes one of a checkpoint."
                )
        elif "://" not in handle:
            raise InputError(
                "--bert_hub_module_handle must be an existing folder or an "
                f"address. Received: {handle!r}. Check the path."
            )
        defaults = {field.name: field.default for field in _FIELDS}
        for name in _OF_OUR_GRAPH:
            value = getattr(self, name)
            if value != defaults[name]:
                raise InputError(
                    f"--{name} goes with run_classifier.py only: a module's "
                    f"graph is made already. Received: --{name}={value}. "
                    "Leave it out."
                )


_FIELDS = dataclasses.fields(RunClassifierWithTfhub)
