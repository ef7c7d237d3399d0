import ast
import json
import re

import pytest
from support import command_lines

from official_bert.options import ExtractFeatures
from official_bert.sources.released_models import released
from official_bert.tokenization import validate_case_matches_checkpoint

LOWER_CASED = """
    uncased_L-12_H-768_A-12 uncased_L-24_H-1024_A-16 uncased_L-2_H-128_A-2
    uncased_L-8_H-512_A-8 wwm_uncased_L-24_H-1024_A-16
    multilingual_L-12_H-768_A-12 chinese_L-12_H-768_A-12
"""
CASED = """
    cased_L-12_H-768_A-12 cased_L-24_H-1024_A-16 wwm_cased_L-24_H-1024_A-16
    multi_cased_L-12_H-768_A-12
"""


@pytest.mark.parametrize(
    ("do_lower_case", "models"), [(True, LOWER_CASED), (False, CASED)]
)
def test_released_checkpoints_need_their_own_casing(do_lower_case, models):
    for model in models.split():
        checkpoint = f"gs://models/{model}/bert_model.ckpt"
        validate_case_matches_checkpoint(do_lower_case, checkpoint)
        with pytest.raises(ValueError, match=f"`{model}` seems to be a"):
            validate_case_matches_checkpoint(not do_lower_case, checkpoint)


@pytest.mark.parametrize("do_lower_case", [True, False])
def test_other_checkpoints_allow_both_casings(do_lower_case):
    others = ("my_model/bert_model.ckpt", "cased_L-12_H-768_A-12/model.ckpt-1")
    for checkpoint in (None, "", "bert_model.ckpt", *others):
        validate_case_matches_checkpoint(do_lower_case, checkpoint)


def test_messages_equal_those_of_the_original_but_for_the_advice(golden):
    advice = (
        " If this error is wrong, please just comment out this check.",
        " Rename the directory if this is another model.",
    )
    cases = json.loads((golden / "misc.json").read_text())["cases"]
    function = validate_case_matches_checkpoint
    num_errors = 0
    for call, outcome, message in cases:
        if call.startswith(function.__name__) and outcome == "ValueError":
            arguments = ast.literal_eval(call.removeprefix(function.__name__))
            with pytest.raises(ValueError, match="You passed in") as error:
                function(*arguments)
            assert advice[0] in message
            assert str(error.value) == message.replace(*advice)
            num_errors += 1
    assert num_errors


def test_all_released_models_are_listed_with_the_sizes_in_their_names():
    # The table of 24 in the original's README, Turc et al., 2019.
    small = {
        f"uncased_L-{layers}_H-{hidden}_A-{heads}"
        for layers in (2, 4, 6, 8, 10, 12)
        for hidden, heads in [(128, 2), (256, 4), (512, 8), (768, 12)]
    }
    base = ["cased", "multilingual", "multi_cased", "chinese"]
    large = ["uncased", "cased", "wwm_uncased", "wwm_cased"]
    assert released().keys() == {
        "bert_tiny_demo",
        *small,
        "uncased_L-12_H-768_A-12_2020",
        *(f"{name}_L-12_H-768_A-12" for name in base),
        *(f"{name}_L-24_H-1024_A-16" for name in large),
    }
    columns = ("layers", "hidden", "heads")
    for name, row in released().items():
        in_name = re.findall(r"-(\d+)", name) or ["2", "128", "2"]
        assert [row[column] for column in columns] == in_name


def test_model_list_shows_all_released_models(capsys):
    with pytest.raises(SystemExit) as stop:
        command_lines.parse(ExtractFeatures, "--model=list")
    assert not stop.value.code
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 35
    assert lines[1].split()[:2] == ["bert_tiny_demo", "2"]
    row = "cased_L-24_H-1024_A-16 24 1024 16 cased google-bert/bert-large-cased"
    assert row.split() in [line.split() for line in lines]
