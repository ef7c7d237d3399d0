import itertools
import random

import numpy as np
import pytest

from official_bert.errors import InputError
from official_bert.tasks.squad.features import find_owners, make_windows
from official_bert.tokenization import FullTokenizer

TOKENS = [
    *("who", "was", "he", "when", "born", "1895", "1943"),
    *("(", ")", "-", "min", "##er", "a"),
]
CONTEXT = "He was  born\n(1895-1943) a miner"


@pytest.fixture
def tokenizer(make_tokenizer):
    return make_tokenizer(TOKENS)


def test_batches_may_have_any_length_order_and_size(read, featurize, tokenizer):
    answer = ("1943", 19)
    questions = ("1", "When was he born?", *answer), ("2", "a", *answer)
    examples = read((CONTEXT, *questions))
    features = featurize(examples, tokenizer, 12)
    assert features.paragraphs[0] is features.paragraphs[1]  # Tokenized once.
    size = len(features.lengths)
    whole = features.batch(range(size), 12, size)
    for name, values in features.batch([2, 0], 16, 3).items():
        width = min(values.shape[1], 12)
        np.testing.assert_array_equal(
            values[:2, :width], whole[name][[2, 0], :width]
        )
        assert not values[2].any()
        assert not values[:, 12:].any()


@pytest.mark.parametrize(
    ("context", "answer", "start", "first", "last"),
    [
        (CONTEXT, "1895", 14, 4, 4),
        (CONTEXT, "1895-1943", 14, 4, 6),
        (CONTEXT, "(1895-1943)", 13, 3, 7),
        (CONTEXT, "1895-1943) a", 14, 4, 8),
        # Not a sequence of whole tokens: the label is the whole word.
        (CONTEXT, "895", 15, 3, 7),
        (CONTEXT, "mine", 27, 9, 10),
        (CONTEXT, "min", 27, 9, 9),
        # The first of several matches.
        ("(1895-1895)", "1895", 6, 1, 1),
        # As in the original, from the last word to the first.
        ("  he", " he", 1, 0, 0),
        # No answer: [CLS].
        (CONTEXT, None, 0, -3, -3),
    ],
)
def test_labels_are_narrowed_to_the_answer_within_its_words(
    read, featurize, tokenizer, context, answer, start, first, last
):
    examples = read((context, ("q", "who", answer, start)))
    features = featurize(examples, tokenizer, 20, 9)
    assert {name: v.tolist() for name, v in features.labels.items()} == {
        "is_impossible": [answer is None],
        "start_positions": [first + 3],
        "end_positions": [last + 3],
    }


@pytest.mark.parametrize(("stride", "is_lost"), [(9, True), (8, False)])
def test_answers_in_no_window_are_a_warning(
    read, featurize, make_tokenizer, caplog, stride, is_lost
):
    answer = ("b c", 16)  # The words 8 and 9 of 9 in a window.
    context = "a a a a a a a a b c a a"
    examples = read((context, ("1", "q", *answer), ("2", "q", None, 0)))
    tokenizer = make_tokenizer("abcq")
    labels = featurize(examples, tokenizer, 13, stride).labels
    assert bool(labels["end_positions"].any()) == (not is_lost)
    assert ("1 of 2 answers are in no window" in caplog.text) == is_lost


def test_paragraphs_without_tokens_have_no_features(read, featurize, tokenizer):
    examples = read(
        (" \n", ("1", "who", None, 0)),
        ("a", ("2", "who", "a", 0)),
        ("\x00 \xad", ("3", "who", None, 0)),
        ("a", ("4", "", "a", 0)),
    )
    features = featurize(examples, tokenizer, 12)
    assert features.windows.example.tolist() == [1, 3]
    batch = features.batch([1], 5, 1)
    assert batch["input_ids"].tolist() == [[2, 3, 16, 3, 0]]


@pytest.mark.parametrize("do_lower_case", [True, False])
def test_tokens_of_a_paragraph_are_the_tokens_of_its_words(
    read, featurize, make_tokenizer, tmp_path, do_lower_case
):
    # Spaces of all kinds, accents, Hangul, Chinese, a final sigma, controls.
    alphabet = "aÉß.,(Σσ中한\u0301\xa0\u2009\x85\x00\xad\u200d \t\n\u202f"
    rng = random.Random(1)
    contexts = ["".join(rng.choices(alphabet, k=40)) + "a" for _ in range(200)]
    examples = read(*((text, (text, "q", None, 0)) for text in contexts))
    tokenizer = make_tokenizer("aeß.,(σς中\u1112\u1161\u11ab", do_lower_case)
    features = featurize(examples, tokenizer, 12)
    slow = FullTokenizer(str(tmp_path / "vocab.txt"), do_lower_case)
    for example, paragraph in zip(examples, features.paragraphs, strict=True):
        tokens = [slow.tokenize(word) for word in example.paragraph.words]
        flat = list(itertools.chain(*tokens))
        words = [i for i, of_word in enumerate(tokens) for _ in of_word]
        ids, words_of_tokens, _ = (column.tolist() for column in paragraph)
        assert ids == slow.convert_tokens_to_ids(flat)
        assert words_of_tokens == words


def test_length_must_have_room_for_a_window(read, featurize, tokenizer):
    examples = read((CONTEXT, ("q", "who", None, 0)))
    featurize(examples, tokenizer, 7)
    message = "--max_seq_length=6 .* 7 .* 3 special .* one token"
    with pytest.raises(InputError, match=message):
        featurize(examples, tokenizer, 6)


def windows_by_hand(num_tokens, room, stride):
    start = 0
    while start < num_tokens:
        length = min(num_tokens - start, room)
        yield start, length
        if start + length == num_tokens:
            break
        start += min(length, stride)


def owner_by_hand(token, windows):
    """Returns the first window with the most context on both sides."""
    scores = [
        (min(token - start, start + length - 1 - token) + 0.01 * length)
        if start <= token < start + length
        else -1
        for start, length in windows
    ]
    return scores.index(max(scores))


@pytest.mark.parametrize("stride", [1, 2, 3, 5, 128])
def test_windows_and_owners_follow_the_definition(stride):
    sizes = (0, 1, 4, 5, 6, 7, 10, 23, 100, 382, 400)
    cases = list(itertools.product(sizes, (1, 2, 5, 30, 381)))
    num_tokens, room = np.array(cases, np.int32).T
    windows = make_windows(num_tokens, room, stride)
    expected = [list(windows_by_hand(*case, stride)) for case in cases]
    assert np.stack(windows, axis=1).tolist() == [
        [example, *window]
        for example, of_example in enumerate(expected)
        for window in of_example
    ]
    for case, of_example in zip(cases, expected, strict=True):
        starts, lengths = np.array(of_example, np.int32).reshape(-1, 2).T
        assert find_owners(starts, lengths).tolist() == [
            owner_by_hand(token, of_example) for token in range(case[0])
        ]


def test_owners_of_a_million_tokens_take_linear_memory():
    # Comparing all windows with all tokens would take 8 billion numbers.
    _, starts, lengths = make_windows(np.array([10**6]), np.array([381]), 128)
    windows = list(zip(starts.tolist(), lengths.tolist(), strict=True))
    owner = find_owners(starts, lengths)
    assert len(owner) == 10**6
    tokens = np.random.default_rng(0).integers(10**6, size=20).tolist()
    for token in (0, *tokens, 10**6 - 1):
        assert owner[token] == owner_by_hand(token, windows)
