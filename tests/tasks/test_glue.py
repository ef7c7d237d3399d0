"""GLUE: published files, and features equal to the original's."""

import json

import numpy as np
import pytest
from support import recorded_texts, unpack

from official_bert.errors import InputError
from official_bert.inputs import padding
from official_bert.options import RunClassifier
from official_bert.tasks import glue
from official_bert.tasks.classification import ClassificationTask
from official_bert.tasks.text import TextExample
from official_bert.tokenization import Tokenizer


def make(name, folder):
    return glue.make(RunClassifier(task_name=name, data_dir=str(folder)))


@pytest.mark.parametrize("split", ["train", "dev", "test"])
@pytest.mark.parametrize("name", ["CoLA", "MNLI", "MRPC"])
def test_features_equal_the_original(golden, vocab_files, name, split):
    tokenizer = recorded_texts.tokenizer(golden, vocab_files, name)
    task = make(name, golden / "classifier" / "data" / name)
    recorded_texts.assert_equals(golden, name, task, tokenizer, split)


ODD_PAIRS = {
    "text_b empty string: single-sentence layout": ("a", "", 8),
    "text_b that tokenizes to nothing: single-sentence layout, budget S-2": (
        "one two three four five six seven",
        " \u200b",
        8,
    ),
    "equal lengths: B loses a token first": ("a b c d", "e f g h", 9),
    "max_seq_length 3 with a pair": ("a", "b", 3),
    "max_seq_length 2, single": ("a", None, 2),
}


@pytest.mark.parametrize("case", ODD_PAIRS)
def test_odd_pairs_equal_the_original(golden, vocab_files, case):
    text = (golden / "classifier" / "errors.json").read_text()
    [expected] = [r for n, ok, r in json.loads(text) if (n, ok) == (case, "ok")]
    tokenizer = Tokenizer(vocab_files["uncased"], True)
    text_a, text_b, length = ODD_PAIRS[case]
    task = ClassificationTask(labels=("0", "1"))
    example = TextExample("dev-0", text_a, text_b, "0")
    [(_, row)] = task.feature_rows([example], tokenizer, length)
    schema = task.schema(length)
    padded = padding.pad_batch(schema, [row], length, 1)
    names = ("input_ids", "input_mask", "segment_ids")
    assert [*(padded[name][0].tolist() for name in names), 0] == expected


def test_lines_are_read_like_the_original_reads_them(tmp_path):
    """As recorded in golden/classifier/errors.json, for CoLA."""
    line = 'g\t1\t\t"x\ry\0z\u2028a\u0085b\vc\fd\r\n'
    (tmp_path / "dev.tsv").write_bytes(line.encode())
    [example] = make("CoLA", tmp_path).data.read("dev")
    text = '"xy\0z\u2028a\u0085b\vc\fd'
    assert example == TextExample("dev-0", text, None, "1")


HEADERS = {
    "SST-2": ("sentence\tlabel", ["a b\t1", "c d\t0"]),
    "STS-B": (
        "index\tgenre\tfilename\tyear\told_index\tsource1\tsource2"
        "\tsentence1\tsentence2\tscore",
        ["0\tmain\tMSR\t2012\t1\tnone\tnone\ta b\tc d\t5.000"] * 2,
    ),
    "RTE": (
        "index\tsentence1\tsentence2\tlabel",
        ["0\ta\tb\tentailment", "1\tc\td\tnot_entailment"],
    ),
}


@pytest.mark.parametrize("name", HEADERS)
def test_skipped_line_that_looks_like_data_is_a_warning(tmp_path, caplog, name):
    header, rows = HEADERS[name]
    path = tmp_path / "dev.tsv"
    path.write_text("\n".join([header, *rows]))
    assert len(make(name, tmp_path).data.read("dev")) == 2
    assert not caplog.records
    path.write_text("\n".join(rows))
    assert len(make(name, tmp_path).data.read("dev")) == 1
    [record] = caplog.records
    assert f"{path}:1: this line is skipped" in record.getMessage()


@pytest.mark.parametrize(
    ("name", "header", "message"),
    [
        ("SST-2", "sentence\tlabel\tidx", "column 1, .*'label'"),
        ("CoLA", "sentence\tidx", "column 1, .*'idx'"),
        ("RTE", "sentence1\tsentence2\tlabel\tidx", "column 2, .*'label'"),
        ("QNLI", "question\tsentence\tidx", "column 2, .*'idx'"),
    ],
)
def test_other_order_of_columns_is_an_error(tmp_path, name, header, message):
    row = "\t".join(["a b", "c d", "-1", "0"][-header.count("\t") - 1 :])
    (tmp_path / "test.tsv").write_text(f"{header}\n{row}\n")
    with pytest.raises(InputError, match=rf"test\.tsv:1: {message}"):
        make(name, tmp_path).data.read("test")


def test_quotes_that_pandas_writes_are_a_warning(tmp_path, caplog):
    path = tmp_path / "dev.tsv"
    text = '"He said ""no""."'
    path.write_text(f'sentence\tlabel\n{text}\t0\n"a" and "b"\t1\n')
    first, _ = make("SST-2", tmp_path).data.read("dev")
    assert first.text_a == text  # As in the original implementation.
    [record] = caplog.records
    assert f"{path}: 1 texts are in quotes" in record.getMessage()


