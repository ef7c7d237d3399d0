"""Tagging from one file of the user's own: formats, spans, held-out rows."""

import json
import random
import re

import pytest
from support import tiny, write_json

from official_bert import tasks
from official_bert.errors import InputError
from official_bert.inference.predictor import Predictor
from official_bert.tasks import detection
from official_bert.tasks.tagging import Tags
from official_bert.training import finetuning_run

# "Ada" is a person, "New York" a place.
TEXTS = ["Ada sees New York.", "She runs."]
SPANS = [[(0, 3, "PER"), (9, 17, "LOC")], []]
WORDS = [["Ada", "sees", "New", "York", "."], ["She", "runs", "."]]
TAGS = [["B-PER", "O", "B-LOC", "I-LOC", "O"], ["O", "O", "O"]]
LABELS = ("B-LOC", "B-PER", "I-LOC", "O")


def json_lines(*rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


def rows(header, number=str, *, repeats=False):
    """Returns a table with one word per row."""
    lines = [header] if header else []
    for index, (words, tags) in enumerate(zip(WORDS, TAGS, strict=True)):
        for place, cells in enumerate(zip(words, tags, strict=True)):
            first = number(index + 1) if repeats or place == 0 else ""
            lines.append(",".join([first, *cells]))
    return "\n".join(lines)


def blank_lines(separator):
    return "\n\n".join(
        "\n".join(map(separator.join, zip(*sentence, strict=True)))
        for sentence in zip(WORDS, TAGS, strict=True)
    )


def spans(make, key, **others):
    """Returns JSON lines with the texts, and spans in a tool's format."""
    pairs = zip(TEXTS, SPANS, strict=True)
    return json_lines(
        *({"text": t, key: [make(*s) for s in ss], **others} for t, ss in pairs)
    )


def prodigy():
    tokens = [{"text": "Ada", "start": 0, "end": 3, "id": 0}]
    text = spans(
        lambda a, b, name: {"start": a, "end": b, "label": name},
        "spans",
        tokens=tokens,
        answer="accept",
    )
    return text + json_lines({"text": "b", "spans": [], "answer": "reject"})


def read(folder, name, text, task_name="ner", **flags):
    """Returns the task of a run on a file, without held-out rows."""
    (folder / name).write_text(text)
    flags = {"dev_share": 0.0, "do_eval": False, **flags}
    return tasks.get(options(folder, name, task_name=task_name, **flags))


def options(folder, name, **flags):
    flags = {"do_predict": False, "data_dir": "", **flags}
    flags["train_file"] = str(folder / name)
    return tiny.options(folder, **flags).resolve()


TOKENS = [{"tokens": w, "tags": t} for w, t in zip(WORDS, TAGS, strict=True)]
HF = [
    {
        **{"id": "0", "pos_tags": [0] * len(words), "tokens": words},
        "ner_tags": [*map(LABELS.index, tags)],
    }
    for words, tags in zip(WORDS, TAGS, strict=True)
]


FORMATS = {
    "tokens.jsonl": json_lines(*TOKENS),
    "integers.jsonl": json_lines(*HF),
    "keys.jsonl": json_lines(
        *({"x": w, "y": t} for w, t in zip(WORDS, TAGS, strict=True))
    ),
    "spacy.jsonl": spans(lambda *s: s, "entities"),
    "doccano.jsonl": spans(lambda *s: s, "label", id=1),
    "doccano_relations.jsonl": spans(
        lambda a, b, x: {
            **{"id": 1, "start_offset": a, "end_offset": b, "label": x}
        },
        "entities",
        relations=[],
    ),
    "spacy_doc.jsonl": spans(
        lambda a, b, x: {"start": a, "end": b, "label": x},
        "ents",
        tokens=[{"id": 0, "start": 0, "end": 3}],
    ),
    "prodigy.jsonl": prodigy(),
    "label_studio.jsonl": spans(
        lambda a, b, x: {"start": a, "end": b, "labels": [x]}, "label"
    ),
    "first_rows.csv": rows("Sentence #,Word,Tag", "Sentence: {}".format),
    "all_rows.csv": rows("sentence_id,word,ner", repeats=True),
    "simpletransformers.csv": rows("sentence_id,words,labels", repeats=True),
    "names.csv": rows("n,w,t"),
    "numbers.csv": rows(""),
    "index_of_pandas.csv": ",sentence_id,word,tag\n"
    + "\n".join(f"{i},{x}" for i, x in enumerate(rows("").splitlines())),
    "restarting_numbers.jsonl": json_lines(
        *(
            {"sentence_id": 1 - i, "word": word, "tag": tag}
            for i in range(2)
            for word, tag in zip(WORDS[i], TAGS[i], strict=True)
        )
    ),
    "documents.csv": "doc_id,sentence_id,word,tag\n"
    + "\n".join(
        f"{document},1,{word},{tag}"
        for document in range(2)
        for word, tag in zip(WORDS[document], TAGS[document], strict=True)
    ),
    "blank_lines.csv": "word,tag\n" + blank_lines(","),
    "blank_lines.tsv": "word\ttag\n" + blank_lines("\t"),
    "token_and_ner.tsv": "Token\tNER\n" + blank_lines("\t"),
    "quoted_by_r.tsv": '"Sentence #"\t"Word"\t"Tag"\n'
    + re.sub(r"(\d*),(.*),(.*)", r'\1\t"\2"\t"\3"', rows("", repeats=True)),
    "no_header.tsv": blank_lines("\t"),
    "spaces.txt": blank_lines(" "),
    "documents.conll": "-DOCSTART- O\n\n" + blank_lines(" "),
}
FLAGS = {
    "integers": {"label_file": "labels"},
    "keys": {"text_a_column": "x", "label_column": "y"},
    "names": {"text_a_column": "w", "label_column": "t", "id_column": "n"},
    "numbers": {"text_a_column": "1", "label_column": "2", "id_column": "0"},
}


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_gives_the_same_sentences(tmp_path, monkeypatch, name):
    text, flags = FORMATS[name], FLAGS.get(name.partition(".")[0], {})
    monkeypatch.chdir(tmp_path)
    (tmp_path / "labels").write_text("".join(f"{name}\n" for name in LABELS))
    task = read(tmp_path, name, text, **flags)
    # A person's name may have two words in other texts.
    is_text = '"text"' in text
    assert {*task.labels} == {*LABELS, *(["I-PER"] if is_text else [])}
    found = sorted(task.data.read("train"), key=lambda s: s.words[0])
    assert [list(s.words) for s in found] == WORDS
    assert [list(s.tags) for s in found] == TAGS
    assert task.main_metric == "f1"
    # Without the task, the advice names it.
    if name in (
        "tokens.jsonl",
        "doccano.jsonl",
        "first_rows.csv",
        "spaces.txt",
    ):
        with pytest.raises(InputError, match="--task_name=ner"):
            tasks.get(*detection.detect_omitted(options(tmp_path, name)))


def test_name_of_the_task_chooses_between_columns_of_tags(tmp_path, caplog):
    caplog.set_level("INFO", logger="absl")
    row = {"words": ["a", "b"], "ner": ["O", "B-X"], "pos_tags": ["DT", "NN"]}
    text = json_lines(row, row)
    assert read(tmp_path, "a.jsonl", text).labels == ("B-X", "O")
    assert "a.jsonl: --text_column=words --label_column=ner" in caplog.text
    task = read(tmp_path, "a.jsonl", text, task_name="pos")
    assert task.labels == ("DT", "NN")


def test_spans_that_are_not_whole_words_are_reported(tmp_path, caplog):
    text = json_lines(
        {"text": TEXTS[0], "label": [[0, 2, "PER"], [8, 18, "LOC"]]},
        {
            "text": " Ada and Ada Lovelace \u200b",
            "label": [
                *([0, 5, "PER"], [9, 12, "X"], [9, 21, "PER"], [21, 23, "Y"])
            ],
        },
    )
    task = read(tmp_path, "a.jsonl", text)
    assert sorted(s.tags for s in task.data.read("train")) == [
        ["B-PER", "O", "B-LOC", "I-LOC", "I-LOC"],
        ["B-PER", "O", "B-PER", "I-PER"],
    ]
    [message] = [m for m in caplog.messages if "spans" in m]
    path = tmp_path / "a.jsonl"
    assert message.splitlines() == [
        f"{path}: 3 spans overlap, or do not begin and end where words do. "
        "Positions must count characters from 0, ends are exclusive:",
        f"  {path}:1: 'Ad' (PER) becomes 'Ada'",
        f"  {path}:2: 'Ada' (X) is omitted",
        f"  {path}:2: ' \\u200b' (Y) is omitted",
    ]


CSV = "Sentence #,Word,Tag\n1,a,O\n,b,B-X\n2,c,O\n"
LINE = json_lines({"tokens": ["a", "b"], "tags": ["O", "B-X"]})
NO_TAG = '{"tokens": ["a"], "tags": []}'
EMPTY_WORD = '{"tokens": ["a", ""], "tags": ["O", "O"]}'
CELLS = "\ta" + "\t_" * 8


def with_spans(*spans):
    return json_lines({"text": "Ada", "spans": [*spans]})


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.jsonl", LINE + NO_TAG, "2: .*list of 1 tag"),
        ("a.jsonl", LINE + '{"tokens": ["a"]}', r"2: .*'tags' .*or \[\] with"),
        ("a.jsonl", LINE + '{"tokens": "a", "tags": ["O"]}', "2: .*spans"),
        ("a.jsonl", LINE + '{"tokens": 1, "tags": []}', "2: .*list of words"),
        ("a.jsonl", LINE + EMPTY_WORD, "2: .*'' at position 1,"),
        ("a.jsonl", LINE + '{"tokens": ["a"], "tags": [""]}', "2: .*tag must"),
        ("a.jsonl", LINE.replace('"O"', "0"), "1: .*--label_file.*0"),
        ("a.jsonl", '{"x": ["a"], "y": ["O"]}', "1: .*'x': .*--text_column"),
        ("a.jsonl", '{"text": "a", "tokens": {}}', "1: .*'tokens': {}"),
        *(
            ("a.jsonl", with_spans(span), "1: column 'spans' .*3 characters")
            for span in (
                *([0, 4, "X"], [2, 2, "X"], [-1, 1, "X"], [0, 1], [0, 1, ""]),
                *([0, 1.5, "X"], {"start": 0}),
                {"start": 0, "end": 1, "label": "X", "text": "d"},
                {"start": 0, "end": 1, "labels": ["X", "Y"]},
            )
        ),
        *(
            ("a.jsonl", with_spans([0, 4, "X"]).replace("Ada", text), message)
            for text, message in (
                (
                    "\U0001f600a",
                    r"1: .*the 2 characters .*\(in JavaScript.*two\)",
                ),
                ("\u4eac", r"1: .*the 1 characters of the text\. "),
            )
        ),
        ("a.csv", CSV + ",,O\n", "5: .*'' at position 0"),
        ("a.csv", CSV + ",d,\n", "5: .*tag must not be empty"),
        ("a.csv", "Word,Tag\na,O\nb,B-X\n", " .*sentence numbers.*--id_column"),
        ("a.csv", "Sent,Word,Tag\n1,a,O\n2,b,B-X\n", " .*--id_column"),
        ("a.csv", "", " .*none"),
        ("a.tsv", "a\tO\nb\n", "2: .*2 columns"),
        ("a.txt", "a O\nb\n", "2: .*2 columns"),
        ("a.txt", "a O\nb O\n", " .*two different tags"),
        ("a.txt", "# 1\na O\nb X\n\n# 2\na O\n# O\n", " comments .*1, 2"),
        ("a.csv", "tokens,tags\n['a'],['O']\n", "2: .*JSON lines"),
        *(
            ("a.csv", f"text,tags\na b,{tags}\n", "2: .*'tags' .*JSON lines")
            for tags in ("O B-X", "\"['O', 'B-X']\"", "\"[[0, 1, 'X']]\"")
        ),
        ("a.csv", "a,O\nb,B-X\n", "2: .*numbers of columns"),
        ("a.txt", "Word Tag\na O\nb B-X\n", "1: .* have no header"),
        # With the number of each word; brat writes tag, start, end and word.
        ("a.txt", "1 a O\n2 b B-X\n\n1 c O\n", " .*: the words 1, 2, with"),
        ("a.txt", "O 0 1 a\nO 2 3 b\nO 4 5 c\n", " .*: the words O, with"),
        # WebAnno, which INCEpTION writes.
        ("a.tsv", "1-1\t0-1\ta\tX\n1-2\t2-3\tb\tO\n", " .*: the words 1-1,"),
        ("a.conllu", f"1{CELLS}\n2\tb{CELLS[2:]}\n", " .*--token_column"),
        ("a.txt", "a B-X\nb B-Y 2\n", "2: .*Words and tags with spaces need"),
        *(
            ("a.conllu", f"1{CELLS}\n{number}{CELLS}\n", f"2: .*'{number}'")
            for number in ("2-3", "1.1")
        ),
    ],
)
def test_malformed_files_are_an_error_with_the_line(
    tmp_path, name, text, message
):
    with pytest.raises(InputError, match=rf"(?s){name}:{message}"):
        read(tmp_path, name, text)


