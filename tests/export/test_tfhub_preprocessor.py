import numpy as np
import pytest
import tensorflow as tf
from support import SPECIAL, write_vocab

from official_bert.export import graph_packing, tfhub_preprocessor
from official_bert.export.graph_tokenizer import GraphTokenizer
from official_bert.tokenization import FullTokenizer, load_vocab

pytestmark = pytest.mark.slow

TOKENS = [
    *(*SPECIAL, "ca", "co", "##ute", "##s"),
    *("5", "$", "!", "北", "京", "durer", "ς", "α", "##ς"),
]
TEXTS = ["Ça coûte 5$, 北京!", "", "Dürers ΑΣ"]


@pytest.fixture(scope="module")
def vocab_file(tmp_path_factory):
    return write_vocab(tmp_path_factory.mktemp("vocab"), TOKENS)


@pytest.fixture(scope="module")
def path(tmp_path_factory, vocab_file):
    path = str(tmp_path_factory.mktemp("exported") / "preprocessor")
    tokenizer = FullTokenizer(vocab_file)
    tfhub_preprocessor.export(path, tokenizer, seq_length=12)
    return path


@pytest.fixture(scope="module")
def preprocessor(path):
    return tf.saved_model.load(path)


def test_tokens_and_spans_are_those_of_the_tokenizer(preprocessor, vocab_file):
    tokenizer = GraphTokenizer(FullTokenizer(vocab_file))
    expected = tokenizer.tokenize_words_with_offsets(tf.constant(TEXTS))

    found = preprocessor.tokenize_with_offsets(TEXTS)

    for values, others in zip(found, expected, strict=True):
        assert values.to_list() == others.to_list()
    assert preprocessor.tokenize(TEXTS).to_list() == expected[0].to_list()


def test_texts_become_rows_of_the_default_length(preprocessor):
    rows = preprocessor(TEXTS)
    assert rows["input_word_ids"].numpy().tolist() == [
        [2, 5, 6, 7, 9, 10, 1, 12, 13, 11, 3, 0],
        [2, 3] + [0] * 10,
        [2, 14, 8, 16, 17, 3] + [0] * 6,
    ]
    assert [sum(row) for row in rows["input_mask"].numpy()] == [11, 2, 6]
    served = preprocessor.signatures["serving_default"](tf.constant(TEXTS))
    assert served.keys() == rows.keys()
    vocab = tf.io.read_file(preprocessor.vocab_file.asset_path)
    assert vocab.numpy().decode().split() == TOKENS
    assert not getattr(preprocessor, "variables", ())
    dataset = tf.data.Dataset.from_tensor_slices(TEXTS).batch(2)
    batches = list(dataset.map(preprocessor, num_parallel_calls=2))
    assert [b["input_mask"].shape for b in batches] == [(2, 12), (1, 12)]


@pytest.mark.parametrize(
    ("num_segments", "by_word"), [(1, True), (1, False), (2, True), (2, False)]
)
def test_one_or_two_segments_are_packed(preprocessor, num_segments, by_word):
    tokens = preprocessor.tokenize(tf.constant(TEXTS))
    segments = [tokens if by_word else tokens.merge_dims(1, 2)] * num_segments
    pack = preprocessor.bert_pack_inputs

    for length, packed in [
        (12, pack(segments)),
        (7, pack(segments, seq_length=7)),
        (7, pack(segments, tf.constant(7))),
    ]:
        expected = graph_packing.pack(segments, length, (2, 3))
        assert packed.keys() == expected.keys()
        for name, values in expected.items():
            np.testing.assert_array_equal(packed[name], values)


def test_tf_keras_models_of_pairs_can_be_built(path, vocab_file):
    """ "BERT preprocessing with TF Text" and "Solve GLUE tasks using BERT"."""
    hub = pytest.importorskip("tensorflow_hub")
    tf_keras = pytest.importorskip("tf_keras")
    preprocessor = hub.load(path)
    inputs = [
        tf_keras.layers.Input(shape=(), dtype=tf.string, name=name)
        for name in ("premise", "hypothesis")
    ]
    tokenize = hub.KerasLayer(preprocessor.tokenize, name="tokenizer")
    packer = hub.KerasLayer(
        preprocessor.bert_pack_inputs, arguments={"seq_length": 9}
    )
    pair = tf_keras.Model(inputs, packer([tokenize(text) for text in inputs]))

    rows = pair([tf.constant(TEXTS)] * 2)

    vocab = load_vocab(vocab_file)
    expected = ["[CLS]", *["durer", "##s", "α", "[SEP]"] * 2]
    assert rows["input_word_ids"][2].numpy().tolist() == [
        vocab[token] for token in expected
    ]
    assert rows["input_type_ids"][2].numpy().tolist() == [0] * 5 + [1] * 4


@pytest.mark.parametrize("part", ["tokenize", "tokenize_with_offsets"])
def test_special_tokens_have_their_published_names(preprocessor, part):
    special = getattr(preprocessor, part).get_special_tokens_dict()

    assert {name: int(id_) for name, id_ in special.items()} == {
        "vocab_size": len(TOKENS),
        "start_of_sequence_id": 2,
        "end_of_segment_id": 3,
        "padding_id": 0,
        "mask_id": 4,
    }
    assert special["padding_id"].dtype == tf.int32
