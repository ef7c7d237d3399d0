import gzip
import os
import pathlib
import re
from pydoc_data.topics import topics

import pytest
from support import ROOT
from support.processes import run_python

from official_bert.commands import build_vocab
from official_bert.config import BertConfig
from official_bert.errors import InputError
from official_bert.options import BuildVocab
from official_bert.tokenization import FullTokenizer

TEXT = topics["types"]


@pytest.fixture
def directory(tmp_path, monkeypatch):
    (tmp_path / "text.txt").write_text(TEXT, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def build(**changes):
    files = {"input_file": "text.txt", "vocab_file": "vocab.txt"}
    options = BuildVocab(**{**files, "vocab_size": 500, **changes})
    build_vocab.main(options)
    return pathlib.Path(options.vocab_file).read_text("utf-8")


def test_vocabulary_has_one_token_per_line_and_is_described(directory, capsys):
    tokens = build(num_unused=1).split("\n")
    special = ["[PAD]", "[unused0]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    assert tokens[:6] == special
    assert (tokens[-1], len(tokens)) == ("", 501)
    first, second = capsys.readouterr().out.splitlines()
    assert first == "500 tokens in vocab.txt."
    tokenizer = FullTokenizer("vocab.txt")
    num_words = len(tokenizer.basic_tokenizer.tokenize(TEXT))
    num_tokens = len(tokenizer.tokenize(TEXT))
    assert second.startswith(f"{num_words:,} words (")
    assert f", {num_tokens / num_words:.3f} tokens each, 0.00%" in second


def test_config_file_has_the_given_sizes_and_fits_the_vocabulary(directory):
    sizes = {"hidden_size": 64, "num_hidden_layers": 2}
    sizes |= {"num_attention_heads": 4, "max_position_embeddings": 32}
    path = str(directory / "new" / "bert_config.json")
    build(bert_config_file=path, **sizes)
    config = BertConfig.from_json_file(path)
    sizes |= {"intermediate_size": 256, "type_vocab_size": 2}
    rates = ("hidden_dropout_prob", "attention_probs_dropout_prob")
    small = {"initializer_range": 0.08, **dict.fromkeys(rates, 0.0)}
    assert config == BertConfig(500, **sizes, **small)
    config.require_vocabulary(FullTokenizer("vocab.txt").vocab, "vocab.txt")
    build(bert_config_file=path, num_hidden_layers=3)
    config = BertConfig.from_json_file(path)
    assert (config.initializer_range, config.hidden_dropout_prob) == (0.02, 0.1)


LIMITED = {"vocab_size": 2000, "limit_alphabet": 1000}


@pytest.mark.parametrize(
    ("flags", "warning"),
    [
        ({"vocab_size": 1400}, None),
        ({"vocab_size": 1300}, "4.17% .*50 of 1,200.*Increase --vocab_size=1"),
        ({"vocab_size": 1299, "num_unused": 92}, None),
        (LIMITED, "16.67% .*200 of 1,200 .* Increase --limit_alphabet=1000"),
    ],
)
def test_missing_characters_give_a_warning(directory, caplog, flags, warning):
    text = "\n".join(chr(0x4E00 + i) for i in range(1200))
    (directory / "text.txt").write_text(text, encoding="utf-8")
    build(**{"num_unused": 145, **flags})
    assert bool(caplog.text) == bool(warning)
    assert re.search(warning or "", caplog.text)


def test_words_that_are_too_long_give_a_warning(directory, caplog):
    for text, warns in (("ก" * 200, False), ("ก" * 201 + " a" * 40, True)):
        (directory / "text.txt").write_text(text, encoding="utf-8")
        build()
        assert ("2.44% of all words have more than" in caplog.text) == warns


@pytest.mark.parametrize(
    ("text", "share"),
    [
        ("पुस्तक मेरी है", "28.6%"),  # 4 of 14 characters.
        ("ที่", "66.7%"),
        ("أهلا", "25.0%"),
        ("がき", "50.0%"),
        ("người, ở", "37.5%"),
        ("ngu\u031bo\u031b\u0300i", "25.0%"),
        ("Größe: où, ё, ᾠδή, ệ, e\u0301, 한국, 北京, ❤\ufe0f, Ελλάδα", None),
        ("ที่ " + "plain text " * 100, None),
    ],
)
def test_loss_of_vowel_signs_is_a_warning(directory, caplog, text, share):
    (directory / "text.txt").write_text(text, encoding="utf-8")
    build(do_lower_case=False)
    assert not caplog.text
    build()
    assert bool(caplog.text) == bool(share)
    assert (share or "") in caplog.text


def test_case_is_kept_without_do_lower_case(directory):
    assert not any(token.isupper() for token in build().split()[104:])
    assert {"The", "the"} <= set(build(do_lower_case=False).split())


def test_tables_and_markup_are_a_warning(directory, caplog):
    build()
    assert not caplog.text
    (directory / "text.txt").rename("text.csv")
    build(input_file="text.csv")
    assert "text.csv is not read as a table" in caplog.text
    (directory / "text.txt").write_text("<p>\nA cat, a dog, a cat.\n</p>\n")
    build(vocab_size=200)
    assert "2 of the first 3 lines begin with < or {" in caplog.text


def test_globs_gzip_and_hash_seeds_give_the_same_vocabulary(directory):
    expected = build()
    lines = TEXT.splitlines(keepends=True)
    for i in range(2):
        part = "".join(lines[i::2]).encode()
        (directory / f"part{i}.gz").write_bytes(gzip.compress(part))
    assert build(input_file="part*.gz") == expected
    flags = "--vocab_size=500 --input_file=text.txt --vocab_file=other.txt"
    env = {**os.environ, "PYTHONHASHSEED": "1"}
    run_python(ROOT / "build_vocab.py", *flags.split(), env=env)
    assert (directory / "other.txt").read_text("utf-8") == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "--input_file=text.txt"),
        (b"\n \n\x00", "--input_file=text.txt"),
        (b"fine\nbad \xff\n", r"text\.txt:2: text must be UTF-8"),
        (b"Two.\rLines.", r"text\.txt:1: .* only carriage returns"),
    ],
)
def test_unusable_text_is_an_error_and_keeps_the_file(directory, text, message):
    before = build()
    (directory / "text.txt").write_bytes(text)
    with pytest.raises(InputError, match=message):
        build()
    assert (directory / "vocab.txt").read_text("utf-8") == before
