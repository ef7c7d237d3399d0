"""Features on disk: complete, or not there; made again when need be."""

import json
import pathlib

import pytest
import tensorflow as tf
from support import recorded

from official_bert.inputs import records, tfrecords
from official_bert.tasks import record_files
from official_bert.tasks.squad.squad_task import SquadTask

TASK = SquadTask(doc_stride=2, max_query_length=3)
CONTEXT = "a b c d e f a b c d e f"


@pytest.fixture
def make_examples(read):
    def make(context):
        return read(
            (context, ("1", "a?", "b", 2), ("2", "b?", None, 0)),
            ("b", ("3", "c?", "b", 0)),
        )

    return make


@pytest.fixture
def examples(make_examples):
    return make_examples(CONTEXT)


@pytest.fixture
def tokenizer(make_tokenizer):
    return make_tokenizer("abcdef?")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "train.tf_record"


@pytest.fixture
def write(path, examples, tokenizer):
    """Writes; says how many records, and whether they were written anew."""

    def write_some(some=examples, length=12, is_training=True, by=tokenizer):
        before = path.stat().st_ino if path.exists() else None
        number = record_files.write_records(
            str(path),
            TASK,
            some,
            by,
            length,
            is_training=is_training,
        )
        assert tfrecords.count_records(str(path)) == number
        return number, path.stat().st_ino != before

    return write_some


@pytest.mark.parametrize("is_training", [True, False])
def test_records_fit_their_schema(write, path, is_training):
    number, _ = write(is_training=is_training)
    assert number == 9
    schema = SquadTask().schema(12, is_training=is_training)
    data = records.RecordFiles([str(path)], schema)
    records.check_files(data, 100)
    records.check_all_records(data, 100)
    [first, *_] = tf.data.TFRecordDataset(str(path)).as_numpy_iterator()
    decoded = recorded.decode(first)
    assert set(decoded) == set(schema)
    assert decoded["unique_ids"] == [10**9]
    parsed = records.parse(schema, tf.constant([first]))
    assert {
        name: t[0].numpy().tolist() for name, t in parsed.items()
    } == decoded


def test_records_are_used_again(write, path):
    assert write() == (9, True)
    content = path.read_bytes()
    assert write() == (9, False)
    assert path.read_bytes() == content


def test_whatever_changes_is_noticed(
    write, examples, make_tokenizer, make_examples
):
    changes = [
        {"some": examples[::-1]},
        {"some": examples[:2]},
        {"some": make_examples(CONTEXT.replace("f", "e"))},
        {"some": [e._replace(question_text="b?") for e in examples]},
        {"some": [e._replace(end_position=0) for e in examples]},
        {
            "some": [
                examples[0],
                examples[1]._replace(paragraph=examples[2].paragraph),
                examples[2],
            ]
        },
        {"length": 13},
        {"is_training": False},
        {"by": make_tokenizer("abcdefg?")},
        {"by": make_tokenizer("abcdef?", do_lower_case=False)},
    ]
    for change in changes:
        write()
        assert write(**change)[1], change
        assert not write(**change)[1], change


def test_damage_is_noticed(write, path):
    note = pathlib.Path(f"{path}.json")
    for content in ("", "{}", "[]", "null", '{"made_of": 1, "size": 2}'):
        write()
        note.write_text(content)
        assert write() == (9, True)
    with open(path, "ab") as file:
        file.write(b"x")
    assert write() == (9, True)
    path.unlink()
    assert write() == (9, True)
    note.unlink()
    assert write() == (9, True)
    assert json.loads(note.read_text())["num_records"] == 9


def test_a_broken_run_leaves_what_was_there(write, path, monkeypatch):
    write()
    content = path.read_bytes()

    def fail(block):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(record_files, "encode_examples", fail)
        with pytest.raises(KeyboardInterrupt):
            write(length=13)
    assert path.read_bytes() == content
    assert sorted(p.name for p in path.parent.glob("train*")) == [
        "train.tf_record",
        "train.tf_record.json",
    ]
    assert write() == (9, True)  # Whose records these are is not known.
