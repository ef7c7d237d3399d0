"""What the model reads, and where it must find answers, by hand."""

import itertools
import random

import numpy as np
import pytest

from official_bert.tasks.squad import answers, features
from official_bert.tasks.squad.windows import WindowOptions
from official_bert.tokenization import FullTokenizer

PIECES = [
    *("who", "was", "he", "when", "born", "1895", "1943"),
    *("(", ")", "-", "min", "##er", "a"),
]
CONTEXT = "He was  born\n(1895-1943) a miner"
WORDS = [0, 1, 2, 3, 3, 3, 3, 3, 4, 5, 5]
OPTIONS = WindowOptions(max_seq_length=12, doc_stride=3, max_query_length=3)


def make(examples, tokenizer, options=OPTIONS, is_training=True):
    made = features.make_features(examples, tokenizer, options)
    targets = {}
    if is_training:
        targets = answers.positions(examples, made, tokenizer)
    blocks = list(features.rows(made, targets))
    return made, {
        name: np.concatenate([block[name] for block in blocks])
        for name in blocks[0]
    }


@pytest.fixture
def tokenizer(make_tokenizer):
    return make_tokenizer(PIECES)


def ids_of(tokenizer, text):
    return [tokenizer.vocab[piece] for piece in text.split()]


def test_a_row_by_hand(read, tokenizer):
    question, answer = "When was he born?", ("1943", 19)
    examples = read((CONTEXT, ("1", question, *answer), ("2", "a", *answer)))
    made, rows = make(examples, tokenizer)
    assert rows["input_ids"][3].tolist()[:3] == ids_of(
        tokenizer, "[CLS] a [SEP]"
    )
    # 11 pieces; room for 6; from 0 and 3, and from 6 the last 5.
    made, rows = make(examples[:1], tokenizer)
    assert rows["unique_ids"].tolist() == [[10**9 + i] for i in range(3)]
    expected = [
        "[CLS] when was he [SEP] he was born ( 1895 - [SEP]",
        "[CLS] when was he [SEP] ( 1895 - 1943 ) a [SEP]",
        "[CLS] when was he [SEP] 1943 ) a min ##er [SEP] [PAD]",
    ]
    assert rows["input_ids"].tolist() == [
        ids_of(tokenizer, text) for text in expected
    ]
    masks = [[1] * 12, [1] * 12, [1] * 11 + [0]]
    assert rows["input_mask"].tolist() == masks
    assert rows["segment_ids"].tolist() == [
        [0] * 5 + mask[5:] for mask in masks
    ]
    assert made.words.tolist() == WORDS
    assert rows["start_positions"].tolist() == [[0], [8], [5]]
    assert rows["end_positions"].tolist() == [[0], [8], [5]]
    assert rows["is_impossible"].tolist() == [[0], [0], [0]]
    assert {column.dtype for column in rows.values()} == {np.dtype(np.int32)}


def test_no_answers_in_prediction(read, tokenizer):
    examples = read((CONTEXT, ("q", "who", None, 0)), is_training=False)
    _, rows = make(examples, tokenizer, is_training=False)
    assert list(rows) == [
        *("unique_ids", "input_ids", "input_mask", "segment_ids")
    ]


def test_impossible_questions_point_at_cls(read, tokenizer):
    examples = read((CONTEXT, ("1", "who", None, 0), ("2", "who", "He was", 0)))
    _, rows = make(
        examples,
        tokenizer,
        WindowOptions(max_seq_length=20, doc_stride=9, max_query_length=3),
    )
    assert rows["is_impossible"].tolist() == [[1], [0]]
    assert rows["start_positions"].tolist() == [[0], [3]]
    assert rows["end_positions"].tolist() == [[0], [4]]


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("1895", (4, 4)),
        ("1895-1943", (4, 6)),
        ("(1895-1943)", (3, 7)),
        ("1895-1943) a", (4, 8)),
        # No piece is part of another; the whole word is what remains.
        ("895", (3, 7)),
        ("mine", (9, 10)),
        ("min", (9, 9)),
    ],
)
def test_answers_are_narrowed_within_words(read, tokenizer, answer, expected):
    start = CONTEXT.index(answer)
    examples = read((CONTEXT, ("q", "who", answer, start)))
    _, rows = make(
        examples,
        tokenizer,
        WindowOptions(max_seq_length=20, doc_stride=9, max_query_length=3),
    )
    assert rows["start_positions"].item() == expected[0] + 3
    assert rows["end_positions"].item() == expected[1] + 3


