"""What ends a document, and what does not."""

from official_bert.pretraining_data.documents import read_documents


def read(tmp_path, *texts):
    names = []
    for i, text in enumerate(texts):
        path = tmp_path / f"{i}.txt"
        path.write_bytes(text.encode())
        names.append(str(path))
    # U+200B vanishes when it is tokenized, as it does in BERT.
    return read_documents(
        names, lambda line: line.replace("\u200b", "").split()
    )


def test_blank_lines_part_documents(tmp_path):
    assert read(tmp_path, "a b\nc\n\n \t\nd\n") == [
        [["a", "b"], ["c"]],
        [["d"]],
    ]


def test_the_end_of_a_file_does_not(tmp_path):
    assert read(tmp_path, "a\n", "b\n\nc") == [[["a"], ["b"]], [["c"]]]


def test_a_line_without_tokens_is_left_out_and_does_not_either(tmp_path):
    assert read(tmp_path, "a\n\u200b\nb\n") == [[["a"], ["b"]]]


def test_carriage_returns_make_no_lines(tmp_path):
    assert read(tmp_path, "a\r\n\r\nb\rc\r\n") == [[["a"]], [["bc"]]]
