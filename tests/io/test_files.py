import bz2
import errno
import gzip
import json
import lzma
import os
import tarfile
import threading

import pytest
import tensorflow as tf

from official_bert.errors import InputError
from official_bert.io import files


@pytest.mark.parametrize(
    ("data", "lines"),
    [
        ("", []),
        ("\n", [""]),
        ("a\n\nb", ["a", "", "b"]),
        ("a\r\nb\r\n", ["a", "b"]),
        # A lone \r ends no line; it is dropped wherever it stands.
        ("a\rb\n\rc\r\r\n", ["ab", "c"]),
        ("a\n\r\n", ["a", ""]),
        ("a\n\r", ["a"]),
        ("\r", []),
        # Only \n ends a line: not VT, FF, U+0085 or U+2028.
        ("a\vb\fc\x85d\u2028e\n", ["a\vb\fc\x85d\u2028e"]),
        ("\ufeffa\n😀 \t\na\0b\n", ["\ufeffa", "😀 \t", "a\0b"]),
    ],
)
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_lines_end_at_newlines_only(tmp_path, pack, data, lines):
    path = tmp_path / ("text.txt" if pack is bytes else "text.gz")
    path.write_bytes(pack(data.encode()))
    assert list(files.read_lines(str(path))) == lines


def test_lines_of_unusual_files_are_read_as_in_the_original(golden):
    directory = golden / "vocab_edge"
    records = json.loads((directory / "expected.json").read_text())
    for name, record in records.items():
        lines = files.read_lines(str(directory / f"{name}.txt"))
        if (theirs := record.get("gfile_lines")) is None:
            with pytest.raises(InputError, match="UTF-8"):
                list(lines)
        else:
            assert list(lines) == [line.removesuffix("\n") for line in theirs]


def test_bytes_read_are_reported_after_each_line(tmp_path):
    path = tmp_path / "text.txt"
    path.write_bytes("é\r\n\nab".encode())
    sizes = []
    list(files.read_lines(str(path), on_bytes=sizes.append))
    assert sizes == [4, 1, 2]