# The numbers of sentences start again in the second document.
NUMBERED = [f"{n},w{n},{tag}" for n in (*range(6), *range(4)) for tag in "OBIO"]
SHUFFLED = random.Random(0).sample(NUMBERED, len(NUMBERED))


@pytest.mark.parametrize(
    ("name", "lines", "warning"),
    [
        ("a.txt", "\n".join(["a O", "b B-X"] * 510), "1 sentences has 1020 wo"),
        (
            "a.txt",
            "\n\n".join(["a O", "b B-X"] * 510),
            "1020 sentences has 1 words",
        ),
        ("a.csv", "\n".join(SHUFFLED), "rows of the same sentence are apart"),
        ("a.csv", "\n".join(NUMBERED), None),
    ],
    ids=["no blank lines", "only blank lines", "shuffled", "in order"],
)
def test_words_that_are_not_in_sentences_are_a_warning(
    tmp_path, caplog, name, lines, warning
):
    header = "sentence_id,word,tag\n" if name == "a.csv" else ""
    read(tmp_path, name, header + lines)
    assert ("sentence" in caplog.text) == (warning is not None)
    assert (warning or "") in caplog.text


def test_flags_that_do_not_fit_are_an_error(tmp_path):
    (tmp_path / "a.txt").write_text("a O\nb B-X\n")
    with pytest.raises(InputError, match=r"--document_context.*--dev_file"):
        options(tmp_path, "a.txt", task_name="ner", document_context=True)
    with pytest.raises(InputError, match=r"--label_column"):
        read(tmp_path, "a.jsonl", LINE, label_column="x")
    for name, text, flag, message in (
        ("a.txt", "a O\nb B-X\n", {"label_column": "1"}, "use --tag_column"),
        ("a.txt", "a O\nb B-X\n", {"text_a_column": "0"}, "use --token_col"),
        ("a.jsonl", LINE, {"tag_column": 1}, "use --label_column"),
    ):
        with pytest.raises(InputError, match=f"has no effect: {message}"):
            read(tmp_path, name, text, **flag)


