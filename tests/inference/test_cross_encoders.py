"""Cross-encoders, compared with the scores of sentence-transformers."""

import shutil

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from support import ROOT
from support.conversions import change_json, convert, to_hf, to_tf1
from support.run_outputs import read_json
from support.sentence_transformers import run_sentence_transformers

from official_bert.errors import InputError
from official_bert.inference.predictor import Predictor
from tools.golden.make_sentence_transformers import PAIRS

GOLDEN = ROOT / "tests" / "golden" / "cross_encoder"
SCORES = np.load(GOLDEN / "scores.npz")
OWN = "config_sentence_transformers.json"
IDENTITY = "torch.nn.modules.linear.Identity"
FORMER = {"activation_fn": IDENTITY}
SIGMOID = "torch.nn.modules.activation.Sigmoid"

pytestmark = pytest.mark.slow


@pytest.fixture
def model(tmp_path):
    """A copy of the model, which tests may change."""
    return shutil.copytree(GOLDEN, tmp_path / "model")


def scores_of(folder, pairs=PAIRS):
    predictor = Predictor.from_pretrained(folder)
    return [answer["score"] for answer in predictor(pairs)]


def assert_scores(found, name="Sigmoid"):
    np.testing.assert_allclose(found, SCORES[name][: len(found)], atol=1e-5)


def test_scores_and_ranks_equal_those_of_sentence_transformers():
    assert_scores(scores_of(GOLDEN))
    predictor = Predictor.from_pretrained(GOLDEN)
    documents = [document for _, document in PAIRS]
    expected = predictor([("a b c", document) for document in documents])
    found = predictor.rank("a b c", documents)
    order = np.argsort([-answer["score"] for answer in expected])
    assert [result["index"] for result in found] == [*order]
    assert_scores([r["score"] for r in found if r["index"] == 0])
    # Such a model also scores single texts.
    with pytest.raises(InputError, match=r"documents\[1\]: must be a text"):
        predictor.rank("a b c", ["d", None])


@pytest.mark.parametrize(
    ("own", "config", "expected"),
    [
        (None, {}, "Sigmoid"),
        (IDENTITY, {}, "Identity"),
        (None, {"sentence_transformers": FORMER}, "Identity"),
        (None, {"sbert_ce_default_activation_function": IDENTITY}, "Identity"),
        (None, {"problem_type": "regression"}, "Identity"),
        (SIGMOID, {"problem_type": "regression"}, "Sigmoid"),
        (None, {"tie_word_embeddings": False}, "Sigmoid"),  # Without masked LM.
    ],
)
def test_activation_of_every_release_is_applied(model, own, config, expected):
    change_json(model / OWN, activation_fn=own)
    change_json(model / "config.json", **config)
    assert_scores(scores_of(model), expected)


@pytest.mark.parametrize("activation", ["Sigmoid", "Identity", "Softmax"])
def test_several_labels_have_the_stored_sigmoid_or_a_softmax(model, activation):
    arrays = load_file(model / "model.safetensors")
    for name in ("classifier.weight", "classifier.bias"):
        arrays[name] = np.concatenate([arrays[name], -arrays[name]])
    save_file(arrays, model / "model.safetensors", {"format": "pt"})
    change_json(model / "config.json", id2label={"0": "x", "1": "y"})
    change_json(model / OWN, activation_fn=f"torch.nn.{activation}")
    expected = SCORES["Sigmoid"]  # The softmax of x and -x is sigmoid(2 x).
    if activation != "Sigmoid":
        expected = 1 / (1 + np.exp(-2 * SCORES["Identity"]))
    for folder in (model, to_hf(to_tf1(model))):
        answers = Predictor.from_pretrained(folder)(PAIRS)
        for answer, score in zip(answers, expected, strict=True):
            assert ("labels" in answer) == (activation == "Sigmoid")
            found = answer["probabilities"]
            np.testing.assert_allclose(found["x"], score, atol=1e-5)
            np.testing.assert_allclose(found["y"], 1 - score, atol=1e-5)
    stored = read_json(folder / "config.json").get("sentence_transformers")
    is_sigmoid = activation == "Sigmoid"
    assert stored == ({"activation_fn": SIGMOID} if is_sigmoid else None)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"activation_fn": "torch.nn.Tanh"}, "Identity or Sigmoid.*'Tanh'"),
        ({"default_prompt_name": "query"}, "`default_prompt_name`"),
    ],
)
def test_unsupported_settings_are_an_error(model, changes, message):
    change_json(model / OWN, **changes)
    with pytest.raises(InputError, match=message):
        scores_of(model)


@pytest.mark.parametrize("to", ["tf1", "huggingface", "openvino"])
@pytest.mark.parametrize("activation", ["Sigmoid", "Identity"])
def test_converted_models_have_the_same_scores(model, to, activation):
    if to == "openvino":
        pytest.importorskip("openvino")
    if activation == "Identity":
        change_json(model / OWN, activation_fn=IDENTITY)
    output = model.parent / to
    source = to_tf1(model) if to == "huggingface" else model
    assert_scores(
        scores_of(convert(input=source, output=output, to=to)), activation
    )


def test_converted_models_keep_the_maximum_length(model):
    # The `max_length` of a `CrossEncoder`; the model has 12 positions.
    change_json(model / "tokenizer_config.json", model_max_length=9)
    tf1 = to_tf1(model)
    for folder in (tf1, to_hf(tf1)):
        config = read_json(folder / "tokenizer_config.json")
        assert config["model_max_length"] == 9


@pytest.mark.nightly
@pytest.mark.parametrize("activation", ["Sigmoid", "Identity"])
def test_sentence_transformers_has_the_same_scores_with_our_files(
    model, activation
):
    if activation == "Identity":
        change_json(model / OWN, activation_fn=IDENTITY)
    call = "st.CrossEncoder(model, device='cpu').predict([*map(tuple, data)])"
    arguments = to_hf(to_tf1(model)), PAIRS[:2], model.parent
    found = run_sentence_transformers(call, *arguments)
    assert_scores(found, activation)
