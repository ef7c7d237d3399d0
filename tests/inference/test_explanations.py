"""Scores of words: occlusion, and integrated gradients."""

import collections
import json

import numpy as np
import pytest
from support import recorded, tiny
from support.conversions import HEADS, VOCAB, released, to_hf
from support.processes import python_with, run_offline

from official_bert.config import BertConfig
from official_bert.errors import InputError
from official_bert.inference import explanations
from official_bert.inference.predictor import Predictor
from official_bert.inputs.text_inputs import encode
from official_bert.modeling.finetuning_models import build_model
from official_bert.sources.heads import PoolingHead
from official_bert.tasks.choice import ChoiceTask
from official_bert.tasks.embedding import EmbeddingTask
from official_bert.tasks.long_texts import LongDocuments
from official_bert.tasks.squad.decoding import DecodingOptions
from official_bert.tasks.squad.task import SquadTask
from official_bert.tasks.tagging import TaggingTask
from official_bert.tasks.task import FinetunedModel
from official_bert.tasks.text_types import TYPES
from tools.golden import captum_process

GOLDEN = json.loads((recorded.EXTRACT / "captum.json").read_text())
PAIR = ["Good cats?", "it is rain"]
QUESTION = ["what is it ?", "cat dog, red sun good bad"]
KEPT = ("[CLS]", "[SEP]")
NO_WORDS = "\u200b"
LONG = "good cat bad dog red sun is it what blue rain ? cat cat bad"


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    return tiny.tokenizer(tmp_path_factory.mktemp("vocab"), "##s", ",")


def text_task(task_type="classification", **fields):
    labels = () if task_type == "regression" else ("no", "maybe", "yes")
    return TYPES[task_type](labels=labels, **fields)


def choice_task():
    return ChoiceTask(num_choices=3)


def tagging_task(**fields):
    return TaggingTask(labels=("O", "B-X", "I-X"), **fields)


def squad_task(**fields):
    return SquadTask(doc_stride=4, max_query_length=6, **fields)


def make_predictor(task, tokenizer, explain=None):
    """Returns a predictor with random weights, for 16 tokens, and its model."""
    config = {**tiny.CONFIG, "vocab_size": len(tokenizer.vocab)}
    model = build_model(task.head, BertConfig.from_dict(config))
    recorded.assign(model, 7)
    finetuned = FinetunedModel(task, model, tokenizer, 16)
    return Predictor(finetuned, batch_size=8, explain=explain), model


def explain(task, tokenizer, *items, method="integrated_gradients"):
    """Returns explanations and answers, after comparing the answers."""
    explaining, model = make_predictor(task, tokenizer, method)
    finetuned = FinetunedModel(task, model, tokenizer, 16)
    items = [*items]
    plain = Predictor(finetuned, batch_size=8)(items)
    answers = explaining(items)
    found = [answer.pop("explanation") for answer in answers]
    assert answers == plain
    return [*zip(found, plain, strict=True)]


CHOICES = {"context": "is it", "choices": ["cat", "red dog", "blue ?"]}
DOCUMENT = {
    "tokens": ["cats", "is", "red"],
    "before": ["good", "dog"] * 9,
    "after": ["rain"],
}


REGRESSION = text_task("regression", target_deviation=20.0, target_mean=50.0)
WINDOWS = [LongDocuments("windows", 4, pooling) for pooling in ("mean", "max")]
NO_ANSWER = DecodingOptions(
    version_2_with_negative=True, null_score_diff_threshold=-1e6
)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("task", "items"),
    [
        (text_task(), ["Good cats, is it?", PAIR, NO_WORDS]),
        (text_task("multilabel"), ["bad dog"]),
        (REGRESSION, [PAIR]),
        (text_task(pooling_head=PoolingHead("none", 4)), [PAIR]),
        *((text_task("multilabel", long_documents=w), [LONG]) for w in WINDOWS),
        (choice_task(), [CHOICES, {**CHOICES, "choices": ["cat dog", "rain"]}]),
        (tagging_task(), [LONG]),
        (tagging_task(document_context=True), [DOCUMENT]),
        (squad_task(), [QUESTION, ["what ?", " ".join([LONG, LONG])]]),
        (squad_task(decoding=NO_ANSWER), [QUESTION]),
    ],
)
def test_gradients_add_up_to_the_fall_of_the_output(tokenizer, task, items):
    explained = explain(task, tokenizer, *items)
    for item, (explanation, answer) in zip(items, explained, strict=True):
        outputs = [output for part in explanation for output in part["outputs"]]
        for output in outputs:
            fall = output["value"] - output["baseline"]
            assert sum(output["scores"]) == pytest.approx(fall, 0.02, abs=2e-4)
            assert output["steps"] in (16, 32, 64, 128, 256, 512)
            assert (abs(fall) > 0.01) == (item != NO_WORDS)
        # The values of windows add up to their mean.
        values = collections.Counter()
        for number, output in enumerate(outputs):
            key = number if "tags" in answer else 0
            values[output["output"], key] += output["value"]
        check_values(values, answer)


def check_values(outputs, answer):
    """Compares the outputs with the answer."""
    names = [name for name, _ in outputs]
    values = [*outputs.values()]
    if "labels" in answer:
        assert sorted(names) == sorted(answer["labels"] or names[:1])
        expected = [answer["probabilities"][name] for name in names]
        shares = 1 / (1 + np.exp(np.negative(values)))
        np.testing.assert_allclose(shares, expected, atol=1e-6)
    elif "score" in answer:
        assert values == pytest.approx([answer["score"]], rel=1e-5)
    elif "n_best" in answer:
        best = {best["text"]: best for best in answer["n_best"]}
        best = best[answer["answer"]]
        total = best["start_logit"] + best["end_logit"]
        assert values == pytest.approx([total], rel=1e-5)
        assert names == [answer["answer"] or "no answer"]
    elif "tags" in answer:
        assert names == answer["tags"]
    else:
        assert names == [answer.get("label") or answer["text"]]


