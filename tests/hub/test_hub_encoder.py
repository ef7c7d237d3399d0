"""TF Hub modules as Keras layers: all weights are trained and saved."""

import dataclasses
import pathlib

import keras
import numpy as np
import pytest
import tensorflow as tf
from support import hub_modules, recorded

from official_bert.errors import InputError
from official_bert.export import tfhub_preprocessor
from official_bert.hub import HubBert, HubEncoder
from official_bert.tokenization import FullTokenizer, load_vocab
from official_bert.training import distribution

pytestmark = pytest.mark.slow

CONFIG = dataclasses.replace(hub_modules.CONFIG, num_hidden_layers=1)
IDS = [[2, 5, 7, 3], [2, 6, 3, 0], [2, 7, 7, 3], [2, 6, 6, 3]]
MASK = [[1, 1, 1, 1], [1, 1, 1, 0], [1, 1, 1, 1], [1, 1, 1, 1]]
INPUTS = hub_modules.inputs(IDS, MASK, [[0, 0, 1, 1]] * 4)
TARGETS = np.array([1.0, -1.0, 1.0, 0.0])


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """The module of the files in its parent directory."""
    directory = tmp_path_factory.mktemp("hub")
    hub_modules.write_files(directory, CONFIG)
    return hub_modules.export(directory)[0]


def model_on(encoder):
    inputs = {
        name: keras.Input([None], dtype="int32", name=name)
        for name in hub_modules.INPUTS
    }
    pooled = encoder(inputs)["pooled_output"]
    return keras.Model(inputs, keras.layers.Dense(1)(pooled))


def train(model, optimizer="sgd", **options):
    """Trains on four rows; returns the paths of weights that changed."""
    before = {w.path: w.numpy() for w in model.trainable_variables}
    model.compile(optimizer, "mse")
    model.fit(INPUTS, TARGETS, verbose=0, **options)
    return [
        weight.path
        for weight in model.trainable_variables
        if not np.array_equal(weight.numpy(), before[weight.path])
    ]


def vocabulary(encoder):
    return pathlib.Path(encoder.text_info.vocab_file).read_text().split()


def test_weights_are_the_variables_of_the_module(path):
    encoder = HubEncoder(path)
    assert [w.path + ":0" for w in encoder.trainable_variables] == [
        v.name for v in encoder.module.trainable_variables
    ]
    encoder.weights[0].assign(tf.ones_like(encoder.weights[0]))
    assert encoder.module.variables[0].numpy().min() == 1.0
    assert encoder.text_info.do_lower_case
    assert vocabulary(encoder) == hub_modules.VOCAB


def test_frozen_encoder_has_no_trainable_weights_and_no_dropout(path):
    encoder = HubEncoder(path, trainable=False)
    inputs = hub_modules.inputs(IDS)

    def difference():
        one, other = (encoder(inputs, training=True) for _ in range(2))
        return np.abs(one["pooled_output"] - other["pooled_output"]).max()

    assert encoder.trainable_variables == []
    assert len(model_on(encoder).trainable_variables) == 2
    assert len(encoder.weights) == len(encoder.module.variables)
    assert difference() == 0.0
    encoder.trainable = True
    assert encoder.trainable_variables
    assert difference() > 0.01


# Raised by Keras itself with NumPy 2.
@pytest.mark.filterwarnings("ignore:__array__ implementation")
def test_keras_saves_and_loads_trained_weights(path, tmp_path):
    encoder = HubEncoder(path)
    model = model_on(encoder)
    for weight in encoder.weights:
        weight.assign(weight + 0.1)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    inputs = hub_modules.inputs(IDS)
    np.testing.assert_allclose(loaded(inputs), model(inputs), atol=1e-6)
    bert = HubBert.from_config(HubBert(path).get_config())
    assert bert.name == "bert"
    assert len(bert.weights) == len(encoder.weights)


def test_replicas_share_the_weights_and_train_all(path):
    strategy = distribution.get_strategy("mirrored")
    with strategy.scope():
        model = model_on(HubEncoder(path, name="encoder"))
    alone = model_on(HubEncoder(path))
    alone.set_weights(model.get_weights())
    found = model.predict(INPUTS, verbose=0)
    np.testing.assert_allclose(found, alone(INPUTS), atol=1e-5)
    with strategy.scope():
        trained = train(model, batch_size=4)
    # Adding a constant to all keys changes no softmax: the gradient is 0.
    assert all(
        weight.path in trained or weight.path.endswith("self/key/bias")
        for weight in model.trainable_variables
    )


