import itertools
import json
import random

import numpy as np
import pytest
from support import tiny

from official_bert import tasks
from official_bert.errors import InputError
from official_bert.tasks.conll import Sentence
from official_bert.tasks.tagging import TaggingTask, Tags, Window, make_windows
from official_bert.tasks.task import RowFeatures
from official_bert.tokenization import FullTokenizer

TOKENS = ("jim", "hen", "##son", "was", "a", "puppet", "##eer", ".", "'")
WORDS = ["Jim", "Henson", "was", "a", "puppeteer"]
LABELS = ("B-PER", "I-PER", "O")


TASK = TaggingTask(labels=LABELS)


@pytest.mark.parametrize(
    ("sizes", "start", "end", "room", "expected"),
    [
        ([1] * 16, 4, 10, 10, [(2, 4, 10, 12)]),
        ([1] * 16, 0, 6, 10, [(0, 0, 6, 10)]),
        ([1] * 16, 1, 7, 10, [(0, 1, 7, 10)]),
        ([1] * 16, 10, 16, 10, [(6, 10, 16, 16)]),
        ([1] * 16, 3, 13, 10, [(3, 3, 13, 13)]),
        # Words are not divided.
        ([3, 3, 1, 3, 3], 2, 3, 6, [(2, 2, 3, 4)]),
        ([3, 3, 1, 3, 3], 2, 3, 7, [(1, 2, 3, 4)]),
        # A long sentence is predicted in parts.
        ([1] * 10, 0, 10, 8, [(0, 0, 4, 8), (2, 4, 8, 10), (2, 8, 10, 10)]),
        ([1, 4, 1], 0, 3, 4, [(0, 0, 1, 1), (1, 1, 2, 2), (2, 2, 3, 3)]),
        ([], 0, 0, 5, []),
    ],
)
def test_windows_have_context_on_both_sides(sizes, start, end, room, expected):
    windows = list(make_windows(sizes, start, end, room))
    assert windows == [Window(*window) for window in expected]


def test_windows_predict_every_word_once_and_waste_no_room():
    rng = random.Random(1)
    num_split = 0
    for _ in range(3000):
        room = rng.randint(1, 30)
        longest = rng.choice([1, 3, 8])
        lengths = range(1, min(room, longest) + 1)
        sizes = rng.choices(lengths, k=rng.randint(1, 60))
        start, end = sorted(rng.choices(range(len(sizes) + 1), k=2))
        windows = list(make_windows(sizes, start, end, room))
        num_split += len(windows) > 1
        predicted = [n for w in windows for n in range(w.first, w.stop)]
        assert predicted == list(range(start, end))
        assert len(windows) <= 1 or sum(sizes[start:end]) > room
        for begin, first, stop, end in windows:
            assert 0 <= begin <= first < stop <= end <= len(sizes)
            used = sum(sizes[begin:end])
            assert used <= room
            # There is no room for the next word. Words are not divided; room
            # that they leave on the left is used on the right.
            assert end == len(sizes) or used + sizes[end] > room
            left, right = sum(sizes[begin:first]), sum(sizes[stop:end])
            if begin > 0 and end < len(sizes):
                assert abs(left - right) <= 2 * longest
            if begin > 0:
                half = (room - sum(sizes[first:stop])) // 2
                assert left + sizes[begin - 1] > half
    assert num_split > 500


def sentence(words, tags=None):
    return Sentence(words, tags, words)


def correct_answers(task, examples, rows, length):
    """Returns the answers for logits that are highest at the labels."""
    logits = np.zeros((len(rows), length, len(task.labels)), np.float32)
    for output, (_, row) in zip(logits, rows, strict=True):
        for position, label in enumerate(row["label_ids"]):
            is_labeled = row["label_mask"][position]
            output[position, label if is_labeled else -1] = 1.0
    features = RowFeatures(examples, rows, task.schema(8))
    return task.answers(features, logits)


ODD_WORDS = [
    *("\u200b", "\x00\ufffd", "é", "Jim's", "中文", "qqq", "a" * 300),
    "New York",
]


@pytest.mark.parametrize("do_lower_case", [True, False])
def test_each_word_is_tokenized_alone(make_tokenizer, tmp_path, do_lower_case):
    letters = "abeino中文s"
    tokens = [*TOKENS, *letters, *(f"##{c}" for c in letters)]
    tokens += ["new", "york", "N"]
    tokenizer = make_tokenizer(dict.fromkeys(tokens), do_lower_case)
    reference = FullTokenizer(str(tmp_path / "vocab.txt"), do_lower_case)
    rng = random.Random(0)
    for _ in range(200):
        words = rng.choices(ODD_WORDS, k=rng.randint(0, 4))
        for _ in range(rng.randint(1, 8)):
            letters = rng.choices("abeNIno'中.é\u0301S", k=rng.randint(1, 7))
            words.insert(rng.randint(0, len(words)), "".join(letters))
        tokens = [reference.tokenize(word) or ["[UNK]"] for word in words]
        tokens = ["[CLS]", *itertools.chain(*tokens), "[SEP]"]
        [(_, row)] = TASK.feature_rows([sentence(words)], tokenizer, 999)
        assert row["input_ids"] == reference.convert_tokens_to_ids(tokens)


