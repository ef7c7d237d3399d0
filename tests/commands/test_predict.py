"""predict.py: input formats, JSON lines, flags, errors with line numbers."""

import csv
import gzip
import io
import json
import os
import re
import shutil
import subprocess
import sys
import types

import pytest
from support import ROOT, command_lines, conversions, tiny
from support.processes import started
from support.run_outputs import weights

from official_bert.commands import predict
from official_bert.errors import InputError
from official_bert.inference import line_prediction, masked_lm
from official_bert.inference.predictor import Predictor
from official_bert.inference.trained_models import load_masked_lm
from official_bert.options import Predict
from official_bert.runs import checkpoints as run_directory
from official_bert.sources.pretrained import run_files
from official_bert.tasks.choice import ChoiceColumns, ChoiceTask
from official_bert.tasks.tagging import TaggingTask
from official_bert.tasks.text import TextColumns, TextTask


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    return tiny.save_both(tmp_path_factory.mktemp("models"))


@pytest.fixture(scope="module")
def tuned(models):
    return str(models / "tuned")


@pytest.fixture(scope="module")
def pretrained(models):
    return str(models / "pretrained")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def set_stdin(monkeypatch, data):
    """Replaces standard input with `data`, which arrives in parts."""

    class Parts(io.BytesIO):
        def read1(self, size=-1):
            return self.readline(7)

    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(Parts(data)))


@pytest.fixture
def ask(folder, monkeypatch, capsys):
    """A function that runs the command on `data` and returns its answers."""

    def run(data, name="a.txt", **options):
        set_stdin(monkeypatch, data)
        if name != "-":
            (folder / name).write_bytes(data)
        predict.main(Predict(input_file=name, **options))
        out = capsys.readouterr().out
        return [json.loads(line) for line in out.splitlines()]

    return run


def check(found, items, model_dir):
    """Asserts that answers equal those of a `Predictor`."""
    assert [answer.pop("input") for answer in found] == items
    expected = Predictor.from_dir(model_dir)(items)
    assert [a["label"] for a in found] == [a["label"] for a in expected]
    for answer, other in zip(found, expected, strict=True):
        assert answer.keys() == other.keys()
        assert answer["probabilities"] == pytest.approx(
            other["probabilities"], abs=1e-6
        )


PAIRS = ["good cat", ["red sun ?", "it is rain"], ["what", ""], "dog"]
OBJECT = {"text_a": "Käse", "id": 7, "label": "?"}


@pytest.mark.parametrize(
    ("name", "text", "items", "options"),
    [
        (
            "a.txt",
            "\ufeffgood cat\r\n\n \nbad\tdog\nsun",
            ["good cat", "bad\tdog", "sun"],
            {"chunk_size": 2},
        ),
        ("a.tsv", "good cat\nred sun ?\tit is rain\nwhat\t\ndog\n", PAIRS, {}),
        ("a.tsv.gz", "cat\tdog\n", [["cat", "dog"]], {}),
        (
            "-",
            "cat\tis dog\r\nsun",
            [["cat", "is dog"], "sun"],
            {"input_format": "tsv"},
        ),
        ("a.jsonl", "\n".join(map(json.dumps, PAIRS)), PAIRS, {}),
        (
            "b.jsonl",
            f'{json.dumps(OBJECT)}\n\n["cat", "dog"]\n',
            [OBJECT, ["cat", "dog"]],
            {"chunk_size": 1},
        ),
    ],
)
def test_input_format_follows_from_the_file_name_or_the_flag(
    tuned, ask, name, text, items, options
):
    data = text.encode()
    data = gzip.compress(data) if name.endswith(".gz") else data
    check(ask(data, name, model_dir=tuned, **options), items, tuned)


TABLES = {
    "a.csv": 'id,review,2020\n1,"good, ""red"" cat",5\n2,bad dog,1\n',
    "a.tsv": 'id\treview\tstars\n1\tgood, "red" cat\t5\n2\tbad dog\t1\n',
    "a.jsonl": '{"id": 1, "review": "good, \\"red\\" cat"}\n'
    '{"review": "bad dog", "stars": 1}\n',
}


