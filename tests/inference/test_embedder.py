"""Vectors of texts, compared with those that sentence-transformers computed."""

import json
import pickle
import shutil

import ml_dtypes  # noqa: F401 - Registers bfloat16 with NumPy.
import numpy as np
import pytest
import safetensors.numpy
from support import ROOT, tiny, write_json
from support.conversions import change_json, convert, to_hf, to_tf1
from support.run_outputs import read_json
from support.sentence_transformers import (
    encode_with_sentence_transformers,
    keep_modules,
)

from official_bert import BertConfig, Embedder
from official_bert.errors import InputError
from official_bert.sources.embedding_settings import Dense, EmbeddingSettings
from official_bert.tasks.sentence_vectors import POOLINGS, load_dense, nearest
from tools.golden.make_sentence_transformers import TEXTS

GOLDEN = ROOT / "tests" / "golden" / "sentence_transformers"
VECTORS = np.load(GOLDEN / "vectors.npz")
FORMER_KEYS = {
    "cls": "pooling_mode_cls_token",
    "mean": "pooling_mode_mean_tokens",
    "lasttoken": "pooling_mode_lasttoken",
}


@pytest.fixture
def model(tmp_path):
    """A copy of the model, which tests may change."""
    return shutil.copytree(GOLDEN, tmp_path / "model")