@pytest.mark.parametrize("name", ["a.jsonl", "a.csv", "a.txt"])
def test_held_out_sentences_are_read_again_from_their_file(tmp_path, name):
    sentences = [
        ([f"w{i}", f"v{i}"], ["B-RARE" if i % 5 else "B-X", "O"])
        for i in range(40)
    ]
    lines = [
        f"{word},{tag}\n"
        for s in sentences
        for word, tag in zip(*s, strict=True)
    ]
    text = "word,tag\n" + "".join(
        lines[i] + "\n" * (i % 2) for i in range(len(lines))
    )
    if name == "a.txt":
        text = text.removeprefix("word,tag\n").replace(",", " ")
    if name == "a.jsonl":
        text = json_lines(
            *({"tokens": w, "tags": t, "x": 1} for w, t in sentences)
        )
    (tmp_path / name).write_text(text)
    flags = {"task_name": "ner", "dev_share": 0.25}
    task = tasks.get(options(tmp_path, name, **flags))
    training, held_out = task.data.read("train"), task.data.read("dev")
    assert len(training) == 30
    assert sum(s.tags[0] == "B-RARE" for s in held_out) == 8
    assert sum(s.tags[0] == "B-X" for s in held_out) == 2
    assert sorted((s.words, s.tags) for s in [*training, *held_out]) == sorted(
        sentences
    )
    write_json(tmp_path / "out" / "task.json", task.to_json())
    for file, content in task.data.held_out_files().items():
        (tmp_path / "out" / file).write_text(content)
    evaluated = tasks.get(options(tmp_path, name, **flags, do_train=False))
    found = evaluated.data.read("dev")
    assert [s.words for s in found] == [s.words for s in held_out]
    assert [s.tags for s in found] == [s.tags for s in held_out]
    assert ('"x": 1' in content) == (name == "a.jsonl")


