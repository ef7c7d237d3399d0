"""The in-graph tokenizer has the tokens and the spans of `FullTokenizer`."""

import base64
import random
import sys
import unicodedata

import pytest
import tensorflow as tf
from support import odd_texts
from support.recorded_texts import of_vocabularies

from official_bert.errors import InputError
from official_bert.export.graph_normalizer import decode
from official_bert.export.graph_tokenizer import GraphTokenizer
from official_bert.tokenization import BasicTokenizer, FullTokenizer, Tokenizer
from official_bert.tokenization.settings import AddedToken, TokenizerSettings

pytestmark = pytest.mark.slow

SPECIAL = ["[UNK]", "[CLS]", "[SEP]"]
ADDED = tuple(map(AddedToken, ["[E1]", "a b", "éa", "é", "[CLS]"]))
BOTH_CASINGS = pytest.mark.parametrize("do_lower_case", [True, False])


@pytest.fixture
def vocab_file(make_vocab):
    added = [token.content for token in ADDED]
    return make_vocab(*SPECIAL, *odd_texts.TOKENS, *added)


def make(vocab_file, do_lower_case):
    return GraphTokenizer(FullTokenizer(vocab_file, do_lower_case))


def assert_equal_ids(tokenizer, texts, expected):
    found = tokenizer.tokenize(tf.constant(texts)).to_list()
    rows = zip(texts, found, expected, strict=True)
    wrong = [row for row in rows if row[1] != row[2]]
    assert not wrong, f"{len(wrong)} differ, such as {wrong[0]}"


def assert_as_reference(vocab_file, do_lower_case, texts):
    reference = FullTokenizer(vocab_file, do_lower_case)
    tokens = map(reference.tokenize, texts)
    ids = list(map(reference.convert_tokens_to_ids, tokens))
    assert_equal_ids(GraphTokenizer(reference), texts, ids)


def assert_same_words(vocab_file, do_lower_case, texts):
    tokenizer = make(vocab_file, do_lower_case)
    reference = BasicTokenizer(do_lower_case)
    words = tokenizer.split(decode(tf.constant(texts)))
    words = tf.RaggedTensor.from_value_rowids(
        words.texts, words.text_indices, nrows=len(texts)
    )
    for text, found in zip(texts, words.to_list(), strict=True):
        assert [w.decode() for w in found] == reference.tokenize(text), text


def tokenize_with_offsets(tokenizer, texts):
    """Returns ids, starts and limits, not grouped by word."""
    found = tokenizer.tokenize_words_with_offsets(tf.constant(texts))
    return [ragged.merge_dims(1, 2) for ragged in found]


@of_vocabularies("uncased", "multi_cased", "chinese")
def test_tokens_equal_the_recorded_ones(recorded_tokens):
    records, name, vocab_file, do_lower_case = recorded_tokens
    tokenizer = make(vocab_file, do_lower_case)
    texts, expected = [], []
    for record in records:
        try:
            text = record["text"].encode()
        except KeyError:
            text = base64.b64decode(record["b64"])
        except UnicodeEncodeError:  # A lone surrogate.
            continue
        texts.append(text)
        expected.append([tokenizer.vocab[t] for t in record[f"tok_{name}"]])
    assert len(texts) > 100
    assert_equal_ids(tokenizer, texts, expected)


@pytest.mark.nightly
@BOTH_CASINGS
def test_words_around_every_character_are_equal(vocab_file, do_lower_case):
    texts = []
    for point in range(sys.maxunicode + 1):
        is_other = unicodedata.category(chr(point)) in ("Cn", "Co")
        if not 0xD800 <= point < 0xE000 and (not is_other or point % 8 == 0):
            texts += [f"a{chr(point)}B", chr(point), f"A{chr(point)}Σ"]
    assert_same_words(vocab_file, do_lower_case, texts)


def test_bytes_that_are_not_utf8_are_dropped(vocab_file):
    rng = random.Random(0)
    odd = [0x41, 0x20, 0x80, 0xBF, 0xC0, 0xC2, 0xE0, 0xE4, 0xB8, 0xAD, 0xED]
    odd += [0xA0, 0xEF, 0xBB, 0xF0, 0x90, 0xF4, 0x8F, 0xF5, 0xFF, 0xCE, 0xA3]
    texts = [bytes(rng.choices(odd, k=rng.randrange(9))) for _ in range(3000)]
    texts.append("a\ud800b".encode("utf-8", "surrogatepass"))
    assert_as_reference(vocab_file, True, texts)


def test_sigma_is_final_as_in_python(vocab_file):
    # The full stop is ignored; U+200D is removed, and so not even ignored.
    texts = ["ΑΣ", "Σ", "ΣΑΣ", "ΑΣΑ", "Α.Σ", "ΑΣ.", "ΑΣ'Α", "ΑΣ'", "ΑΣ Α", "Α"]
    texts += ["Α Σ", "ΑΣ中Α", "ΑΣΣ", "1Σ", "ΑΣ\u200dΑ", "Α\u0301Σ\u0301", "Σ"]
    assert_same_words(vocab_file, True, texts)


