"""Prose becomes sentences and documents, which are counted in the log."""

import gzip
import itertools
import logging
import pathlib
import re
import textwrap

import pytest
from support import pretraining_records

from official_bert.options import CreatePretrainingData
from official_bert.pretraining_data import sentences

# Two chapters of two paragraphs.
CHAPTERS = [
    [
        [
            "Mr. Thorne came to the harbour at 6 a.m. on the 3rd of March.",
            'He had, as Mrs. Pell of St. Ives remarked, "an air of the sea."',
            "Nobody in the U.S. Navy wore such a hat!",
        ],
        [
            '"Is she sailing?" asked the old man, who owned No. 14 Quay St.',
            "There was no answer.",
        ],
    ],
    [
        ["It rained for 2.5 days, and the road, i.e. the mud, rose."],
        [
            "So Dr. Amos Vane slept.",
            "“Wake up!” cried Capt. Lunt.",
            "He did not.",
        ],
    ],
]
DOCUMENTS = [list(itertools.chain(*chapter)) for chapter in CHAPTERS]


def write_chapters(path, paragraph_end, chapter_end, width):
    """Writes the chapters as prose with lines of at most `width` characters."""
    path.write_text(
        chapter_end.join(
            paragraph_end.join(
                textwrap.fill(" ".join(paragraph), width)
                for paragraph in chapter
            )
            for chapter in CHAPTERS
        )
    )


def read_documents(*paths, **changes):
    options = CreatePretrainingData(
        input_file=",".join(map(str, paths)),
        output_file="out",
        vocab_file=str(paths[0]),
        split_sentences=True,
        **changes,
    )
    lines = list(sentences.read_lines(list(map(str, paths)), options))
    documents = "\n".join(lines).split("\n\n")
    return [document.split("\n") for document in map(str.strip, documents)]


@pytest.mark.parametrize(
    ("paragraph_end", "chapter_end", "width", "document_blank_lines"),
    [
        ("\n\n", "\n\n\n\n", 40, 3),  # Hard-wrapped.
        ("\n \n", "\n\n\t\n\n\n", 20, 3),
        ("\n\n", "\n\n\n\n", 10_000, 3),  # A paragraph per line.
        ("\n", "\n\n", 10_000, 1),
        (" ", "\n", 10_000, 0),  # A document per line.
    ],
)
def test_prose_is_split_into_sentences_and_documents(
    tmp_path, paragraph_end, chapter_end, width, document_blank_lines
):
    path = tmp_path / "novel.txt"
    write_chapters(path, paragraph_end, chapter_end, width)
    how = {"document_blank_lines": document_blank_lines}
    assert [s for s in read_documents(path, **how) if s != [""]] == DOCUMENTS


def test_end_of_a_file_ends_a_document(tmp_path):
    paths = [tmp_path / "a.txt", tmp_path / "b.txt.gz"]
    paths[0].write_text("One house. It\nstood")
    paths[1].write_bytes(gzip.compress(b"\xef\xbb\xbfalone. No\nroad."))
    assert [d for d in read_documents(*paths) if d != [""]] == [
        ["One house.", "It stood"],
        ["alone.", "No road."],
    ]


@pytest.mark.parametrize(
    ("changes", "lines"),
    [
        ({}, ["a", "b", "c"]),  # As in the original implementation.
        ({"num_workers": 1}, ["a", "b", "", "c", ""]),
        ({"runner": "DirectRunner"}, ["a", "b", "", "c", ""]),
    ],
)
def test_end_of_a_file_ends_a_document_outside_the_default_mode(
    tmp_path, changes, lines
):
    paths = [str(tmp_path / "a.txt"), str(tmp_path / "b.txt")]
    for path, text in zip(paths, ("a\nb", "c\n"), strict=True):
        pathlib.Path(path).write_text(text)
    options = CreatePretrainingData(
        input_file=",".join(paths),
        output_file="out",
        vocab_file=paths[0],
        **changes,
    )
    assert list(sentences.read_lines(paths, options)) == lines


def test_memory_is_limited_in_text_without_blank_lines():
    lines = (f"Line {i} of\nit ends. " for i in range(10_000))
    made = sentences.split_prose(lines, 3)
    first = next(made)
    assert first == "Line 0 of it ends."
    assert next(lines) == "Line 2048 of\nit ends. "