@pytest.mark.parametrize(
    ("name", "text", "predicted"),
    [
        ("test.jsonl", json_lines({"text": "a b"}), "a\tB-X\nb\tO\n"),
        ("test.jsonl", json_lines({"tokens": ["a", "\n"]}), "a\tB-X\n \tO\n"),
        ("test.csv", ",text\n0,a b\n", "a\tB-X\nb\tO\n"),
        ("test.csv", "text,label\na b,x\n", "a\tB-X\nb\tO\n"),
        ("test.tsv", "sent_id\tword\n1\ta\n1\tb\n", "a\tB-X\nb\tO\n"),
        # The training data lacks these tags.
        ("test.txt", "a DT\nb NN\n", "a DT B-X\nb NN O\n"),
    ],
)
def test_test_file_may_lack_known_tags_and_gets_a_file_of_predictions(
    tmp_path, name, text, predicted
):
    (tmp_path / name).write_text(text)
    flags = {"test_file": str(tmp_path / name), "do_predict": True}
    task = read(tmp_path, "a.jsonl", LINE, **flags)
    examples = task.data.read("test")
    assert [s.tags for s in examples] == [None]
    answers = [Tags(["B-X", "O"], [0.5, 0.5])]
    for split in ("test", "test_other"):
        texts = task.prediction_files(split, examples, answers)
        assert texts == {f"{split}_predictions.txt": predicted}
    assert task.metrics(examples, answers) == {}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (LINE + '{"tokens": ["a"]}', "1 of 2 sentences lack tags"),
        (LINE + '{"tokens": ["a"], "tags": [null]}', "1 of 2 sentences lack"),
        (LINE.replace("B-X", "B-Y"), "the training data lacks the tags B-Y"),
        ('{"tokens": ["a"]}', ""),
        (LINE, ""),
    ],
)
def test_test_file_that_is_not_evaluated_is_a_warning(
    tmp_path, caplog, text, reason
):
    (tmp_path / "test.jsonl").write_text(text)
    flags = {"test_file": str(tmp_path / "test.jsonl"), "do_predict": True}
    examples = read(tmp_path, "a.jsonl", LINE, **flags).data.read("test")
    assert ("is not evaluated" in caplog.text) == bool(reason)
    assert reason in caplog.text
    assert (examples[0].tags is None) == (text != LINE)