@pytest.mark.parametrize(
    ("write", "names", "trained"),
    [
        # `pooled_output` does not depend on the bias.
        ("another", ["table/w", "dense/w", "dense/w_1"], 2),
        ("old", ["bert/table"], 1),
    ],
)
def test_third_party_modules_are_trained(tmp_path, write, names, trained):
    path = getattr(hub_modules, f"write_{write}")(tmp_path, hub_modules.VOCAB)
    encoder = HubEncoder(path)
    assert [w.path for w in encoder.trainable_variables] == names
    assert encoder.text_info.do_lower_case
    assert vocabulary(encoder) == hub_modules.VOCAB
    outputs = encoder(hub_modules.inputs(IDS, MASK))
    words = encoder.weights[0].numpy()[IDS] * np.array(MASK)[..., np.newaxis]
    expected = {"sequence_output": words, "pooled_output": words.sum(axis=1)}
    if write == "another":
        kernel, bias = (w.numpy() for w in encoder.weights[1:])
        expected = {
            "sequence_output": np.tanh(words @ kernel + bias),
            "pooled_output": expected["pooled_output"] @ kernel,
        }
    recorded.assert_all_close(outputs, expected, atol=1e-6)
    assert {*train(model_on(encoder))} & {*names} == {*names[:trained]}


def test_vocabulary_of_a_module_may_have_a_token_twice(tmp_path):
    vocab = [*hub_modules.VOCAB, hub_modules.VOCAB[-1]]
    path = hub_modules.write_another(tmp_path, vocab)
    bert = HubBert(path)
    found = load_vocab(bert.encoder.text_info.vocab_file)
    bert.config.require_vocabulary(found, "vocab.txt")
    assert bert.config.vocab_size == len(vocab)


def test_module_that_is_not_a_text_encoder_is_an_error(tmp_path):
    callable_module = tf.train.Checkpoint()
    signature = [tf.TensorSpec([], tf.int32)]
    callable_module.__call__ = tf.function(lambda x: x, signature)
    tf.saved_model.save(callable_module, f"{tmp_path}/a")
    not_callable = tf.train.Checkpoint(v=tf.Variable(1.0))
    tf.saved_model.save(not_callable, f"{tmp_path}/b")
    for handle, message in [
        (str(tmp_path), ""),
        (f"{tmp_path}/no-such", ""),
        ("nothing://a", ""),
        (f"{tmp_path}/a", ": .*trainable variables"),
        (f"{tmp_path}/b", ": .*`tokens`"),
    ]:
        with pytest.raises(InputError, match=handle + message):
            HubEncoder(handle)


@pytest.mark.trains
@pytest.mark.nightly
def test_tutorial_of_tensorflow_fine_tunes_all_weights(path, tmp_path):
    """ "Classify text with BERT", in tf_keras, with our two modules."""
    hub = pytest.importorskip("tensorflow_hub")
    tf_keras = pytest.importorskip("tf_keras")
    texts = ["Good cat", "bad cat cat", "good good", "Bad!", "cat good", "bad"]
    preprocessor = str(tmp_path / "preprocessor")
    vocab_file = str(pathlib.Path(path).parent / "vocab.txt")
    tokenizer = FullTokenizer(vocab_file)
    tfhub_preprocessor.export(preprocessor, tokenizer, seq_length=8)
    text = tf_keras.layers.Input(shape=(), dtype=tf.string, name="text")
    inputs = hub.KerasLayer(preprocessor, name="preprocessing")(text)
    assert inputs["input_word_ids"].shape.as_list() == [None, 8]
    layer = hub.KerasLayer(path, trainable=True, name="BERT_encoder")
    pooled = tf_keras.layers.Dropout(0.1)(layer(inputs)["pooled_output"])
    logits = tf_keras.layers.Dense(1, name="classifier")(pooled)
    model = tf_keras.Model(text, logits)
    assert len(layer.trainable_weights) == len(layer.resolved_object.variables)
    before = [weight.numpy() for weight in layer.weights]
    model.compile(
        optimizer=tf_keras.optimizers.Adam(1e-3),
        loss=tf_keras.losses.BinaryCrossentropy(from_logits=True),
    )
    labels = [1.0, 0.0] * 3
    data = tf.data.Dataset.from_tensor_slices((texts, labels)).batch(3)
    losses = model.fit(data, epochs=15, verbose=0).history["loss"]
    assert losses[-1] < 0.5 * losses[0]
    for weight, old in zip(layer.weights, before, strict=True):
        assert not np.array_equal(weight.numpy(), old), weight.name
    encoder = hub.load(path)
    layer = hub.KerasLayer(encoder.mlm, trainable=True)
    inputs = hub_modules.inputs([[2, 4, 5, 3]])
    outputs = layer({**inputs, "masked_lm_positions": tf.constant([[1]])})
    assert outputs["mlm_logits"].shape == (1, 1, 513)
    assert len(layer.trainable_weights) == len(encoder.variables) + 5
