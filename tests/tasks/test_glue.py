"""GLUE: files as they are published, features as the original makes them."""

import json
import re
import tarfile

import numpy as np
import pytest
import tensorflow as tf
from support import recorded_texts

from official_bert.errors import InputError
from official_bert.inputs import padding, records
from official_bert.tasks import glue, record_files
from official_bert.tasks.text import TextExample, TextTask
from official_bert.tokenization import BatchTokenizer


def make(name, folder):
    task = glue.TASKS[name.lower().replace("-", "")]
    return glue.make_task(task, str(folder))


def write(path, *rows, text=None):
    path.write_text(text or "".join("\t".join(row) + "\n" for row in rows))


@pytest.mark.parametrize("split", ["train", "dev", "test"])
@pytest.mark.parametrize("name", ["CoLA", "MNLI", "MRPC"])
def test_equals_the_original(golden, shared_data, tmp_path, name, split):
    tokenizer = recorded_texts.tokenizer(golden, shared_data, tmp_path, name)
    task = make(name, golden / "classifier" / "data" / name)
    recorded_texts.assert_equals(
        golden, f"{name}_{split}", task, tokenizer, split
    )


def test_written_records_equal_the_original(golden, shared_data, tmp_path):
    """Padded, and parsed again, with the types of 2018."""
    tokenizer = recorded_texts.tokenizer(golden, shared_data, tmp_path, "MRPC")
    task = make("MRPC", golden / "classifier" / "data" / "MRPC")
    path = str(tmp_path / "train.tf_record")
    examples = task.examples("train")
    record_files.write_records(path, task, examples, tokenizer, 32)
    place = golden / "classifier" / "features" / "MRPC_train"
    *expected, _ = recorded_texts.lines(place / "features_32.jsonl.gz")
    serialized = [one.numpy() for one in tf.data.TFRecordDataset(path)]
    assert len(serialized) == len(expected)
    batch = records.parse(task.schema(32), tf.constant(serialized))
    for number, record in enumerate(expected):
        ids = record["input_ids"]
        full = {
            "input_ids": ids,
            "input_mask": [1] * len(ids),
            "segment_ids": record["segment_ids"],
        }
        for name, values in full.items():
            np.testing.assert_array_equal(
                batch[name][number], values + [0] * (32 - len(values))
            )
        assert batch["label_ids"][number] == [record["label_id"]]
        assert batch["is_real_example"][number] == [1]
    example = tf.train.Example.FromString(serialized[0]).features.feature
    assert set(example) == {*full, "label_ids", "is_real_example"}
    assert all(value.int64_list.value for value in example.values())


def test_what_fills_a_batch_is_the_original_s_padding():
    """All zeros: `PaddingInputExample`."""
    schema = TextTask(task_type="classification", labels=("a",)).schema(8)
    for array in padding.pad_batch(schema, [], 8, 2).values():
        assert not array.any()


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


@pytest.mark.parametrize("what", ODD_PAIRS)
def test_odd_pairs_equal_the_original(golden, shared_data, what):
    [expected] = [
        record
        for name, status, record in json.loads(
            (golden / "classifier" / "errors.json").read_text()
        )
        if name == what and status == "ok"
    ]
    tokenizer = BatchTokenizer(str(shared_data / "vocab" / "uncased.txt"), True)
    text_a, text_b, length = ODD_PAIRS[what]
    task = TextTask(task_type="classification", labels=("0", "1"))
    example = TextExample("dev-0", text_a, text_b, "0")
    [(_, row)] = task.feature_rows([example], tokenizer, length)
    padded = padding.pad_batch(task.schema(length), [row], length, 1)
    found = [
        padded[name][0].tolist()
        for name in ("input_ids", "input_mask", "segment_ids")
    ]
    assert [*found, 0] == expected


def test_lines_are_read_as_the_original_reads_them(tmp_path):
    """As recorded in the original's errors.json, for CoLA."""
    task = make("CoLA", tmp_path)
    path = tmp_path / "dev.tsv"
    for line, text in [
        ("g\t1\t\tx\ry\n", "xy"),
        ("g\t1\t\tx y\r\n", "x y"),
        ('g\t1\t\t"x\n', '"x'),
        ("g\t1\t\tx", "x"),
        ("g\t1\t\tx\0y\n", "x\0y"),
        ("g\t1\t\tx\u2028y\u0085z\vw\fv\n", "x\u2028y\u0085z\vw\fv"),
    ]:
        path.write_bytes(line.encode())
        assert task.examples("dev") == [TextExample("dev-0", text, None, "1")]


