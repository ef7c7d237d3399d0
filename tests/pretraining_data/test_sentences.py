import gzip
import itertools
import logging
import re
import textwrap

import pytest
from support import pretraining_records

from official_bert.errors import InputError
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
        ["So Dr. Vane slept.", "“Wake up!” cried Capt. Lunt.", "He did not."],
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


def read_lines(*paths, **changes):
    names = [*map(str, paths)]
    options = CreatePretrainingData(
        input_file=",".join(names),
        output_file="out",
        vocab_file=names[0],
        **changes,
    )
    return list(sentences.read_lines(names, options))


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
    flags = {"document_blank_lines": document_blank_lines}
    lines = read_lines(path, split_sentences=True, **flags)
    documents = re.split("\n\n+", "\n".join(lines).strip())
    assert [document.split("\n") for document in documents] == DOCUMENTS


@pytest.mark.parametrize(
    "expected",
    [  # The marks are Sentence_Terminal in Unicode.
        ["यह घर है।", "वह गया था।", "कब?"],  # Hindi
        ["সে বলল, “এসো।”", "আমি গেলাম॥", "হ্যাঁ"],  # Bengali
        ["یہ گھر ہے۔", "کیا وہ گیا؟!", "ہاں"],  # Urdu
        ["Սա տուն է։", "«Նա գնաց։»", "Այո"],  # Armenian
        ["ሰላም ነው።", "ደህና ነህ፧", "አዎ"],  # Amharic
        ["သူ အိမ်၊ ကျောင်း သွားသည်။", "ဟုတ်ကဲ့"],  # Burmese, with a comma
        ["នេះជាផ្ទះ។", "គាត់ទៅ៕"],  # Khmer
    ],
)
@pytest.mark.parametrize("space", [" ", ""])
def test_sentences_end_with_the_marks_of_their_script(expected, space):
    text = space.join(expected)
    assert [*sentences.split_prose([text], 1)] == [*expected, ""]


WHOLE_LINES = [["One house. It", "stood"], ["\ufeffalone. No", "road."]]
SENTENCES = [["One house.", "It stood"], ["alone.", "No road."]]


@pytest.mark.parametrize(
    ("changes", "documents"),
    [
        ({}, [[*itertools.chain(*WHOLE_LINES)]]),  # As in the original.
        ({"num_workers": 1}, WHOLE_LINES),
        ({"runner": "DirectRunner"}, WHOLE_LINES),
        ({"split_sentences": True}, SENTENCES),
    ],
)
def test_end_of_a_file_ends_a_document_outside_the_default_mode(
    tmp_path, changes, documents
):
    paths = [tmp_path / "a.txt", tmp_path / "b.txt.gz"]
    paths[0].write_text("One house. It\nstood")
    paths[1].write_bytes(gzip.compress(b"\xef\xbb\xbfalone. No\nroad."))
    text = "\n".join(read_lines(*paths, **changes)).strip()
    assert [part.split("\n") for part in text.split("\n\n")] == documents


def test_memory_is_limited_in_text_without_blank_lines():
    lines = (f"Line {i} of\nit ends. " for i in range(10_000))
    first = next(sentences.split_prose(lines, 3))
    assert first == "Line 0 of it ends."
    assert next(lines) == "Line 2048 of\nit ends. "


@pytest.mark.parametrize(
    ("endings", "options", "message"),
    [
        (["\n", "\n\n", "", "\n"], {}, "2 of 4 files do not end with a blank"),
        (["\n\n", "\n \n", "\n"], {}, None),
        (["\n", "\n"], {"num_workers": 1}, None),
        (["\n", "\n"], {"split_sentences": True}, None),
    ],
)
def test_document_that_continues_in_the_next_file_is_a_warning(
    tmp_path, caplog, endings, options, message
):
    paths = [tmp_path / str(number) for number in range(len(endings))]
    for path, ending in zip(paths, endings, strict=True):
        path.write_text(f"A cat.\nA dog.{ending}")
    read_lines(*paths, **options)
    assert (message or "") in caplog.text
    assert len(caplog.records) == (message is not None)


TEXT = "The cat sat.\nThe cat ran.\n\nThe dog sat.\nThe dog ran.\n"
JOINED = TEXT.replace(".\nThe", " the")
WORDS = ["the", "cat", "dog", "sat", "ran", "."]


@pytest.fixture
def make(tmp_path, caplog):
    """A function that makes records of a text; returns the log's records."""
    caplog.set_level(logging.INFO, logger="absl")

    def make_records(text, tokens=WORDS, **options):
        inputs = pretraining_records.write_inputs(tmp_path, text, tokens)
        pretraining_records.make(
            inputs, inputs / "out", **{"short_seq_prob": 0.0, **options}
        )
        return caplog.records

    return make_records