def assert_vectors(found, name):
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, VECTORS[name], atol=2e-6)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["tensorflow", "openvino"])
def test_vectors_equal_those_of_sentence_transformers(engine, caplog):
    if engine == "openvino":
        pytest.importorskip("openvino")
    embedder = Embedder.from_pretrained(GOLDEN, engine=engine)
    assert embedder.size == 5
    # Batches of similar length, whose order differs from that of the texts.
    assert_vectors(embedder(TEXTS, batch_size=2), "model")
    assert_vectors(embedder(TEXTS, prompt_name="query"), "query")
    assert caplog.text.count("1 of 6 texts are truncated to 9 tokens") == 1
    assert embedder([]).shape == (0, 5)
    found = embedder.search(TEXTS, VECTORS["model"], k=2)
    exact = VECTORS["query"].astype(np.float64) @ VECTORS["model"].T
    best = np.argsort(-exact, axis=1)[:, :2]
    np.testing.assert_array_equal(found.indices, best)
    scores = np.take_along_axis(exact, best, 1)
    np.testing.assert_allclose(found.scores, scores, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("name", POOLINGS)
def test_every_pooling_equals_that_of_sentence_transformers(model, name):
    keep_modules(model, 2)
    key = FORMER_KEYS.get(name)
    config = {key: True} if key else {"pooling_mode": name}
    (model / "1_Pooling" / "config.json").write_text(json.dumps(config))
    assert_vectors(Embedder.from_pretrained(model)(TEXTS), name)


@pytest.mark.slow
def test_former_layout_and_other_settings_are_read(model):
    keep_modules(model, 2)
    bert = model / "0_BERT"
    bert.mkdir()
    for name in ("config.json", "model.safetensors", "tokenizer.json"):
        (model / name).rename(bert / name)
    (model / "tokenizer_config.json").unlink()
    tokenizer = {"do_lower_case": False, "model_max_length": 10**30}
    write_json(bert / "tokenizer_config.json", tokenizer)
    modules = read_json(model / "modules.json")
    modules[0] |= {"path": bert.name, "type": "models.Transformer"}
    write_json(model / "modules.json", modules)
    size = {"word_embedding_dimension": 16}  # Without a pooling: the mean.
    write_json(model / POOLING, size)
    write_json(bert / "sentence_bert_config.json", {"do_lower_case": True})
    prompts = {"default_prompt_name": "query", "prompts": {"query": "C B "}}
    change_json(model / OWN, **prompts, truncate_dim=3)
    texts = read_json(to_tf1(model) / "sentence_bert_config.json")
    assert texts["max_seq_length"] is None
    for directory in (model, bert, model.parent / "b"):
        found = Embedder.from_pretrained(directory)(["A a A"])  # "c b a a a"
        np.testing.assert_allclose(found, VECTORS["mean"][4:5, :3], atol=2e-6)


@pytest.fixture(scope="module")
def converted(tmp_path_factory):
    """The model in the formats `tf1`, `hf` and `stripped`, a TF1 checkpoint."""
    folder = tmp_path_factory.mktemp("converted")
    original = shutil.copytree(GOLDEN, folder / "original")
    to_hf(to_tf1(original, "tf1"))
    to_tf1(folder / "tf1", "stripped", strip_optimizer=True)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("name", ["tf1", "hf", "stripped"])
def test_converted_models_keep_the_settings(converted, name):
    embedder = Embedder.from_pretrained(converted / name)
    assert_vectors(embedder(TEXTS, prompt_name="query"), "query")


@pytest.mark.slow
@pytest.mark.parametrize("to", ["openvino", "keras_hub"])
def test_other_formats_keep_settings_or_report_the_loss(converted, capsys, to):
    pytest.importorskip(to)
    folder = convert(input=converted / "tf1", output=converted / to, to=to)
    if to == "openvino":
        assert_vectors(Embedder.from_pretrained(folder)(TEXTS), "model")
    else:
        text = "Not kept by keras_hub: how a text becomes a vector"
        assert text in capsys.readouterr().out


@pytest.mark.nightly
def test_sentence_transformers_has_the_same_vectors_with_our_files(converted):
    found = encode_with_sentence_transformers(
        converted / "hf", TEXTS, converted, prompt_name="query"
    )
    assert_vectors(found, "query")


@pytest.mark.slow
def test_model_without_pooling_takes_means_with_a_warning(model, caplog):
    path = model / "modules.json"
    transformer, *_ = json.loads(path.read_text())
    splade = {"type": "models.SpladePooling", "path": "1_Pooling"}
    path.write_text(json.dumps([transformer, splade]))
    embedder = Embedder.from_pretrained(model)
    assert "has no modules.json" in caplog.text
    assert "with a Pooling" in caplog.text
    assert embedder.max_seq_length == 12  # Positions; the text 2 is truncated.
    short = [0, 1, 3, 4]  # Without special tokens in texts.
    found = embedder([TEXTS[number] for number in short])
    np.testing.assert_allclose(found, VECTORS["mean"][short], atol=2e-6)


POOLING, DENSE = "1_Pooling/config.json", "2_Dense/config.json"
OWN = "config_sentence_transformers.json"
GELU = {"activation_function": "torch.nn.GELU"}
LOGITS = {"modality_config": {"text": {"method_output_name": "logits"}}}


@pytest.mark.parametrize(
    ("file", "changes", "message"),
    [
        (POOLING, {"pooling_mode": "sum"}, "`pooling_mode`"),
        (POOLING, {"include_prompt": False}, "include_prompt"),
        (DENSE, {"use_residual": True}, "`use_residual`"),
        (DENSE, GELU, "Identity or Tanh or ReLU or Sigmoid. Received: 'GELU'"),
        (OWN, {"similarity_fn_name": "maxsim"}, "cosine or dot"),
        ("sentence_bert_config.json", LOGITS, "last_hidden_state"),
    ],
)
def test_unsupported_settings_are_errors(model, file, changes, message):
    change_json(model / file, **changes)
    with pytest.raises(InputError, match=message):
        Embedder.from_pretrained(model)


def test_unsupported_modules_and_damaged_or_pickled_layers_are_errors(model):
    dense = model / "2_Dense" / "model.safetensors"
    complete = dense.read_bytes()
    dense.write_bytes(complete[:-1])
    with pytest.raises(InputError, match=r"Dense .* complete safetensors file"):
        Embedder.from_pretrained(model)
    dense.write_bytes(complete)
    pooling = model / "1_Pooling" / "config.json"
    before = pooling.read_text()
    pooling.write_text("{}")
    with pytest.raises(InputError, match="`pooling_mode`"):
        Embedder.from_pretrained(model)
    pooling.write_text(before)
    dense.rename(dense.with_name("pytorch_model.bin"))
    with pytest.raises(InputError, match=r"pytorch_model\.bin is never opened"):
        Embedder.from_pretrained(model)
    path = model / "modules.json"
    path.write_text(path.read_text().replace(".Dense", ".LSTM"))
    with pytest.raises(InputError, match="Received: Transformer, Pooling, LST"):
        Embedder.from_pretrained(model)
    path.write_text("{}")
    with pytest.raises(InputError, match="list of modules"):
        Embedder.from_pretrained(model)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_dense_layers_of_all_float_types_are_read(dtype):
    kernel = np.random.default_rng(0).normal(size=(2, 3)).astype(dtype)
    weights = safetensors.numpy.save({"linear.weight": kernel})
    found, bias, _ = load_dense(Dense(3, 2, "Identity", weights), 3)
    assert (found.dtype, bias.dtype) == (np.float32, np.float32)
    np.testing.assert_array_equal(found, kernel.T.astype(np.float32))


def make(**settings):
    """An embedder without a model."""
    config = BertConfig(9, hidden_size=2, max_position_embeddings=8)
    return Embedder(None, None, EmbeddingSettings(**settings), config)


def test_invalid_calls_are_errors():
    for texts in ("a text", None, np.array("a text")):
        with pytest.raises(InputError, match="list of texts"):
            make()(texts)
    for size in (0, 2.5, "2"):
        with pytest.raises(InputError, match=f"`batch_size` .*{size}"):
            make()([], batch_size=size)
        with pytest.raises(InputError, match=f"`k` must be .*{size}"):
            make().search(["a"], [[1.0, 2.0]], k=size)
    embedder = make()
    for length, message in ((0, "at least 3"), (9, "the model's 8 positions")):
        embedder.max_seq_length = length
        with pytest.raises(InputError, match=f"max_seq_length.*{message}"):
            embedder(["a"])
    vectors = np.float32([[1, 2]])
    with pytest.raises(InputError, match="`queries` must be texts, which"):
        make().search(vectors, vectors)
    with pytest.raises(InputError, match=r"`a` must be .*shape \[1, 0\]"):
        make().similarity([], vectors)
    with pytest.raises(TypeError, match=r"`from_pretrained\(name\)`"):
        Embedder("bert_tiny_demo")
    with pytest.raises(TypeError, match=r"Embedder\.from_pretrained"):
        pickle.dumps(make())
    with pytest.raises(InputError, match=r"q\. Received"):
        make(prompts={"q": ""})([], prompt_name="a")


def test_warning_says_once_that_words_are_unknown(tmp_path, caplog):
    embedder = make()
    embedder.tokenizer = tiny.tokenizer(tmp_path)
    embedder._engine = lambda batch: [np.ones((*batch["input_ids"].shape, 2))]
    embedder(["good"] * 99 + ["žluťoučký kůň"])
    assert not caplog.messages
    for _ in range(2):
        embedder(["good", "žluťoučký kůň"])
    [message] = caplog.messages
    assert "28.6% of the tokens are [UNK]" in message


def test_empty_name_of_a_prompt_omits_the_default_prompt():
    prompts = {"q": "Query: "}
    settings = EmbeddingSettings(prompts=prompts, default_prompt_name="q")
    assert settings.prompt() == settings.prompt("q") == "Query: "
    assert settings.prompt("") == ""


@pytest.mark.parametrize(
    ("vectors", "message"),
    [
        (np.zeros((3, 4)), r"\[M, 2\].*shape \[3, 4\]"),
        (np.zeros((1, 3, 2)), r"shape \[1, 3, 2\]"),
        ([[0, np.nan]], "NaN or infinity"),
        (["a", "b"], r"np\.stack\(column\)\. Received: \['a', 'b'\]"),
        (np.array([[0, "a"]], object), "finite numbers"),
    ],
)
def test_vectors_are_arrays_of_finite_numbers(vectors, message):
    with pytest.raises(InputError, match=message):
        make().search(["a"], vectors)
    with pytest.raises(InputError, match=message.replace("M, 2", "M, (2|D)")):
        make().similarity([1, 2], vectors)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("cosine", [[0.6, 0.96]]),
        ("dot", [[3.0, 48.0]]),
        ("euclidean", [[-np.sqrt(20), -np.sqrt(29)]]),
        ("manhattan", [[-6.0, -7.0]]),
    ],
)
def test_similarity_is_that_of_the_model(name, expected):
    a, b = np.array([[3.0, 4.0]]), np.array([[1.0, 0.0], [8.0, 6.0]])
    quantized = a.astype(np.uint8), b.astype(np.uint8)
    for pair in ((a, b), (a[0], b), (a.tolist(), b.astype(object)), quantized):
        found = make(similarity=name).similarity(*pair)
        np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_equal_vectors_are_found_in_the_order_of_the_corpus():
    corpus = np.tile(np.float32([3, 4]), (1000, 1))
    corpus[700] = [4, 3]
    indices, scores = nearest(np.float32([[4, 3]]), corpus, 5)
    assert indices.tolist() == [[700, 0, 1, 2, 3]]
    np.testing.assert_allclose(scores, [[1, *[0.96] * 4]], rtol=1e-6)