def test_a_byte_order_mark_is_dropped(tmp_path):
    write(tmp_path / "dev.tsv", text="\ufeffg\t1\t\tx\n")
    assert make("cola", tmp_path).examples("dev")[0].text_a == "x"
    # Without a header, the mark would be part of a text.
    write(tmp_path / "train.tsv", text="\ufeffsentence\tlabel\nx\t1\n")
    assert make("sst-2", tmp_path).examples("train") == [
        TextExample("train-1", "x", None, "1")
    ]


def test_the_mark_does_not_stick_to_a_cell(tmp_path):
    """Where the first cell of a file without header is read."""
    task = glue.GlueTask(
        ("0", "1"),
        glue.Columns(0, label=1, has_header=False),
        glue.Columns(0),
        ("X",),
    )
    write(tmp_path / "train.tsv", text="\ufeffx\t1\n")
    [example] = glue.GlueData(task, str(tmp_path)).read("train")
    assert example.text_a == "x"


@pytest.mark.parametrize(
    ("text", "line", "complaint"),
    [
        ("g\t1\t\tx\n\ng\t1\t\ty\n", 2, "at least 4 columns"),
        ("g\t1\t\tx\ng\t1\t\ty\n\n", 3, "at least 4 columns"),
        ("g\t1\t\tx\ng\t1\n", 2, "Received: 2"),
        ("g\t2\t\tx\n", 1, "must be one of 0, 1. Received: '2'"),
    ],
)
def test_wrong_lines_are_named(tmp_path, text, line, complaint):
    path = tmp_path / "dev.tsv"
    write(path, text=text)
    with pytest.raises(InputError, match=complaint) as caught:
        make("CoLA", tmp_path).examples("dev")
    assert str(caught.value).startswith(f"{path}:{line}: ")


def test_wrong_files_are_named(tmp_path):
    path = tmp_path / "train.tsv"
    with pytest.raises(InputError, match=re.escape(repr(str(path)))):
        make("CoLA", tmp_path).examples("train")
    path.write_text("")
    with pytest.raises(InputError, match="must hold examples"):
        make("RTE", tmp_path).examples("train")
    write(path, text="index\tsentence1\tsentence2\tlabel\n")
    with pytest.raises(InputError, match="must hold examples"):
        make("RTE", tmp_path).examples("train")


def test_scores_must_be_numbers(tmp_path):
    for score in ("good", "nan", "inf", ""):
        row = [*"0123456", "a", "b", score]
        write(tmp_path / "dev.tsv", [*"0123456789"], row)
        with pytest.raises(InputError, match=r"dev\.tsv:2: .* be a number"):
            make("STS-B", tmp_path).examples("dev")


def test_short_rows_of_qqp_are_left_out(tmp_path):
    """The published training data have some."""
    row = ["1", "2", "3", "What?", "Who?", "1"]
    write(tmp_path / "train.tsv", [*"012345"], row, row[:3], row)
    guids = [e.guid for e in make("QQP", tmp_path).examples("train")]
    assert guids == ["train-1", "train-3"]


def test_what_is_handed_in_has_the_benchmark_s_ids(tmp_path):
    """A row that is left out moves none of those after it."""
    header = ["id", "question1", "question2"]
    rows = [["0", "What?", "Who?"], ["1", "What?"], ["2", "Why?", "How?"]]
    write(tmp_path / "test.tsv", header, *rows)
    task = make("QQP", tmp_path)
    examples = task.examples("test")
    answers = np.array([[0.9, 0.1], [0.2, 0.8]])
    task.write_predictions(str(tmp_path), "test", examples, answers)
    found = (tmp_path / "QQP.tsv").read_text()
    assert found == "index\tprediction\n0\t0\n2\t1\n"
    results = (tmp_path / "test_results.tsv").read_text()
    assert results == "0.9\t0.1\n0.2\t0.8\n"