@pytest.mark.parametrize("num_workers", [0, 1])
@pytest.mark.parametrize("pack_sequences", [False, True])
@pytest.mark.parametrize(
    ("text", "changes", "counts"),
    [
        # One instance of each document in each pass; all 16 tokens fit.
        (TEXT, {"nsp": "next"}, "4 sentences, 16 tokens .* truncated 0.0%"),
        (TEXT, {"nsp": "sop"}, "16 tokens .*Wrote 6 .*truncated 0.0%"),
        (TEXT, {"nsp": "none"}, "16 tokens .*Wrote 6 .*truncated 0.0%"),
        # [CLS] 1 [SEP] 2 [SEP] or [CLS] 2 [SEP] 1 [SEP] ...
        (TEXT, {"nsp": "sop", "max_seq_length": 7}, "truncated 50.0%"),
        (TEXT, {"nsp": "none", "max_seq_length": 5}, "truncated 25.0%"),
        # Two documents of one sentence: A is a document, and B is random.
        # [CLS] 3 [SEP] 3 [SEP] has room for 3 of 7 tokens of A.
        (JOINED, {"max_seq_length": 9}, "2 sentences, 14 .*Wrote 6 .*d 57.1%"),
    ],
)
def test_logged_counts_equal_those_by_hand(
    make, text, changes, counts, num_workers, pack_sequences
):
    flags = {"num_workers": num_workers, "pack_sequences": pack_sequences}
    records = make(text, dupe_factor=3, **flags, **changes)
    output = " ".join(record.getMessage() for record in records)
    assert re.search(f"Read 2 documents, .*{counts}", output)


SPLIT = {"split_sentences": True}
LINE = {"split_sentences": True, "document_blank_lines": 1}


@pytest.mark.parametrize("num_workers", [0, 1])
@pytest.mark.parametrize(
    ("text", "changes", "message"),
    [
        ("A cat.\nA dog.\n", {}, "one document.*blank line.*--split_sentences"),
        ("A.\n" * 9, {"nsp": "none"}, None),
        ("A cat.\n\nA dog.\n\nA.\nB.\nC.\n", {}, "documents: 2 of 3 have only"),
        ("A\na,\na.\n\n" * 2, {}, "Most lines end within a sentence"),
        ("ก a ก\nก\n\n" * 2, {}, None),  # Thai has no full stop.
        ((f"{'A ' * 101}.\n" * 2 + "\n") * 2, {}, "102 tokens on aver.*--spl"),
        ("A.\n" * 9 + "\n" + "A.\n" * 9, {}, None),
        ("A. The cat. The dog.\n", SPLIT, "per document.*_blank_lines: 0.*1"),
        ("A. The cat. The dog.\n", LINE, "_lines: 0 if each line is a do\\w+$"),
        ("a cat. a dog.\n\n" * 2, LINE, "2 of 2 .*Text without .* omit --sp"),
        (f"{'a ' * 101}. B. A.\n\n\n\n" * 2, SPLIT, None),
        (f"a. {'a ' * 210}. B.\n\n\n\n" * 2, SPLIT, "108 tokens .* omit --s"),
    ],
)
def test_unsuitable_documents_are_a_warning_with_advice(
    make, text, changes, message, num_workers
):
    flags = {"num_workers": num_workers, "max_seq_length": 9, **changes}
    records = make(text, ["a", ".", ",", "ก"], **flags)
    start = "Check the documents"
    warnings = [r for r in records if r.getMessage().startswith(start)]
    assert len(warnings) == (message is not None)
    for record in warnings:
        assert re.search(message, record.getMessage(), re.IGNORECASE)


@pytest.mark.parametrize("num_workers", [0, 1])
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (SPLIT, "Read 2 documents (each file is one), 6 sentences"),
        (LINE, "Read 4 documents, 6 sentences"),
    ],
)
def test_the_log_says_if_each_file_of_prose_is_a_document(
    make, tmp_path, changes, message, num_workers
):
    text = "A. The cat.\n\nThe dog.\n"
    paths = [tmp_path / "text.txt", tmp_path / "other.txt"]
    paths[1].write_text(text)
    names = ",".join(map(str, paths))
    records = make(text, input_file=names, num_workers=num_workers, **changes)
    assert any(message in record.getMessage() for record in records)


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ('<doc id="7">\nA cat.\nA dog.\n</doc>\n', "4 of the first 10 lines"),
        ('{"text": "A cat. A dog."}\n{}\n', "4 of the first 6 lines"),
        ("A cat.\nIt is < 3.\n", None),
    ],
)
def test_markup_is_a_warning(make, document, message):
    records = make(f"{document}\n" * 2, ["a", "."])
    logged = [record.getMessage() for record in records]
    found = [text for text in logged if "like HTML, XML or JSON" in text]
    assert len(found) == (message is not None)
    assert all(text.startswith(message) for text in found)


