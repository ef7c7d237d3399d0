"""predict.py --fill_mask and --score."""

import re
import shutil

import pytest
from support.run_outputs import weights

from official_bert.inference import masked_lm
from official_bert.inference.trained_models import load_masked_lm
from official_bert.runs import checkpoints
from official_bert.sources.pretrained import run_files


def test_fill_mask_needs_the_masked_lm_head_only(pretrained, folder, ask):
    arrays = weights(pretrained)
    unused = re.compile("pooler|seq_relationship")
    kept = {n: a for n, a in arrays.items() if not unused.search(n)}
    shutil.copytree(pretrained, "masked_lm")
    checkpoints.save("masked_lm", 3, kept, None, keep=1)
    expected, found = (
        ask(b"good [MASK]\n", model_dir=directory, fill_mask=True)
        for directory in (pretrained, "masked_lm")
    )
    assert found == expected


@pytest.mark.slow
def test_fill_mask_equals_the_python_api(pretrained, ask):
    source = {
        "bert_config_file": f"{pretrained}/bert_config.json",
        "vocab_file": f"{pretrained}/vocab.txt",
        "init_checkpoint": f"{pretrained}/model.ckpt-3",
    }
    texts = ["Good [MASK].", "it is [MASK] [MASK] ?"]
    found = ask("\n".join(texts).encode(), fill_mask=True, top_k=3, **source)
    assert [answer["input"] for answer in found] == texts
    loaded = load_masked_lm(run_files(pretrained))
    for answer, text in zip(found, texts, strict=True):
        expected = masked_lm.fill(*loaded, text, num_guesses=3)
        assert len(expected) == text.count("[MASK]")
        for mine, other in zip(answer["guesses"], expected, strict=True):
            found = {g["token"]: g["probability"] for g in mine}
            assert found == pytest.approx(dict(other), rel=1e-5)


def test_score_depends_on_the_case(pretrained, ask):
    data = b"Good cat\nit is what ?\n"
    lower, kept = (
        ask(data, score=True, do_lower_case=case, model_dir=pretrained)
        for case in (None, False)
    )
    assert [answer["num_tokens"] for answer in lower] == [2, 4]
    # "Good" is not in the vocabulary, "it" is.
    assert lower[0]["perplexity"] != kept[0]["perplexity"]
    assert lower[1] == kept[1]
