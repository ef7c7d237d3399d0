"""Tokenizers in Hugging Face directories have the same token ids here.

The package tokenizers, which transformers uses, writes the files and gives the
expected ids. Other expected ids are those of transformers 5.24.
"""

import json
import random

import pytest
import tokenizers
from support import SPECIAL, write_vocab
from support.run_outputs import read_json
from tokenizers import models, normalizers, pre_tokenizers, processors

from official_bert.errors import InputError
from official_bert.sources import pretrained, tokenizer_files
from official_bert.tokenization import FullTokenizer, Tokenizer
from official_bert.tokenization.settings import TokenizerSettings

VOCAB = [
    *(*SPECIAL, "a", "##a", "b", "##b", "co", "##vid", "##s", "c", "##o"),
    *("e", "é", "##é", "##e", "[", "]", "1", "/", "-", ".", "!", "new"),
    *("york", "caf", "bill", "中", "新", "冠", "##新", "i", "##\u0307", "B"),
]
ADDED = ["[E1]", "[/E1]", "covid", "New York", "新冠", "<é>", "ab", "abc"]
# Texts are random sequences of these.
BITS = [
    *(*ADDED, "[e1]", "COVID", "Cóvid", "covids", "xcovid", "new york", "AB"),
    *("NEW\u3000YORK", "是新冠吗", "新 冠", "<e\u0301>", "<É>", "aabcc", "İ"),
    *(" ", "  ", ".", "!", "é", "É", "café", "\u200b", "\0", "co\u200bvid"),
    *("\t", "\n", "中", "_", "1"),
]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A Hugging Face directory without a tokenizer."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "hf").mkdir()
    (tmp_path / "hf" / "config.json").write_text('{"model_type": "bert"}')
    return tmp_path / "hf"


def add_file(folder, name, **content):
    (folder / f"{name}.json").write_text(json.dumps(content))


def write_fast(folder, lower, strips, has_chinese_words, added):
    """Writes `tokenizer.json`; returns a function that gives token ids."""
    ids = {token: number for number, token in enumerate(VOCAB)}
    oracle = tokenizers.Tokenizer(models.WordPiece(ids, unk_token="[UNK]"))
    oracle.normalizer = normalizers.BertNormalizer(
        handle_chinese_chars=has_chinese_words,
        strip_accents=strips,
        lowercase=lower,
    )
    oracle.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    separator, first = ((t, ids[t]) for t in ("[SEP]", "[CLS]"))
    oracle.post_processor = processors.BertProcessing(separator, first)
    oracle.add_tokens(added)
    oracle.save(str(folder / "tokenizer.json"))
    return lambda text: oracle.encode(text, add_special_tokens=False).ids


@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("strips", [None, True, False])
@pytest.mark.parametrize("has_chinese_words", [True, False])
def test_token_ids_equal_those_of_tokenizers(
    folder, lower, strips, has_chinese_words
):
    rng = random.Random(0)
    for _ in range(8):
        added = [
            tokenizers.AddedToken(
                content,
                normalized=rng.random() < 0.5,
                single_word=rng.random() < 0.3,
                lstrip=rng.random() < 0.3,
                rstrip=rng.random() < 0.3,
            )
            for content in rng.sample(ADDED, rng.randrange(6))
        ]
        expected = write_fast(folder, lower, strips, has_chinese_words, added)
        tokenizer = Tokenizer.from_pretrained(folder)
        for _ in range(60):
            text = "".join(rng.choices(BITS, k=rng.randrange(1, 9)))
            [ids] = tokenizer.tokenize_lines_to_ids([text])
            assert ids == expected(text), (text, tokenizer.settings)
            tokens, spans = tokenizer.tokenize_with_offsets(text)
            assert tokenizer.convert_tokens_to_ids(tokens) == ids
            for token, (start, end) in zip(tokens, spans, strict=True):
                if token in ADDED and token in text:
                    found = text[start:end].replace("\u200b", "").lower()
                    assert len(found) in (len(token), len(token) + 1)


