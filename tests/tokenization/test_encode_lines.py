"""Whole arrays of pieces equal those of line after line."""

import base64
import itertools
import pickle
import subprocess
import sys
import tarfile
import unicodedata

import numpy as np
import pytest

from official_bert.tokenization import BatchTokenizer, vectorized, word_table


def assert_encodes(tokenizer, lines):
    """Checks all of `encode_lines` against what other tests check."""
    encoded = tokenizer.encode_lines(lines)
    assert [a.dtype.name for a in encoded] == ["int32", "int64"] + 2 * ["int32"]
    ids, row_splits, starts, ends = (array.tolist() for array in encoded)
    assert len(row_splits) == len(lines) + 1
    assert len(ids) == len(starts) == len(ends) == row_splits[-1]
    rows = itertools.pairwise(row_splits)
    for line, (first, last) in zip(lines, rows, strict=True):
        pieces, spans = tokenizer.tokenize_with_offsets(line)
        expected = tokenizer.convert_tokens_to_ids(pieces)
        assert ids[first:last] == expected, (line, pieces)
        found = zip(starts[first:last], ends[first:last], strict=True)
        assert list(found) == spans, (line, pieces)


@pytest.fixture(params=[1, 100, 5003])
def block_length(request, monkeypatch):
    monkeypatch.setattr(vectorized, "BLOCK_LENGTH", request.param)
    monkeypatch.setattr(vectorized, "_LINES_READ_AT_ONCE", 3)


@pytest.mark.usefixtures("block_length")
@pytest.mark.parametrize("do_lower_case", [True, False])
@pytest.mark.parametrize("never_split", [(), ("[MASK]", "a")])
def test_random_texts(odd_vocab, random_texts, do_lower_case, never_split):
    tokenizer = BatchTokenizer(odd_vocab, do_lower_case, never_split)
    assert_encodes(tokenizer, list(random_texts(2000, seed=2)))


@pytest.mark.parametrize(
    "lines",
    [
        [],
        [""],
        ["", "  ", "\n", "a", "", ""],
        ["ab\na", "\t", "\x00", "a"],
        # 15 characters are a key, 16 are not, 201 are too many.
        ["a" * n for n in (14, 15, 16, 17, 200, 201)],
        # Every character beyond the first makes the chunk odd.
        ["한" * 1000, "a" + "\u0301" * 1000 + "! a"],
        ["[MASK]" * 1000, "a[MASK]a [MASK] [MASK", "MASK]"],
        [b"\xc3\x89\xff!", b""],
    ],
)
@pytest.mark.parametrize("never_split", [(), ("[MASK]",)])
def test_unusual_lines(odd_vocab, lines, never_split):
    tokenizer = BatchTokenizer(odd_vocab, never_split=never_split)
    assert_encodes(tokenizer, lines)
    assert_encodes(tokenizer, ["a", *lines, "ab 中"])


def test_arrays(make_vocab):
    tokenizer = BatchTokenizer(make_vocab("[UNK]", "ca", "co", "##ute", "$"))
    encoded = tokenizer.encode_lines(["Ça coûte", "", "5$"])
    assert encoded.ids.tolist() == [1, 2, 3, 0, 4]
    assert encoded.row_splits.tolist() == [0, 3, 3, 5]
    assert encoded.starts.tolist() == [0, 3, 5, 0, 1]
    assert encoded.ends.tolist() == [2, 5, 8, 1, 2]


@pytest.mark.slow
@pytest.mark.parametrize("do_lower_case", [True, False])
def test_every_character(odd_vocab, do_lower_case):
    tokenizer = BatchTokenizer(odd_vocab, do_lower_case)
    lines = []
    for start in range(0, sys.maxunicode, 256):
        block = [chr(start + i) for i in range(256)]
        if all(unicodedata.category(char) in ("Cn", "Co") for char in block):
            block = block[:1]  # Hundreds of thousands, and all alike.
        lines += [f"A{char}b {char}" for char in block]
    assert_encodes(tokenizer, lines)