COLUMN_NAMES = ("id", "review", "2020")


def save_own_model(
    folder, *columns, task_type="classification", has_header=True
):
    """Saves a model for a user's own tables; returns its run directory."""
    task = TextTask(
        task_type=task_type,
        labels=() if task_type == "regression" else ("no", "yes"),
        is_pair=len(columns) == 2,
        columns=TextColumns(columns, has_header),
    )
    return tiny.save_finetuned(folder / "own", task)


@pytest.mark.parametrize("name", TABLES)
def test_own_tables_are_read_with_the_columns_of_training(name, folder, ask):
    model_dir = save_own_model(folder, "review")
    found = ask(TABLES[name].encode(), name, model_dir=model_dir)
    for answer in found:
        answer["input"] = answer["input"]["review"]
    check(found, ['good, "red" cat', "bad dog"], model_dir)


def read_table(path):
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


PROBABILITIES = ["probability_no", "probability_yes"]


@pytest.mark.parametrize(
    ("task_type", "added"),
    [
        ("classification", ["predicted_label", *PROBABILITIES]),
        ("multilabel", ["predicted_labels", *PROBABILITIES]),
        ("regression", ["predicted_score"]),
    ],
)
def test_csv_output_is_the_input_table_with_predictions(
    folder, task_type, added
):
    model_dir = save_own_model(folder, "review", task_type=task_type)
    (folder / "a.csv").write_text(TABLES["a.csv"])
    flags = {"model_dir": model_dir, "chunk_size": 1}
    predict.main(Predict(input_file="a.csv", output_file="b.csv", **flags))
    rows, table = read_table("b.csv"), read_table("a.csv")
    assert [list(row) for row in rows] == [[*COLUMN_NAMES, *added]] * 2
    assert [{name: row[name] for name in COLUMN_NAMES} for row in rows] == table
    answers = Predictor.from_dir(model_dir)([row["review"] for row in table])
    for row, answer in zip(rows, answers, strict=True):
        if task_type == "regression":
            expected = pytest.approx(answer["score"])
            assert float(row["predicted_score"]) == expected
            continue
        probabilities = [float(row[name]) for name in PROBABILITIES]
        expected = [answer["probabilities"][name] for name in ("no", "yes")]
        assert probabilities == pytest.approx(expected, abs=1e-6)
        if task_type == "classification":
            assert row["predicted_label"] == answer["label"]
    again = Predict(input_file="b.csv", output_file="c.csv", **flags)
    message = f"already has the columns .*{added[0]}"
    with pytest.raises(InputError, match=message):
        predict.main(again)
    assert not os.path.exists("c.csv")


def test_csv_output_has_separator_and_byte_order_mark_of_input(folder, caplog):
    model_dir = save_own_model(folder, "review", task_type="regression")
    rows = ["1;good, red", "2;bäd", "3; ", "4;"]
    (folder / "a.csv").write_text("\n".join(["\ufeffid;review", *rows]))
    files = {"input_file": "a.csv", "output_file": "b.csv"}
    predict.main(Predict(model_dir=model_dir, chunk_size=1, **files))
    header, *lines = (folder / "b.csv").read_text().splitlines()
    assert header == "\ufeffid;review;predicted_score"
    assert [line.rpartition(";")[0] for line in lines] == rows
    assert "empty texts: a.csv:4, a.csv:5. Their" in caplog.text


CHOICES = "question,A,B,C\nis it ?,cat,dog,sun\nis it red ?,sun,rain,\n"


