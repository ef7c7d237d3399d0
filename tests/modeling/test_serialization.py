import dataclasses

import keras
import numpy as np
import pytest
from support import recorded

from official_bert.modeling import encoder, layers, pooling_head
from official_bert.modeling import finetuning_models as finetuning
from official_bert.modeling import pretraining_model as pretraining
from official_bert.modeling.attention import SelfAttention
from official_bert.modeling.gradients import gelu
from official_bert.sources.heads import PoolingHead

# Raised by Keras itself when it saves a variable with NumPy 2.
pytestmark = pytest.mark.filterwarnings(
    "ignore:__array__ implementation:DeprecationWarning"
)

CONFIG = dataclasses.replace(
    recorded.SMALL_CONFIG, num_hidden_layers=2, intermediate_size=6
)
RANDOM = np.random.default_rng(0)
IDS = RANDOM.integers(0, 11, (3, 5)).astype("int32")
MASK = np.array([[1] * 5, [1] * 4 + [0], [1] * 2 + [0] * 3], "int32")
SEGMENTS = np.sort(RANDOM.integers(0, 2, IDS.shape)).astype("int32")
X = RANDOM.normal(size=(3, 5, 8)).astype("float32")
BIAS = np.zeros((3, 1, 1, 5), "float32")
WORDS = RANDOM.normal(size=(30, 8)).astype("float32")

BFLOAT16_BERT = encoder.Bert(CONFIG, dtype=layers.Bfloat16Matmul())
LAYER_POOLING = pooling_head.LayerPooling("weighted_sum_all", 2)
DENSE = {"embedding_size": 3, "normalize": False}
LAYERS = {
    "dense": (layers.Dense(4, activation=gelu), [X]),
    "layer_norm": (layers.LayerNorm(), [X]),
    "dropout": (layers.Dropout(0.3), [X]),
    "embeddings": (encoder.Embeddings(CONFIG), [IDS, SEGMENTS]),
    "self_attention": (SelfAttention(CONFIG), [X, X, BIAS]),
    "transformer_layer": (encoder.TransformerLayer(CONFIG), [X, X, BIAS]),
    "encoder": (encoder.Encoder(CONFIG), [X, BIAS]),
    "bert": (encoder.Bert(CONFIG), [IDS, MASK, SEGMENTS]),
    "bert, bfloat16 products": (BFLOAT16_BERT, [IDS, MASK, SEGMENTS]),
    "masked_lm": (pretraining.MaskedLM(CONFIG), [X, WORDS]),
    "next_sentence": (pretraining.NextSentence(CONFIG), [X[:, 0]]),
    "layer_pooling": (LAYER_POOLING, [X, [X, -X]]),
    "bilstm": (pooling_head.BiLstm(3), [X, MASK]),
}
BATCH = {"input_ids": IDS, "input_mask": MASK, "segment_ids": SEGMENTS}
CHOICES = {name: np.stack([v, v[::-1]], 1) for name, v in BATCH.items()}
HEAD = PoolingHead("weighted_sum_last_4", 3)
MASKED = {**BATCH, "masked_lm_positions": MASK[:, :2]}
MODELS = {
    "pretraining": (pretraining.PretrainingModel, {}, MASKED),
    "sequence": (finetuning.SequenceClassifier, {"num_outputs": 3}, BATCH),
    "choice": (finetuning.ChoiceClassifier, {}, CHOICES),
    "token": (finetuning.TokenClassifier, {"pooling_head": HEAD}, BATCH),
    "span": (finetuning.SpanModel, {"pooling_head": HEAD}, BATCH),
    "sentence": (finetuning.SentenceEncoder, {"pooling": "cls"}, CHOICES),
    "sentence_dense": (finetuning.SentenceEncoder, DENSE, BATCH),
}


def check_saving(model, inputs, folder):
    model.save(folder / "model.keras")
    loaded = keras.saving.load_model(folder / "model.keras")
    if not isinstance(model, Classifier):  # Keras builds it in another scope.
        paths = [weight.path for weight in model.weights]
        assert [weight.path for weight in loaded.weights] == paths
    expected, found = (
        keras.tree.flatten(m(inputs, training=False)) for m in (model, loaded)
    )
    for one, same in zip(expected, found, strict=True):
        np.testing.assert_array_equal(one, same)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.bfloat16] * ("bfloat16" in name))
        for name in LAYERS
    ],
)
def test_functional_model_of_a_layer_survives_saving(name, tmp_path):
    layer, inputs = LAYERS[name]
    symbolic = keras.tree.map_structure(
        lambda x: keras.Input(x.shape[1:], len(x), dtype=x.dtype.name), inputs
    )
    check_saving(keras.Model(symbolic, layer(*symbolic)), inputs, tmp_path)


@pytest.mark.parametrize("name", MODELS)
def test_model_survives_saving(name, tmp_path):
    kind, arguments, batch = MODELS[name]
    check_saving(kind(CONFIG, **arguments), batch, tmp_path)


@keras.saving.register_keras_serializable("tests")
class Classifier(keras.Model):
    """A user's own model, which Keras builds when it is loaded."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.bert = encoder.Bert(CONFIG)
        self.head = keras.layers.Dense(2)

    def call(self, batch):
        return self.head(self.bert(**batch).pooled_output)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "mixed_float16"])
def test_subclassed_model_survives_saving(dtype, tmp_path):
    model = Classifier(dtype=dtype)
    model(BATCH)
    check_saving(model, BATCH, tmp_path)


def test_ids_may_be_floats():
    config = dataclasses.replace(CONFIG, vocab_size=5000)
    bert = encoder.Bert(config, dtype="mixed_float16")
    ids = IDS + np.float32(4900)  # float16 has only every fourth number.
    symbolic = bert(keras.Input([None])).pooled_output
    assert symbolic.shape == (None, CONFIG.hidden_size)
    np.testing.assert_array_equal(
        bert(ids).pooled_output, bert(ids.astype("int64")).pooled_output
    )


@pytest.mark.bfloat16
@pytest.mark.parametrize("dtype", ["mixed_bfloat16", layers.Bfloat16Matmul()])
@pytest.mark.parametrize(
    "model_class",
    [encoder.Bert, finetuning.SequenceClassifier, pretraining.PretrainingModel],
)
def test_dtype_policy_applies_to_all_sublayers(model_class, dtype):
    model = model_class(CONFIG, dtype=dtype)
    model = model_class.from_config(model.get_config())
    bert = getattr(model, "bert", model)
    policy = keras.dtype_policies.get(dtype)
    assert bert.encoder.layers[0].output_dense.dtype_policy == policy
    assert bert(IDS).sequence_output.dtype == policy.compute_dtype
    if model is not bert:
        model(BATCH)
    assert keras.config.dtype_policy().name == "float32"
