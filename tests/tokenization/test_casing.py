"""The check that a run lower-cases as its released model does."""

import ast
import json

import pytest

from official_bert.tokenization import validate_case_matches_checkpoint

LOWER_CASED = [
    "uncased_L-12_H-768_A-12",
    "uncased_L-24_H-1024_A-16",
    "uncased_L-2_H-128_A-2",
    "uncased_L-4_H-256_A-4",
    "uncased_L-8_H-512_A-8",
    "uncased_L-12_H-128_A-2",
    "uncased_L-2_H-768_A-12",
    "wwm_uncased_L-24_H-1024_A-16",
    "multilingual_L-12_H-768_A-12",
    "chinese_L-12_H-768_A-12",
]
CASED = [
    "cased_L-12_H-768_A-12",
    "cased_L-24_H-1024_A-16",
    "wwm_cased_L-24_H-1024_A-16",
    "multi_cased_L-12_H-768_A-12",
]


@pytest.mark.parametrize(
    ("model", "is_lower_cased"),
    [(m, True) for m in LOWER_CASED] + [(m, False) for m in CASED],
)
def test_released_models(model, is_lower_cased):
    checkpoint = f"gs://models/{model}/bert_model.ckpt"
    validate_case_matches_checkpoint(is_lower_cased, checkpoint)
    with pytest.raises(ValueError, match=f"`{model}` seems to be a"):
        validate_case_matches_checkpoint(not is_lower_cased, checkpoint)


@pytest.mark.parametrize("do_lower_case", [True, False])
@pytest.mark.parametrize(
    "checkpoint",
    [
        None,
        "",
        "bert_model.ckpt",
        "my_model/bert_model.ckpt",
        "uncased_L-12_H-768_A-12/model.ckpt-100",
    ],
)
def test_other_models_pass(do_lower_case, checkpoint):
    validate_case_matches_checkpoint(do_lower_case, checkpoint)


def test_messages_are_those_of_the_original(golden):
    cases = json.loads((golden / "misc.json").read_text())["cases"]
    prefix = validate_case_matches_checkpoint.__name__
    for call, outcome, message in cases:
        if not call.startswith(prefix):
            continue
        arguments = ast.literal_eval(call.removeprefix(prefix))
        if outcome == "ok" and arguments != (
            False,
            "/m/wwm_uncased_L-24_H-1024_A-16/bert_model.ckpt",
        ):  # The original does not know that model, and lets it pass.
            validate_case_matches_checkpoint(*arguments)
        elif outcome == "ValueError":
            with pytest.raises(ValueError, match="You passed in") as error:
                validate_case_matches_checkpoint(*arguments)
            assert str(error.value) == message