def logits_of(model, tokenizer, pair, masked=(), choice=False):
    """Returns the logits [S, C] or [C] of texts with [MASK] at positions."""
    batch = encode(tokenizer, [tuple(pair)])
    for position in masked:
        batch["input_ids"][0, position] = tokenizer.vocab["[MASK]"]
    if choice:
        batch = {name: ids[:, np.newaxis] for name, ids in batch.items()}
    return model(batch)[0].numpy().astype(np.float64)


CATS = (["Good cats?", "it is rain"], "good 1 cats 2,3 ? 4 it 6 is 7 rain 8")
TAGGED = (["cats is red", ""], "cats 1,2 is 3 red 4")
CHOSEN = (["is it", "red dog"], "is 1 it 2 red 4 dog 5")
ASKED = (["it ?", "cats, red sun"], "it 1 ? 2 cats 4,5 , 6 red 7 sun 8")


@pytest.mark.parametrize(
    ("task", "pair", "places"),
    [
        (text_task(), *CATS),
        pytest.param(tagging_task(), *TAGGED, marks=pytest.mark.slow),
        pytest.param(choice_task(), *CHOSEN, marks=pytest.mark.slow),
        pytest.param(squad_task(), *ASKED, marks=pytest.mark.slow),
    ],
)
def test_occlusion_is_the_fall_of_the_output_with_a_masked_word(
    tokenizer, task, pair, places
):
    is_choice = task.kind == "choice"
    item = pair[0] if task.kind == "tagging" else pair
    if is_choice:
        item = {"context": pair[0], "choices": [pair[1], pair[1]]}
    [([part], _)] = explain(task, tokenizer, item, method="occlusion")
    names, positions = places.split()[::2], places.split()[1::2]
    shown = [n for n, w in enumerate(part["words"]) if w not in KEPT]
    assert [part["words"][n] for n in shown] == names
    _, model = make_predictor(task, tokenizer)

    def logits(masked=""):
        at = map(int, filter(None, masked.split(",")))
        return logits_of(model, tokenizer, pair, at, is_choice)

    before = logits()
    terms = [[(before.argmax(),)]]
    if task.kind == "tagging":
        terms = [[(n, before[n].argmax())] for n in (1, 3, 4)]
        assert [output["word"] for output in part["outputs"]] == [1, 2, 3]
    elif task.kind == "squad":
        spans = [(s, e) for s in range(4, 9) for e in range(s, 9)]
        s, e = max(spans, key=lambda p: before[p[0], 0] + before[p[1], 1])
        terms = [[(s, 0), (e, 1)]]
    for output, indices in zip(part["outputs"], terms, strict=True):
        expected = np.zeros(len(part["words"]))  # Also for [CLS] and [SEP].
        expected[shown] = [
            sum(before[i] - logits(masked)[i] for i in indices)
            for masked in positions
        ]
        np.testing.assert_allclose(output["scores"], expected, atol=2e-5)


CAPTUM_HEADS = [
    name
    for name, head in HEADS.items()
    if head.architecture in captum_process.INPUTS
]


@pytest.fixture(params=CAPTUM_HEADS)
def converted(request, tmp_path):
    """The name of a head, and a directory of transformers with it."""
    released(tmp_path / "tf1", request.param)
    return request.param, to_hf(tmp_path / "tf1", request.param)


@pytest.mark.slow
def test_integrated_gradients_equal_those_of_captum(converted, monkeypatch):
    name, directory = converted
    monkeypatch.setattr(explanations, "_FIRST_STEPS", captum_process.STEPS)
    predictor = Predictor.from_pretrained(
        directory, explain="integrated_gradients"
    )
    texts = [
        " ".join(VOCAB[i] for i in ids)
        for ids in captum_process.INPUTS[HEADS[name].architecture]
    ]
    [answer] = predictor([texts if len(texts) > 1 else texts[0]])
    [part] = answer["explanation"]
    found = [output["scores"] for output in part["outputs"]]
    # Scores are rounded to 1e-6.
    tolerance = 1e-6 + 1e-3 * np.abs(GOLDEN[name]).max()
    np.testing.assert_allclose(found, GOLDEN[name], rtol=0, atol=tolerance)


@pytest.mark.nightly
def test_captum_computes_the_recorded_attributions(converted):
    name, directory = converted
    python = python_with("torch, transformers, captum", "CAPTUM_PYTHON")
    architecture = HEADS[name].architecture
    run_offline(python, captum_process.__file__, architecture, directory)
    found = json.loads((directory / "attributions.json").read_text())
    tolerance = 1e-4 * np.abs(GOLDEN[name]).max()
    np.testing.assert_allclose(found, GOLDEN[name], rtol=0, atol=tolerance)


def test_unsupported_methods_and_models_are_errors(tokenizer):
    with pytest.raises(InputError, match=r"`explain` must be .*'lime'"):
        make_predictor(text_task(), tokenizer, "lime")
    with pytest.raises(InputError, match="does not support a model for emb"):
        make_predictor(EmbeddingTask(), tokenizer, "occlusion")
    fixed = text_task(pooling_head=PoolingHead("last"))
    with pytest.raises(InputError, match=r"gradients.*--feature_layers"):
        make_predictor(fixed, tokenizer, "integrated_gradients")
    [([part], _)] = explain(fixed, tokenizer, "good", method="occlusion")
    assert part["words"] == ["[CLS]", "good", "[SEP]"]
