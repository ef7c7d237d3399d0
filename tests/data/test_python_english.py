import itertools
import pathlib
import re

import pytest
import python_english
from support.processes import run_python

from official_bert.errors import InputError


@pytest.mark.parametrize(
    ("paragraph", "expected"),
    [
        ("One is here. Two is there.", ["One is here.", "Two is there."]),
        ("Is it? It is! So.", ["Is it?", "It is!", "So."]),
        ("Use a list, e.g. One of two.", ["Use a list, e.g. One of two."]),
        ("See J. Doe. He knows.", ["See J. Doe.", "He knows."]),
        ("Take it, etc. Then go.", ["Take it, etc.", "Then go."]),
        ('He said "go." She went.', ['He said "go."', "She went."]),
        ("See os.path.join or 3.5 of it.", ["See os.path.join or 3.5 of it."]),
        ("It is 3.  Not  4.", ["It is 3.", "Not 4."]),
        # Markup is removed.
        (":func:`open` and :py:class:`~io.Text`", ["open and io.Text"]),
        ("``x`` or `y` or `z'", ["x or y or z"]),
        ("*really* **very** good", ["really very good"]),
        ("2 * 3 * 4 and *args", ["2 * 3 * 4 and *args"]),
        ("as shown [2], not items[2]", ["as shown, not items[2]"]),
        ("as follows::", ["as follows:"]),
    ],
)
def test_paragraph_is_split_into_plain_sentences(paragraph, expected):
    assert list(python_english.sentences(paragraph)) == expected


LIBRARY = {
    "b.py": """\
'The first is here. The second is here.'
def g():
    'The last is here.'
""",
    "a.py": """\
raise SystemExit  # Must not be run.
class A:
    'This is a class. The first is here.'
    def f(self):
        'This is f.'
def h():
    'This is h. This is f.'
""",
    "one.py": "'This is all there is.'",
    "broken.py": "'This is broken. It is.'\n(",
    "test/c.py": "'This is a test. It is.'",
}


def test_modules_are_documents_and_no_sentence_repeats(tmp_path, monkeypatch):
    (tmp_path / "test").mkdir()
    for name, source in LIBRARY.items():
        (tmp_path / name).write_text(source)
    topics = {"b": "B is here. It is short.", "a": "Topic a is it. It is."}
    monkeypatch.setattr(python_english, "topics", topics)
    # The order does not depend on that of the file system.
    found = sorted(tmp_path.rglob("*.py"), reverse=True)
    monkeypatch.setattr(pathlib.Path, "rglob", lambda *_: iter(found))
    assert python_english.collect(tmp_path) == [
        ["B is here.", "It is short."],
        ["This is a class.", "The first is here.", "This is f.", "This is h."],
        ["The second is here.", "The last is here."],
    ]


def test_library_without_source_is_an_error(tmp_path):
    with pytest.raises(InputError, match="source"):
        python_english.collect(tmp_path)


def test_every_nth_document_is_held_out(tmp_path, monkeypatch, capsys):
    documents = [[f"This is {n}.", f"That was {n}."] for n in range(7)]
    monkeypatch.setattr(python_english, "collect", lambda library: documents)
    new = tmp_path / "new"
    options = python_english.PythonEnglish(output_dir=str(new), held_out=3)
    python_english.main(options)
    held_out = (new / "held_out.txt").read_text()
    assert held_out == "This is 2.\nThat was 2.\n\nThis is 5.\nThat was 5.\n"
    train = (new / "train.txt").read_text()
    assert re.findall("This is (.)", train) == ["0", "1", "3", "4", "6"]
    printed = f"7 documents, 14 sentences, 42 words in {new}\n"
    assert capsys.readouterr().out == printed


@pytest.mark.slow
def test_files_are_a_corpus_of_english_sentences(tmp_path):
    command = ["-W", "error", "-m", "data.python_english"]
    run_python(*command, f"--output_dir={tmp_path}")
    num_words = 0
    for name, at_least in (("train.txt", 300), ("held_out.txt", 15)):
        text = (tmp_path / name).read_text("utf-8")
        documents = [part.split("\n") for part in text[:-1].split("\n\n")]
        assert len(documents) >= at_least
        assert min(map(len, documents)) >= 2
        for sentence in itertools.chain(*documents):
            assert sentence == " ".join(sentence.split())
            assert python_english.is_prose(sentence)
        assert not re.search(r"`|::=", text)
        assert len(re.findall(r"[A-Za-z ]", text)) > 0.93 * len(text)
        num_words += len(text.split())
    # Some distributions of Python come without tkinter and idlelib.
    assert 200_000 <= num_words <= 333_000
