"""Rows, answers, metrics and files of tagging, and what makes them."""

import json
import random

import numpy as np
import pytest

from official_bert.errors import InputError
from official_bert.tasks.conll import ConllData, Sentence
from official_bert.tasks.tagging import TaggingTask
from official_bert.tasks.task import FeatureRow, Outputs, RowFeatures
from official_bert.tokenization import FullTokenizer

PIECES = ("jim", "hen", "##son", "was", "a", "puppet", "##eer", ".", "'")
SENTENCE = ["Jim", "Henson", "was", "a", "puppeteer"]
LABELS = ("B-PER", "I-PER", "O")
TAGS = ["B-PER", "I-PER", "O", "O", "O"]


def sentence(words, tags=None, document=None, start=0):
    return Sentence(words, tags, words if document is None else document, start)


def rows_of(task, tokenizer, examples, max_seq_length=128):
    """Returns the number of its example and the features of each row."""
    found = task.feature_rows(examples, tokenizer, max_seq_length)
    return [(one.example, one.row) for one in found]


def answers_of(task, examples, rows, outputs):
    rows = [FeatureRow(*row) for row in rows]
    features = RowFeatures(examples, rows, task.schema(128))
    zeros = np.zeros(len(outputs))
    return task.answers(features, Outputs(outputs, zeros, zeros))


def oracle(row, num_labels, length):
    """Returns the output of a model that knows the labels, and only these."""
    logits = np.zeros((length, num_labels), np.float32)
    for place, label in enumerate(row["label_ids"]):
        right = label if row["label_mask"][place] else num_labels - 1
        logits[place, right] = 1.0
    return logits


def test_the_sentence_of_the_paper(make_tokenizer):
    tokenizer = make_tokenizer(*PIECES)
    task = TaggingTask(labels=LABELS)
    [(number, row)] = rows_of(task, tokenizer, [sentence(SENTENCE, TAGS)])
    assert number == 0
    tokens = tokenizer.convert_ids_to_tokens(row["input_ids"])
    assert " ".join(tokens) == "[CLS] jim hen ##son was a puppet ##eer [SEP]"
    assert row["label_mask"] == [0, 1, 1, 0, 1, 1, 1, 0, 0]
    assert row["label_ids"] == [0, 0, 1, 0, 2, 2, 2, 0, 0]
    assert row["segment_ids"] == [0] * 9
    assert row["input_mask"] == [1] * 9
    assert set(row) == set(task.schema(128))


ODD = [
    "\u200b",
    "\x00\ufffd",
    "é",
    "Jim's",
    "中文",
    "qqq",
    "a" * 300,
    "New York",
]


@pytest.mark.parametrize("do_lower_case", [True, False])
def test_words_against_the_reference_tokenizer(
    make_tokenizer, tmp_path, do_lower_case
):
    """Their pieces one by one, and at the first of each its label."""
    letters = "abeino中文s"
    tokenizer = make_tokenizer(
        *dict.fromkeys([*PIECES, *letters, *(f"##{c}" for c in letters)]),
        *("new", "york", "N"),
        do_lower_case=do_lower_case,
    )
    reference = FullTokenizer(str(tmp_path / "vocab.txt"), do_lower_case)
    rng = random.Random(0)
    for _ in range(200):
        words = [
            rng.choice(ODD)
            if rng.random() < 0.3
            else "".join(
                rng.choices("abeNIno'中.é\u0301S", k=rng.randint(1, 7))
            )
            for _ in range(rng.randint(1, 12))
        ]
        tags = rng.choices(LABELS, k=len(words))
        tokens, labels = ["[CLS]"], [None]
        for word, tag in zip(words, tags, strict=True):
            pieces = reference.tokenize(word) or ["[UNK]"]
            tokens += pieces
            labels += [tag] + [None] * (len(pieces) - 1)
        [(_, row)] = rows_of(
            TaggingTask(labels=LABELS), tokenizer, [sentence(words, tags)], 999
        )
        expected = reference.convert_tokens_to_ids([*tokens, "[SEP]"])
        assert row["input_ids"] == expected
        assert [
            LABELS[label] if is_labelled else None
            for label, is_labelled in zip(
                row["label_ids"], row["label_mask"], strict=True
            )
        ] == [*labels, None]


def random_documents(rng, num_documents):
    """Returns sentences whose tags are the numbers of their words."""
    found, count = [], 0
    for _ in range(num_documents):
        document, starts = [], []
        for _ in range(rng.randint(1, 6)):
            length = rng.choice([1, 2, 5, 30])
            starts.append((len(document), length))
            document += rng.choices(
                [*SENTENCE, "\u200b", "puppeteers"], k=length
            )
        for start, length in starts:
            tags = [str(count + i) for i in range(length)]
            count += length
            words = document[start : start + length]
            found.append(Sentence(words, tags, document, start))
    return found, tuple(map(str, range(count)))


