import csv
import gzip
import json
import logging
import pathlib
import random
import re

import pytest

from official_bert.errors import InputError
from official_bert.tasks.data_set import shuffle_examples
from official_bert.tasks.squad.examples import (
    Paragraph,
    find_unanswered,
    read_examples,
)

CONTEXT = "John  Smith\tlived\nhere(1895-1943)."


def test_words_are_separated_by_five_characters_only():
    paragraph = Paragraph(" a\tb\r\nc\u202fd\xa0e\u2028f ")
    assert paragraph.words == ["a", "b", "c", "d\xa0e\u2028f"]
    words = [paragraph.word_at(offset) for offset in range(14)]
    assert words == [-1, 0, 0, 1, 1, 1, 2, 2, 3, 3, 3, 3, 3, 3]
    for blank in ("", " ", "\n\t"):
        assert Paragraph(blank).words == []


@pytest.mark.parametrize(
    ("context", "answer", "start", "expected"),
    [
        (CONTEXT, "1895", 23, (3, 3)),
        (CONTEXT, "John  Smith\tlived", 0, (0, 2)),
        # Offsets count characters, also those beyond 16 bits.
        ("\U0001f600 \U0001f600 here", "here", 4, (2, 2)),
        # An impossible question.
        (CONTEXT, None, 0, (-1, -1)),
    ],
)
def test_answers_are_found_by_offset(read, context, answer, start, expected):
    [example] = read((context, ("q", "?", answer, start)))
    assert example.answer == (answer or "", *expected, answer is None)


def test_equal_ids_are_an_error_only_for_predicting(read):
    twice = (CONTEXT, ("1", "q", "Smith", 6), ("1", "r", "Smith", 6))
    assert len(read(twice)) == 2
    with pytest.raises(InputError, match=r"qas\[1\] .*'1', as in .*qas\[0\]"):
        read(twice, is_training=False)


def test_questions_with_a_wrong_answer_offset_are_skipped(read, caplog):
    caplog.set_level(logging.WARNING, logger="absl")
    # As in the original, an offset before the first word is wrong, too.
    found = read(
        (CONTEXT, ("1", "q", "Smith", 0), ("2", "q", "Smith", 6)),
        ("  ab cd", ("3", "q", "ab", 0), ("4", "q", "ab", 2)),
        ("a b", *((str(i), "q", "b", 0) for i in range(5, 15))),
    )
    assert [example.qas_id for example in found] == ["2", "4"]
    assert "paragraphs[0].qas[0] (question '1') is skipped" in caplog.text
    assert caplog.text.count(" is skipped") == 12
    assert "12 of 14 questions are skipped" in caplog.text


@pytest.mark.parametrize(
    ("context", "answer"),
    [("in 10\xa0000 years", "10\xa0000"), ("in Ca\u0303 there", "C\u00e3")],
)
def test_answers_that_only_look_like_the_context_are_explained(
    read, caplog, context, answer
):
    questions = ("1", "q", answer, 3), ("2", "q", "in", 0)
    [example] = read((context, *questions))
    assert example.qas_id == "2"
    assert "replace white space such as U+00A0 by spaces" in caplog.text


def test_byte_order_marks_gzip_and_numeric_ids_are_read(write_squad, tmp_path):
    ignored = {"is_impossible": "no"}  # Not read in SQuAD 1.1.
    path = pathlib.Path(write_squad(("a b", (7, "q", "a", 0)), **ignored))
    packed = tmp_path / "squad.json.gz"
    packed.write_bytes(gzip.compress(b"\xef\xbb\xbf" + path.read_bytes()))
    [example] = read_file(packed)
    assert example.qas_id == "7"


def read_file(path, is_training=True, version_2=False):
    return read_examples(
        str(path), is_training=is_training, version_2_with_negative=version_2
    )


def assert_error(path, message):
    with pytest.raises(InputError, match=message):
        read_file(path, version_2=True)