@pytest.mark.parametrize("is_split", [False, True])
def test_advice_on_dropped_text_was_not_followed_already(make, is_split):
    text = f"{'a ' * 50}.\n" * 2 + "\n\n\n\n"
    records = make(text * 2, split_sentences=is_split, max_seq_length=9)
    logged = [record.getMessage() for record in records]
    [message] = [m for m in logged if m.startswith("Most of the text is in no")]
    assert ("or use --split_sentences" in message) != is_split
    assert ("and omit --split_sentences" in message) == is_split


@pytest.mark.parametrize("num_workers", [0, 1])
def test_most_frequent_unknown_words_are_named(make, num_workers):
    text = "a a\n\n" * 74 + "x\nC d e\nc d\nf c x d e\nx g\n"
    logged = " ".join(
        record.getMessage()
        for record in make(text, ["a"], num_workers=num_workers)
    )
    # 13 of 161; f and g are rarer.
    share = "8.1% of the tokens are [UNK], words that the vocabulary lacks"
    assert re.search(rf"{re.escape(share)}, most often (\w, ){{4}}f\. ", logged)
    assert {*re.search("often (.*)f", logged)[1].split(", ")} >= {*"cdex"}
    text = text.replace("a a", "a a a a a a a a a a")
    logged = make(text, ["a"], num_workers=num_workers)[-5:]
    assert not any("[UNK]" in record.getMessage() for record in logged)


WHOLE_WORDS = {"do_whole_word_mask": True}
SEPARATED = {**WHOLE_WORDS, "words_are_separated": True}


@pytest.mark.parametrize(
    ("text", "flags", "warnings"),
    [
        ("กำลังที่ นี่", {}, ["removes vowel signs"]),
        ("กำลังที่ นี่", {"do_lower_case": False}, []),
        ("Ça et là, où é", {}, []),
        ("使用语言", {}, []),
        ("使用语言", WHOLE_WORDS, ["no effect on Chinese characters"]),
        ("English, 语", WHOLE_WORDS, []),
        ("使用 语言", SEPARATED, []),
    ],
)
def test_tokenizer_for_another_script_is_a_warning(make, text, flags, warnings):
    text = f"{text}\n{text}\n\n{text}\n{text}\n"
    logged = [r.getMessage() for r in make(text, [], **flags)]
    starts = ("Lower-casing", "--do_whole")
    found = [line for line in logged if line.startswith(starts)]
    for line, warning in zip(found, warnings, strict=True):
        assert warning in line


def test_chinese_words_that_are_not_separated_are_an_error(make):
    with pytest.raises(InputError, match=r"but a word has 12 characters on av"):
        make("使用语言使用语言使用语言\n" * 2, [], **SEPARATED)


@pytest.mark.parametrize("num_workers", [0, 1])
def test_chinese_words_are_masked_together(make, tmp_path, num_workers):
    text = "使用 语言 ， 模型  ai\u3000北京\n说\n\n北京 abc说\n"
    tokens = [*"使用语言，模型北京说", "ai", "abc"]
    flags = {"num_workers": num_workers, "nsp": "none", "dupe_factor": 40}
    flags |= {"masked_lm_prob": 0.3, "do_lower_case": True}
    make(text, tokens, masking="dynamic", **SEPARATED, **flags)
    found = pretraining_records.parse(tmp_path / "out", 32, 5, is_dynamic=True)
    rows = {tuple(row[row > 0]) for row in found["word_starts"]}
    # 使 用 语 言 ， 模 型 ai 北 京 说, and 北 京 abc 说
    first = (1, 1, 3, 3, 5, 6, 6, 8, 9, 9, 11)
    assert rows == {first, (1, 1, 3, 3)}
    ids = {tuple(row) for row in found["input_ids"]}
    make(text, tokens, masking="dynamic", **flags)
    plain = pretraining_records.parse(tmp_path / "out", 32, 5, is_dynamic=True)
    assert ids == {tuple(row) for row in plain["input_ids"]}

    make(text, tokens, **SEPARATED, **flags)
    found = pretraining_records.parse(tmp_path / "out", 32, 5)
    pairs = [{1, 2}, {3, 4}, {6, 7}, {9, 10}]
    for positions, mask in zip(
        found["masked_lm_positions"], found["input_mask"], strict=True
    ):
        chosen = {*positions.tolist()}
        if mask.sum() == 2 + len(first):
            assert all(len(chosen & pair) != 1 for pair in pairs)
    assert found["masked_lm_ids"].max() < len(tokens) + 5
