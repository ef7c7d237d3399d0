"""predict.py: input formats, JSON lines, errors with their line."""

import gzip
import io
import json
import os
import shutil
import subprocess
import sys

import pytest
from support import tiny, untrained_models
from support.untrained_models import CONFIG

import predict
from official_bert import task_file
from official_bert.checkpoints import run_directory
from official_bert.config import BertConfig
from official_bert.errors import InputError
from official_bert.inference import masked_lm
from official_bert.inference.predictor import Predictor
from official_bert.modeling.pretraining_model import PretrainingModel
from official_bert.options import Predict
from official_bert.tasks.text import TextColumns, TextTask


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    return untrained_models.write(tmp_path_factory.mktemp("models"))


@pytest.fixture(scope="module")
def tuned(models):
    return str(models / "tuned")


@pytest.fixture(scope="module")
def pretrained(models):
    return str(models / "pretrained")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def answers(text):
    return [json.loads(line) for line in text.splitlines()]


def check(found, items, model_dir):
    """Asserts that answers equal those of a `Predictor`."""
    assert [answer.pop("input") for answer in found] == items
    for answer, expected in zip(
        found, Predictor.from_dir(model_dir)(items), strict=True
    ):
        assert answer.keys() == expected.keys()
        assert answer["label"] == expected["label"]
        assert answer["probabilities"] == pytest.approx(
            expected["probabilities"], abs=1e-6
        )


def set_stdin(monkeypatch, data):
    """Makes `data` standard input that arrives in parts."""

    class Parts(io.BytesIO):
        def read1(self, size=-1):
            return self.readline(7)

    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(Parts(data)))


PAIRS = ["good cat", ["red sun ?", "it is rain"], ["what", ""], "dog"]
OBJECT = {"text_a": "Käse", "id": 7, "label": "?"}


@pytest.mark.parametrize(
    ("name", "text", "items", "chunk_size"),
    [
        (
            "a.txt",
            "\ufeffgood cat\r\n\n \nbad\tdog\nsun",
            ["good cat", "bad\tdog", "sun"],
            2,
        ),
        ("a.tsv", "good cat\nred sun ?\tit is rain\nwhat\t\ndog\n", PAIRS, 3),
        ("a.tsv.gz", "cat\tdog\n", [["cat", "dog"]], 256),
        ("a.jsonl", "\n".join(map(json.dumps, PAIRS)), PAIRS, 256),
        (
            "b.jsonl",
            f'{json.dumps(OBJECT)}\n\n["cat", "dog"]\n',
            [OBJECT, ["cat", "dog"]],
            1,
        ),
    ],
)
def test_input_format_follows_from_the_file_name(
    tuned, folder, name, text, items, chunk_size, capsys
):
    data = text.encode()
    if name.endswith(".gz"):
        data = gzip.compress(data)
    (folder / name).write_bytes(data)
    predict.main(
        Predict(input_file=name, model_dir=tuned, chunk_size=chunk_size)
    )
    check(answers(capsys.readouterr().out), items, tuned)


def test_input_format_flag_applies_to_standard_input(
    tuned, monkeypatch, capsys
):
    set_stdin(monkeypatch, b"cat\tis dog\r\nsun")
    predict.main(Predict(input_format="tsv", model_dir=tuned))
    check(answers(capsys.readouterr().out), [["cat", "is dog"], "sun"], tuned)


TABLES = {
    "a.csv": 'id,review,stars\n1,"good, ""red"" cat",5\n2,bad dog,1\n',
    "a.tsv": 'id\treview\tstars\n1\tgood, "red" cat\t5\n2\tbad dog\t1\n',
    "a.jsonl": '{"id": 1, "review": "good, \\"red\\" cat"}\n'
    '{"review": "bad dog", "stars": 1}\n',
}


def save_own_model(folder, *columns):
    """Saves a model for a user's own tables; returns its run directory."""
    task = TextTask(
        task_type="classification",
        labels=("no", "yes"),
        is_pair=len(columns) == 2,
        columns=TextColumns(columns),
    )
    model = task.build_model(BertConfig.from_dict(CONFIG))
    tiny.save(folder / "own", model, CONFIG, 5)
    described = task_file.describe(task.to_json(), 16, do_lower_case=True)
    (folder / "own" / "task.json").write_text(json.dumps(described))
    return str(folder / "own")


