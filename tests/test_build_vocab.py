"""The command as its user runs it: files in, files out, errors."""

import gzip
import os
import pathlib
import subprocess
import sys
from pydoc_data.topics import topics

import pytest

import build_vocab
from official_bert.config import BertConfig
from official_bert.errors import InputError
from official_bert.options import BuildVocab
from official_bert.tokenization import FullTokenizer

TEXT = topics["types"]
ROOT = pathlib.Path(__file__).resolve().parents[1]


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "text.txt").write_text(TEXT, encoding="utf-8")
    return tmp_path


def build(folder, **changes):
    options = BuildVocab(
        **{
            "input_file": str(folder / "text.txt"),
            "vocab_file": str(folder / "vocab.txt"),
            "vocab_size": 500,
            **changes,
        }
    )
    build_vocab.main(options)
    return pathlib.Path(options.vocab_file).read_text("utf-8")


def test_writes_one_piece_a_line_and_says_how_good_they_are(folder, capsys):
    lines = build(folder, num_unused=1).split("\n")
    assert lines[:6] == [
        "[PAD]",
        "[unused0]",
        "[UNK]",
        "[CLS]",
        "[SEP]",
        "[MASK]",
    ]
    assert lines[-1] == ""
    assert len(lines) == 501
    first, second = capsys.readouterr().out.splitlines()
    assert first == f"500 tokens in {folder / 'vocab.txt'}."
    tokenizer = FullTokenizer(str(folder / "vocab.txt"))
    num_words = len(tokenizer.basic_tokenizer.tokenize(TEXT))
    num_pieces = len(tokenizer.tokenize(TEXT))
    assert second.startswith(f"{num_words:,} words (")
    assert f", {num_pieces / num_words:.3f} tokens each, 0.00%" in second


def test_writes_a_config_that_fits(folder):
    name = str(folder / "new" / "bert_config.json")
    sizes = {"hidden_size": 64, "num_attention_heads": 4}
    build(folder, bert_config_file=name, num_hidden_layers=2, **sizes)
    config = BertConfig.from_json_file(name)
    assert (config.vocab_size, config.intermediate_size) == (500, 256)
    tokenizer = FullTokenizer(str(folder / "vocab.txt"))
    config.require_vocabulary(tokenizer.vocab, "vocab.txt")


def test_case_is_kept_if_asked_for(folder):
    assert not any(line.isupper() for line in build(folder).split()[104:])
    cased = build(folder, do_lower_case=False).split()
    assert "The" in cased
    assert "the" in cased


def test_globs_and_gzip_read_the_same_text(folder):
    expected = build(folder)
    lines = TEXT.splitlines(keepends=True)
    for i in range(2):
        part = "".join(lines[i::2]).encode()
        (folder / f"part{i}.gz").write_bytes(gzip.compress(part))
    assert build(folder, input_file=str(folder / "part*.gz")) == expected


def test_every_process_writes_the_same(folder):
    command = [
        sys.executable,
        str(ROOT / "build_vocab.py"),
        f"--input_file={folder / 'text.txt'}",
        "--vocab_size=500",
    ]
    for seed in "123":
        subprocess.run(
            [*command, f"--vocab_file={folder / seed}"],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        )
    expected = build(folder).encode()
    assert [(folder / seed).read_bytes() for seed in "123"] == [expected] * 3


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "--input_file=.*text.txt"),
        (b"\n \n\x00", "--input_file="),
        (b"fine\nbad \xff\n", r"text\.txt:2: text must be UTF-8"),
    ],
)
def test_text_that_cannot_be_used(folder, text, message):
    before = build(folder)
    (folder / "text.txt").write_bytes(text)
    with pytest.raises(InputError, match=message):
        build(folder)
    assert (folder / "vocab.txt").read_text("utf-8") == before


@pytest.mark.parametrize(
    "changes",
    [
        {"vocab_file": "text.txt"},
        {"bert_config_file": "./text.txt"},
        {"bert_config_file": "vocab.txt"},
    ],
)
def test_nothing_is_written_over_something_else(folder, monkeypatch, changes):
    monkeypatch.chdir(folder)
    with pytest.raises(InputError, match="Rename"):
        build(folder, **changes)


def test_a_folder_that_takes_no_files_is_refused_at_once(folder, monkeypatch):
    monkeypatch.setattr(build_vocab, "count_words", None)
    name = str(folder / "text.txt" / "vocab.txt")
    with pytest.raises(InputError, match="output directory must be writable"):
        build(folder, vocab_file=name)


def test_a_vocabulary_has_room_for_more_than_special_pieces(tmp_path):
    (tmp_path / "text.txt").write_text("a")
    with pytest.raises(InputError, match="--vocab_size=104"):
        BuildVocab(
            input_file=str(tmp_path / "text.txt"),
            vocab_file=str(tmp_path / "vocab.txt"),
            vocab_size=104,
        )
