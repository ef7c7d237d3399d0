"""Checks `--do_lower_case` against released checkpoints."""

import re

from official_bert.errors import InputError
from official_bert.released_models import released


def validate_case_matches_checkpoint(
    do_lower_case: bool, init_checkpoint: str | None
) -> None:
    """Raises `InputError` if a released checkpoint has the other casing.

    It is recognized by the name of its directory, such as
    "uncased_L-12_H-768_A-12/bert_model.ckpt". Other names are not checked. The
    message is that of the 2018 release.
    """
    match = re.search(
        r"([A-Za-z0-9_-]+)/bert_model\.ckpt", init_checkpoint or ""
    )
    model = match.group(1) if match else ""
    row = released().get(model)
    if row and do_lower_case == (row["casing"] == "cased"):
        raise InputError(
            f"You passed in `--do_lower_case={do_lower_case}` with "
            f"`--init_checkpoint={init_checkpoint}`. However, `{model}` seems "
            f"to be a {'cased' if do_lower_case else 'lowercased'} model, so "
            f"you should pass in `--do_lower_case={not do_lower_case}` so that "
            "the fine-tuning matches how the model was pre-training. If this "
            "error is wrong, please just comment out this check."
        )