def test_the_first_of_equal_places_is_taken(read, tokenizer):
    examples = read(("(1895-1895)", ("q", "who", "1895", 6)))
    _, rows = make(examples, tokenizer)
    assert rows["start_positions"].item() == 1 + 3


def test_blank_answers_before_the_first_word(read, tokenizer):
    # Recorded: they start at the last word, and end before the first.
    examples = read(("  he was he", ("q", "who", " ", 0)))
    _, rows = make(examples, tokenizer)
    assert rows["start_positions"].item() == 5
    assert rows["end_positions"].item() == 2


def test_paragraphs_without_pieces_have_no_rows(read, tokenizer):
    examples = read(
        (" \n", ("1", "who", None, 0)),
        ("a", ("2", "who", "a", 0)),
        ("\x00 \xad", ("3", "who", None, 0)),
        ("a", ("4", "", "a", 0)),
    )
    made, rows = make(examples, tokenizer)
    assert made.windows.example.tolist() == [1, 3]
    assert rows["input_ids"][1].tolist()[:5] == [2, 3, 16, 3, 0]


def test_a_paragraph_is_tokenized_once(read, tokenizer):
    examples = read((CONTEXT, *((str(i), "who", "a", 25) for i in range(50))))
    made = features.make_features(examples, tokenizer, OPTIONS)
    assert len(made.paragraphs.ids) == len(WORDS)


def test_many_rows_come_in_blocks(read, tokenizer):
    examples = read((CONTEXT, *((str(i), "who", "a", 25) for i in range(700))))
    made = features.make_features(examples, tokenizer, OPTIONS)
    sizes = [len(block["input_ids"]) for block in features.rows(made)]
    assert sizes == [1024, 376]
    ids = np.concatenate([b["unique_ids"] for b in features.rows(made)])
    assert (ids[:, 0] == 10**9 + np.arange(1400)).all()


def test_pieces_are_those_of_each_word_apart(read, make_tokenizer, tmp_path):
    # Spaces of all kinds, accents, Hangul, Chinese, a final sigma, controls.
    alphabet = "aÉß.,(Σσ中한\u0301\xa0\u2009\x85\x00\xad\u200d \t\n\u202f\ud800"
    rng = random.Random(1)
    contexts = ["".join(rng.choices(alphabet, k=40)) + "a" for _ in range(200)]
    examples = read(*((text, (text, "q", None, 0)) for text in contexts))
    letters = "aeß.,(σς中\u1112\u1161\u11ab\ud800".replace("\ud800", "")
    for do_lower_case in (True, False):
        made = features.make_features(
            examples, make_tokenizer(letters, do_lower_case), OPTIONS
        )
        slow = FullTokenizer(str(tmp_path / "vocab.txt"), do_lower_case)
        for index, example in enumerate(examples):
            pieces = [slow.tokenize(word) for word in example.doc_tokens]
            words = [[i] * len(p) for i, p in enumerate(pieces)]
            flat = list(itertools.chain(*pieces))
            found = made.paragraphs.of(index).tolist()
            assert found == slow.convert_tokens_to_ids(flat)
            begin, end = made.paragraphs.splits[index : index + 2]
            found = made.words[begin:end].tolist()
            assert found == list(itertools.chain(*words))
