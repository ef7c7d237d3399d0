"""The tokenizer in the graph gives the pieces of `FullTokenizer`."""

import base64
import random
import sys
import unicodedata

import pytest
import tensorflow as tf
from support import recorded_texts

from official_bert.errors import InputError
from official_bert.export.graph_normalizer import decode
from official_bert.export.graph_tokenizer import GraphTokenizer
from official_bert.tokenization import (
    BasicTokenizer,
    BatchTokenizer,
    FullTokenizer,
)

MARKS = ["[UNK]", "[CLS]", "[SEP]"]


def text_of(record):
    """Returns a recorded text in UTF-8, None of one that has no such form."""
    if "b64" in record:
        return base64.b64decode(record["b64"])
    try:
        return record["text"].encode("utf-8")
    except UnicodeEncodeError:  # Half of a surrogate pair.
        return None


def assert_pieces(tokenizer, reference, texts):
    """Compares the pieces of texts with those of the reference."""
    found = tokenizer.tokenize(tf.constant(texts)).to_list()
    expected = [
        reference.convert_tokens_to_ids(reference.tokenize(text))
        for text in texts
    ]
    wrong = [
        row
        for row in zip(texts, found, expected, strict=True)
        if row[1] != row[2]
    ]
    assert not wrong, f"{len(wrong)} differ, such as {wrong[0]}"


def pieces_with_offsets(tokenizer, texts):
    """Returns ids, starts and limits, without words between."""
    found = tokenizer.tokenize_words_with_offsets(tf.constant(texts))
    return [ragged.merge_dims(1, 2) for ragged in found]


@pytest.mark.parametrize("vocabulary", ["uncased", "multi_cased"])
def test_recorded_pieces(tokenization_extract, make_vocab, vocabulary):
    tokens = tokenization_extract["vocabularies"][vocabulary]
    others = [mark for mark in MARKS if mark not in tokens]
    tokenizer = GraphTokenizer(
        make_vocab(*tokens, *others), do_lower_case=vocabulary == "uncased"
    )
    records = [
        r for r in tokenization_extract["records"] if text_of(r) is not None
    ]
    texts = [text_of(record) for record in records]

    rows = tokenizer.tokenize(tf.constant(texts)).to_list()

    assert len(records) > 100
    for record, row in zip(records, rows, strict=True):
        expected = record[f"tok_{vocabulary}"]
        assert row == [tokenizer.vocab[t] for t in expected], record


@pytest.mark.slow
@pytest.mark.parametrize("vocabulary", ["uncased", "multi_cased", "chinese"])
def test_all_recorded_pieces(golden, vocab_files, vocabulary):
    if unicodedata.unidata_version != "14.0.0":
        pytest.skip("was recorded with Python 3.11's Unicode tables")
    path = golden / "tokenization" / "tokenized.jsonl.gz"
    records = [r for r in recorded_texts.lines(path) if text_of(r) is not None]
    tokenizer = GraphTokenizer(
        vocab_files[vocabulary], do_lower_case=vocabulary != "multi_cased"
    )
    texts = tf.constant([text_of(record) for record in records])

    rows = tokenizer.tokenize(texts).to_list()

    assert len(rows) > 20_000
    wrong = [
        record
        for record, row in zip(records, rows, strict=True)
        if row != record[f"ids_{vocabulary}"]
    ]
    assert not wrong, f"{len(wrong)} differ, such as {wrong[0]}"


@pytest.mark.parametrize("do_lower_case", [True, False])
def test_random_texts(odd_vocab, random_texts, do_lower_case):
    tokenizer = GraphTokenizer(odd_vocab, do_lower_case)
    reference = FullTokenizer(odd_vocab, do_lower_case)

    assert_pieces(tokenizer, reference, random_texts(3000))
    # A few texts at a time, so that not all of them go the long way.
    texts = random_texts(60, seed=1)
    for start in range(0, len(texts), 2):
        assert_pieces(tokenizer, reference, texts[start : start + 2])


@pytest.mark.slow
@pytest.mark.parametrize("do_lower_case", [True, False])
def test_random_unicode(vocab_files, do_lower_case):
    name = "uncased" if do_lower_case else "cased"
    rng = random.Random(0)
    assigned = [
        chr(point)
        for point in range(sys.maxunicode + 1)
        if unicodedata.category(chr(point)) not in ("Cn", "Co", "Cs")
    ]
    # Characters of a few blocks each, as in real text.
    texts = []
    for _ in range(10_000):
        first = rng.randrange(len(assigned))
        near = assigned[first : first + 300] + list("aΣ .'\u0301\u0323") * 5
        texts.append("".join(rng.choices(near, k=rng.randrange(40))))

    tokenizer = GraphTokenizer(vocab_files[name], do_lower_case)
    reference = FullTokenizer(vocab_files[name], do_lower_case)
    assert_pieces(tokenizer, reference, texts)


@pytest.mark.slow
@pytest.mark.parametrize("do_lower_case", [True, False])
def test_every_character(odd_vocab, do_lower_case):
    texts = []
    for point in range(sys.maxunicode + 1):
        is_nothing = unicodedata.category(chr(point)) in ("Cn", "Co")
        if not 0xD800 <= point < 0xE000 and (not is_nothing or point % 8 == 0):
            texts += [f"a{chr(point)}B", chr(point), f"A{chr(point)}Σ"]
    tokenizer = GraphTokenizer(odd_vocab, do_lower_case)
    reference = BasicTokenizer(do_lower_case)

    words = tokenizer.split(decode(tf.constant(texts)))

    words = tf.RaggedTensor.from_value_rowids(
        words.texts, words.lines, nrows=len(texts)
    )
    for text, found in zip(texts, words.to_list(), strict=True):
        assert [w.decode() for w in found] == reference.tokenize(text), text


