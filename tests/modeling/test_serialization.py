"""Layers and models in Keras' functional API, saved to `.keras` files."""

import keras
import numpy as np
import pytest

from official_bert.config import BertConfig
from official_bert.modeling.attention import SelfAttention
from official_bert.modeling.encoder import (
    Bert,
    Embeddings,
    Encoder,
    TransformerLayer,
)
from official_bert.modeling.finetuning_models import (
    ChoiceClassifier,
    SequenceClassifier,
    SpanModel,
    TokenClassifier,
)
from official_bert.modeling.gradients import gelu
from official_bert.modeling.layers import Dense, Dropout, LayerNorm
from official_bert.modeling.pooling_head import (
    BiLstm,
    LayerPooling,
    PoolingHead,
)
from official_bert.modeling.pretraining_model import (
    MaskedLM,
    NextSentence,
    PretrainingModel,
)

# Of Keras itself, when it saves a variable under NumPy 2.
pytestmark = pytest.mark.filterwarnings(
    "ignore:__array__ implementation:DeprecationWarning"
)

CONFIG = BertConfig(
    vocab_size=11,
    hidden_size=8,
    num_hidden_layers=2,
    num_attention_heads=2,
    intermediate_size=6,
    max_position_embeddings=7,
    type_vocab_size=2,
)
RANDOM = np.random.default_rng(0)
IDS = RANDOM.integers(0, 11, (3, 5)).astype("int32")
MASK = np.array([[1] * 5, [1] * 4 + [0], [1] * 2 + [0] * 3], "int32")
SEGMENTS = np.sort(RANDOM.integers(0, 2, IDS.shape)).astype("int32")
X = RANDOM.normal(size=(3, 5, 8)).astype("float32")
BIAS = np.zeros((3, 1, 1, 5), "float32")
WORDS = RANDOM.normal(size=(11, 8)).astype("float32")

LAYERS = {
    "dense": (Dense(4, activation=gelu), [X]),
    "layer_norm": (LayerNorm(), [X]),
    "dropout": (Dropout(0.3), [X]),
    "embeddings": (Embeddings(CONFIG), [IDS, SEGMENTS]),
    "self_attention": (SelfAttention(CONFIG), [X, X, BIAS]),
    "transformer_layer": (TransformerLayer(CONFIG), [X, X, BIAS]),
    "encoder": (Encoder(CONFIG), [X, BIAS]),
    "bert": (Bert(CONFIG), [IDS, MASK, SEGMENTS]),
    "masked_lm": (MaskedLM(CONFIG), [X, WORDS]),
    "next_sentence": (NextSentence(CONFIG), [X[:, 0]]),
    "layer_pooling": (LayerPooling("weighted_sum_all", 2), [X, [X, -X]]),
    "bilstm": (BiLstm(3), [X, MASK]),
}
BATCH = {"input_ids": IDS, "input_mask": MASK, "segment_ids": SEGMENTS}
CHOICES = {name: np.stack([v, v[::-1]], 1) for name, v in BATCH.items()}
HEAD = PoolingHead("weighted_sum_last_4", 3)
MODELS = {
    "pretraining": (
        lambda: PretrainingModel(CONFIG),
        {**BATCH, "masked_lm_positions": MASK[:, :2]},
    ),
    "sequence": (lambda: SequenceClassifier(CONFIG, 3), BATCH),
    "choice": (lambda: ChoiceClassifier(CONFIG), CHOICES),
    "token": (lambda: TokenClassifier(CONFIG, 3, HEAD), BATCH),
    "span": (lambda: SpanModel(CONFIG, pooling_head=HEAD), BATCH),
}


def saved_and_loaded(model, folder):
    model.save(folder / "model.keras")
    return keras.saving.load_model(folder / "model.keras")


def assert_equal_outputs(model, other, inputs):
    expected, found = (
        keras.tree.flatten(m(inputs, training=False)) for m in (model, other)
    )
    for one, same in zip(expected, found, strict=True):
        np.testing.assert_array_equal(one, same)


@pytest.mark.parametrize("name", LAYERS)
def test_functional_model_of_a_layer_survives_saving(name, tmp_path):
    layer, inputs = LAYERS[name]
    symbolic = keras.tree.map_structure(
        lambda x: keras.Input(x.shape[1:], len(x), dtype=x.dtype.name), inputs
    )
    model = keras.Model(symbolic, layer(*symbolic))
    loaded = saved_and_loaded(model, tmp_path)
    assert [w.path for w in loaded.weights] == [w.path for w in model.weights]
    assert_equal_outputs(model, loaded, inputs)


@pytest.mark.parametrize("name", MODELS)
def test_model_survives_saving(name, tmp_path):
    make, batch = MODELS[name]
    model = make()
    loaded = saved_and_loaded(model, tmp_path)
    assert [w.path for w in loaded.weights] == [w.path for w in model.weights]
    assert_equal_outputs(model, loaded, batch)


@pytest.mark.slow  # Keras compiles the step with XLA.
def test_bert_in_a_functional_model_trains_saves_and_loads(tmp_path):
    inputs = [keras.Input([None], dtype="int32") for _ in range(3)]
    bert = Bert(CONFIG)
    logits = keras.layers.Dense(2)(bert(*inputs).pooled_output)
    model = keras.Model(inputs, logits)
    assert {w.path.split("/")[0] for w in bert.weights} == {"bert"}
    before = bert.embeddings.word_embeddings.numpy()
    model.compile(
        "adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    )
    batch = [IDS, MASK, SEGMENTS]
    model.fit(batch, np.array([0, 1, 1]), epochs=2, verbose=0)
    assert np.any(bert.embeddings.word_embeddings.numpy() != before)
    loaded = saved_and_loaded(model, tmp_path)
    np.testing.assert_array_equal(
        loaded.predict(batch, verbose=0), model.predict(batch, verbose=0)
    )