TEXT = "The cat sat.\nThe cat ran.\n\nThe dog sat.\nThe dog ran.\n"
WORDS = ["the", "cat", "dog", "sat", "ran", "."]


@pytest.fixture
def make(tmp_path, caplog):
    """A function that makes records of a text; returns the log's records."""
    caplog.set_level(logging.INFO, logger="absl")

    def made(text, tokens=WORDS, **options):
        inputs = pretraining_records.write_inputs(tmp_path, text, tokens)
        pretraining_records.make(
            inputs, inputs / "out", **{"short_seq_prob": 0.0, **options}
        )
        return caplog.records

    return made


def output(records):
    return "\n".join(record.getMessage() for record in records)


@pytest.mark.parametrize("num_workers", [0, 1])
@pytest.mark.parametrize("pack_sequences", [False, True])
@pytest.mark.parametrize("nsp", ["next", "sop", "none"])
def test_counts_equal_those_by_hand(make, num_workers, pack_sequences, nsp):
    # 16 tokens, which all fit: 4 sentences of 4.
    how = {"num_workers": num_workers, "pack_sequences": pack_sequences}
    found = output(make(TEXT, nsp=nsp, dupe_factor=3, **how))
    assert "Read 2 documents, 4 sentences, 16 tokens" in found
    assert "Dropped or truncated 0.0% of the tokens" in found
    if nsp != "next":  # One instance of each document in each pass.
        assert "Wrote 6 instances in " in found


@pytest.mark.parametrize("num_workers", [0, 1])
@pytest.mark.parametrize(
    ("nsp", "max_seq_length", "share"),
    [
        # [CLS] 1 [SEP] 2 [SEP] or [CLS] 2 [SEP] 1 [SEP] ...
        ("sop", 7, 50.0),
        ("none", 5, 25.0),
    ],
)
def test_truncated_tokens_are_counted(
    make, num_workers, nsp, max_seq_length, share
):
    how = {"num_workers": num_workers, "max_seq_length": max_seq_length}
    found = output(make(TEXT, nsp=nsp, **how))
    assert f"Dropped or truncated {share}% of the tokens" in found


@pytest.mark.parametrize("num_workers", [0, 1])
@pytest.mark.parametrize("pack_sequences", [False, True])
def test_random_segments_are_not_counted(make, num_workers, pack_sequences):
    # Two documents of one sentence of 4: A is the document, B is random.
    # [CLS] 3 [SEP] 3 [SEP] has room for 3 of 4 tokens of A.
    text = TEXT.replace(".\nThe", " the")
    how = {"num_workers": num_workers, "pack_sequences": pack_sequences}
    found = output(make(text, max_seq_length=9, dupe_factor=2, **how))
    assert "Read 2 documents, 2 sentences, 14 tokens" in found
    # 3 of 7 tokens of A remain.
    assert "Wrote 4 instances" in found
    assert "Dropped or truncated 57.1% of the tokens" in found


@pytest.mark.parametrize("num_workers", [0, 1])
@pytest.mark.parametrize(
    ("text", "changes", "message"),
    [
        ("A cat.\nA dog.\n", {}, "one document.*blank line.*--split_sentences"),
        ("A.\n" * 9, {"nsp": "none"}, None),
        ("A cat.\n\nA dog.\n\nA.\nB.\nC.\n", {}, "documents: 2 of 3 have only"),
        ("A\na,\na.\n\n" * 2, {}, "Most lines end within a sentence"),
        (
            (f"{'A ' * 101}.\n" * 2 + "\n") * 2,
            {},
            "102 tokens on average.*--spl",
        ),
        ("A.\n" * 9 + "\n" + "A.\n" * 9, {}, None),
        (
            "A. The cat. The dog.\n",
            {"split_sentences": True},
            "one document.*one file per document.*--document_blank_lines",
        ),
    ],
)
def test_unsuitable_documents_are_a_warning_with_advice(
    make, text, changes, message, num_workers
):
    how = {"num_workers": num_workers, "max_seq_length": 9, **changes}
    records = make(text, ["a", ".", ","], **how)
    start = "Check the documents"
    warnings = [r for r in records if r.getMessage().startswith(start)]
    assert len(warnings) == (message is not None)
    for record in warnings:
        assert re.search(message, record.getMessage(), re.IGNORECASE)