def test_ax_has_only_a_test_set(tmp_path):
    (tmp_path / "diagnostic.tsv").write_text("header\n0\tx\ty\n")
    task = make("AX", tmp_path)
    assert task.data.read("test") == [TextExample("test-0", "x", "y")]
    with pytest.raises(InputError, match="no dev data"):
        task.data.read("dev")


def test_short_rows_of_qqp_are_skipped_but_keep_their_ids(tmp_path):
    row = "1\t2\t3\tWhat?\tWho?\t1"
    (tmp_path / "train.tsv").write_text(f"header\n{row}\n1\t2\t3\n{row}\n")
    guids = [e.guid for e in make("QQP", tmp_path).data.read("train")]
    assert guids == ["train-1", "train-3"]
    rows = ["id\tquestion1\tquestion2", "0\tWhat?\tWho?", "1\tWhat?"]
    (tmp_path / "test.tsv").write_text("\n".join([*rows, "2\tWhy?\tHow?"]))
    task = make("QQP", tmp_path)
    examples = task.data.read("test")
    answers = np.array([[0.9, 0.1], [0.2, 0.8]])
    assert task.prediction_files("test", examples, answers) == {
        "QQP.tsv": "index\tprediction\n0\t0\n2\t1\n",
        "test_results.tsv": "0.9\t0.1\n0.2\t0.8\n",
    }


def test_mismatched_sets_of_mnli_are_read_if_present(tmp_path):
    task = make("MNLI", tmp_path)
    assert task.data.splits("dev") == ["dev"]
    for name in ("dev_matched", "dev_mismatched"):
        row = ["7", *"1234567", "a", name, "neutral", "entailment"]
        (tmp_path / f"{name}.tsv").write_text("header\n" + "\t".join(row))
    assert task.data.splits("dev") == ["dev", "dev_mismatched"]
    assert [task.data.read(split) for split in task.data.splits("dev")] == [
        [TextExample("dev-7", "a", "dev_matched", "entailment")],
        [TextExample("dev_mismatched-7", "a", "dev_mismatched", "entailment")],
    ]
    assert task.data.splits("test") == ["test"]
    assert task.data.splits("train") == ["train"]


ANSWERS = np.array([[0.1, 0.2, 0.7], [0.6, 0.25, 0.15]])
NAMES = "index\tprediction\n0\tneutral\n1\tcontradiction\n"
SCORES = "0.1\t0.2\t0.7\n0.6\t0.25\t0.15\n"
NUMBERS = "index\tprediction\n0\t0.000\n1\t2.718\n2\t5.000\n"


@pytest.mark.parametrize(
    ("name", "split", "answers", "expected"),
    [
        (
            "STS-B",
            "test",
            np.array([[-0.5], [2.71828], [5.5]], np.float32),
            {"test_results": "-0.5\n2.71828\n5.5\n", "STS-B": NUMBERS},
        ),
        ("MNLI", "test", ANSWERS, {"test_results": SCORES, "MNLI-m": NAMES}),
        (
            "MNLI",
            "test_mismatched",
            ANSWERS,
            {"test_results_mismatched": SCORES, "MNLI-mm": NAMES},
        ),
    ],
)
def test_predictions_can_be_submitted(tmp_path, name, split, answers, expected):
    examples = [TextExample(f"test-{i}", "x") for i in range(len(answers))]
    task = make(name, tmp_path)
    texts = task.prediction_files(split, examples, answers)
    assert texts == {f"{stem}.tsv": text for stem, text in expected.items()}


def test_submissions_have_the_names_of_the_sample_submission():
    names = " ".join(task.submission for task in glue.TASKS.values())
    assert names == "CoLA SST-2 MRPC STS-B QQP MNLI-m QNLI RTE WNLI AX"


COUNTS = {
    "CoLA": (8551, 1043, 1063),
    "MRPC": (3668, 408, 1725),
    "SST-2": (67349, 872, 1821),
    "RTE": (2490, 277, 3000),
    "STS-B": (5749, 1500, 1379),
    "WNLI": (635, 71, 146),
    "QNLI": (None, 5463, 5463),
    "AX": (None, None, 1104),
}


@pytest.fixture(scope="module")
def published(shared_data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("glue")
    unpack(shared_data / "glue.tar.xz", folder)
    return folder / "glue"


@pytest.mark.parametrize("name", COUNTS)
def test_published_files_have_all_their_examples(published, caplog, name):
    task = make(name, published / ("diagnostic" if name == "AX" else name))
    counts = dict(zip(("train", "dev", "test"), COUNTS[name], strict=True))
    for split, count in counts.items():
        if count is None:
            continue
        examples = task.data.read(split)
        assert len(examples) == count
        assert all(example.text_a.strip() for example in examples)
        labels = {example.label for example in examples}
        if split == "test":
            predictions = [0.0 if name == "STS-B" else task.labels[0]] * count
            texts = task.data.predictions_file(split, examples, predictions)
            [text] = texts.values()
            ids = [line.split("\t")[0] for line in text.splitlines()[1:]]
            assert ids == [str(number) for number in range(count)]
        elif name == "STS-B":
            assert (min(labels), max(labels)) == (0.0, 5.0)
        else:
            assert labels == set(task.labels)
    assert not caplog.records
