"""TensorFlow's tutorial "Classify text with BERT", with our two modules."""

import numpy as np
import pytest
import tensorflow as tf
from support import hub_modules

from official_bert.export.tfhub_preprocessor import export_preprocessor

hub = pytest.importorskip("tensorflow_hub")
tf_keras = pytest.importorskip("tf_keras")
pytest.importorskip("tensorflow_text")

TEXTS = ["Good cat", "bad cat cat", "good good", "Bad!", "cat good", "cat bad"]
LABELS = [1.0, 0.0, 1.0, 0.0, 1.0, 0.0]


@pytest.fixture(scope="module")
def paths(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tutorial")
    hub_modules.write_files(folder)
    vocab_file = str(folder / "vocab.txt")
    export_preprocessor(str(folder / "pre"), vocab_file, True, seq_length=8)
    return str(folder / "pre"), hub_modules.export(folder)[0]


@pytest.mark.slow
def test_fine_tunes_all_weights(paths):
    preprocessor, encoder = paths
    text = tf_keras.layers.Input(shape=(), dtype=tf.string, name="text")
    inputs = hub.KerasLayer(preprocessor, name="preprocessing")(text)
    layer = hub.KerasLayer(encoder, trainable=True, name="BERT_encoder")
    pooled = layer(inputs)["pooled_output"]
    pooled = tf_keras.layers.Dropout(0.1)(pooled)
    logits = tf_keras.layers.Dense(1, activation=None, name="classifier")(
        pooled
    )
    model = tf_keras.Model(text, logits)
    assert len(layer.trainable_weights) == len(layer.resolved_object.variables)
    before = [weight.numpy() for weight in layer.weights]
    model.compile(
        optimizer=tf_keras.optimizers.Adam(1e-3),
        loss=tf_keras.losses.BinaryCrossentropy(from_logits=True),
        metrics=[tf_keras.metrics.BinaryAccuracy()],
    )
    data = tf.data.Dataset.from_tensor_slices((TEXTS, LABELS)).batch(3)
    loss, _ = model.evaluate(data, verbose=0)
    model.fit(data, epochs=15, verbose=0)
    assert model.evaluate(data, verbose=0)[0] < 0.5 * loss
    for weight, old in zip(layer.weights, before, strict=True):
        assert not np.array_equal(weight.numpy(), old), weight.name


@pytest.mark.slow
def test_hub_finds_the_masked_lm_head(paths):
    encoder = hub.load(paths[1])
    layer = hub.KerasLayer(encoder.mlm, trainable=True)
    inputs = hub_modules.inputs([[2, 4, 5, 3]])
    outputs = layer({**inputs, "masked_lm_positions": tf.constant([[1]])})
    assert outputs["mlm_logits"].shape == (1, 1, 513)
    assert len(layer.trainable_weights) == len(encoder.variables) + 5