ODD = '{"data": [{"paragraphs": []}, {"paragraphs": [{"qas": []}]}]}'
QAS = '{{"data": [{{"paragraphs": [{{"context": "a", "qas": [{}]}}]}}]}}'.format
ANSWERED = '{"id": 1, "question": "q", "answers": []}'


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"data": {}}', "`data` of type list"),
        ('{"version": "1"}', "`data`.*only version"),
        ("[]", r"\(root\): .*`data` of type list.*\[\]"),
        ('{"data": []}', "questions"),
        ('{"data": [{}]}', r"data\[0\]: .*`paragraphs`"),
        (ODD, r"data\[1\]\.paragraphs\[0\]: .*`context`"),
        (QAS("null"), r"data\[0\]\.paragraphs\[0\]\.qas\[0\]: .*`id`.*None"),
        (QAS(ANSWERED), r"qas\[0\] .*`is_imp.* omit --version_2_with_negative"),
        ('{"data": \n[{"paragraphs": [}\n]}', r"a\.json:2: .*column 18"),
    ],
)
def test_malformed_files_are_reported_with_position(tmp_path, content, message):
    path = tmp_path / "a.json"
    path.write_text(content)
    assert_error(str(path), message)


def answer(text, start):
    return {"answers": [{"text": text, "answer_start": start}]}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"question": 3}, r"qas\[0\] .*`question`.*'3'"),
        ({"is_impossible": "no"}, "question 'q1'.*`is_impossible`.*'no'"),
        ({"answers": []}, "exactly one answer.*: 0"),
        ({"answers": [{}, {}]}, r"question 'q1'\): .*one.*Remove all but"),
        ({"answers": [{"text": "c"}]}, "usable answers"),
        (answer("a", "1"), "`answer_start` of type int.*'1'"),
        (answer("a", 3), r"3 characters.*'a' at answer_start=3\."),
        (answer("bb", 2), "3 characters"),
        (answer("x", 0), "usable answers"),
    ],
)
def test_malformed_question_is_reported_by_id(write_squad, changes, message):
    assert_error(write_squad(("a b", ("q1", "q", "a", 0)), **changes), message)


EMPTY, BLANK, GOOD = (
    {"text": text, "answer_start": 0} for text in ("", " \n", "a")
)


@pytest.mark.parametrize("version_2", [False, True])
@pytest.mark.parametrize("answers", [[EMPTY], [BLANK], [EMPTY, BLANK]])
def test_empty_answers_are_no_answer(write_squad, caplog, answers, version_2):
    questions = ("1", "q", "a", 0), ("2", "q", "", 0)
    path = pathlib.Path(write_squad(("a b", *questions)))
    content = json.loads(path.read_text())
    content["data"][0]["paragraphs"][0]["qas"][1]["answers"] = answers
    path.write_text(json.dumps(content))
    found = read_file(path, version_2=version_2)
    no_answer = [(-1, -1, True)] * version_2
    assert [e.answer[1:] for e in found] == [(0, 0, False), *no_answer]
    is_skipped = "(question '2') is skipped: it has no answer" in caplog.text
    assert is_skipped == (not version_2)
    predicted = read_file(path, is_training=False, version_2=version_2)
    assert [len(e.qa["answers"]) for e in predicted] == [1, 0]


def test_malformed_answers_of_impossible_questions_are_not_read(read):
    paragraph = "a b", ("1", "q", "a", 0)
    [example] = read(paragraph, answers=[{}], is_impossible=True)
    assert example.answer.is_impossible


def test_one_good_answer_among_empty_ones_is_used(read):
    [example] = read(("a b", ("1", "q", "a", 0)), answers=[EMPTY, GOOD, BLANK])
    assert example.answer == ("a", 0, 0, False)