def test_special_tokens_are_split_as_in_the_original(tmp_path, folder):
    special = [tokenizers.AddedToken(t, special=True) for t in SPECIAL]
    write_fast(folder, True, None, True, special)
    tokenizer = Tokenizer.from_pretrained(folder)
    assert tokenizer.tokenize("[MASK]") == ["[", "[UNK]", "]"]
    kept = Tokenizer.from_pretrained(folder, never_split=["[MASK]"])
    assert kept.tokenize("[MASK]") == ["[MASK]"]
    tokenizer_files.write(str(tmp_path), "\n".join(VOCAB), kept.settings)
    assert tokenizer_files.read(str(tmp_path)) == kept.settings


OLD = {"[E1]": 36, "[/E1]": 37, "<e2>": 38, "covid": 39}
DECODER = {
    str(number): {"content": token, "special": False, "normalized": False}
    for token, number in OLD.items()
}
UNKNOWN = "[UNK] [UNK] [UNK]"
SPECIAL_MAP = {"additional_special_tokens": ["[E1]", {"content": "<e2>"}]}


ADDED_TOKENS = {"added_tokens": OLD}
AS_LIST = {"additional_special_tokens": ["[E1]", "<e2>"]}
AS_OBJECT = {"extra_special_tokens": {"first": "[E1]", "second": "<e2>"}}
# Special tokens are case-sensitive in transformers 4.
SPECIAL_TOKENS = f"[ [UNK] ] covid - 1 covid [UNK] <e2> b {UNKNOWN}"


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (ADDED_TOKENS, "[E1] covid - 1 covid [UNK] <e2> b <e2>"),
        (ADDED_TOKENS | {"special_tokens_map": SPECIAL_MAP}, SPECIAL_TOKENS),
        (ADDED_TOKENS | {"tokenizer_config": AS_LIST}, SPECIAL_TOKENS),
        (ADDED_TOKENS | {"tokenizer_config": AS_OBJECT}, SPECIAL_TOKENS),
        (
            {"tokenizer_config": {"added_tokens_decoder": DECODER}},
            SPECIAL_TOKENS.replace("covid -", "co ##vid -"),
        ),
    ],
)
def test_added_tokens_of_all_versions_are_found(folder, files, expected):
    write_vocab(folder, VOCAB)
    for name, content in files.items():
        add_file(folder, name, **content)
    tokenizer = Tokenizer.from_pretrained(folder, do_lower_case=True)
    text = "[E1] Bill [e1] COVID-1 covids <e2>b <E2>"
    assert tokenizer.tokenize(text) == ["[E1]", "bill", *expected.split()]
    assert list(tokenizer.vocab)[-4:] == list(OLD)


def test_settings_are_written_and_read_again(tmp_path, folder):
    added = [tokenizers.AddedToken("covid", single_word=True)]
    expected = write_fast(folder, False, True, False, added)
    found = pretrained.find(folder)
    settings = found.settings
    assert settings.num_wordpieces == len(VOCAB)
    tokenizer_files.write(str(tmp_path), found.vocab, settings, 64)
    assert tokenizer_files.read(str(tmp_path)) == settings
    config = read_json(tmp_path / "tokenizer_config.json")
    assert config["added_tokens_decoder"]["36"]["single_word"] is True
    copy = FullTokenizer(tmp_path / "vocab.txt", settings=settings)
    ids = copy.convert_tokens_to_ids(copy.tokenize("Café covid covids"))
    assert ids == expected("Café covid covids")


def test_flags_override_the_settings_of_the_files(folder):
    write_fast(folder, True, False, True, [])
    settings = tokenizer_files.read(str(folder))
    assert settings == TokenizerSettings(True, False)
    assert settings.with_flags(None) == settings
    changed = settings.with_flags(False, "true", "[E1], [/E1]")
    assert (changed.do_lower_case, changed.strip_accents) == (False, True)
    assert [t.content for t in changed.added_tokens] == ["[E1]", "[/E1]"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("added_tokens", {"x": "7"}, "`id` must be an int"),
        ("special_tokens_map", {"unk_token": "<unk>"}, "map.json: `unk_token`"),
        ("special_tokens_map", {"additional_special_tokens": 5}, "a list"),
        ("special_tokens_map", {"additional_special_tokens": [{}]}, "a str"),
        ("config", {"tokenizer_class": "CamembertTokenizer"}, "/config.json"),
        ("tokenizer_config", {"added_tokens_decoder": {"a": {}}}, "`content`"),
        ("tokenizer_config", {"never_split": ["x"]}, "`never_split` must be"),
        ("tokenizer_config", {"cls_token": {"content": "<s>"}}, r"\[CLS\]"),
        ("tokenizer_config", {"do_basic_tokenize": False}, "must be true"),
        ("tokenizer_config", {"word_tokenizer_type": "mecab"}, '"basic"'),
        ("tokenizer_config", {"subword_tokenizer_type": "character"}, "wordpi"),
        (
            "tokenizer_config",
            {"tokenizer_class": "BertJapaneseTokenizer"},
            "`tokenizer_class` must be .*BertJapaneseTokenizer",
        ),
        # Without tokenizer.json, it may be anything.
        ("tokenizer_config", {"tokenizer_class": "TokenizersBackend"}, "class"),
    ],
)
def test_setting_that_changes_ids_is_an_error(folder, name, content, message):
    write_vocab(folder, VOCAB)
    add_file(folder, name, **content)
    with pytest.raises(InputError, match=f"hf.*{message}"):
        tokenizer_files.read(str(folder))