@pytest.mark.slow
@pytest.mark.parametrize("has_header", [True, False])
@pytest.mark.parametrize("is_recorded", [True, False])
def test_tables_of_choices_are_read_with_the_columns_of_training(
    has_header, is_recorded, folder, ask
):
    names = ("A,B,C", "question") if has_header else ("1,2,3", "0")
    required = (names[1], *names[0].split(",")) if is_recorded else ()
    columns = ChoiceColumns("context", *names, has_header, required)
    task = ChoiceTask(num_choices=3, columns=columns)
    model_dir = tiny.save_finetuned(folder / "own", task)
    lines = CHOICES if has_header else CHOICES.partition("\n")[2]
    found = ask(lines.encode(), "a.csv", model_dir=model_dir)
    expected = Predictor.from_dir(model_dir)(
        [
            {"question": "is it ?", "choices": ["cat", "dog", "sun"]},
            {"question": "is it red ?", "choices": ["sun", "rain"]},
        ]
    )
    for answer, other in zip(found, expected, strict=True):
        assert answer["text"] == other["text"]
        probabilities = pytest.approx(other["probabilities"], abs=1e-6)
        assert answer["probabilities"] == probabilities
    flags = {"model_dir": model_dir, "input_file": "a.csv"}
    predict.main(Predict(**flags, output_file="b.csv"))
    if not has_header:
        return
    for name in required:
        other = lines.replace(name, "other", 1).encode()
        with pytest.raises(InputError, match=f"must have a column '{name}'"):
            ask(other, "other.csv", model_dir=model_dir)
    added = ["predicted_choice", "predicted_text", "probability"]
    for row, answer in zip(read_table("b.csv"), expected, strict=True):
        assert list(row) == ["question", "A", "B", "C", *added]
        assert row["predicted_text"] == answer["text"]
        assert row["predicted_choice"] == str(answer["choice"])
        best = pytest.approx(max(answer["probabilities"]), abs=1e-6)
        assert float(row["probability"]) == best
    message = "--text_column=A is not supported by a model"
    with pytest.raises(InputError, match=message):
        Predict(**flags, text_a_column="A")


@pytest.fixture
def tagger(folder):
    """The run directory of a tagger that was trained on words in column 1."""
    task = TaggingTask(labels=("N", "V"), token_column=1, document_context=True)
    return tiny.save_finetuned(folder / "tagger", task)


# The last tag is unknown to the model.
COLUMNS = b"1\tgood\tN\n2\tcat?\tV\n\n1\train\tNEW\n"
SENTENCES = [
    {"tokens": ["good", "cat?"], "after": ["rain"]},
    {"tokens": ["rain"], "before": ["good", "cat?"]},
]


@pytest.mark.parametrize(
    ("name", "options", "items"),
    [
        ("a.txt", {}, SENTENCES),
        ("a.tsv", {"chunk_size": 1}, SENTENCES),
        ("a.conll", {}, SENTENCES),
        ("a.csv", {"input_format": "conll"}, SENTENCES),
        (
            "a.txt",
            {"input_format": "lines"},
            ["1\tgood\tN", "2\tcat?\tV", "1\train\tNEW"],
        ),
    ],
)
def test_tagger_reads_columns_as_in_training(tagger, ask, name, options, items):
    found = ask(COLUMNS, name, model_dir=tagger, **options)
    words = [i if isinstance(i, str) else i["tokens"] for i in items]
    assert [answer.pop("input") for answer in found] == words
    expected = Predictor.from_dir(tagger)(items)
    assert found == json.loads(json.dumps(expected))


def test_column_flag_must_name_a_key_of_each_object(tuned, ask):
    data = b'{"text": "cat", "review": "bad"}\n'
    with pytest.raises(InputError, match=r"'reviews' \(--text_column\)"):
        ask(data, "a.jsonl", model_dir=tuned, text_a_column="reviews")
    [found] = ask(data, "a.jsonl", model_dir=tuned, text_a_column="review")
    found["input"] = "bad"
    check([found], ["bad"], tuned)