@pytest.mark.parametrize("is_impossible", [True, 1])  # As in the original.
def test_contradictions_and_empty_questions_are_warnings(
    read, caplog, is_impossible
):
    paragraph = ("a b", ("1", "q", "a", 0), ("2", " ", "a", 0))
    found = read(paragraph, is_impossible=is_impossible)
    assert all(example.answer.is_impossible for example in found)
    assert caplog.text.count("answer is not used, because `is_imp") == 2
    assert "qas[1] (question '2'): the question is empty" in caplog.text
    read(("a", *((str(i), "", "a", 0) for i in range(11))))
    assert "11 questions are empty, or have an unused or" in caplog.text


def test_answers_beside_their_offset_are_warnings(read, caplog):
    # JavaScript counts both emoji as two characters.
    context = "\U0001f600\U0001f600 in London today"
    answers = ("1", "q", "London", 8), ("2", "q", "London", 6)
    shifted, exact = read((context, *answers))
    assert (shifted.answer[1:3], exact.answer[1:3]) == ((2, 3), (2, 2))
    assert (
        "(question '1'): its answer is 'London', but the words at "
        "`answer_start`, which the model learns, are 'London today'"
    ) in caplog.text
    assert "1 questions are empty, or have" in caplog.text


def test_missing_offsets_are_found_if_the_answer_occurs_once(read, caplog):
    texts = {"1": "bb", "2": "b", "3": "x", "4": " c\n"}
    questions = ((name, "q", text, None) for name, text in texts.items())
    found = read(("a bb c", *questions))
    assert [(e.qas_id, *e.answer[:3]) for e in found] == [
        ("1", "bb", 1, 1),
        ("4", "c", 2, 2),
    ]
    assert "(question '2') is skipped: its answer 'b' is in the context se" in (
        caplog.text
    )
    assert "(question '3') is skipped: its answer 'x' is not in" in caplog.text


HEADER = "id,question,context,answer_text,answer_start\n"
TABLES = {
    "csv": HEADER + 'x,Who?,"a, b",b,3.0\ny,Why?,"a, b",,\nz,How?,c d,d,\n',
    "tsv": HEADER.replace(",", "\t")
    + "x\tWho?\ta, b\tb\t3\ny\tWhy?\ta, b\t\t\nz\tHow?\tc d\td\t\n",
    "jsonl": """
{"id": "x", "question": "Who?", "context": "a, b", "answer_text": "b",
 "answer_start": 3}
{"id": "y", "question": "Why?", "context": "a, b", "answer_text": null}
{"id": "z", "question": "How?", "context": "c d", "answer_text": "d"}
""".replace(",\n", ","),
    # As `datasets` writes them.
    "squad.jsonl": """
{"id": "x", "title": "t", "context": "a, b", "question": "Who?",
 "answers": {"text": ["b"], "answer_start": [3]}}
{"id": "y", "title": "t", "context": "a, b", "question": "Why?",
 "answers": {"text": [], "answer_start": []}}
{"id": "z", "title": "t", "context": "c d", "question": "How?",
 "answers": {"text": ["d"], "answer_start": [2]}}
""".replace(",\n", ","),
    # As pandas writes them.
    "answers.csv": """id,question,context,answers
x,Who?,"a, b","{'text': ['b'], 'answer_start': [3]}"
y,Why?,"a, b","{'text': [], 'answer_start': []}"
z,How?,c d,"{'text': ['d'], 'answer_start': [2]}"
""",
    # With arrays, as `datasets` gives pandas.
    "arrays.csv": """id,question,context,answers
x,Who?,"a, b","{'text': array(['b'], dtype=object), 'answer_start': array([3])}"
y,Why?,"a, b","{'text': array([], dtype=object), 'answer_start': array([])}"
z,How?,c d,"{'answer_start': array([2], dtype=int32), 'text': array(['d'])}"
""",
}