def random_documents(rng, num_documents):
    """Returns sentences whose tags are the numbers of their words."""
    sentences, count = [], 0
    for _ in range(num_documents):
        lengths = rng.choices([1, 2, 5, 30], k=rng.randint(1, 6))
        vocabulary = [*WORDS, "\u200b", "puppeteers"]
        document = rng.choices(vocabulary, k=sum(lengths))
        start = 0
        for length in lengths:
            tags = [str(count + i) for i in range(length)]
            words = document[start : start + length]
            sentences.append(Sentence(words, tags, document, start))
            start += length
            count += length
    return sentences, tuple(map(str, range(count)))


@pytest.mark.parametrize("document_context", [False, True])
def test_first_token_of_each_word_is_labeled_in_exactly_one_row(
    make_tokenizer, document_context
):
    tokenizer = make_tokenizer([*TOKENS, "##s"])
    rng = random.Random(0)
    for max_seq_length in [*range(3, 12), 16, 33, 64] * 2:
        examples, labels = random_documents(rng, 5)
        task = TaggingTask(labels=labels, document_context=document_context)
        rows = list(task.feature_rows(examples, tokenizer, max_seq_length))
        assert max(len(row["input_ids"]) for _, row in rows) <= max_seq_length
        for _, row in rows:
            assert not np.ma.array(
                row["label_ids"], mask=row["label_mask"]
            ).any()
        labeled = [
            (number, row["label_ids"][position], row["input_ids"][position])
            for number, row in rows
            for position in np.flatnonzero(row["label_mask"])
        ]
        assert labeled == [
            (number, int(tag), tokenizer.vocab[first])
            for number, example in enumerate(examples)
            for word, tag in zip(example.words, example.tags, strict=True)
            for first in (tokenizer.tokenize(word) or ["[UNK]"])[:1]
        ]
        answers = correct_answers(task, examples, rows, 70)
        assert [a.tags for a in answers] == [e.tags for e in examples]


@pytest.mark.parametrize(
    ("max_seq_length", "expected"),
    [
        (7, ["ABcde", "bCDEf", "deFgh", "fGHIJ"]),
        (128, ["ABcdefghij", "abCDEfghij", "abcdeFghij", "abcdefGHIJ"]),
    ],
)
def test_document_context_fills_rows(make_tokenizer, max_seq_length, expected):
    tokenizer = make_tokenizer(list("abcdefghij"))
    document = list("abcdefghij")
    examples = [
        Sentence(document[a:b], ["X"] * (b - a), document, a)
        for a, b in ((0, 2), (2, 5), (5, 6), (6, 10))
    ]
    task = TaggingTask(labels=("X",), document_context=True)
    texts = []
    for _, row in task.feature_rows(examples, tokenizer, max_seq_length):
        _, *tokens, _ = tokenizer.convert_ids_to_tokens(row["input_ids"])
        _, *mask, _ = row["label_mask"]
        pairs = zip(tokens, mask, strict=True)
        texts.append("".join(t.upper() if m else t for t, m in pairs))
    assert texts == expected


IN_DOCUMENT = {"tokens": ["Jim"], "before": ["the"], "after": ["was", "a"]}


@pytest.mark.parametrize(
    ("value", "words", "document"),
    [
        ("Jim  Henson\twas", ["Jim", "Henson", "was"], None),
        (["Jim", "was here"], ["Jim", "was here"], None),
        ({"tokens": ["Jim"]}, ["Jim"], None),
        (IN_DOCUMENT, ["Jim"], ["the", "Jim", "was", "a"]),
        ("", [], None),
        ([], [], None),
    ],
)
def test_text_list_or_object_is_parsed(make_tokenizer, value, words, document):
    task = TaggingTask(labels=LABELS, document_context=True)
    example = task.parse(value, "line 1")
    document = document or words
    start = int(document != words)
    assert example == Sentence(words, None, document, start)
    rows = list(task.feature_rows([example], make_tokenizer(TOKENS), 128))
    [answer] = correct_answers(task, [example], rows, 128)
    assert len(answer.tags) == len(answer.probabilities) == len(words)


@pytest.mark.parametrize("name", ["tokens", "before", "after"])
def test_empty_word_is_an_error_with_its_position(name):
    value = {"tokens": ["a"], name: ["Jim", "", "was"]}
    with pytest.raises(InputError, match=r"line 1: .* position 1, .* from 0"):
        TASK.parse(value, "line 1")