@pytest.mark.parametrize("ending", ["txt", "jsonl"])
def test_several_files_are_read_together(tmp_path, ending):
    names = [f"{letter}.{ending}" for letter in "ab"]
    for name, word in zip(names, ["x", "y"], strict=True):
        row = {"tokens": [word, "z"], "tags": ["B-X", "O"]}
        text = f"{word} B-X\nz O\n" if ending == "txt" else json_lines(row)
        (tmp_path / name).write_text(text)
    paths = ",".join(str(tmp_path / name) for name in names)
    flags = {"test_file": paths, "do_predict": True, "dev_share": 0.0}
    flags |= {"task_name": "ner", "do_eval": False}
    task = tasks.get(options(tmp_path, f"?.{ending}", **flags))
    words = sorted(s.words for s in task.data.read("train"))
    assert words == [["x", "z"], ["y", "z"]]
    answers = [Tags(["O", tag], []) for tag in ("O", "B-X")]
    examples = task.data.read("test")
    [predicted] = task.prediction_files("test", examples, answers).values()
    expected = "x B-X O z O O y B-X O z O B-X"
    if ending == "jsonl":
        expected = "x O z O y O z B-X"
    assert predicted.split() == expected.split()


@pytest.mark.slow
@pytest.mark.usefixtures("without_learning")
def test_run_on_one_file_evaluates_and_predicts_held_out_rows(tmp_path, capsys):
    texts = [f"good cat {i}" for i in range(20)]
    rows = [{"note": t, "spans": [[5, 8, "ANIMAL"]]} for t in texts]
    (tmp_path / "a.jsonl").write_text(json_lines(*rows))
    flags = {"task_name": "ner", "text_a_column": "note", "data_dir": ""}
    flags |= {"train_file": str(tmp_path / "a.jsonl"), "do_predict": False}
    output, results = tiny.run(tmp_path, **flags)
    table = [line.split() for line in capsys.readouterr().out.splitlines()]
    # The model's F1 and the baseline's.
    assert [len(row) for row in table if row[:2] == ["f1", "ANIMAL"]] == [4]
    lines = (output / "dev.jsonl").read_text().splitlines()
    held_out = [json.loads(line) for line in lines]
    assert all(row in rows for row in held_out)
    assert results["support"] == len(held_out) == 2
    answers = Predictor.from_dir(output)(held_out)
    assert [answer["tokens"][:2] for answer in answers] == [["good", "cat"]] * 2


@pytest.mark.parametrize(("is_own", "expected"), [(True, 0.5), (False, 0.02)])
def test_new_output_weights_of_own_files_have_the_deviation_of_the_config(
    tmp_path, is_own, expected
):
    lines = [f"w{number} T{number}\n\n" for number in range(50)]
    (tmp_path / "train.txt").write_text("".join(lines))
    own = {"train_file": str(tmp_path / "train.txt"), "dev_share": 0.0}
    options = tiny.options(
        tmp_path,
        {**tiny.CONFIG, "initializer_range": 0.5},
        task_name="pos",
        do_eval=False,
        do_predict=False,
        **(own if is_own else {}),
    )
    run = finetuning_run.prepare(tasks.get(options), options, None)
    run.load_initial()
    # The deviation of a normal distribution that is cut at two deviations.
    found = run.model.output_weights.numpy().std() / 0.8796
    assert found == pytest.approx(expected, rel=0.1)
