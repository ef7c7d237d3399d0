"""predict.py: lines and streams, flags, errors with line numbers."""

import gzip
import json
import os
import re
import subprocess
import sys
import types

import pytest
from support import ROOT, command_lines, conversions
from support.predictions import check, set_stdin
from support.processes import started

from official_bert.commands import predict
from official_bert.errors import InputError
from official_bert.inference import line_prediction
from official_bert.inference.predictor import Predictor
from official_bert.options import Predict

PAIRS = ["good cat", ["red sun ?", "it is rain"], ["what", ""], "dog"]
OBJECT = {"text_a": "Käse", "id": 7, "label": "?"}
TSVS = {"input_format": "tsv"}
ONE, TWO = {"chunk_size": 1}, {"chunk_size": 2}


LINES = "\ufeffgood cat\r\n\n \nbad\tdog\n\ufeffsun\rrain"
TSV = "good cat\nred sun ?\tit is rain\nwhat\t\ndog\n"
MIXED = f'{json.dumps(OBJECT)}\n\n["cat", "dog"]\n'


@pytest.mark.parametrize(
    ("name", "text", "items", "options"),
    [
        ("a.txt", LINES, ["good cat", "bad\tdog", "sun rain"], TWO),
        ("a.tsv", TSV, PAIRS, {}),
        ("A.TSV.GZ", "cat\tdog\n", [["cat", "dog"]], {}),
        (
            "-",
            "cat\tis dog\r\nsun\rrain",
            [["cat", "is dog"], "sun rain"],
            TSVS,
        ),
        ("a.jsonl", "\n".join(map(json.dumps, PAIRS)), PAIRS, {}),
        ("b.jsonl", MIXED, [OBJECT, ["cat", "dog"]], ONE),
    ],
)
def test_input_format_follows_from_the_file_name_or_the_flag(
    tuned, ask, name, text, items, options
):
    data = text.encode()
    data = gzip.compress(data) if name.endswith(".GZ") else data
    check(ask(data, name, model_dir=tuned, **options), items, tuned)


X = {"text_a_column": "x"}


@pytest.mark.parametrize(
    ("columns", "name", "data", "options", "message"),
    [
        ("", "a.csv", "id,b\n1,good\n", X, ": .*'x'"),
        ("", "a.tsv", "x\n\na\tb\tc\n", {}, ":3: .*3 columns"),
        ("", "a.jsonl", '"a"\n{"b": }', {}, ":2: "),
        ("", "a.jsonl", '"a"\n17\n', {}, ":2: .*17"),
        ("", "a.jsonl", '["\\ud800"]', {}, ":1: "),
        ("", "a.txt", b"a\nb\n\xff\n", {}, ":3: .*UTF-8"),
        ("", "-", b"a\nb\n\xff\n", {}, ":3: .*UTF-8.* 0xff"),
        ("ab", "a.jsonl", '"good cat"', {}, ":1: .*good cat"),
        ("a", "a.jsonl", '["good", "cat"]', {}, ":1: .*'good', 'cat'"),
        ("a", "a.jsonl", '{"c": "good"}', {}, ":1: .*'c': 'good'"),
        ("a", "-", "good\tcat\n", TSVS, ":1: .*=lines"),
        ("ab", "a.txt", "good\tcat\n", {}, ":1: .*--input_format=tsv"),
        ("ab", "a.jsonl", '{"x": "good"}', X, ":1: .*pair of texts.* add --te"),
    ],
)
def test_invalid_line_is_named_and_the_output_file_is_unchanged(
    tuned, own_model, folder, columns, name, data, options, message, ask
):
    data = data if isinstance(data, bytes) else data.encode()
    (folder / "out.jsonl").write_text("unchanged")
    model_dir = own_model(*columns) if columns else tuned
    options = {"model_dir": model_dir, "output_file": "out.jsonl", **options}
    where = "<stdin>" if name == "-" else name
    with pytest.raises(InputError, match=f"^{where}{message}"):
        ask(data, name, chunk_size=1, **options)
    assert (folder / "out.jsonl").read_text() == "unchanged"
    assert not list(folder.glob("*.tmp*"))


@pytest.mark.parametrize(
    ("name", "header", "flags", "is_table"),
    [
        ("-", "id,a", {}, True),
        ("data", '"a";"label"', {}, True),
        ("a.txt", "a", {}, True),
        ("a.txt", "a", {"input_format": "lines"}, False),
        ("a.txt", "a sun, good", {}, False),
    ],
)
def test_table_that_is_read_as_texts_is_a_warning(
    own_model, ask, caplog, name, header, flags, is_table
):
    data = f"{header}\na\n".encode()
    assert len(ask(data, name, model_dir=own_model("a"), **flags)) == 2
    assert ("has the names of the columns" in caplog.text) == is_table


