"""An exported preprocessor has TensorFlow's interface and our tokens."""

import itertools
import json
import os
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

from official_bert.errors import InputError
from official_bert.export import graph_packing
from official_bert.export.tfhub_preprocessor import export_preprocessor
from official_bert.inputs.text_inputs import SpecialIds
from official_bert.tokenization import BatchTokenizer, load_vocab

TOKENS = [
    *("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "ca", "co", "##ute", "##s"),
    *("5", "$", "!", "北", "京", "durer", "ς", "α", "##ς"),
]
TEXTS = ["Ça coûte 5$, 北京!", "", "Dürers ΑΣ"]

# A user who does not have this project.
LOAD = """
import json, sys
sys.modules["official_bert"] = None
import tensorflow as tf
import tensorflow_text
preprocessor = tf.saved_model.load(sys.argv[1])
texts = json.loads(sys.argv[2])
print(json.dumps({
    "variables": len(getattr(preprocessor, "variables", [])),
    "words": preprocessor.tokenize(texts).to_list(),
    "offsets": [
        r.to_list() for r in preprocessor.tokenize_with_offsets(texts)
    ],
    "rows": {
        name: rows.numpy().tolist()
        for name, rows in preprocessor(texts).items()
    },
    "served": sorted(
        preprocessor.signatures["serving_default"](tf.constant(texts))
    ),
    "vocab": open(preprocessor.vocab_file.asset_path.numpy()).read(),
}))
"""


def flat(words):
    return list(itertools.chain.from_iterable(words))


@pytest.fixture(scope="module")
def vocab_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("vocab") / "vocab.txt"
    path.write_text("".join(f"{t}\n" for t in TOKENS), encoding="utf-8")
    return str(path)


@pytest.fixture(scope="module")
def path(tmp_path_factory, vocab_file):
    path = str(tmp_path_factory.mktemp("exported") / "preprocessor")
    export_preprocessor(path, vocab_file, do_lower_case=True, seq_length=12)
    return path


@pytest.fixture(scope="module")
def preprocessor(path):
    return tf.saved_model.load(path)


@pytest.mark.slow
def test_preprocessor_works_without_this_project(path, vocab_file, tmp_path):
    result = subprocess.run(
        [sys.executable, "-c", LOAD, path, json.dumps(TEXTS)],
        env={**os.environ, "PYTHONPATH": ""},
        cwd=tmp_path,
        check=True,
        capture_output=True,
    )

    found = json.loads(result.stdout)
    reference = BatchTokenizer(vocab_file)
    aligned = [reference.tokenize_with_offsets(text) for text in TEXTS]
    assert [flat(words) for words in found["words"]] == [
        reference.convert_tokens_to_ids(tokens) for tokens, _ in aligned
    ]
    words, starts, limits = found["offsets"]
    assert words == found["words"]
    for text, (_, spans), *bounds in zip(
        TEXTS, aligned, starts, limits, strict=True
    ):
        spans = [
            [len(text[:offset].encode()) for offset in span] for span in spans
        ]
        pairs = zip(*(flat(offsets) for offsets in bounds), strict=True)
        assert [list(pair) for pair in pairs] == spans
    assert found["rows"]["input_word_ids"] == [
        [2, 5, 6, 7, 9, 10, 1, 12, 13, 11, 3, 0],
        [2, 3] + [0] * 10,
        [2, 14, 8, 16, 17, 3] + [0] * 6,
    ]
    assert [sum(row) for row in found["rows"]["input_mask"]] == [11, 2, 6]
    assert found["served"] == ["input_mask", "input_type_ids", "input_word_ids"]
    assert found["vocab"].split() == TOKENS
    assert found["variables"] == 0


@pytest.mark.parametrize("num_segments", [1, 2])
@pytest.mark.parametrize("by_word", [True, False])
def test_one_or_two_segments_are_packed(preprocessor, num_segments, by_word):
    tokens = preprocessor.tokenize(tf.constant(TEXTS))
    segments = [tokens if by_word else tokens.merge_dims(1, 2)] * num_segments
    pack = preprocessor.bert_pack_inputs

    for length, packed in [
        (12, pack(segments)),
        (7, pack(segments, seq_length=7)),
        (7, pack(segments, tf.constant(7))),
    ]:
        expected = graph_packing.pack(segments, length, SpecialIds(2, 3))
        assert packed.keys() == expected.keys()
        for name, values in expected.items():
            np.testing.assert_array_equal(packed[name], values)


@pytest.mark.slow
def test_tf_keras_models_of_the_tutorials_can_be_built(path, vocab_file):
    hub = pytest.importorskip("tensorflow_hub")
    tf_keras = pytest.importorskip("tf_keras")
    texts = tf.constant(TEXTS)
    # "Classify text with BERT" has a single text, "BERT preprocessing with TF
    # Text" and "Solve GLUE tasks using BERT on TPU" have two.
    text_input = tf_keras.layers.Input(shape=(), dtype=tf.string, name="text")
    outputs = hub.KerasLayer(path, name="preprocessing")(text_input)
    single = tf_keras.Model(text_input, outputs)
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

    assert outputs["input_word_ids"].shape.as_list() == [None, 12]
    ids = single(texts)["input_word_ids"].numpy()
    np.testing.assert_array_equal(
        ids, preprocessor(texts)["input_word_ids"].numpy()
    )
    rows = pair([texts, texts])
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


def test_preprocessor_can_be_mapped_over_a_dataset(preprocessor):
    dataset = tf.data.Dataset.from_tensor_slices(TEXTS).batch(2)

    batches = list(dataset.map(preprocessor, num_parallel_calls=2))

    assert [b["input_mask"].shape for b in batches] == [(2, 12), (1, 12)]


@pytest.mark.slow
def test_cased_preprocessor_keeps_case(tmp_path, vocab_file):
    path = str(tmp_path / "cased")
    export_preprocessor(path, vocab_file, do_lower_case=False)

    preprocessor = tf.saved_model.load(path)

    rows = preprocessor(tf.constant(["durer Durer"]))["input_word_ids"]
    assert rows.shape == (1, 128)
    assert rows[0, :5].numpy().tolist() == [2, 14, 1, 3, 0]


def test_bad_arguments_are_errors_and_write_nothing(tmp_path, vocab_file):
    path = tmp_path / "preprocessor"
    with pytest.raises(InputError, match="seq_length=2"):
        export_preprocessor(str(path), vocab_file, True, seq_length=2)
    with pytest.raises(InputError, match="nowhere"):
        export_preprocessor(str(path), str(tmp_path / "nowhere.txt"), True)
    assert not list(tmp_path.iterdir())
