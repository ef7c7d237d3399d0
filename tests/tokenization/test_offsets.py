"""Where in a text the pieces stand."""

import sys

import pytest

from official_bert.tokenization import BatchTokenizer, batch, characters
from official_bert.tokenization.normalize import normalize


def assert_offsets_hold(tokenizer, text, do_lower_case):
    """Checks that text at the spans, normalised again, gives the pieces."""
    pieces, spans = tokenizer.tokenize_with_offsets(text)
    assert pieces == tokenizer.tokenize(text)
    assert len(spans) == len(pieces)
    assert all(0 <= start < end <= len(text) for start, end in spans)
    assert [start for start, _ in spans] == sorted(s for s, _ in spans)
    assert [end for _, end in spans] == sorted(e for _, e in spans)
    for group, (start, end) in joined_spans(pieces, spans):
        words = normalize(text[start:end], do_lower_case).split()
        if "[UNK]" in group:
            assert len(words) == 1 or len(group) > 1
        else:
            assert same_sigmas("".join(words)) == same_sigmas("".join(group))


def joined_spans(pieces, spans):
    """Yields pieces, several where these share characters, and their span."""
    index = 0
    while index < len(pieces):
        group, (start, end) = [], spans[index]
        while index < len(pieces) and spans[index][0] < end:
            group.append(pieces[index].removeprefix("##"))
            end = spans[index][1]
            index += 1
        yield group, (start, end)


def same_sigmas(text):
    # Whether a sigma is final depends on what follows, outside of the span.
    return text.replace("ς", "σ")


@pytest.mark.parametrize("do_lower_case", [True, False])
def test_random_texts(odd_vocab, random_texts, do_lower_case):
    tokenizer = BatchTokenizer(odd_vocab, do_lower_case)
    for text in random_texts(5000, seed=1):
        assert_offsets_hold(tokenizer, text, do_lower_case)


@pytest.mark.parametrize(
    ("text", "stretches"),
    [
        ("Aab abc!", ["A", "a", "b", "ab", "c", "!"]),
        # Length changes: İ becomes two characters, one of which is dropped.
        ("İx", ["İ", "x"]),
        # An accent belongs to its letter, as one character or as two.
        ("áa\u0301a", ["á", "a\u0301", "a"]),
        # Removed characters count where they are between two of a piece.
        ("\u200ba\u200d\xadb\u200b a\x00", ["a\u200d\xadb", "a"]),
        # One character, three pieces; and one unknown word.
        ("한", ["한", "한", "한"]),
        ("a qqq", ["a", "qqq"]),
        # Chinese, line ends, what only looks like a space, an accent alone.
        ("中a\n中\x0b\u3000\u0301 a", ["中", "a", "中", "a"]),
        # Marks that change places share a span.
        ("a\U0001d16d\u302e", ["a\U0001d16d\u302e"] * 3),
    ],
)
def test_stretches(make_vocab, text, stretches):
    tokens = "[UNK] a ##a ab ##b ##c c ##x i x ! 中 ᄒ ##ᅡ ##ᆫ"
    tokens += " ##\U0001d16d ##\u302e"
    tokenizer = BatchTokenizer(make_vocab(*tokens.split()))
    pieces, spans = tokenizer.tokenize_with_offsets(text)
    assert [text[start:end] for start, end in spans] == stretches, pieces


def test_never_split(make_vocab):
    vocab_file = make_vocab("[UNK]", "[MASK]", "a", ".")
    tokenizer = BatchTokenizer(vocab_file, never_split=("[MASK]",))
    assert tokenizer.tokenize_with_offsets("A [MASK]. a[MASK]") == (
        ["a", "[MASK]", ".", "a", "[MASK]"],
        [(0, 1), (2, 8), (8, 9), (10, 11), (11, 17)],
    )


def test_chunks_are_split_at_what_the_reference_splits_at():
    for codepoint in range(sys.maxunicode + 1):
        char = chr(codepoint)
        is_split_at = char.isspace() and not characters.is_removed(char)
        assert bool(batch._CHUNK.match(char)) != is_split_at


@pytest.mark.parametrize("vocabulary", ["uncased", "multi_cased"])
def test_recorded_texts(records, vocab_files, vocabulary):
    do_lower_case = vocabulary == "uncased"
    tokenizer = BatchTokenizer(vocab_files[vocabulary], do_lower_case)
    for record in records[::3]:  # All of them take long, and hold as well.
        if "text" in record:
            assert_offsets_hold(tokenizer, record["text"], do_lower_case)


def test_texts_of_the_extract(tokenization_extract, make_vocab):
    for vocabulary in ("uncased", "multi_cased"):
        do_lower_case = vocabulary == "uncased"
        tokenizer = BatchTokenizer(
            make_vocab(*tokenization_extract["vocabularies"][vocabulary]),
            do_lower_case,
        )
        for record in tokenization_extract["records"]:
            if "text" in record:
                assert_offsets_hold(tokenizer, record["text"], do_lower_case)