@pytest.mark.parametrize("name", TABLES)
def test_tables_are_read_like_the_same_questions_in_squad(
    read, tmp_path, name, caplog
):
    path = tmp_path / f"a.{name}"
    path.write_text(TABLES[name])
    same = (
        ("a, b", ("x", "Who?", "b", 3), ("y", "Why?", None, 0)),
        ("c d", ("z", "How?", "d", 2)),
    )

    def values(examples):
        return [
            (e.qas_id, e.question_text, e.paragraph.text, e.answer)
            for e in examples
        ]

    found = read_file(path, version_2=True)
    assert values(found) == values(read(*same))
    assert found[0].paragraph is found[1].paragraph
    assert [e.qas_id for e in read_file(path)] == ["x", "z"]
    assert "(question 'y') is skipped: it has no answer" in caplog.text
    predicted = read_file(path, is_training=False, version_2=True)
    assert values(predicted) == values(read(*same, is_training=False))
    golds = [[a["text"] for a in e.qa["answers"]] for e in predicted]
    assert golds == [["b"], [], ["d"]]
    keys = [e.qa.get("is_impossible") for e in predicted]
    assert keys == [None, True, None]


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
@pytest.mark.parametrize("is_object", [False, True])
def test_offsets_in_a_csv_may_count_line_ends_as_two_characters(
    tmp_path, line_end, is_object
):
    path = tmp_path / "a.csv"
    context = line_end.join(["a", "b", "c d", "c d e", "c d"])
    answer = line_end.join(["c d", "c"])
    start = context.rindex("c d e")
    rows = [(context, "c d", start), (context, answer, context.index(answer))]
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        names = ["answer_text", "answer_start"]
        if is_object:
            names = ["answers"]
            rows = [(x, {"text": [t], "answer_start": [s]}) for x, t, s in rows]
        writer.writerow(["context", "question", *names])
        writer.writerows([text, "q", *answer] for text, *answer in rows)
    assert [e.answer[1:3] for e in read_file(path)] == [(4, 5), (2, 4)]


def test_tables_for_predicting_need_neither_ids_nor_answers(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("question,context\nWho?,a b\nWhy?,a b\n")
    found = read_file(path, is_training=False)
    assert [e.qas_id for e in found] == ["2", "3"]
    assert find_unanswered(found) is found[0]


NEAR = "question,context,answer\nq,a b,a\n"
IMPOSSIBLE = "question,context,answer_text,is_impossible\nq,a,a,"
ARRAY = "question,context,answers\nq,a b,\"{'text': array(['a'])}\"\n"


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", "a,b\n1,2\n", ": .*column 'question'.*: a, b"),
        ("a.csv", NEAR, ": .*'answer_text'.* 'answer'\\? .*rename"),
        ("a.csv", HEADER + "1,q,a b,a,x\n", ":2: .*'answer_start'.*'x'"),
        ("a.csv", HEADER + "1,q,a b,a,-1\n", ":2: .*'answer_start'.*-1"),
        ("a.csv", HEADER + "1,q,a b,a,9\n", ":2 .*3 characters.*=9"),
        ("a.csv", HEADER + '"",q,a b,a,0\n', ":2: column 'id'"),
        ("a.csv", ARRAY, ":2: column 'answers' .*columns answer_text and"),
        ("a.csv", f"{IMPOSSIBLE}True\n", ":2: column 'is_impossible' .*True"),
        ("a.csv", f"{IMPOSSIBLE}1.0\n", r":2: column 'is_impossible' .*1\.0"),
        ("a.jsonl", '{"id": 1, "question": null}', ":1: .*'question'"),
        ("a.json", '{"id": 1}\n{"id": 2}\n', r":2: .*end in \.jsonl"),
        ("a.json", "[]", r".* \.csv"),
    ],
)
def test_malformed_tables_are_reported_with_their_line(
    tmp_path, name, content, message
):
    path = tmp_path / name
    path.write_text(content)
    assert_error(str(path), re.escape(name) + message)


def test_training_examples_are_shuffled_as_in_the_original():
    names = [str(i) for i in range(10)]
    expected = list(names)
    random.Random(12345).shuffle(expected)
    assert shuffle_examples(names) == expected
    assert names == sorted(names)
