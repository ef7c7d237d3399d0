"""Models that take strings have the ids of `Tokenizer`."""

import json
import shutil

import keras
import numpy as np
import pytest
import tensorflow as tf
from support import SPECIAL, odd_texts, tiny
from support.processes import run_python

from official_bert import Bert, BertConfig, TextEncoder, Tokenizer, encode
from official_bert.errors import InputError

pytestmark = [
    pytest.mark.slow,
    # Raised by Keras itself when it saves a variable with NumPy 2.
    pytest.mark.filterwarnings(
        "ignore:__array__ implementation:DeprecationWarning"
    ),
]

# Loads a model in a new process, and prints its answers to texts.
PREDICT = """
import json, sys
import keras
import tensorflow as tf
from official_bert import Bert, TextEncoder

texts = json.loads(sys.argv[2])
inputs = [tf.constant(column) for column in zip(*texts)]
model = keras.saving.load_model(sys.argv[1])
print(json.dumps(model(inputs).numpy().tolist()))
"""


@pytest.fixture
def tokenizer(tmp_path):
    return tiny.tokenizer(tmp_path)


def expected(tokenizer, texts, length):
    return encode(tokenizer, texts, max_seq_length=length, padding="max_length")


def assert_equal(found, wanted):
    assert found.keys() == wanted.keys()
    for name, ids in wanted.items():
        assert found[name].dtype == "int32"
        np.testing.assert_array_equal(found[name], ids)


@pytest.mark.parametrize(("do_lower_case", "length"), [(True, 3), (False, 12)])
def test_ids_of_odd_texts_equal_encode(make_vocab, do_lower_case, length):
    vocab_file = make_vocab(*SPECIAL, *odd_texts.TOKENS)
    tokenizer = Tokenizer(vocab_file, do_lower_case, never_split=["[MASK]"])
    layer = TextEncoder(tokenizer, length)
    layer = TextEncoder.from_config(layer.get_config())
    a, b = np.split(np.array(odd_texts.random_texts(2000, "[MASK]")), 2)
    a, b = a.tolist(), b.tolist()
    assert_equal(layer(a), expected(tokenizer, a, length))
    pairs = [*zip(a, b, strict=True)]
    assert_equal(layer(a, b), expected(tokenizer, pairs, length))


def test_dataset_map_takes_single_texts_and_batches(tokenizer):
    layer, texts = TextEncoder(tokenizer, 6), ["good cat", "", "red sun rain"]
    dataset = tf.data.Dataset.from_tensor_slices(texts)
    wanted = expected(tokenizer, texts, 6)
    for mapped in (dataset.map(layer).batch(3), dataset.batch(3).map(layer)):
        assert mapped.element_spec["input_ids"].shape == (None, 6)
        [batch] = mapped
        assert_equal(batch, wanted)
    pairs = tf.data.Dataset.zip(dataset, dataset).batch(3).map(layer)
    wanted = expected(tokenizer, [(text, text) for text in texts], 6)
    assert_equal(next(iter(pairs)), wanted)


def test_model_fits_strings_and_loads_without_its_directory(tmp_path):
    (tmp_path / "model").mkdir()
    layer = TextEncoder(tiny.tokenizer(tmp_path / "model"), 8)
    texts = [keras.Input([], dtype="string") for _ in range(2)]
    bert = Bert(BertConfig.from_dict(tiny.SMALL))
    pooled = bert(**layer(*texts)).pooled_output
    outputs = keras.layers.Dense(1, activation="sigmoid")(pooled)
    model = keras.Model(texts, outputs)
    model.compile("adam", "binary_crossentropy")
    columns = [tiny.texts(12, seed, longest=9) for seed in (0, 1)]
    labels = [float("good" in text) for text in columns[0]]
    dataset = tf.data.Dataset.from_tensor_slices((tuple(columns), labels))
    before = bert.get_weights()
    model.fit(dataset.batch(4), shuffle=False, verbose=0)
    changed = map(np.array_equal, before, bert.get_weights())
    assert not all(changed)
    model.save(tmp_path / "model.keras")
    shutil.rmtree(tmp_path / "model")
    wanted = model([*map(tf.constant, columns)])

    rows = json.dumps([*zip(*columns, strict=True)])
    done = run_python("-c", PREDICT, str(tmp_path / "model.keras"), rows)
    np.testing.assert_allclose(json.loads(done.stdout), wanted, rtol=1e-5)


def test_invalid_arguments_are_errors(tokenizer, monkeypatch):
    with pytest.raises(InputError, match=r"`max_seq_length`.* at least 3.* 2"):
        TextEncoder(tokenizer, 2)
    with pytest.raises(InputError, match="must be a directory, the name of"):
        TextEncoder("no_model", 8)
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(InputError, match="`TextEncoder` needs the package"):
        TextEncoder(tokenizer, 8)