def test_more_letters_than_codes(make_vocab):
    letters = [chr(0x430 + i) for i in range(32)]
    letters += [chr(0x10A0 + i) for i in range(300)]
    tokens = ["[UNK]", *letters, *(f"##{letter}" for letter in letters)]
    tokenizer = BatchTokenizer(make_vocab(*tokens), do_lower_case=False)
    lines = ["".join(letters[i : i + 7]) for i in range(len(letters))]
    assert_encodes(tokenizer, lines)


def test_many_words_with_one_hash(make_vocab, monkeypatch):
    hash_of = word_table.WordTable._hash
    monkeypatch.setattr(
        word_table.WordTable, "_hash", lambda *args: hash_of(*args) % 3
    )
    tokens = ["".join(t) for t in itertools.product("abc", repeat=4)]
    tokenizer = BatchTokenizer(make_vocab("[UNK]", *tokens, "##a", "##bc"))
    assert_encodes(tokenizer, [" ".join(tokens), *(f"{t}abca" for t in tokens)])


def test_unknown_words_need_a_token(make_vocab):
    tokenizer = BatchTokenizer(make_vocab("a", "##b"))
    assert tokenizer.encode_lines(["ab a", "a"]).ids.tolist() == [0, 1, 0, 0]
    for line in ("c", "aa", "!", "中", "Σ"):
        with pytest.raises(KeyError, match="UNK"):
            tokenizer.encode_lines([line])
    assert tokenizer.tokenize("c a") == ["[UNK]", "a"]
    assert len(BatchTokenizer(make_vocab()).encode_lines([" "]).ids) == 0


def test_numpy_is_imported_late():
    code = "import official_bert.tokenization, sys\n"
    code += "sys.exit('numpy' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_can_be_sent_to_another_process(odd_vocab):
    tokenizer = BatchTokenizer(odd_vocab)
    expected = tokenizer.encode_lines(["Ab abc", "한!"])
    copy = pickle.loads(pickle.dumps(tokenizer))
    for array, other in zip(
        expected, copy.encode_lines(["Ab abc", "한!"]), strict=True
    ):
        np.testing.assert_array_equal(array, other)


@pytest.mark.parametrize("vocabulary", ["uncased", "multi_cased", "chinese"])
def test_recorded_texts(records, vocab_files, vocabulary):
    tokenizer = BatchTokenizer(
        vocab_files[vocabulary], do_lower_case=vocabulary != "multi_cased"
    )
    texts = [
        base64.b64decode(r["b64"]) if "b64" in r else r["text"] for r in records
    ]
    assert_encodes(tokenizer, texts)
    ids = [record[f"ids_{vocabulary}"] for record in records]
    assert list(tokenizer.tokenize_lines_to_ids(texts)) == ids


@pytest.fixture(scope="session")
def wikipedia(shared_data, tmp_path_factory):
    """A hundred thousand lines."""
    folder = tmp_path_factory.mktemp("corpora")
    with tarfile.open(shared_data / "corpora.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    path = folder / "corpora" / "wikipedia.txt"
    return path.read_text(encoding="utf-8").split("\n")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("vocabulary", "never_split"),
    [
        ("uncased", ()),
        ("uncased", ("[MASK]", "the", "##ing")),
        ("cased", ()),
        ("multi_cased", ()),
        ("chinese", ()),
    ],
)
def test_wikipedia(
    wikipedia, vocab_files, vocabulary, never_split, monkeypatch
):
    monkeypatch.setattr(vectorized, "BLOCK_LENGTH", 300_001)
    tokenizer = BatchTokenizer(
        vocab_files[vocabulary],
        vocabulary in ("uncased", "chinese"),
        never_split,
    )
    assert_encodes(tokenizer, wikipedia)
