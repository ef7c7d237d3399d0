"""Records of --num_workers do not depend on how the work is divided."""

import hashlib
import pathlib
import random

import pytest
import tensorflow as tf
from support import recorded

import create_pretraining_data
from official_bert.errors import InputError
from official_bert.inputs import records
from official_bert.options import CreatePretrainingData
from official_bert.pretraining_data import parallel

WORDS = ["cat", "sat", "mat", "un", "##happy", "##ly", "dog", ".", "ran", "it"]
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    """Text of 40 documents, and a vocabulary for it."""
    directory = tmp_path_factory.mktemp("inputs")
    rng = random.Random(0)
    documents = []
    for _ in range(40):
        sentences = [
            " ".join(
                rng.choices(
                    ["cat", "sat", "unhappy", "unhappyly", "dog", "."], k=k
                )
            )
            for k in rng.choices(range(1, 15), k=rng.randint(1, 12))
        ]
        documents.append("\n".join(sentences))
    (directory / "text.txt").write_text("\n\n".join(documents))
    (directory / "vocab.txt").write_text("\n".join([*SPECIAL, *WORDS]))
    return directory


def make(inputs, tmp_path, **changes):
    options = CreatePretrainingData(
        **{
            "input_file": str(inputs / "text.txt"),
            "output_file": str(tmp_path / "out"),
            "vocab_file": str(inputs / "vocab.txt"),
            "max_seq_length": 32,
            "max_predictions_per_seq": 6,
            "num_workers": 1,
            **changes,
        }
    )
    create_pretraining_data.main(options)
    assert sorted(map(str, tmp_path.iterdir())) == sorted(
        options.output_files()
    )
    return [pathlib.Path(name).read_bytes() for name in options.output_files()]


def decode(data, tmp_path):
    (tmp_path / "read").write_bytes(data)
    dataset = records.read(str(tmp_path / "read"))
    return [recorded.decode(one) for one in dataset.as_numpy_iterator()]


VARIANTS = [
    {},
    {"do_whole_word_mask": True, "short_seq_prob": 0.5},
    {"compress": True, "dupe_factor": 3},
    {"pack_sequences": True, "random_seed": 3},
]


@pytest.mark.parametrize("changes", VARIANTS, ids=str)
def test_records_do_not_depend_on_the_number_of_workers(
    inputs, tmp_path, changes
):
    names = ",".join(str(tmp_path / name) for name in "abc")
    one = make(inputs, tmp_path, output_file=names, **changes)
    for number in (2, 3):
        assert one == make(
            inputs, tmp_path, output_file=names, num_workers=number, **changes
        )
    assert len(set(one)) == 3


@pytest.mark.parametrize("whole_words", [False, True])
def test_records_do_not_depend_on_the_size_of_portions(
    inputs, tmp_path, monkeypatch, whole_words
):
    expected = make(inputs, tmp_path, do_whole_word_mask=whole_words)
    monkeypatch.setattr(parallel, "_TOKENS_PER_WORK_ITEM", 100)
    monkeypatch.setattr(parallel, "_INSTANCES_PER_BUCKET", 50)
    monkeypatch.setattr(parallel, "_PAIRS_IN_MEMORY", 70)
    monkeypatch.setattr(parallel, "BATCH_SIZE", 7)
    assert make(inputs, tmp_path, do_whole_word_mask=whole_words) == expected


def test_every_record_is_a_masked_pair_of_the_text(inputs, tmp_path):
    [data] = make(inputs, tmp_path, dupe_factor=3)
    rows = decode(data, tmp_path)
    tokens = dict(enumerate([*SPECIAL, *WORDS]))
    text = (inputs / "text.txt").read_text().replace("\n\n", "\n")
    text = text.replace("un", "un ").replace("happy", "##happy ")
    text = " ".join(text.replace("ly", "##ly ").split())
    for row in rows:
        length = sum(row["input_mask"])
        ids = row["input_ids"][:length]
        assert not any(row["input_ids"][length:])
        count = int(sum(row["masked_lm_weights"]))
        assert count == max(1, round(0.15 * length))
        assert not any(row["masked_lm_positions"][count:])
        for place, label in zip(
            row["masked_lm_positions"][:count],
            row["masked_lm_ids"][:count],
            strict=True,
        ):
            ids[place] = label
        spelled = " ".join(tokens[i] for i in ids)
        begin, a, b, end = spelled.replace("[CLS]", "[SEP]").split("[SEP]")
        assert (begin, end) == ("", "")
        assert a.strip() in text
        assert b.strip() in text
        if not row["next_sentence_labels"][0]:
            assert f"{a.strip()} " in text
        assert row["segment_ids"][:length].count(0) == len(a.split()) + 2
        assert sum(row["segment_ids"]) == len(b.split()) + 1
    is_next = [row["next_sentence_labels"][0] for row in rows]
    assert 0.4 < sum(is_next) / len(rows) < 0.8


def test_rounds_and_seeds_give_different_records(inputs, tmp_path):
    [data] = make(inputs, tmp_path)
    [other] = make(inputs, tmp_path, random_seed=1)
    assert data != other
    rows = [
        hashlib.sha256(one).digest()
        for one in tf.data.TFRecordDataset(
            [make_file(tmp_path, data)]
        ).as_numpy_iterator()
    ]
    assert len(set(rows)) > 0.99 * len(rows)


def make_file(tmp_path, data):
    path = tmp_path / "rows"
    path.write_bytes(data)
    return str(path)


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError(28, "No space")])
@pytest.mark.parametrize("where", ["make_pairs", "encode"])
def test_failed_run_leaves_no_files(
    inputs, tmp_path, monkeypatch, error, where
):
    calls = []

    def fail(*arguments):
        calls.append([p.name for p in tmp_path.iterdir() if p.is_dir()])
        raise error

    (tmp_path / "out").write_text("before")
    monkeypatch.setattr(parallel, where, fail)
    kind = InputError if isinstance(error, OSError) else error
    with pytest.raises(kind, match="No space" if kind is InputError else None):
        make(inputs, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert (tmp_path / "out").read_text() == "before"
    [[seen]] = calls
    assert seen.startswith("out.tmp-")


def test_input_without_text_is_an_error(inputs, tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "empty").write_text("\n\n")
    (tmp_path / "out").mkdir()
    with pytest.raises(InputError, match=r"empty: .* text"):
        make(
            inputs,
            tmp_path,
            input_file=str(tmp_path / "in" / "empty"),
            output_file=str(tmp_path / "out" / "records"),
        )
    assert not list((tmp_path / "out").iterdir())