def test_mnli_has_two_of_each_if_they_are_there(tmp_path):
    task = make("MNLI", tmp_path)
    assert task.splits("dev") == ["dev"]
    header = [f"c{number}" for number in range(12)]
    for name in ("dev_matched", "dev_mismatched"):
        row = ["7", *"1234567", "a", name, "neutral", "entailment"]
        write(tmp_path / f"{name}.tsv", header, row)
    assert task.splits("dev") == ["dev", "dev_mismatched"]
    assert [task.examples(split) for split in task.splits("dev")] == [
        [TextExample("dev-7", "a", "dev_matched", "entailment")],
        [TextExample("dev_mismatched-7", "a", "dev_mismatched", "entailment")],
    ]
    assert task.splits("test") == ["test"]
    assert task.splits("train") == ["train"]


def test_ax_can_only_be_predicted(tmp_path):
    rows = [["index", "sentence1", "sentence2"], ["0", "x", "y"]]
    write(tmp_path / "diagnostic.tsv", *rows)
    task = make("AX", tmp_path)
    assert task.examples("test") == [TextExample("test-0", "x", "y")]
    with pytest.raises(InputError, match=r"dev\.tsv"):
        task.examples("dev")


def written(name, tmp_path, answers, split="test"):
    """Returns the files that predictions become."""
    out = tmp_path / "out"
    out.mkdir(exist_ok=True)
    task = make(name, tmp_path)
    examples = [TextExample(f"test-{i}", "x") for i in range(len(answers))]
    task.write_predictions(str(out), split, examples, np.array(answers))
    return {path.name: path.read_text() for path in out.iterdir()}


def test_scores_are_handed_in_from_0_to_5(tmp_path):
    scores = np.array([[-0.5], [2.71828], [5.5]], np.float32)
    assert written("STS-B", tmp_path, scores) == {
        "test_results.tsv": "-0.5\n2.71828\n5.5\n",
        "STS-B.tsv": "index\tprediction\n0\t0.000\n1\t2.718\n2\t5.000\n",
    }


def test_labels_are_handed_in_as_text(tmp_path):
    answers = [[0.1, 0.2, 0.7], [0.6, 0.25, 0.15]]
    expected = "index\tprediction\n0\tneutral\n1\tcontradiction\n"
    assert written("MNLI", tmp_path, answers) == {
        "test_results.tsv": "0.1\t0.2\t0.7\n0.6\t0.25\t0.15\n",
        "MNLI-m.tsv": expected,
    }
    found = written("MNLI", tmp_path, answers, "test_mismatched")
    assert found["MNLI-mm.tsv"] == expected
    assert "test_results_mismatched.tsv" in found


def test_submissions_have_the_names_that_glue_wants():
    """Of the files in its sample_submission.zip; a row may add others."""
    published = {
        "ax": ("AX",),
        "cola": ("CoLA",),
        "mnli": ("MNLI-m", "MNLI-mm"),
        "mrpc": ("MRPC",),
        "qnli": ("QNLI",),
        "qqp": ("QQP",),
        "rte": ("RTE",),
        "sst2": ("SST-2",),
        "stsb": ("STS-B",),
        "wnli": ("WNLI",),
    }
    found = {name: glue.TASKS[name].submission for name in published}
    assert found == published


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
def real(shared_data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("glue")
    with tarfile.open(shared_data / "glue.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    return folder / "glue"


@pytest.mark.parametrize("name", COUNTS)
def test_the_published_files_are_read_whole(real, name):
    task = make(name, real / ("diagnostic" if name == "AX" else name))
    for split, count in zip(
        ("train", "dev", "test"), COUNTS[name], strict=True
    ):
        if count is None:
            continue
        examples = task.examples(split)
        assert len(examples) == count
        assert all(example.text_a.strip() for example in examples)
        if split == "test":
            predictions = [0.0 if name == "STS-B" else task.labels[0]] * count
            _, text = task.data.submission(split, examples, predictions)
            ids = [line.split("\t")[0] for line in text.splitlines()[1:]]
            assert ids == [str(number) for number in range(count)]
            continue
        labels = {example.label for example in examples}
        if name == "STS-B":
            assert min(labels) == 0.0
            assert max(labels) == 5.0
        else:
            assert labels == set(task.labels)
