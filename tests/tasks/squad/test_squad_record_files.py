import pathlib
import resource

import pytest
from support import recorded

from official_bert.errors import InputError
from official_bert.inputs import records, tfrecords
from official_bert.tasks import record_files
from official_bert.tasks.squad.task import SquadTask

TASK = SquadTask(doc_stride=2, max_query_length=3)


@pytest.fixture
def examples(read):
    questions = ("1", "a?", "b", 2), ("2", "b?", None, 0)
    context = "a b c d e f a b c d e f"
    return read((context, *questions), ("b", ("3", "c?", "b", 0)))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "train.tf_record"


@pytest.fixture
def write(path, examples, make_tokenizer):
    """Returns a function that writes records unless they are up to date.

    It returns the number of records, and whether they were written.
    """
    own_tokenizer = make_tokenizer("abcdef?")

    def write_records(data=examples, length=12, tokenizer=own_tokenizer):
        before = path.stat().st_ino if path.exists() else None
        number = record_files.write_records(
            str(path), TASK, data, tokenizer, length
        )["num_records"]
        assert tfrecords.count_records(str(path)) == number
        return number, path.stat().st_ino != before

    return write_records


def test_records_have_the_features_of_the_schema(write, path):
    assert write() == (9, True)
    schema = TASK.schema(12)
    data = records.RecordFiles([str(path)], schema)
    records.check_files(data, 100, limit=None)
    decoded = recorded.decode(next(tfrecords.read(str(path))))
    assert set(decoded) == set(schema)
    assert decoded["unique_ids"] == [10**9]


def test_unknown_words_are_a_warning(write, make_tokenizer, caplog):
    write()
    assert not caplog.messages
    write(tokenizer=make_tokenizer("b?"))
    [message] = caplog.messages
    assert "% of the first tokens are [UNK]" in message


def test_records_are_written_again_if_changed(write, examples, make_tokenizer):
    first, second, third = examples
    for change in (
        {"data": examples[::-1]},
        {"data": examples[:2]},
        {"data": [e._replace(question_text="b?") for e in examples]},
        {"data": [e._replace(answer=None) for e in examples]},
        {"data": [first, second._replace(paragraph=third.paragraph), third]},
        {"length": 13},
        {"tokenizer": make_tokenizer("abcdefg?")},
        {"tokenizer": make_tokenizer("abcdef?", do_lower_case=False)},
    ):
        write()
        assert not write()[1]
        assert write(**change)[1], change
        assert not write(**change)[1], change


def test_records_are_written_again_if_a_file_is_damaged(write, path):
    metadata = pathlib.Path(f"{path}.json")
    for content in ("", "{}", "[]", "null", '{"made_of": 1, "size": 2}'):
        write()
        metadata.write_text(content)
        assert write() == (9, True)
    path.write_bytes(path.read_bytes() + b"x")
    assert write() == (9, True)
    for missing in (path, metadata):
        missing.unlink()
        assert write() == (9, True)


def test_full_disk_is_an_error_and_keeps_the_previous_records(
    write,
    path,
    capsys,  # Otherwise, the limit would also apply to pytest's stderr file.
):
    write()
    content = path.read_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
    try:
        with pytest.raises(InputError, match=r"train\.tf_record: .*written"):
            write(length=13)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert path.read_bytes() == content
    names = ["train.tf_record", "train.tf_record.json"]
    assert sorted(p.name for p in path.parent.glob("train*")) == names
    assert write() == (9, True)  # Their fingerprint is no longer known.
