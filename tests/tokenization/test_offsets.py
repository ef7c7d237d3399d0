import pytest
from support.recorded_texts import of_vocabularies

from official_bert.tokenization import Tokenizer
from official_bert.tokenization.normalize import normalize

MARKED = "a\U0001d16d\u302e"  # Normalization reorders the marks.


def assert_offsets_hold(tokenizer, text):
    """Checks that the normalized text at the spans gives the tokens."""
    tokens, spans = tokenizer.tokenize_with_offsets(text)
    assert tokens == tokenizer.tokenize(text)
    assert len(spans) == len(tokens)
    assert all(0 <= start < end <= len(text) for start, end in spans)
    for bounds in zip(*spans, strict=True):
        assert list(bounds) == sorted(bounds)
    index = 0
    while index < len(tokens):
        # Tokens whose spans overlap are compared together.
        group, (start, end) = [], spans[index]
        while index < len(tokens) and spans[index][0] < end:
            group.append(tokens[index].removeprefix("##"))
            end = spans[index][1]
            index += 1
        words = normalize(text[start:end], tokenizer.settings).split()
        if "[UNK]" in group:
            assert len(words) == 1 or len(group) > 1
        else:
            assert same_sigmas("".join(words)) == same_sigmas("".join(group))


def same_sigmas(text):
    # Whether a sigma is final depends on the text after the span.
    return text.replace("ς", "σ")


@pytest.mark.parametrize("do_lower_case", [True, False])
def test_spans_give_the_tokens(odd_vocab, random_texts, do_lower_case):
    tokenizer = Tokenizer(odd_vocab, do_lower_case)
    for text in random_texts:
        assert_offsets_hold(tokenizer, text)


@of_vocabularies("uncased", "multi_cased", complete="nightly")
def test_spans_of_recorded_texts_give_the_tokens(recorded_tokens):
    records, _, vocab_file, do_lower_case = recorded_tokens
    tokenizer = Tokenizer(vocab_file, do_lower_case)
    for text in (r["text"] for r in records if "text" in r):
        assert_offsets_hold(tokenizer, text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Aab abc!", ["A", "a", "b", "ab", "c", "!"]),
        # İ becomes two characters, of which one is removed.
        ("İx", ["İ", "x"]),
        # An accent belongs to its letter, composed or decomposed.
        ("áa\u0301a", ["á", "a\u0301", "a"]),
        # Removed characters are included between two characters of a token.
        ("\u200ba\u200d\xadb\u200b a\x00", ["a\u200d\xadb", "a"]),
        # One character makes three tokens; a word is unknown.
        ("한", ["한", "한", "한"]),
        ("a qqq", ["a", "qqq"]),
        # Chinese, line ends, a control character, a lone accent.
        ("中a\n中\x0b\u3000\u0301 a", ["中", "a", "中", "a"]),
        # Reordered marks share a span; other words are not affected.
        (MARKED + " x\u302e", [MARKED] * 3 + ["x", "\u302e"]),
    ],
)
def test_spans_cover_the_characters_of_each_token(make_vocab, text, expected):
    vocab = "[UNK] a ##a ab ##b ##c c ##x i x ! 中 ᄒ ##ᅡ ##ᆫ"
    vocab += " ##\U0001d16d ##\u302e"
    tokenizer = Tokenizer(make_vocab(*vocab.split()))
    tokens, spans = tokenizer.tokenize_with_offsets(text)
    assert [text[start:end] for start, end in spans] == expected, tokens


def test_spans_of_never_split_tokens_cover_the_whole_token(make_vocab):
    vocab_file = make_vocab("[UNK]", "[MASK]", "a", ".")
    tokenizer = Tokenizer(vocab_file, never_split=("[MASK]",))
    assert tokenizer.tokenize_with_offsets("A [MASK]. a[MASK]") == (
        ["a", "[MASK]", ".", "a", "[MASK]"],
        [(0, 1), (2, 8), (8, 9), (10, 11), (11, 17)],
    )
