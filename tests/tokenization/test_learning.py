import random
from pydoc_data.topics import topics

import pytest

from official_bert.errors import InputError
from official_bert.tokenization import learning
from official_bert.tokenization.settings import TokenizerSettings

ENGLISH = "\n".join(text for _, text in sorted(topics.items()))
FOREIGN = (
    "Ça coûte déjà 5 €, n'est-ce pas? Où est l'élève? Déjà là, déjà vu.\n"
    "北京是中华人民共和国的首都。北京 北京! ひらがなとカタカナ、ひらがな\n"
    "ΟΔΥΣΣΕΥΣ Ὀδυσσεύς ὈΔΥΣΣΕΎΣ. Привет, привет! ПРИВЕТ ё Ё ёлка ёлка\n"
    "한국어 한국 한국말 नमस्ते नमस्ते नमस्कार İstanbul ISTANBUL ıstanbul\n"
    "zero\u200bwidth zero\u200bwidth line\u2028line tab\tnbsp\xa0nbsp ﬁne ﬁne\n"
    "[UNK] [MASK] ##s a##b # ## C# $5 x^2 _under_score_ e\u0301te\u0301\n"
)
TEXT = ENGLISH + FOREIGN * 3
NUM_SPECIAL = 104  # Of the default `num_unused`.


@pytest.fixture(scope="module")
def english():
    return learning.count_words(ENGLISH.split("\n"))


def test_special_tokens_are_followed_by_characters_and_longer_tokens():
    words = {"low": 5, "lower": 3, "newer": 2, "!": 1}
    tokens = learning.learn(words, vocab_size=40, num_unused=1, min_count=3)
    assert tokens == [
        *["[PAD]", "[unused0]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"],
        *["!", "e", "l", "n", "o", "r", "w"],
        *["##e", "##l", "##n", "##o", "##r", "##w"],
        *["lo", "low", "##er", "lower"],  # "lo" is a step towards "low".
    ]


@pytest.mark.parametrize("do_lower_case", [True, False])
def test_every_longer_token_is_part_of_a_word(do_lower_case):
    words = learning.count_words(
        TEXT.split("\n"), TokenizerSettings(do_lower_case)
    )
    tokens = learning.learn(words, vocab_size=3000, num_unused=3)
    assert len(tokens) == len(set(tokens)) == 3000
    starts = "\n" + "\n".join(words)
    for token in tokens[len(learning.special_tokens(3)) :]:
        text = token.removeprefix("##")
        if len(text) > 1:
            assert (text if text != token else f"\n{text}") in starts


# The limits are what TensorFlow Text's learner reaches, or a little more.
@pytest.mark.parametrize(
    ("vocab_size", "tokens_per_word"), [(500, 1.65), (1000, 1.28), (2000, 1.10)]
)
def test_words_are_split_into_few_tokens(english, vocab_size, tokens_per_word):
    tokens = learning.learn(english, vocab_size=vocab_size)
    assert len(tokens) == vocab_size
    used = learning.count_tokens(tokens, english)
    assert used["[UNK]"] == 0
    assert used.total() / english.total() < tokens_per_word


@pytest.mark.parametrize("count", [2, 24_999])  # Many are split over lines.
def test_tokens_below_min_count_are_not_learned(count):
    words = {"often": count + 3, "seldom": count}
    tokens = learning.learn(words, vocab_size=200, min_count=count + 1)
    assert "often" in tokens
    assert max(map(len, tokens[NUM_SPECIAL:])) == len("often")
    assert "seldom" in learning.learn(words, vocab_size=200, min_count=count)


def test_alphabet_is_limited_to_the_most_frequent_characters():
    words = {"ab": 5, "ac": 4, "aé": 1, "é": 1, "c": 1}
    tokens = learning.learn(words, vocab_size=200, limit_alphabet=3)
    assert tokens[NUM_SPECIAL:] == [*"abc", "##a", "##b", "##c", "ab", "ac"]
    assert learning.count_tokens(tokens, words)["[UNK]"] == 2
    # Ties are resolved by code point.
    tokens = learning.learn({"y": 1, "x": 1}, vocab_size=200, limit_alphabet=1)
    assert tokens[NUM_SPECIAL:] == ["x", "##x"]


def test_alphabet_covers_the_text_if_the_vocabulary_allows():
    common = {chr(0x4E00 + i): 100 for i in range(1500)}
    rare = {chr(0x6E00 + i): 1 for i in range(30)}  # 0.02% of the text.
    kept = learning.learn(common | rare, vocab_size=5000, num_unused=0)
    assert {*common} < {*kept}
    assert len({*rare} & {*kept}) == 15  # 99.99% without the others.
    kept = learning.learn(common, vocab_size=1205, num_unused=0)
    assert len({*common} & {*kept}) == 1200
    # Letters can continue a word, so each takes two tokens.
    common = {chr(0xAC00 + i): 100 for i in range(1500)}
    kept = learning.learn(common, vocab_size=2206, num_unused=0)
    assert len({*common} & {*kept}) == 1100


def test_words_of_more_than_200_characters_are_ignored():
    rng = random.Random(1)
    long = {"".join(rng.choices("abcdefg", k=201)): 9 for _ in range(5)}
    words = {**long, "hi": 3, "g" * 200: 2}
    tokens = learning.learn(words, vocab_size=200)
    assert not any(len(t) > 3 for t in tokens[NUM_SPECIAL:] if "a" in t)
    assert {"hi", "g" * 200} <= set(tokens)


def test_vocabulary_smaller_than_the_alphabet_is_an_error(english):
    size = NUM_SPECIAL + len({char for word in english for char in word})
    with pytest.raises(InputError, match=f"vocab_size={size}"):
        learning.learn(english, vocab_size=size)
    tokens = learning.learn(english, vocab_size=124, limit_alphabet=10)
    assert 114 <= len(tokens) <= 124


def test_memory_does_not_depend_on_vocab_size():
    words = {"low": 3, "lower": 2}
    expected = learning.learn(words, vocab_size=200)
    assert learning.learn(words, vocab_size=10**12) == expected