def test_column_flags_override_those_of_training(tuned, folder, ask):
    table = b"7\tgood cat\tit is rain\t1\n", "a.tsv"
    columns = {"text_a_column": "1", "text_b_column": "2"}
    [found] = ask(*table, model_dir=tuned, has_header=False, **columns)
    cells = {"0": "7", "1": "good cat", "2": "it is rain", "3": "1"}
    assert found["input"] == cells
    found["input"] = ["good cat", "it is rain"]
    check([found], [["good cat", "it is rain"]], tuned)
    own = save_own_model(folder, "3")
    [found] = ask(*table, model_dir=own, has_header=False)
    found["input"] = "1"
    check([found], ["1"], own)
    # Without --has_header, tables have a header if they had one in training.
    own = save_own_model(folder, "0", has_header=False)
    [found] = ask(*table, model_dir=own, text_a_column="1")
    assert found["input"] == cells


@pytest.mark.parametrize(
    ("columns", "name", "data", "options", "message"),
    [
        ("", "a.csv", TABLES["a.csv"], {"text_a_column": "x"}, ": .*'x'"),
        ("", "a.tsv", "x\n\na\tb\tc\n", {}, ":3: .*3 columns"),
        ("", "a.jsonl", '"a"\n{"b": }', {}, ":2: "),
        ("", "a.jsonl", '"a"\n17\n', {}, ":2: .*17"),
        ("", "a.jsonl", '["\\ud800"]', {}, ":1: "),
        ("", "a.txt", b"a\nb\n\xff\n", {}, ":3: .*UTF-8"),
        ("", "-", b"a\nb\n\xff\n", {}, ":3: .*UTF-8.* 0xff"),
        ("ab", "a.jsonl", '"good cat"', {}, ":1: .*good cat"),
        ("a", "a.jsonl", '["good", "cat"]', {}, ":1: .*'good', 'cat'"),
        ("a", "a.jsonl", '{"c": "good"}', {}, ":1: .*'c': 'good'"),
    ],
)
def test_invalid_line_is_named_and_the_output_file_is_unchanged(
    tuned, folder, columns, name, data, options, message, ask
):
    data = data if isinstance(data, bytes) else data.encode()
    (folder / "out.jsonl").write_text("unchanged")
    model_dir = save_own_model(folder, *columns) if columns else tuned
    options = {"model_dir": model_dir, "output_file": "out.jsonl", **options}
    where = "<stdin>" if name == "-" else name
    with pytest.raises(InputError, match=f"^{where}{message}"):
        ask(data, name, chunk_size=1, **options)
    assert (folder / "out.jsonl").read_text() == "unchanged"
    assert not list(folder.glob("*.tmp*"))


def test_chunks_before_an_invalid_line_are_answered(tuned, ask, capsys):
    with pytest.raises(InputError, match=r"^a\.jsonl:3"):
        ask(b'"a"\n"b"\n3\n', "a.jsonl", model_dir=tuned, chunk_size=2)
    assert len(capsys.readouterr().out.splitlines()) == 2


def test_lines_that_arrive_together_form_chunks(tuned, monkeypatch):
    parts = [b"a\nb\n\nc", b"d\n", b"e", b"f", b"\ng", b""]
    stream = types.SimpleNamespace(read1=lambda size: parts.pop(0))
    monkeypatch.setattr(sys, "stdin", types.SimpleNamespace(buffer=stream))
    options = Predict(model_dir=tuned, chunk_size=2)
    answerer = types.SimpleNamespace(parse=lambda value, where: where)
    assert list(line_prediction.read_chunks(answerer, options)) == [
        [("<stdin>:1", "a"), ("<stdin>:2", "b")],
        [("<stdin>:4", "cd")],
        [("<stdin>:5", "ef")],
        [("<stdin>:6", "g")],
    ]