@pytest.mark.parametrize("document_context", [False, True])
def test_no_word_is_lost(make_tokenizer, document_context):
    tokenizer = make_tokenizer(*PIECES, "##s")
    rng = random.Random(0)
    for max_seq_length in [*range(3, 12), 16, 33, 64] * 2:
        examples, labels = random_documents(rng, 5)
        task = TaggingTask(labels=labels, document_context=document_context)
        rows = rows_of(task, tokenizer, examples, max_seq_length)
        assert max(len(row["input_ids"]) for _, row in rows) <= max_seq_length
        starts = [
            (number, row["label_ids"][place], row["input_ids"][place])
            for number, row in rows
            for place in np.flatnonzero(row["label_mask"])
        ]
        expected = [
            (number, int(tag), tokenizer.vocab[first])
            for number, example in enumerate(examples)
            for word, tag in zip(example.words, example.tags, strict=True)
            for first in (tokenizer.tokenize(word) or ["[UNK]"])[:1]
        ]
        assert starts == expected
        outputs = [oracle(row, len(labels), 70) for _, row in rows]
        assert answers_of(task, examples, rows, outputs) == [
            example.tags for example in examples
        ]


def test_document_context(make_tokenizer):
    tokenizer = make_tokenizer(*"abcdefghij")
    document = list("abcdefghij")
    examples = [
        Sentence(document[a:b], ["X"] * (b - a), document, a)
        for a, b in ((0, 2), (2, 5), (5, 6), (6, 10))
    ]
    task = TaggingTask(labels=("X",), document_context=True)

    def texts(max_seq_length):
        return [
            "".join(
                token.upper() if is_labelled else token
                for token, is_labelled in zip(
                    tokenizer.convert_ids_to_tokens(row["input_ids"]),
                    row["label_mask"],
                    strict=True,
                )
            )
            for _, row in rows_of(task, tokenizer, examples, max_seq_length)
        ]

    assert texts(7) == [
        f"[CLS]{text}[SEP]" for text in ("ABcde", "bCDEf", "deFgh", "fGHIJ")
    ]
    assert texts(128) == [
        f"[CLS]{text}[SEP]"
        for text in ("ABcdefghij", "abCDEfghij", "abcdeFghij", "abcdefGHIJ")
    ]


def test_predictions_are_written_back(make_tokenizer, write, tmp_path):
    """Through windows of five pieces, and with a model that is always right."""
    text = "-DOCSTART- O\n\n" + "".join(
        f"{word} {tag}\n"
        for word, tag in zip(SENTENCE * 3, TAGS * 3, strict=True)
    )
    text += "\n\x00 O\n\n"
    write("test.txt", text)
    tokenizer = make_tokenizer(*PIECES)
    data = ConllData(str(tmp_path))
    task = TaggingTask(labels=LABELS, data=data)
    examples = task.examples("test")
    rows = rows_of(task, tokenizer, examples, 5)
    answers = answers_of(
        task, examples, rows, [oracle(r, 3, 5) for _, r in rows]
    )
    task.write_predictions(str(tmp_path), "test", examples, answers)
    lines = (tmp_path / "test_predictions.txt").read_text().split("\n")
    assert [line.rpartition(" ")[0] for line in lines] == text.split("\n")
    assert [line.split()[-1:] for line in lines] == [
        line.split()[-1:] for line in text.split("\n")
    ]
    results = task.metrics(examples, answers)
    assert results["f1"] == results["accuracy"] == 1.0
    assert results["support"] == 3


@pytest.mark.parametrize("text", ["a\nb\n", "a DT\nb NN\n"])
def test_test_data_without_the_tags(write, tmp_path, text):
    """Nothing is measured, even if there is another column."""
    write("test.txt", text)
    data = ConllData(str(tmp_path))
    task = TaggingTask(labels=LABELS, data=data)
    examples = task.examples("test")
    assert [s.tags for s in examples] == [None]
    task.write_predictions(str(tmp_path), "test", examples, [["O", "B-PER"]])
    lines = zip(text.splitlines(), ("O", "B-PER"), strict=True)
    assert (tmp_path / "test_predictions.txt").read_text() == "".join(
        f"{line} {tag}\n" for line, tag in lines
    )
    assert task.metrics(examples, [["O", "B-PER"]]) == {}
    (tmp_path / "dev.txt").write_text(text)
    with pytest.raises(InputError, match=r"dev\.txt:1: "):
        task.examples("dev")


@pytest.mark.parametrize(
    ("labels", "main_metric"),
    [
        (("B-PER", "I-PER", "O"), "f1"),
        (("B", "E", "M", "S"), "f1"),
        (("NOUN", "O"), "accuracy"),
    ],
)
def test_the_main_metric_depends_on_the_tags(labels, main_metric):
    task = TaggingTask(labels=labels)
    assert task.main_metric == main_metric
    examples = [sentence(["a", "b"], [labels[0], labels[1]])]
    assert task.metrics(examples, [list(labels[:2])])[main_metric] == 1.0