@pytest.mark.parametrize("flags", [{}, {"fill_mask": True}])
@pytest.mark.parametrize(
    ("line", "changes", "is_object"),
    [
        ('{"text": "a [MASK]"}', {}, True),
        ('{"text": "a [MASK]"}', {"input_format": "jsonl"}, False),
        ('{"text": "a [MASK]"}', {"input_format": "lines"}, False),
        ("{a [MASK]}", {}, False),
    ],
)
def test_json_object_that_is_read_as_a_text_is_a_warning(
    tuned, ask, caplog, flags, line, changes, is_object
):
    model = {} if flags else {"model_dir": tuned}
    [answer] = ask(f"{line}\n".encode(), "-", **flags, **model, **changes)
    is_parsed = changes == {"input_format": "jsonl"}
    assert isinstance(answer["input"], dict) == is_parsed
    assert ("but is a JSON object" in caplog.text) == is_object


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
@pytest.mark.parametrize("method", ["occlusion", "integrated_gradients"])
def test_explanations_load_nothing_and_escape_the_text(tuned, folder, method):
    lines = ["good cat </bdi><b>it", "red", "?"]
    (folder / "a.txt").write_text("\n".join(lines))
    files = {"input_file": "a.txt", "output_file": "out.html"}
    predict.main(Predict(model_dir=tuned, explain=method, **files))
    page = (folder / "out.html").read_text()
    assert "default-src 'none'" in page
    assert "://" not in page
    assert "<b>" not in page
    words = re.findall("<bdi>(.+?)</bdi>", page)
    assert words[1:5] == ["[CLS]", "good", "cat", "[UNK]"]
    for answer in Predictor.from_dir(tuned, explain=method)(lines):
        [[output]] = [part["outputs"] for part in answer["explanation"]]
        assert f"<bdi>{output['output']}</bdi>" in page
        for score in output["scores"]:
            assert f">{score:+.2f}</span>" in page


def test_explanations_are_added_to_the_answers(tuned, ask):
    data = b"good cat\nred sun ?\n"
    plain = ask(data, model_dir=tuned)
    explained = ask(data, model_dir=tuned, explain="occlusion")
    found = [answer.pop("explanation") for answer in explained]
    words = [part["words"] for [part] in found]
    assert words[1] == ["[CLS]", "red", "sun", "?", "[SEP]"]
    assert explained == plain


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


def test_invalid_line_does_not_end_a_terminal(pretrained, monkeypatch, capsys):
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
    head, num_classes, problem_type, data, key, folder, capsys
):
    conversions.released(folder / "a", head, num_classes)
    model = conversions.to_hf(folder / "a", head)
    conversions.change_json(model / "config.json", problem_type=problem_type)
    path = model / "tokenizer_config.json"
    conversions.change_json(path, strip_accents=False)
    converted = conversions.to_tf1(model)
    (folder / "a.jsonl").write_text(data)
    capsys.readouterr()
    line = f"--model={model} --input_file=a.jsonl"
    command_lines.run(predict, line)
    found = capsys.readouterr().out
    predict.main(Predict(model_dir=str(converted), input_file="a.jsonl"))
    assert found == capsys.readouterr().out
    answers = [json.loads(answer) for answer in found.splitlines()]
    assert len(answers) == len(data.splitlines())
    assert all(key in answer for answer in answers)
    items = [answer.pop("input") for answer in answers]
    assert Predictor.from_pretrained(str(model))(items) == answers


