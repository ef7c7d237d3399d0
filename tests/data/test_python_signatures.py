import ast
import collections
import json
import os
import random
import re

import pytest
import python_english
import python_signatures
from python_signatures import Function, PythonSignatures
from support import ROOT
from support.processes import run_python

pytestmark = pytest.mark.slow

PARTS = ("train", "dev", "test")
SOURCE = """
def a(): 'Return `it` of the\\nothers. Or not so.'
def b(self, a, b=1): 'b(a) -> Return the one of it.'
async def c(cls: type) -> str: 'This is c.'
def d(a, /, b, *, c='x', **rest): 'This is d.'
def e(other, self, *args): 'This is e.'
def f(): 'Short.\\n\\nThis is not the summary of it.'
def g(): ''
class A:
    class B:
        def f(self):
            'This is f of B.'
            def inner(): 'This is not for users.'
    def g(self): 'This is c.'
    def h(self): ...
if A:
    def i(x): 'This is i of all.'
"""


def test_functions_have_signatures_and_summaries():
    assert list(python_signatures.functions(ast.parse(SOURCE))) == [
        ("a()", "Return it of the others."),
        ("b(a, b)", "Return the one of it."),
        ("c()", "This is c."),
        ("d(a, b, c, rest)", "This is d."),
        ("e(other, self, args)", "This is e."),
        ("A.B.f()", "This is f of B."),
        ("A.g()", "This is c."),
        ("i(x)", "This is i of all."),
    ]


def test_functions_with_the_summary_of_an_earlier_one_are_skipped(tmp_path):
    f, g, h = (f"def {name}(): 'This is it.'\n" for name in "fgh")
    (tmp_path / "b").mkdir()
    (tmp_path / "a.py").write_text(f + g)
    (tmp_path / "b" / "c.py").write_text(h + "def i(): 'That is it.'\n")
    (tmp_path / "broken.py").write_text("def (")
    assert python_signatures.collect(tmp_path) == [
        ("a", "f()", "This is it."),
        ("b", "i()", "That is it."),
    ]


@pytest.mark.parametrize("count", [2, 3, 50])
def test_each_signature_and_summary_is_in_one_right_and_one_wrong_pair(count):
    functions = [Function("p", f"f{n}()", f"It is {n}.") for n in range(count)]
    rows = python_signatures.pairs(functions, random.Random(1))
    belongs = {(f.signature, f.summary) for f in functions}
    for row in rows:
        assert ((row.signature, row.summary) in belongs) == (row.label == "yes")
    for column in ("signature", "summary"):
        seen = {(getattr(row, column), row.label) for row in rows}
        assert len(seen) == len(rows) == 2 * count


@pytest.fixture(scope="module")
def functions():
    """The functions of the standard library."""
    return python_signatures.collect(python_english.LIBRARY)


@pytest.fixture(scope="module")
def output_dir(tmp_path_factory, functions):
    directory = tmp_path_factory.mktemp("signatures")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(python_signatures, "collect", lambda _: functions)
        python_signatures.main(PythonSignatures(output_dir=str(directory)))
    return directory


def read(directory, part):
    header, *lines = (directory / f"{part}.tsv").read_text("utf-8").splitlines()
    assert header == "signature\tsummary\tlabel"
    return [line.split("\t") for line in lines]


def test_files_are_balanced_and_well_formed(output_dir):
    # Linux distributions package parts of the standard library separately.
    for part, at_least in zip(PARTS, (7000, 400, 400), strict=True):
        rows = read(output_dir, part)
        assert len(rows) >= at_least
        for signature, summary, _ in rows:
            assert re.fullmatch(r"[\w.]+\([\w, ]*\)", signature)
            assert summary == " ".join(summary.split()) != ""
        labels = collections.Counter(label for _, _, label in rows)
        assert labels["yes"] == labels["no"] == len(rows) / 2


def test_pairs_are_the_right_ones_for_embeddings(
    tmp_path, output_dir, functions, monkeypatch
):
    monkeypatch.setattr(python_signatures, "collect", lambda _: functions)
    options = PythonSignatures(output_dir=str(tmp_path), pairs=True)
    python_signatures.main(options)
    for part in PARTS:
        text = (tmp_path / f"{part}.tsv").read_text("utf-8")
        header, *pairs = (line.split("\t") for line in text.splitlines())
        assert header == ["query", "positive"]
        right = [
            [b, a] for a, b, label in read(output_dir, part) if label == "yes"
        ]
        assert sorted(pairs) == sorted(right)


# Reads functions from standard input.
WRITE = """
import json, sys
import python_signatures as signatures
functions = [signatures.Function(*fields) for fields in json.load(sys.stdin)]
signatures.collect = lambda _: functions
signatures.main(signatures.PythonSignatures(output_dir=sys.argv[1]))
"""


def test_packages_and_summaries_are_in_one_file_only(
    output_dir, functions, tmp_path
):
    summaries = [{row[1] for row in read(output_dir, part)} for part in PARTS]
    assert sum(map(len, summaries)) == len(set.union(*summaries))
    found = collections.defaultdict(set)
    for package, _, summary in functions:
        for part, known in zip(PARTS, summaries, strict=True):
            if summary in known:
                found[package].add(part)
    assert len(found) > 100
    assert all(len(parts) == 1 for parts in found.values())
    # Another process writes the same files.
    env = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'data'}"}
    given = json.dumps(functions)
    run_python("-W", "error", "-c", WRITE, tmp_path, input=given, env=env)
    for name in (f"{part}.tsv" for part in PARTS):
        expected = (output_dir / name).read_bytes()
        assert (tmp_path / name).read_bytes() == expected