def test_metrics_of_names():
    """Three names, of which one is found, and one too many."""
    task = TaggingTask(labels=("B-LOC", "B-PER", "I-PER", "O"))
    examples = [
        sentence("abcd", ["B-PER", "I-PER", "O", "B-LOC"]),
        sentence("ab", ["O", "B-PER"]),
    ]
    answers = [["B-PER", "O", "O", "B-LOC"], ["O", "O"]]
    results = task.metrics(examples, answers)
    assert results["precision"] == pytest.approx(1 / 2)
    assert results["recall"] == pytest.approx(1 / 3)
    assert results["f1"] == pytest.approx(2 / 5)
    assert results["accuracy"] == pytest.approx(4 / 6)
    assert results["per_type"]["LOC"]["f1"] == 1.0


def test_the_loss_is_that_of_labelled_pieces():
    task = TaggingTask(labels=LABELS)
    random_state = np.random.RandomState(0)
    logits = random_state.normal(size=(2, 5, 3)).astype(np.float32)
    batch = {
        "label_ids": np.array([[0, 2, 0, 1, 0], [0, 1, 0, 0, 0]]),
        "label_mask": np.array([[0, 1, 0, 1, 0], [0, 1, 0, 0, 0]]),
    }
    weights = task.weights(batch).numpy()
    losses = np.asarray(task.losses(logits, batch)) * weights
    exact = logits.astype(np.float64)
    log_probs = exact - np.log(np.exp(exact).sum(-1, keepdims=True))
    expected = -(log_probs[0, 1, 2] + log_probs[0, 3, 1] + log_probs[1, 1, 1])
    assert losses.sum() == pytest.approx(expected, rel=1e-6)
    assert weights.sum() == 3


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("Jim  Henson\twas", ["Jim", "Henson", "was"]),
        (["Jim", "was here"], ["Jim", "was here"]),
        ({"tokens": ["Jim"]}, ["Jim"]),
        ("", []),
        ([], []),
    ],
)
def test_parsing(make_tokenizer, given, words):
    task = TaggingTask(labels=LABELS, document_context=True)
    example = task.parse(given, "line 1")
    assert list(example.words) == words
    rows = rows_of(task, make_tokenizer(*PIECES), [example])
    outputs = [oracle(row, 3, 128) for _, row in rows]
    [answer] = answers_of(task, [example], rows, outputs)
    assert len(answer) == len(words)


def test_context_may_be_given():
    task = TaggingTask(labels=LABELS, document_context=True)
    given = {"tokens": ["Jim"], "before": ["the"], "after": ["was", "here"]}
    example = task.parse(given, "line 1")
    document = ["the", "Jim", "was", "here"]
    assert example == Sentence(["Jim"], None, document, 1)


@pytest.mark.parametrize(
    "given",
    [
        *(None, 3, {"text": "a"}, {"tokens": "a b"}, ["a", 1], ["a", ""]),
        {"tokens": ["a"], "before": "b"},
        {"tokens": ["a"], "after": [1]},
    ],
)
def test_what_cannot_be_parsed(given):
    with pytest.raises(InputError, match=r"^line 7: "):
        TaggingTask(labels=LABELS).parse(given, "line 7")


def test_answers_as_people_read_them():
    task = TaggingTask(labels=LABELS)
    shown = task.answer_to_json(task.parse(SENTENCE, ""), TAGS)
    assert json.loads(json.dumps(shown)) == {
        "tokens": SENTENCE,
        "tags": TAGS,
        "entities": [
            {"type": "PER", "start": 0, "end": 2, "text": "Jim Henson"}
        ],
    }
    task = TaggingTask(labels=("NOUN", "VERB"))
    example = task.parse("a b", "")
    assert task.answer_to_json(example, ["NOUN", "VERB"]) == {
        "tokens": ["a", "b"],
        "tags": ["NOUN", "VERB"],
    }


@pytest.mark.parametrize("document_context", [False, True])
def test_a_task_again_from_its_description(document_context):
    task = TaggingTask(labels=LABELS, document_context=document_context)
    given = json.loads(json.dumps(task.to_json()))
    assert given["kind"] == "tagging"
    assert TaggingTask.from_json(given) == task


@pytest.mark.parametrize(
    ("names", "split", "expected"),
    [
        (["train.txt", "eng.train"], "train", "train.txt"),
        (["eng.testa", "valid.txt"], "dev", "valid.txt"),
        (["valid.txt", "dev.txt"], "dev", "dev.txt"),
        (["eng.testa", "eng.testb"], "dev", "eng.testa"),
        (["eng.testa", "eng.testb"], "test", "eng.testb"),
    ],
)
def test_which_file_is_read(tmp_path, names, split, expected):
    for name in names:
        (tmp_path / name).touch()
    data = ConllData(str(tmp_path))
    assert data.path(split) == str(tmp_path / expected)


def test_a_missing_file(tmp_path):
    data = ConllData(str(tmp_path))
    with pytest.raises(InputError, match=r"dev\.txt or valid\.txt or"):
        data.read("dev", ())