def test_named_pipe_can_be_read(tmp_path):
    """As in `--input_file=<(zcat text.gz)`."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=(b"a\nb\n",))
    writer.start()
    assert list(files.read_lines(str(path), on_bytes=print)) == ["a", "b"]
    writer.join()


# Names of tests must be the same in all processes, so there is no time.
PACKED = gzip.compress(b"one\ntwo\n" * 100, mtime=0)
UTF_16 = gzip.compress("é".encode("utf-16"), mtime=0)
ARCHIVE = tarfile.TarInfo("a.txt").tobuf() + b"one\n".ljust(10240, b"\0")
LFS_POINTER = b"version https://git-lfs.github.com/spec/v1\nsize 12345\n"


@pytest.mark.parametrize("read", [files.read_text, files.read_lines])
@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("a.txt", b"one\ntwo\ncaf\xe9\n", r"a\.txt:3: .*UTF-8.*0xe9"),
        ("a b", b"\n\xe9", r":2: .*`iconv -f ENCODING -t UTF-8 '\S+/a b' > N"),
        ("a.gz", UTF_16, r"UTF-16\. .*`zcat \S+ \| iconv -f UTF-16 -t UTF-8 >"),
        ("a.csv", "a,b\n".encode("utf-16-le"), r"UTF-16\. .*-f UTF-16LE -t"),
        ("a.csv", "a,b\n".encode("utf-16-be"), r"UTF-16\. .*-f UTF-16BE -t"),
        ("a.txt", b"\xf0\0\0\0", r"a\.txt: .* binary data, such as TFRecords"),
        ("a.csv", b"PK\x03\x04\x14\0\xff", r"csv:1: .* a ZIP .*\.xlsx\. .*CSV"),
        ("a.csv", b"\xd0\xcf\x11\xe0", r"csv:1: .* \.xls\. .*CSV"),
        ("a.tsv", PACKED, r"tsv:1: .* gzip data\. .*ends in \.gz"),
        ("a.parquet", b"PAR1\x15\0\xff", r"uet:1: .* Parquet\. .* export"),
        ("a.tar", ARCHIVE, r"tar:1: .* a tar archive\."),
        ("a.tar.gz", gzip.compress(ARCHIVE, mtime=0), r"gz:1: .* a tar"),
        ("a.txt", bz2.compress(b"one\n"), r"txt:1: .* bzip2 data\."),
        ("a.zst", b"(\xb5/\xfd\x04X", r"zst:1: .* Zstandard data\."),
        ("a.txt", lzma.compress(b"one\n"), r"txt:1: .* xz data\."),
        ("a.pdf", b"%PDF-1.4\n%\xe2\xe3\n", r"pdf:1: .* PDF\."),
        ("a.txt", b"{\\rtf1\\ansi One.\\par\n}\n", r"txt:1: .* RTF\."),
        ("a.csv", LFS_POINTER, r"csv:1: .* a pointer of Git LFS\."),
        ("a.gz", PACKED[:-10], r"a\.gz:\d+: .*gzip"),
        ("a.gz", PACKED[:12] + b"\xff" * 8 + PACKED[20:], r"a\.gz:\d+: .*gzip"),
        ("a.gz", b"one\ntwo\n", r"a\.gz:\d+: .*gzip"),
        ("missing.txt", None, r"missing\.txt.*No such file"),
        (".", None, "Is a directory"),
    ],
)
def test_unreadable_file_is_an_error_with_its_line(
    tmp_path, read, name, data, message
):
    if data is not None:
        (tmp_path / name).write_bytes(data)
    with pytest.raises(InputError, match=message):
        list(read(str(tmp_path / name)))


def test_numbered_lines_need_newlines(tmp_path):
    path = tmp_path / "mac.csv"
    path.write_bytes(b"text,label\rgood,1\rbad,0\r")
    with pytest.raises(InputError, match=r"mac\.csv:1: .* carriage returns"):
        list(files.numbered_lines(str(path)))
    path.write_bytes(b"text,label\r\n")
    assert list(files.numbered_lines(str(path))) == [(1, "text,label")]


@pytest.fixture
def shards(tmp_path, monkeypatch):
    """The working directory, with some files and the directory c.txt."""
    monkeypatch.chdir(tmp_path)
    os.mkdir("c.txt")
    for name in (
        *("b.txt", "a10.txt", "a2.txt", "part [1].txt", "part 1.txt"),
        *("b.txt,c", "b.txt.tmp-0123abcd"),
    ):
        (tmp_path / name).touch()


@pytest.mark.usefixtures("shards")
@pytest.mark.parametrize(
    ("patterns", "names"),
    [
        ("b.txt,", ["b.txt"]),
        ("b.txt,a?.txt", ["b.txt", "a2.txt"]),
        ("a*.txt,a2.txt", ["a10.txt", "a2.txt", "a2.txt"]),
        ("part [1].txt", ["part [1].txt"]),  # A name that looks like a pattern.
        ("part*[1].txt", ["part 1.txt"]),
        ("b.txt,c", ["b.txt,c"]),
        ("b*", ["b.txt", "b.txt,c"]),  # Not the file of a killed command.
        ("b.txt.tmp-0123abcd", ["b.txt.tmp-0123abcd"]),
    ],
)
def test_patterns_expand_in_order_and_sorted_within_each(patterns, names):
    assert files.expand(patterns) == names


def require_vocabulary(path):
    files.require(path, "The vocabulary")


@pytest.mark.usefixtures("shards")
@pytest.mark.parametrize(
    ("check", "given", "message"),
    [
        (files.expand, "", "''"),
        (files.expand, ",", "','"),
        (files.expand, "b.txt,d*", "'d[*]'"),
        (files.expand, "c.txt", "'c.txt' is a directory"),
        (files.expand, "*.txt", "'c.txt' is a directory"),
        (require_vocabulary, "d.txt", "The vocabulary .*'d.txt'"),
        (require_vocabulary, "c.txt", "The vocabulary .*'c.txt'"),
    ],
)
def test_input_that_is_not_a_file_is_an_error(check, given, message):
    require_vocabulary("b.txt")
    with pytest.raises(InputError, match=message):
        check(given)


@pytest.mark.parametrize("scheme", ["", "file://"])  # The latter as gs://.
def test_files_are_written_read_listed_and_removed(tmp_path, scheme):
    local = tmp_path / "[new]" / "sub"
    root, path = f"{scheme}{local}", f"{scheme}{local}/a.txt"
    for _ in range(2):
        files.make_directory(root)
    files.write_text(path, "é\r\n\u2028b")
    assert (local / "a.txt").read_bytes() == b"\xc3\xa9\r\n\xe2\x80\xa8b"
    assert files.read_text(path) == "é\r\n\u2028b"
    assert list(files.read_lines(path)) == ["é", "\u2028b"]
    assert files.size(path) == files.directory_size(root) == 8
    assert not files.is_gzip(path)
    (local / "b~").touch()
    assert files.list_directory(root) == ["a.txt", "b~"]
    assert files.list_directory(os.path.dirname(root)) == ["sub"]
    for other in (path, f"{root}/missing"):
        assert files.list_directory(other) == []
    files.remove(path)
    assert not files.exists(path)
    files.remove_directory(root)
    assert not files.exists(root)


@pytest.mark.parametrize(
    ("call", "path", "message"),
    [
        (files.read_text, "{}/b.txt", "b.txt.*No such file"),
        (files.make_directory, "{}/a.txt/below", "a.txt/below"),
        (lambda path: files.write_text(path, ""), "{}/no/a.txt", "No such"),
        (files.size, "{}/b.txt", "b.txt.*No such"),
        (files.exists, "nope://a", "nope://a"),
        (files.expand, "nope://a", "nope://a"),
    ],
)
def test_errors_of_remote_files_are_input_errors(tmp_path, call, path, message):
    (tmp_path / "a.txt").touch()
    with pytest.raises(InputError, match=message):
        call(path.format(f"file://{tmp_path}"))


@pytest.mark.parametrize("path", ["{}/a.txt", "file://{}/a.txt", "nope://a"])
@pytest.mark.parametrize(
    "call", [files.remove, lambda path: files.replace(path, f"{path}.new")]
)
def test_missing_file_to_remove_or_rename_is_an_error(tmp_path, call, path):
    with pytest.raises((OSError, tf.errors.OpError), match=r"No such|'nope'"):
        call(path.format(tmp_path))


@pytest.mark.parametrize("before", [["old"], []])
@pytest.mark.parametrize("failure", [OSError, KeyboardInterrupt, SystemExit])
def test_failed_write_changes_nothing(tmp_path, before, failure):
    path = tmp_path / "out.txt"
    for text in before:
        path.write_text(text)

    def write():
        with files.writing(str(path)) as file:
            file.write(b"half of the new")
            raise failure

    with pytest.raises((failure, InputError)):
        write()
    assert [p.read_text() for p in tmp_path.iterdir()] == before


def test_file_gets_its_name_when_it_is_complete(tmp_path):
    path = tmp_path / "new" / "out.txt"
    files.write_text(str(path), "old")
    with files.writing(str(path)) as one, files.writing(str(path)) as other:
        one.write(b"one")
        other.write(b"other")
        assert os.path.dirname(one.name) == str(path.parent)
        assert path.read_text() == "old"
    assert path.read_text() == "one"  # The last block that ended.
    assert os.listdir(path.parent) == ["out.txt"]


@pytest.mark.parametrize("old", ["old", None])
@pytest.mark.parametrize("leads_to", ["target", "there/target", "middle"])
def test_link_stays_a_link_to_the_written_file(tmp_path, old, leads_to):
    link, target = tmp_path / "link", tmp_path / leads_to
    if leads_to == "middle":
        target.symlink_to("target")
        target = tmp_path / "target"
    if old:
        target.parent.mkdir(exist_ok=True)
        target.write_text(old)
    link.symlink_to(leads_to)
    files.require_writable_file(str(link))
    files.write_text(str(link), "new")
    assert link.is_symlink()
    assert not target.is_symlink()
    assert target.read_text() == "new"
    assert not list(tmp_path.rglob("*.tmp-*"))


@pytest.mark.parametrize("path", ["fifo", "link", "folder", os.devnull])
@pytest.mark.parametrize(
    "write",
    [
        files.require_writable_file,
        lambda path: files.write_text(path, "text"),
        lambda path: files.replacing(path).__enter__(),
    ],
)
def test_only_files_are_replaced(tmp_path, path, write, monkeypatch):
    monkeypatch.chdir(tmp_path)
    os.mkdir("folder")
    os.mkfifo("fifo")
    os.symlink("fifo", "link")
    with pytest.raises(InputError, match=path):
        write(path)
    assert sorted(os.listdir()) == ["fifo", "folder", "link"]
    assert os.path.islink("link")


@pytest.mark.parametrize(
    "call", [files.require_writable_directory, files.make_directory]
)
@pytest.mark.parametrize("path", ["file", "file/b"])
def test_directory_that_cannot_be_written_is_an_error(tmp_path, call, path):
    for possible in (f"{tmp_path}/a/b", "gs://bucket/folder"):
        files.require_writable_directory(possible)
    assert list(tmp_path.iterdir()) == []  # Checking creates nothing.
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match=f"{tmp_path}/{path}"):
        call(f"{tmp_path}/{path}")


@pytest.mark.skipif(not os.path.isdir("/proc"), reason="needs Linux")
def test_directory_without_permission_is_an_error():
    # Not even root can create files in /proc.
    with pytest.raises(InputError, match="/proc"):
        files.make_directory("/proc")


def write_directory(path, name):
    with files.replacing_directory(path) as folder:
        files.write_text(os.path.join(folder, name), "text")


@pytest.mark.parametrize(
    ("scheme", "name"), [("", "real"), ("", "link"), ("file://", "real")]
)
def test_directory_or_link_is_replaced_when_complete(tmp_path, scheme, name):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    for file_name in ("old", "new"):
        write_directory(f"{scheme}{tmp_path}/{name}", file_name)
        assert os.listdir(tmp_path / "real") == [file_name]
    assert sorted(os.listdir(tmp_path)) == ["link", "real"]
    assert (tmp_path / "link").is_symlink()


@pytest.mark.parametrize("failure", [OSError, KeyboardInterrupt])
def test_directory_stays_if_replacing_it_fails(tmp_path, monkeypatch, failure):
    path, replace = str(tmp_path / "a"), os.replace
    write_directory(path, "old")

    def fail_at_the_new_one(source, target):
        if target == path and os.listdir(source) == ["new"]:
            raise failure
        replace(source, target)

    monkeypatch.setattr(os, "replace", fail_at_the_new_one)
    with pytest.raises((InputError, KeyboardInterrupt)):
        write_directory(path, "new")
    assert os.listdir(tmp_path) == ["a"]
    assert os.listdir(path) == ["old"]


@pytest.mark.parametrize("size", [0, 5, 16 * 2**20, 40 * 2**20])
def test_fingerprint_depends_on_size_and_content(tmp_path, size):
    path, content = tmp_path / "a.tsv", bytearray(size)
    path.write_bytes(content)
    found = files.fingerprint(str(path))
    assert found.startswith(f"a.tsv: {size} bytes, SHA-256 ")
    assert files.fingerprint(f"file://{path}") == found
    path.write_bytes(content + b"x")
    assert files.fingerprint(str(path)) != found
    for position in range(0, size, max(1, size - 1)):
        content[position] = 1
        path.write_bytes(content)
        assert files.fingerprint(str(path)) != found
        content[position] = 0


def test_fingerprint_does_not_read_pipes(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    assert files.fingerprint(str(path)) == "pipe: not a regular file"


@pytest.mark.parametrize("pair", [("", ""), ("", "file://"), ("file://", "")])
def test_files_move_to_other_file_systems(tmp_path, monkeypatch, pair):
    def rename(source, target):
        raise OSError(errno.EXDEV, "Invalid cross-device link")

    monkeypatch.setattr(os, "rename", rename)
    (tmp_path / "a").write_bytes(b"1")
    (tmp_path / "b").write_bytes(b"2")
    source, target = pair
    files.move(f"{source}{tmp_path}/a", f"{target}{tmp_path}/b")
    assert (tmp_path / "b").read_bytes() == b"1"