def test_words_of_taggers_are_tokenized_on_their_own(vocab_file):
    texts = ["Σ.", "ΑΣ. Α.Σ.", *odd_texts.random_texts(200)]
    reference = Tokenizer(vocab_file, do_lower_case=True)
    words, ids = GraphTokenizer(reference).split_texts(tf.constant(texts))
    found = [word.decode() for word in words.values.numpy()]
    assert found[1:7] == [".", "ΑΣ", ".", "Α", ".", "Σ"]
    assert ids.values.to_list() == [
        reference.convert_tokens_to_ids(reference.tokenize(word))
        for word in found
    ]


@pytest.mark.parametrize("letter", ["a", "ж", "\u1c80", "\U00010428"])
def test_words_have_up_to_200_characters_not_bytes(make_vocab, letter):
    vocab_file = make_vocab(*SPECIAL, letter, f"##{letter}")
    tokenizer = make(vocab_file, False)

    ids, starts, limits = tokenize_with_offsets(
        tokenizer, [letter * 200, letter * 201 + " a"]
    )

    size = len(letter.encode())
    assert ids[0].numpy().tolist() == [3] + [4] * 199
    assert limits[0].numpy().tolist() == [size * n for n in range(1, 201)]
    # The span of an unknown word is all of it.
    assert (ids[1, 0], starts[1, 0], limits[1, 0]) == (0, 0, 201 * size)
    assert (starts[1, 1], limits[1, 1]) == (201 * size + 1, 201 * size + 2)


def test_vocabulary_may_have_blank_and_equal_lines(make_vocab):
    # Also a token with a space, "##" alone, and a private-use character.
    tokens = ["", "a", "##", "b c", *SPECIAL, "a", "##a", ""]
    vocab_file = make_vocab(*tokens, "\ue000", "#", "##[")
    assert make(vocab_file, False).vocab["a"] == 7

    words = "a aa b c ##a # a#a [ a[ \ue000 " + "a" * 201
    assert_as_reference(vocab_file, False, [words, "", "\ue001 \ue000a"])


def test_token_that_is_too_long_is_an_error(make_vocab):
    vocab_file = make_vocab(*SPECIAL, "\u0e01" * 100)
    with pytest.raises(InputError, match=r"at most 256 bytes.*--noexport_text"):
        make(vocab_file, True)


@pytest.mark.parametrize("flag", ["normalized", "single_word"])
def test_added_token_that_the_graph_cannot_find_is_an_error(vocab_file, flag):
    token = AddedToken("[E1]", **{flag: True})
    settings = TokenizerSettings(added_tokens=(token,))
    tokenizer = FullTokenizer(vocab_file, settings=settings)
    with pytest.raises(InputError, match=f"{flag}=True.*--noexport_text"):
        GraphTokenizer(tokenizer)


# In small batches, not all texts take the slower branches.
@pytest.mark.parametrize(("num_texts", "batch_size"), [(2000, 2000), (60, 2)])
@pytest.mark.parametrize(
    "settings",
    [
        TokenizerSettings(True),
        TokenizerSettings(False),
        TokenizerSettings(True, strip_accents=False),
        TokenizerSettings(False, True, tokenize_chinese_chars=False),
        TokenizerSettings(True, added_tokens=ADDED, num_wordpieces=26),
    ],
)
def test_tokens_and_spans_of_random_texts_equal_the_reference(
    vocab_file, settings, num_texts, batch_size
):
    added = [token.content for token in settings.added_tokens]
    texts = odd_texts.random_texts(num_texts, *added * 2)
    reference = Tokenizer(vocab_file, settings=settings)
    tokenizer = GraphTokenizer(reference)
    for first in range(0, num_texts, batch_size):
        batch = texts[first : first + batch_size]
        results = tokenize_with_offsets(tokenizer, batch)
        rows = zip(batch, *(part.to_list() for part in results), strict=True)
        for text, ids, *bounds in rows:
            tokens, spans = reference.tokenize_with_offsets(text)
            assert ids == reference.convert_tokens_to_ids(tokens)
            assert [*zip(*bounds, strict=True)] == [
                tuple(len(text[:offset].encode()) for offset in span)
                for span in spans
            ], text


def test_outputs_are_grouped_by_text_and_word(vocab_file):
    tokenizer = make(vocab_file, True)
    texts = tf.constant(["abbc a! ", "", "\u0301 x"])

    words = tokenizer.tokenize_words(texts)
    results = tokenizer.tokenize_words_with_offsets(texts)

    tokens = [[["ab", "##bc"], ["a"], ["!"]], [], [["x"]]]
    ids = [
        [[tokenizer.vocab[token] for token in word] for word in text]
        for text in tokens
    ]
    starts = [[[0, 2], [5], [6]], [], [[3]]]
    limits = [[[2, 4], [6], [7]], [], [[4]]]
    assert [r.to_list() for r in results] == [ids, starts, limits]
    assert words.to_list() == ids
    assert [r.dtype for r in results] == [tf.int32, tf.int64, tf.int64]