@pytest.mark.parametrize("input_file", ["a.txt", "-"])
def test_output_file_is_written_with_a_progress_bar(
    tuned, folder, monkeypatch, capsys, input_file
):
    texts = ["good", "日 cat", "bad dog it is what"]
    data = "\n\n".join(texts).encode()
    (folder / "a.txt").write_bytes(data)
    set_stdin(monkeypatch, data)
    files = {"input_file": input_file, "output_file": "new/out.jsonl"}
    predict.main(Predict(model_dir=tuned, **files))
    shown = capsys.readouterr()
    assert shown.out == "Wrote 3 predictions to new/out.jsonl\n"
    assert "Predicting" in shown.err
    assert ("100%" in shown.err) == (input_file == "a.txt")
    found = (folder / "new" / "out.jsonl").read_text()
    assert "日" in found  # Not escaped.
    check([json.loads(line) for line in found.splitlines()], texts, tuned)
    assert os.listdir(folder / "new") == ["out.jsonl"]


@pytest.mark.slow
def test_piped_lines_are_answered_at_once_until_a_pipe_is_closed(tuned, folder):
    command = [str(ROOT / "predict.py"), f"--model_dir={tuned}"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with (
        open("errors.txt", "w", encoding="utf-8") as errors,
        started(*command, **pipes, stderr=errors) as process,
    ):
        for text in ("good", "bad dog", "it is rain ?"):
            process.stdin.write(text + "\n")
            process.stdin.flush()
            answer = json.loads(process.stdout.readline())
            assert answer["input"] == text
        process.stdout.close()
        process.stdin.write("good\n")
        process.stdin.close()
    assert process.returncode == 0
    assert "BrokenPipe" not in (folder / "errors.txt").read_text()


def test_invalid_line_at_a_terminal_does_not_end_the_command(
    pretrained, monkeypatch, capsys
):
    set_stdin(monkeypatch, b"good\ngood [MASK]\n")
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    predict.main(Predict(model_dir=pretrained, fill_mask=True))
    shown = capsys.readouterr()
    assert shown.err.startswith("<stdin>:1: ")
    assert json.loads(shown.out)["input"] == "good [MASK]"


PAIR_LINES = '["a b", "c d"]\n["e", "f g"]\n'
WORD_LINES = '"a b, c"\n["d", "e f"]\n'
QUESTION_LINE = '{"question": "a b", "context": "c d e"}\n'


TEXT_HEAD, MULTILABEL = "sequence_classification", "multi_label_classification"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("head", "num_classes", "problem_type", "data", "key"),
    [
        (TEXT_HEAD, 3, None, PAIR_LINES, "label"),
        (TEXT_HEAD, 1, "regression", PAIR_LINES, "score"),
        (TEXT_HEAD, 3, MULTILABEL, PAIR_LINES, "labels"),
        ("token_classification", 3, None, WORD_LINES, "tags"),
        ("question_answering", 2, None, QUESTION_LINE, "answer"),
    ],
)
def test_huggingface_model_gives_the_answers_of_the_converted_one(
    head, num_classes, problem_type, data, key, folder, capsys, caplog
):
    conversions.released(folder / "a", head, num_classes)
    model = conversions.to_hf(folder / "a", head)
    conversions.change_json(model / "config.json", problem_type=problem_type)
    path = model / "tokenizer_config.json"
    conversions.change_json(path, strip_accents=False)
    converted = conversions.to_tf1(model)
    (folder / "a.jsonl").write_text(data)
    capsys.readouterr()
    caplog.clear()
    line = f"--model={model} --input_file=a.jsonl"
    predict.main(command_lines.parse(Predict, line))
    found = capsys.readouterr().out
    predict.main(Predict(model_dir=str(converted), input_file="a.jsonl"))
    assert found == capsys.readouterr().out
    answers = [json.loads(answer) for answer in found.splitlines()]
    assert len(answers) == len(data.splitlines())
    assert all(key in answer for answer in answers)
    assert caplog.text.count("`strip_accents` is False") == 1
    items = [answer.pop("input") for answer in answers]
    assert Predictor.from_pretrained(str(model))(items) == answers


