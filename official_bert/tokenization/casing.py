"""Whether a run treats case as its model was trained to."""

import re

from official_bert.errors import InputError

# The folders in which the models were released. Those of "multilingual" and
# "chinese" do not say it, but lower-case all the same.
_LOWER_CASED = {
    f"uncased_L-{layers}_H-{hidden}_A-{hidden // 64}"
    for layers in (2, 4, 6, 8, 10, 12)
    for hidden in (128, 256, 512, 768)
} | {
    "uncased_L-24_H-1024_A-16",
    "wwm_uncased_L-24_H-1024_A-16",
    "multilingual_L-12_H-768_A-12",
    "chinese_L-12_H-768_A-12",
}
_CASED = {
    "cased_L-12_H-768_A-12",
    "cased_L-24_H-1024_A-16",
    "wwm_cased_L-24_H-1024_A-16",
    "multi_cased_L-12_H-768_A-12",
}


def validate_case_matches_checkpoint(
    do_lower_case: bool, init_checkpoint: str | None
) -> None:
    """Stops a run whose lower-casing is not that of its released model.

    A model is known by the folder of its checkpoint, as it was unpacked; one
    by another name passes.

    Args:
        do_lower_case: Whether the run lower-cases its text.
        init_checkpoint: What the run starts from, such as
            "uncased_L-12_H-768_A-12/bert_model.ckpt".

    Raises:
        InputError: The model was trained the other way.
    """
    match = re.search(
        r"([A-Za-z0-9_-]+)/bert_model\.ckpt", init_checkpoint or ""
    )
    if not match:
        return
    model = match.group(1)
    if model in (_CASED if do_lower_case else _LOWER_CASED):
        raise InputError(
            f"You passed in `--do_lower_case={do_lower_case}` with "
            f"`--init_checkpoint={init_checkpoint}`. However, `{model}` seems "
            f"to be a {'cased' if do_lower_case else 'lowercased'} model, so "
            f"you should pass in `--do_lower_case={not do_lower_case}` so that "
            "the fine-tuning matches how the model was pre-training. If this "
            "error is wrong, please just comment out this check."
        )