def test_bytes_that_are_not_utf8(odd_vocab):
    rng = random.Random(0)
    odd = [0x41, 0x20, 0x80, 0xBF, 0xC0, 0xC2, 0xE0, 0xE4, 0xB8, 0xAD, 0xED]
    odd += [0xA0, 0xEF, 0xBB, 0xF0, 0x90, 0xF4, 0x8F, 0xF5, 0xFF, 0xCE, 0xA3]
    texts = [bytes(rng.choices(odd, k=rng.randrange(9))) for _ in range(3000)]
    texts.append("a\ud800b".encode("utf-8", "surrogatepass"))

    assert_pieces(
        GraphTokenizer(odd_vocab, True), FullTokenizer(odd_vocab), texts
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ΑΣ", "ας"),
        ("Σ", "σ"),
        ("ΣΑΣ", "σας"),
        ("ΑΣΑ", "ασα"),
        ("Α.Σ", "α . ς"),  # The full stop is ignored when a sigma looks.
        ("ΑΣ.", "ας ."),
        ("ΑΣ'Α", "ασ ' α"),
        ("ΑΣ'", "ας '"),
        ("ΑΣ Α", "ας α"),
        ("Α Σ", "α σ"),
        ("ΑΣ\u200dΑ", "ασα"),  # Removed before, so not even ignored.
        ("ΑΣ中Α", "ας 中 α"),
        ("Α\u0301Σ\u0301", "ας"),
        ("ΑΣΣ", "ασς"),
        ("1Σ", "1σ"),
    ],
)
def test_last_sigma_of_a_word(odd_vocab, text, expected):
    tokenizer = GraphTokenizer(odd_vocab, True)
    # What follows in the batch is another text.
    words = tokenizer.split(decode(tf.constant([text, "Α", "Σ"])))

    assert b" ".join(words.texts.numpy()).decode() == f"{expected} α σ"


@pytest.mark.parametrize("letter", ["a", "ж", "\u1c80", "\U00010428"])
def test_words_have_up_to_200_characters_not_bytes(make_vocab, letter):
    vocab_file = make_vocab(*MARKS, letter, f"##{letter}")
    tokenizer = GraphTokenizer(vocab_file, False)

    ids, starts, limits = pieces_with_offsets(
        tokenizer, [letter * 200, letter * 201 + " a"]
    )

    size = len(letter.encode())
    assert ids[0].numpy().tolist() == [3] + [4] * 199
    assert limits[0].numpy().tolist() == [size * n for n in range(1, 201)]
    # The span of what is unknown is all of it.
    assert (ids[1, 0], starts[1, 0], limits[1, 0]) == (0, 0, 201 * size)
    assert (starts[1, 1], limits[1, 1]) == (201 * size + 1, 201 * size + 2)


def test_odd_vocabularies(make_vocab):
    # Blank and doubled lines, a space inside, "##" alone, and private use.
    tokens = [
        "",
        "a",
        "##",
        "b c",
        *MARKS,
        "a",
        "##a",
        "",
        "\ue000",
        "#",
        "##[",
    ]
    vocab_file = make_vocab(*tokens)
    reference = FullTokenizer(vocab_file, False)
    assert reference.vocab["a"] == 7

    texts = [
        "a aa b c ##a # a#a [ a[ \ue000 " + "a" * 201,
        "",
        "\ue001 \ue000a",
    ]
    assert_pieces(GraphTokenizer(vocab_file, False), reference, texts)


@pytest.mark.parametrize("token", MARKS)
def test_a_token_is_missing(make_vocab, token):
    vocab_file = make_vocab(*[t for t in MARKS if t != token], "a")

    with pytest.raises(InputError, match=r"vocab\.txt: .* without \["):
        GraphTokenizer(vocab_file, True)


@pytest.mark.parametrize("do_lower_case", [True, False])
def test_places(odd_vocab, random_texts, do_lower_case):
    texts = random_texts(3000, seed=2)
    tokenizer = GraphTokenizer(odd_vocab, do_lower_case)
    reference = BatchTokenizer(odd_vocab, do_lower_case)

    results = pieces_with_offsets(tokenizer, texts)

    rows = zip(texts, *(ragged.to_list() for ragged in results), strict=True)
    for text, ids, starts, limits in rows:
        pieces, spans = reference.tokenize_with_offsets(text)
        assert ids == reference.convert_tokens_to_ids(pieces)
        spans = [
            (len(text[:start].encode()), len(text[:end].encode()))
            for start, end in spans
        ]
        assert list(zip(starts, limits, strict=True)) == spans, text


def test_ranks_and_types(odd_vocab):
    tokenizer = GraphTokenizer(odd_vocab, True)
    texts = tf.constant(["abbc a! ", "", "\u0301 x"])

    words = tokenizer.tokenize_words(texts)
    ids, starts, limits = tokenizer.tokenize_words_with_offsets(texts)

    of = tokenizer.vocab
    expected = [
        [[of["ab"], of["##bc"]], [of["a"]], [of["!"]]],
        [],
        [[of["x"]]],
    ]
    assert words.to_list() == ids.to_list() == expected
    assert starts.to_list() == [[[0, 2], [5], [6]], [], [[3]]]
    assert limits.to_list() == [[[2, 4], [6], [7]], [], [[4]]]
    assert (words.dtype, ids.dtype) == (tf.int32, tf.int32)
    assert (starts.dtype, limits.dtype) == (tf.int64, tf.int64)


def test_no_texts(odd_vocab):
    function = tf.function(
        GraphTokenizer(odd_vocab, True).tokenize_words_with_offsets,
        input_signature=[tf.TensorSpec([None], tf.string)],
    )
    for ragged in function(tf.constant([], tf.string)):
        assert ragged.to_list() == []