@pytest.mark.parametrize("name", TABLES)
def test_own_tables_are_read_with_the_columns_of_training(name, folder, capsys):
    model_dir = save_own_model(folder, "review")
    (folder / name).write_text(TABLES[name])
    predict.main(Predict(input_file=name, model_dir=model_dir, chunk_size=1))
    found = answers(capsys.readouterr().out)
    for answer in found:
        answer["input"] = answer["input"]["review"]
    check(found, ['good, "red" cat', "bad dog"], model_dir)


def test_column_flags_override_those_of_training(tuned, folder, capsys):
    (folder / "a.tsv").write_text("7\tgood cat\tit is rain\t1\n")
    options = {"text_a_column": "1", "text_b_column": "2", "has_header": False}
    predict.main(Predict(input_file="a.tsv", model_dir=tuned, **options))
    found = answers(capsys.readouterr().out)
    assert found[0]["input"] == {"1": "good cat", "2": "it is rain"}
    found[0]["input"] = ["good cat", "it is rain"]
    check(found, [["good cat", "it is rain"]], tuned)
    options = {"has_header": False, "model_dir": save_own_model(folder, "3")}
    predict.main(Predict(input_file="a.tsv", **options))
    [found] = answers(capsys.readouterr().out)
    assert found["input"] == {"3": "1"}


@pytest.mark.parametrize(
    ("columns", "name", "data", "options", "message"),
    [
        ("", "a.csv", TABLES["a.csv"], {"text_a_column": "x"}, ":2: .*'x'"),
        ("", "a.tsv", "x\n\na\tb\tc\n", {}, ":3: .*3 columns"),
        ("", "a.jsonl", '"a"\n{"b": }', {}, ":2: "),
        ("", "a.jsonl", '"a"\n17\n', {}, ":2: .*17"),
        ("", "a.jsonl", '["\\ud800"]', {}, ":1: "),
        ("", "a.txt", b"a\nb\n\xff\n", {}, ":3: .*UTF-8"),
        ("", "-", b"a\nb\n\xff\n", {}, "<stdin>:3: .*UTF-8.* 0xff"),
        ("ab", "a.jsonl", '"good cat"', {}, ":1: .*good cat"),
        ("a", "a.jsonl", '["good", "cat"]', {}, ":1: .*'good', 'cat'"),
        ("a", "a.jsonl", '{"c": "good"}', {}, ":1: .*'c': 'good'"),
    ],
)
def test_invalid_line_is_named_and_the_output_left_as_it_was(
    tuned, folder, columns, name, data, options, message, monkeypatch
):
    data = data if isinstance(data, bytes) else data.encode()
    set_stdin(monkeypatch, data)
    if name != "-":
        (folder / name).write_bytes(data)
        message = name + message
    (folder / "out.jsonl").write_text("as it was")
    given = Predict(
        input_file=name,
        model_dir=save_own_model(folder, *columns) if columns else tuned,
        output_file="out.jsonl",
        chunk_size=1,
        **options,
    )
    with pytest.raises(InputError, match=f"^{message}"):
        predict.main(given)
    assert (folder / "out.jsonl").read_text() == "as it was"
    assert not list(folder.glob("*.tmp*"))


def test_chunks_before_an_invalid_line_are_answered(tuned, folder, capsys):
    (folder / "a.jsonl").write_text('"a"\n"b"\n3\n')
    options = Predict(input_file="a.jsonl", model_dir=tuned, chunk_size=2)
    with pytest.raises(InputError, match=r"^a\.jsonl:3"):
        predict.main(options)
    assert len(answers(capsys.readouterr().out)) == 2


def test_output_file_is_written_with_a_progress_bar(
    tuned, folder, monkeypatch, capsys
):
    texts = ["good", "日 cat", "bad dog it is what"]
    (folder / "a.txt").write_text("\n".join(texts))
    for input_file in ("a.txt", "-"):
        set_stdin(monkeypatch, "\n\n".join(texts).encode())
        predict.main(
            Predict(
                input_file=input_file,
                model_dir=tuned,
                output_file="new/out.jsonl",
            )
        )
        shown = capsys.readouterr()
        assert shown.out == ""
        assert "Predicting" in shown.err
        assert ("100%" in shown.err) == (input_file == "a.txt")
        found = (folder / "new" / "out.jsonl").read_text()
        assert "日" in found  # Not escaped.
        check(answers(found), texts, tuned)
        assert os.listdir(folder / "new") == ["out.jsonl"]


@pytest.mark.slow
def test_piped_line_is_answered_before_the_next_is_written(tuned):
    command = [sys.executable, predict.__file__, f"--model_dir={tuned}"]
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        for text in ("good", "bad dog", "it is rain ?"):
            process.stdin.write(text + "\n")
            process.stdin.flush()
            answer = json.loads(process.stdout.readline())
            assert answer["input"] == text
        process.stdin.close()
        assert process.stdout.read() == ""
    assert process.returncode == 0