def test_fill_mask_needs_no_pooler_and_no_next_sentence_head(
    pretrained, folder, ask
):
    arrays = weights(pretrained)
    unused = re.compile("pooler|seq_relationship")
    kept = {n: a for n, a in arrays.items() if not unused.search(n)}
    shutil.copytree(pretrained, "masked_lm")
    run_directory.save("masked_lm", 3, kept, None, keep=1)
    expected, found = (
        ask(b"good [MASK]\n", model_dir=directory, fill_mask=True)
        for directory in (pretrained, "masked_lm")
    )
    assert found == expected


@pytest.mark.slow
def test_fill_mask_equals_the_python_api(pretrained, ask):
    source = {
        "bert_config_file": f"{pretrained}/bert_config.json",
        "vocab_file": f"{pretrained}/vocab.txt",
        "init_checkpoint": f"{pretrained}/model.ckpt-3",
    }
    texts = ["Good [MASK].", "it is [MASK] [MASK] ?"]
    found = ask("\n".join(texts).encode(), fill_mask=True, top_k=3, **source)
    assert [answer["input"] for answer in found] == texts
    loaded = load_masked_lm(run_files(pretrained))
    for answer, text in zip(found, texts, strict=True):
        expected = masked_lm.fill(*loaded, text, num_guesses=3)
        assert len(expected) == text.count("[MASK]")
        for mine, other in zip(answer["guesses"], expected, strict=True):
            found = {g["token"]: g["probability"] for g in mine}
            assert found == pytest.approx(dict(other), rel=1e-5)


def test_score_depends_on_the_case(pretrained, ask):
    data = b"Good cat\nit is what ?\n"
    lower, kept = (
        ask(data, score=True, do_lower_case=case, model_dir=pretrained)
        for case in (None, False)
    )
    assert [answer["num_tokens"] for answer in lower] == [2, 4]
    # "Good" is not in the vocabulary, "it" is.
    assert lower[0]["perplexity"] != kept[0]["perplexity"]
    assert lower[1] == kept[1]