FILES = "--score --bert_config_file=PRE/bert_config.json"
VOCABULARY = f"{FILES} --vocab_file=PRE/vocab.txt"
CASED = "cased_L-12_H-768_A-12"
HELD_OUT = '{"options": {"train_file": "a", "fold": "1of2"}}'
TAGGER = '{"kind": "tagging"}'
LEFT_TO_RIGHT = '{"is_left_to_right": true, "vocab_size": 9}'
HF_CONFIG = '{"architectures": ["BertForMaskedLM"], "model_type": "bert"}'
NO_CLASS = '{"model_type": "bert"}'
FOLDER = {
    **dict.fromkeys(("a.txt", "a.tsv", "a.csv", "a.conll", "a.json"), ""),
    "TAGS/task.json": TAGGER,
    "TAGS/bert_config.json": TAGGER,
    "TAGS/vocab.txt": "a",
    "SWEEP/sweep.tsv": "",
    "ORIGINAL/checkpoint": "",
    "SERVED/saved_model.pb": "",
    "run/dev.jsonl": "",
    "run/train_options.json": HELD_OUT,
    "LTR/bert_config.json": LEFT_TO_RIGHT,
    "LTR/vocab.txt": "a",
    "HF/config.json": HF_CONFIG,
    "HF/vocab.txt": "a",
    "HF/model.safetensors": "",
    "RUN/task.json": "{}",
    "RUN/best/checkpoint": "",
    "NO_CLASS/config.json": NO_CLASS,
    "NO_CLASS/vocab.txt": "a",
    "NO_CLASS/model.safetensors": "",
    f"{CASED}/bert_model.ckpt.index": "",
}
TUNED = "--model_dir=TUNED"
PRETRAINED = "--model_dir=PRE"
SCORE = f"--score {PRETRAINED}"
CHECKPOINT = "--init_checkpoint=PRE/model.ckpt-3"
TAGGED_TABLE = "--model_dir=TAGS --input_file=a.tsv --text_a_column=a"
WRONG = [
    ("", "--model_dir must be given"),
    ("--model_dir=none", "none: must be an existing run directory"),
    ("--model_dir=SWEEP", "SWEEP: must .* not of a sweep"),
    (
        "--model_dir=RUN/best",
        "RUN/best: must be the run directory, RUN. Its best",
    ),
    ("--model_dir=RUN/typo", "the run directory, RUN. Its best or newest"),
    (PRETRAINED, "pretrained: .* task.json"),
    ("--model_dir=SERVED", "SERVED is a SavedModel"),
    ("--model_dir=ORIGINAL", "ORIGINAL: must .*run_classifier.* --do_predict"),
    (f"{TUNED} --score", "tuned: --fill_mask and --score"),
    (f"{TUNED} --do_lower_case", "--do_lower_case needs"),
    (f"{TUNED} --vocab_file=v", "conflicts with --vocab_file=v"),
    ("--fill_mask --score", "--fill_mask conflicts with --score"),
    ("--score --model=", "--model, --model_dir or .*--init_checkpoint must be"),
    (f"{SCORE} --vocab_file=v", "conflicts with --vocab_file"),
    ("--score --vocab_file=v", "--bert_config_file, --init_checkpoint must"),
    (
        f"{FILES} --vocab_file=none {CHECKPOINT}",
        "--vocab_file must be an exist",
    ),
    (f"{VOCABULARY} --init_checkpoint=PRE/none", "--init_checkpoint=.*none "),
    (f"{VOCABULARY} --init_checkpoint={CASED}/bert_model.ckpt", "cased model"),
    (f"{TUNED} --input_file=none", "--input_file=none"),
    (f"{TUNED} --input_file=a.json", "=a.json must be JSON Lines"),
    (f"{TUNED} --null_score_diff_threshold=0", "=0.0 needs a .*SQuAD 2.0"),
    (f"{TUNED} --n_best_size=2", "--n_best_size=2 is not supported by"),
    (f"{TUNED} --threshold=1", "=1 must be a number between 0 and 1"),
    (f"{TUNED} --threshold=x", "=x must be a number between 0 and 1"),
    (f"{TUNED} --threshold=no=2", "=2 must be a number between 0 and 1"),
    (f"{TUNED} --threshold=no=0.1,no=0.2", "=.* must be a number between 0"),
    (f"{TUNED} --sort_by=uncertainty", "=uncertainty needs --output_file"),
    *(
        (f"{model} {flag}", f"{flag} is not supported by")
        for model in ("--model_dir=TAGS", "--score --model_dir=PRE")
        for flag in ("--nocalibrated", "--threshold=0.2")
    ),
    (f"{TUNED} --input_file=a.txt --output_file=./a.txt", "=./a.txt"),
    (f"{TUNED} --output_file=TUNED/vocab.txt", "--output_file=.*vocab.txt"),
    (f"{TUNED} --output_file=TUNED/task.json", "--output_file=.*task.json"),
    (f"{TUNED} --output_file=run/dev.jsonl", "=run/.* overwrites .* of a run"),
    (f"{TUNED} --output_file=TUNED/checkpoint", "--output_file=.*checkpoint"),
    (f"{TUNED} --output_file=TUNED/model.ckpt-3.index", "--output_file=.*ckpt"),
    ("--model=PRE", "pretrained must be .* run_classifier.py .* --fill_mask"),
    ("--model=HF", "=HF must be a fine-tuned .*--score.* BertForMaskedLM"),
    ("--model=NO_CLASS", "BertForSequenceClassification, .* Received: none"),
    ("--model_dir=LTR --fill_mask", r"config\.json: .* left-to-right model"),
    (f"{TUNED} --input_format=xml", "--input_format=xml"),
    (f"{TUNED} --input_format=csv", "--input_format=csv needs --input_file"),
    ("--model_dir=TAGS --input_format=conll", "=conll needs --input_file"),
    (f"{TUNED} --input_file=a.conll", "--input_file=a.conll .* tags words"),
    (f"{TUNED} --input_file=a.txt --input_format=conll", "=conll .* tags word"),
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
    (f"{TUNED} --output_file=b.html", "--output_file=b.html .*needs --explain"),
    (f"{TUNED} --explain=occlusion --output_file=b.csv", "b.csv must .* .html"),
    (f"{SCORE} --explain=occlusion", "conflicts with"),
    (f"{TUNED} --input_file=a.csv", "=a.csv needs --text_column"),
    (f"{TUNED} --input_file=a.tsv --has_header", "--has_header needs --text_c"),
    (f"{TAGGED_TABLE} --text_b_column=b", "--text_b_column=b .*tagging"),
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
        Predict(model_dir=tuned).resolve()