def test_text_is_split_at_punctuation_and_keeps_spelling_and_offsets():
    text = " Dr. JÜrgen\tO'Neill\u200b, 北京!"
    example = TASK.parse(text, "line 1")
    words = ["Dr", ".", "JÜrgen", "O", "'", "Neill", ",", "北", "京", "!"]
    assert example.words == words
    tags = ["O", "O", "B-PER", "I-PER", "I-PER", "I-PER", *"OOOO"]
    probabilities = [0.5, 0.5, 0.9, 0.8, 0.7, 0.6, 0.5, 0.5, 0.5, 0.5]
    answer = TASK.answer_to_json(example, Tags(tags, probabilities))
    spans = [text[start:end] for start, end in answer["offsets"]]
    assert spans == answer["tokens"] == words
    mean = pytest.approx((0.9 + 0.8 + 0.7 + 0.6) / 4)
    entity = {"type": "PER", "text": "JÜrgen\tO'Neill", "start": 5, "end": 19}
    assert answer["entities"] == [entity | {"probability": mean}]


def test_added_tokens_in_a_text_are_words(tmp_path):
    tokenizer = tiny.tokenizer(tmp_path, "[E1]", never_split=["[E1]"])
    example = TASK.with_tokenizer(tokenizer).parse("a [E1]b! [X]", "line 1")
    assert example.words == ["a", "[E1]", "b", "!", "[", "X", "]"]
    assert example.offsets[1:3] == [(2, 6), (6, 7)]


def test_entities_of_words_are_located_in_the_words_joined_by_spaces():
    words = ["in", "Washington", "D.C.", "!"]
    answer = Tags(["O", "B-PER", "I-PER", "O"], [0.5, 0.75, 0.25, 0.5])
    found = TASK.answer_to_json(sentence(words), answer)
    entity = {"type": "PER", "text": "Washington D.C.", "start": 3, "end": 18}
    assert json.loads(json.dumps(found)) == {
        "tokens": words,
        "tags": answer.tags,
        "probabilities": answer.probabilities,
        "offsets": [[0, 2], [3, 13], [14, 18], [19, 20]],
        "entities": [entity | {"probability": 0.5}],
    }


@pytest.mark.parametrize("other", ["", "NOUN", "X"])
def test_metrics_and_answers_agree_on_whether_tags_mark_entities(other):
    """Also if the tags of a development set differ from those of the task."""
    for labels in (["B_PER", "I_PER", "O"], ["PER", "O"], ["DT", "NN", "B-"]):
        task = TaggingTask(labels=(*labels, *filter(None, [other])))
        for tags in ([labels[0]], ["O"]):
            answers = [Tags(tags, [1.0])]
            examples = [sentence(["a"], tags)]
            metrics = task.metrics(examples, answers)
            answer = task.answer_to_json(examples[0], answers[0])
            assert ("f1" in metrics) == ("entities" in answer)
            assert (task.main_metric == "f1") == ("entities" in answer)
            assert metrics.get("support", 0) == len(answer.get("entities", ()))


@pytest.mark.parametrize(
    ("tags", "task_name", "message"),
    [
        ("B-PER O", "ner", None),
        ("B_PER O", "ner", None),
        ("B NOUN", "tagging", None),
        ("NOUN O", "pos", None),
        ("B-PER I-PER O X", "pos", "tags X have no position, such as B- or"),
        ("0 B-PER O tag", "ner", "tags 0, B-PER, O, tag mark no entities"),
        ("PER LOC O", "tagging", "tags LOC, O, PER mark no entities"),
        ("NOUN VERB", "ner", "tags NOUN, VERB mark no entities"),
    ],
)
def test_tags_that_mark_no_entities_are_a_warning(
    tmp_path, caplog, tags, task_name, message
):
    text = "".join(f"w{n} {tag}\n" for n, tag in enumerate(tags.split()))
    (tmp_path / "train.txt").write_text(text)
    tasks.get(tiny.options(tmp_path, task_name=task_name))
    assert [message in m for m in caplog.messages] == [True] * bool(message)


def test_baseline_is_the_most_frequent_tag_of_each_word():
    training = [
        sentence(["a", "b", "a"], ["B-PER", "O", "B-PER"]),
        sentence(["a", "b", "c", "d"], ["O", "O", "B-PER", "O"]),
    ]
    examples = [sentence(["a", "b", "new"], ["B-PER", "B-PER", "O"])]
    found = TASK.baseline(training, examples)  # Predicts B-PER, O, O.
    assert found["accuracy"] == pytest.approx(2 / 3)
    assert (found["precision"], found["recall"]) == (1.0, 0.5)
    unlabeled = [sentence(["a"])]
    assert TASK.baseline(training, unlabeled) == {}
