import base64
import json
import lzma
import unicodedata

import pytest
from support.recorded_texts import of_vocabularies

from official_bert.tokenization import BasicTokenizer, FullTokenizer, Tokenizer


def assert_equal(records, field, function):
    texts = [
        base64.b64decode(r["b64"]) if "b64" in r else r["text"] for r in records
    ]
    wrong = [
        record
        for text, record in zip(texts, records, strict=True)
        if function(text) != record[field]
    ]
    assert not wrong, f"{len(wrong)} differ, such as {wrong[0]}"


@of_vocabularies("uncased", "multi_cased", "chinese")
def test_tokens_and_ids_equal_the_recorded_ones(recorded_tokens):
    records, name, vocab_file, do_lower_case = recorded_tokens
    tokenizer = Tokenizer(vocab_file, do_lower_case)

    def tokens_of_ids(text):
        [ids] = tokenizer.tokenize_lines_to_ids([text])
        return tokenizer.convert_ids_to_tokens(ids)

    for tokenize in (tokenizer.tokenize, tokens_of_ids):
        assert_equal(records, f"tok_{name}", tokenize)
    for record in records:
        tokens = record[f"tok_{name}"]
        ids = tokenizer.convert_tokens_to_ids(tokens)
        if len(records) > 1000:  # The extract has no ids.
            assert ids == record[f"ids_{name}"]
        assert tokenizer.convert_ids_to_tokens(ids) == tokens


@of_vocabularies("uncased")
def test_words_equal_the_recorded_ones(recorded_tokens):
    records, _, vocab_file, _ = recorded_tokens
    assert_equal(records, "basic_lower", BasicTokenizer(True).tokenize)
    assert_equal(records, "basic_cased", BasicTokenizer(False).tokenize)
    wordpiece = FullTokenizer(vocab_file).wordpiece_tokenizer
    assert_equal(records, "wp_raw_uncased", wordpiece.tokenize)


def is_comparable(char):
    """Whether `char` is assigned and has the properties it was recorded with.

    With other Unicode tables than the recorded ones, that holds for characters
    that have not changed since Unicode 3.2, the oldest tables in Python. Of the
    unassigned characters every 64th is compared.
    """
    category = unicodedata.category(char)
    if category in ("Cn", "Co") and ord(char) % 64 != 0:
        return False
    if unicodedata.unidata_version == "14.0.0":  # That of Python 3.11.
        return True
    old = unicodedata.ucd_3_2_0
    decomposition = unicodedata.decomposition(char)
    is_unchanged = category == old.category(char) != "Cn"
    return is_unchanged and decomposition == old.decomposition(char)


@pytest.mark.parametrize(
    "step", [29, pytest.param(1, marks=pytest.mark.nightly)]
)
def test_words_of_single_characters_equal_the_recorded_ones(golden, step):
    lower, cased = BasicTokenizer(True), BasicTokenizer(False)
    path = golden / "tokenization" / "sweep_even.tsv.xz"
    num_compared = 0
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        for index, line in enumerate(lines):
            codepoint, *results = line.split("\t")
            char = chr(int(codepoint, 16))
            if index % step or not is_comparable(char):
                continue
            num_compared += 1
            inside, inside_cased, alone = map(json.loads, results)
            assert lower.tokenize(f"a{char}b") == inside
            assert cased.tokenize(f"A{char}B") == inside_cased
            assert lower.tokenize(char) == alone
    assert num_compared > 40_000 / step