@pytest.mark.slow
def test_closed_pipe_ends_the_command_quietly(tuned):
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, predict.__file__, f"--model_dir={tuned}"],
        input="good\n",
        stdout=writer,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(writer)
    assert done.returncode == 0
    assert "BrokenPipe" not in done.stderr


def test_error_at_a_terminal_does_not_end_the_command(
    pretrained, monkeypatch, capsys
):
    set_stdin(monkeypatch, b"good\ngood [MASK]\n")
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    predict.main(Predict(model_dir=pretrained, fill_mask=True))
    shown = capsys.readouterr()
    assert shown.err.startswith("<stdin>:1: ")
    assert [a["input"] for a in answers(shown.out)] == ["good [MASK]"]


def test_fill_mask_needs_no_next_sentence_head(folder, monkeypatch, capsys):
    model = PretrainingModel(BertConfig.from_dict(CONFIG))
    tiny.save(folder / "whole", model, CONFIG, 5)
    shutil.copytree("whole", "masked_lm")
    arrays = {
        weight.path: weight.numpy()
        for weight in model.trainable_variables
        if "seq_relationship" not in weight.path
    }
    run_directory.save("masked_lm", 3, arrays, None, keep=1)
    found = []
    for name in ("whole", "masked_lm"):
        set_stdin(monkeypatch, b"good [MASK]\n")
        predict.main(Predict(model_dir=name, fill_mask=True))
        found.append(capsys.readouterr().out)
    assert found[0] == found[1]


@pytest.mark.parametrize("is_run_directory", [True, False])
def test_fill_mask_equals_the_python_api(
    is_run_directory, pretrained, folder, capsys
):
    source = {
        "bert_config_file": f"{pretrained}/bert_config.json",
        "vocab_file": f"{pretrained}/vocab.txt",
        "init_checkpoint": f"{pretrained}/model.ckpt-3",
    }
    if is_run_directory:
        source = {"model_dir": pretrained}
    texts = ["Good [MASK].", "it is [MASK] [MASK] ?"]
    (folder / "a.jsonl").write_text("\n".join(map(json.dumps, texts)))
    predict.main(
        Predict(input_file="a.jsonl", fill_mask=True, top_k=3, **source)
    )
    found = answers(capsys.readouterr().out)
    assert [answer["input"] for answer in found] == texts
    loaded = masked_lm.load(pretrained, do_lower_case=True)
    for answer, text in zip(found, texts, strict=True):
        expected = masked_lm.fill(*loaded, text, num_guesses=3)
        assert len(expected) == text.count("[MASK]")
        for mine, other in zip(answer["guesses"], expected, strict=True):
            assert [g["token"] for g in mine] == [g.token for g in other]
            assert [g["probability"] for g in mine] == pytest.approx(
                [g.probability for g in other], rel=1e-5
            )


def test_score_equals_the_python_api_and_depends_on_the_case(
    pretrained, folder, capsys
):
    (folder / "a.txt").write_text("Good cat\nit is what ?\n")
    options = {"input_file": "a.txt", "score": True, "model_dir": pretrained}
    found = {}
    for lower in (None, False):
        predict.main(Predict(do_lower_case=lower, **options))
        found[lower] = answers(capsys.readouterr().out)
    assert [answer["num_tokens"] for answer in found[None]] == [2, 4]
    scorer = masked_lm.Scorer(*masked_lm.load(pretrained, do_lower_case=True))
    (expected,) = scorer.score([scorer.parse("good cat", "")])
    assert found[None][0]["pseudo_log_likelihood"] == pytest.approx(
        expected.log_likelihood, rel=1e-5
    )
    # "Good" is not in the vocabulary, "it" is.
    assert found[None][0]["perplexity"] != found[False][0]["perplexity"]
    assert found[None][1]["perplexity"] == found[False][1]["perplexity"]


def test_tokenizer_config_of_a_run_directory_sets_the_case(
    pretrained, tmp_path
):
    shutil.copytree(pretrained, tmp_path / "cased")
    given = {"model_dir": str(tmp_path / "cased"), "score": True}
    assert Predict(**given).is_uncased
    tokenizer_config = tmp_path / "cased" / "tokenizer_config.json"
    tokenizer_config.write_text('{"do_lower_case": false}')
    assert not Predict(**given).is_uncased
    assert Predict(**given, do_lower_case=True).is_uncased