def templates(single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1"):
    special = [(token, VOCAB.index(token)) for token in ("[CLS]", "[SEP]")]
    return processors.TemplateProcessing(single, pair, special)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("model.type", models.BPE()),
        ("model.unk_token", "?"),
        ("model.continuing_subword_prefix", "@@"),
        ("model.max_input_chars_per_word", 50),
        ("normalizer.type", normalizers.Lowercase()),
        ("normalizer.type", None),
        ("normalizer.clean_text", False),
        ("pre_tokenizer.type", pre_tokenizers.Metaspace()),
        ("post_processor", None),
        ("post_processor", templates(single="$A [SEP]")),
        ("post_processor", templates(pair="[CLS] $A [SEP] $B [SEP]")),
    ],
)
def test_tokenizer_json_of_another_tokenizer_is_an_error(folder, name, value):
    write_fast(folder, True, None, True, [])
    path = str(folder / "tokenizer.json")
    oracle = tokenizers.Tokenizer.from_file(path)
    if name == "post_processor":
        oracle.post_processor = templates()
        oracle.save(path)
    add_file(folder, "tokenizer_config", tokenizer_class="TokenizersBackend")
    tokenizer_files.read(str(folder))
    part, _, setting = name.partition(".")
    if setting in ("", "type"):
        setattr(oracle, part, value)
    else:
        setattr(getattr(oracle, part), setting, value)
    oracle.save(path)
    with pytest.raises(InputError, match=f"json: `{name}` must "):
        tokenizer_files.read(str(folder))
    if name == "post_processor":  # The class has its own.
        add_file(folder, "tokenizer_config", tokenizer_class="BertTokenizer")
        tokenizer_files.read(str(folder))


def test_files_with_different_vocabularies_are_an_error(folder):
    write_fast(folder, True, None, True, [])
    write_vocab(folder, VOCAB)
    assert tokenizer_files.read_with_vocab(str(folder))[0].split() == VOCAB
    write_vocab(folder, [*VOCAB[:-1], "edited"])
    message = r"/vocab\.txt:36: must be 'B', as in .*json\. Received: 'edited'"
    with pytest.raises(InputError, match=message):
        tokenizer_files.read_with_vocab(str(folder))


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"truncation_side": "left"}, "`truncation_side` is left"),
        ({"model_input_names": ["input_ids"]}, "has the segment 0 in"),
        ({"tokenizer_class": "DistilBertTokenizer"}, "has the segment 0 in"),
    ],
)
def test_other_features_in_transformers_are_a_warning(
    folder, caplog, config, message
):
    add_file(folder, "tokenizer_config", tokenizer_class="BertTokenizer")
    tokenizer_files.read(str(folder))
    assert not caplog.text
    add_file(folder, "tokenizer_config", **config)
    tokenizer_files.read(str(folder))
    assert message in caplog.text


def test_added_token_that_the_vocabulary_lacks_is_an_error(folder):
    path = write_vocab(folder, VOCAB)
    add_file(folder, "added_tokens", **OLD)
    found = pretrained.ModelFiles(vocab_file=path, never_split="[X]")
    with pytest.raises(InputError, match=r"\[E1\], .*, \[X\], .*--model"):
        found.tokenizer  # noqa: B018