FILES = "--score --bert_config_file=PRE/bert_config.json"
VOCABULARY = f"{FILES} --vocab_file=PRE/vocab.txt"
CASED = "cased_L-12_H-768_A-12"
TAGGER = '{"kind": "tagging"}'
LEFT_TO_RIGHT = '{"is_left_to_right": true, "vocab_size": 9}'
HF_CONFIG = '{"architectures": ["BertForMaskedLM"], "model_type": "bert"}'
FOLDER = {
    **dict.fromkeys(("a.txt", "a.tsv", "a.csv", "a.conll", "a.json"), ""),
    "TAGS/task.json": TAGGER,
    "TAGS/bert_config.json": TAGGER,
    "TAGS/vocab.txt": "a",
    "SWEEP/sweep.tsv": "",
    "LTR/bert_config.json": LEFT_TO_RIGHT,
    "LTR/vocab.txt": "a",
    "HF/config.json": HF_CONFIG,
    "HF/vocab.txt": "a",
    "HF/model.safetensors": "",
    f"{CASED}/bert_model.ckpt.index": "",
}
TUNED = "--model_dir=TUNED"
PRETRAINED = "--model_dir=PRE"
SCORE = f"--score {PRETRAINED}"
WRONG = [
    ("", "--model_dir must be given"),
    ("--model_dir=none", "none: must be an existing run directory"),
    ("--model_dir=SWEEP", "SWEEP: must .* not of a sweep"),
    (PRETRAINED, "pretrained: .* task.json"),
    (f"{TUNED} --score", "tuned: --fill_mask and --score"),
    (f"{TUNED} --do_lower_case", "--do_lower_case needs"),
    (f"{TUNED} --vocab_file=v", "conflicts with --vocab_file=v"),
    ("--fill_mask --score", "--fill_mask conflicts with --score"),
    ("--score --model=", "--model, --model_dir or .*--init_checkpoint must be"),
    (f"{SCORE} --vocab_file=v", "conflicts with --vocab_file"),
    ("--score --vocab_file=v", "--bert_config_file, --init_checkpoint must"),
    (
        f"{FILES} --vocab_file=none --init_checkpoint=PRE/model.ckpt-3",
        "--vocab_file must be an existing file",
    ),
    (f"{VOCABULARY} --init_checkpoint=PRE/none", "--init_checkpoint=.*none "),
    (f"{VOCABULARY} --init_checkpoint={CASED}/bert_model.ckpt", "cased model"),
    (f"{TUNED} --input_file=none", "--input_file=none"),
    (f"{TUNED} --input_file=a.json", "=a.json must be JSON Lines"),
    (f"{TUNED} --null_score_diff_threshold=0", "=0.0 needs a .*SQuAD 2.0"),
    (f"{TUNED} --input_file=a.txt --output_file=./a.txt", "=./a.txt"),
    (f"{TUNED} --output_file=TUNED/vocab.txt", "--output_file=.*vocab.txt"),
    (f"{TUNED} --output_file=TUNED/task.json", "--output_file=.*task.json"),
    (f"{TUNED} --output_file=TUNED/checkpoint", "--output_file=.*checkpoint"),
    (f"{TUNED} --output_file=TUNED/model.ckpt-3.index", "--output_file=.*ckpt"),
    ("--model=PRE", "pretrained must be .*--fill_mask .* run_classifier.py"),
    ("--model=HF", "--model=HF must .* BertForMaskedLM. .*--score"),
    ("--model_dir=LTR --fill_mask", r"config\.json: .* left-to-right model"),
    (f"{TUNED} --input_format=xml", "--input_format=xml"),
    (f"{TUNED} --input_format=csv", "--input_format=csv needs --input_file"),
    ("--model_dir=TAGS --input_format=conll", "=conll needs --input_file"),
    (f"{TUNED} --input_file=a.conll", "--input_file=a.conll .* tags words"),
    (
        f"{TUNED} --input_file=a.txt --input_format=conll",
        "--input_format=conll .* tags words",
    ),
    (f"{SCORE} --input_file=a.conll", "--input_file=a.conll"),
    (f"{TUNED} --text_b_column=b", "--text_b_column=b needs --text_column"),
    (f"{SCORE} --text_a_column=a --input_file=a.tsv", "--text_column=a"),
    (f"{SCORE} --input_file=a.csv", "--input_file=a.csv"),
    (f"{TUNED} --input_format=tsv --text_a_column=a", "--text_column=a"),
    (f"{TUNED} --input_file=a.txt --nohas_header", "--nohas_header"),
    (f"{TUNED} --output_file=b.csv", "--output_file=b.csv needs a table"),
    (f"{TUNED} --output_file=b.tsv", "--output_file=b.tsv must end in .csv"),
    (f"{TUNED} --output_file=b.csv.gz", "b.csv.gz must end in .csv"),
    (f"{TUNED} --input_file=a.tsv --output_file=b.CSV", "b.CSV needs --text_c"),
    (f"{SCORE} --output_file=b.csv", "--output_file=b.csv needs a table"),
    (f"{TUNED} --input_file=a.csv", "=a.csv needs --text_column"),
    (f"{TUNED} --input_file=a.tsv --has_header", "--has_header needs --text_c"),
    (
        "--model_dir=TAGS --input_file=a.tsv --text_a_column=a",
        "--text_column=a .*tagging",
    ),
]


@pytest.mark.parametrize(("command_line", "message"), WRONG)
def test_invalid_flags_are_an_error(command_line, message, models, folder):
    for name, text in FOLDER.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    for word, name in (("PRE", "pretrained"), ("TUNED", "tuned")):
        command_line = command_line.replace(word, str(models / name))
    with pytest.raises(InputError, match=message):
        command_lines.parse(Predict, command_line)


@pytest.mark.parametrize(
    ("stream", "flag"), [("stdin", "--input_file"), ("stdout", "--output_file")]
)
def test_closed_standard_stream_is_an_error(tuned, monkeypatch, stream, flag):
    monkeypatch.setattr(sys, stream, None)
    with pytest.raises(InputError, match=f"{flag} must be given"):
        Predict(model_dir=tuned)
