"""Reading as the 2018 release reads, and writing all or nothing."""

import gzip
import json
import os
import subprocess
import threading

import pytest

from official_bert import files
from official_bert.errors import InputError


@pytest.mark.parametrize(
    ("data", "lines"),
    [
        (b"", []),
        (b"\n", [""]),
        (b"a\nb\n", ["a", "b"]),
        (b"a\n\nb", ["a", "", "b"]),
        (b"a\r\nb\r\n", ["a", "b"]),
        # A lone \r ends no line; it is dropped wherever it stands.
        (b"a\rb\n\rc\r\r\n", ["ab", "c"]),
        (b"a\n\r\n", ["a", ""]),
        (b"a\n\r", ["a"]),
        (b"\r", []),
        # \n alone ends a line: not VT, FF, U+0085 or U+2028.
        (b"a\vb\fc\n", ["a\vb\fc"]),
        ("a\x85b\u2028c\n".encode(), ["a\x85b\u2028c"]),
        ("\ufeffa\n".encode(), ["\ufeffa"]),
        ("😀 \t\n".encode(), ["😀 \t"]),
        (b"a\0b\n", ["a\0b"]),
    ],
)
@pytest.mark.parametrize("name", ["text.txt", "text.txt.gz"])
def test_lines_are_those_of_the_original(tmp_path, name, data, lines):
    path = tmp_path / name
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)

    assert list(files.read_lines(str(path))) == lines


def test_lines_are_those_the_original_read_from_odd_files(golden):
    folder = golden / "vocab_edge"
    expected = json.loads((folder / "expected.json").read_text())
    readable = {
        name: [line.removesuffix("\n") for line in record["gfile_lines"]]
        for name, record in expected.items()
        if "gfile_lines" in record
    }

    assert readable == {
        name: list(files.read_lines(str(folder / f"{name}.txt")))
        for name in readable
    }
    for name in expected.keys() - readable.keys():
        with pytest.raises(InputError, match="must be UTF-8"):
            list(files.read_lines(str(folder / f"{name}.txt")))


def test_bytes_read_are_reported_line_by_line(tmp_path):
    path = tmp_path / "text.txt"
    path.write_bytes("é\r\n\nab".encode())
    sizes = []

    list(files.read_lines(str(path), on_bytes=sizes.append))

    assert sizes == [4, 1, 2]


@pytest.mark.parametrize("read", [files.read_text, files.read_lines])
def test_text_that_is_not_utf8_is_refused_with_its_line(tmp_path, read):
    path = tmp_path / "latin1.txt"
    path.write_bytes(b"one\ntwo\ncaf\xe9\n")

    with pytest.raises(
        InputError, match=r"latin1.txt:3: .*UTF-8.* 0xe9 .*iconv"
    ):
        list(read(str(path)))


def cut_short(data):
    return gzip.compress(data)[:-10]


def damaged(data):
    packed = bytearray(gzip.compress(data))
    packed[12:20] = b"\xff" * 8
    return bytes(packed)


def not_packed(data):
    return data


@pytest.mark.parametrize("read", [files.read_text, files.read_lines])
@pytest.mark.parametrize("spoil", [cut_short, damaged, not_packed])
def test_spoilt_gzip_data_is_refused_with_its_line(tmp_path, read, spoil):
    path = tmp_path / "text.gz"
    path.write_bytes(spoil(b"one\ntwo\n" * 100))

    with pytest.raises(InputError, match=r"text.gz:\d+: must be complete gzip"):
        list(read(str(path)))


@pytest.mark.parametrize("read", [files.read_text, files.read_lines])
@pytest.mark.parametrize(
    ("name", "reason"),
    [("missing.txt", "No such file"), ("folder", "Is a directory")],
)
def test_what_cannot_be_read_is_named(tmp_path, read, name, reason):
    (tmp_path / "folder").mkdir()

    with pytest.raises(
        InputError, match=f"{name}.*{reason}.*exists and may be"
    ):
        list(read(str(tmp_path / name)))


@pytest.fixture
def shards(tmp_path, monkeypatch):
    """The folder to name files in: b, a10 and a2, and a folder c."""
    for name in ("b.txt", "a10.txt", "a2.txt"):
        (tmp_path / name).touch()
    (tmp_path / "c.txt").mkdir()
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("shards")
@pytest.mark.parametrize(
    ("patterns", "names"),
    [
        ("b.txt", ["b.txt"]),
        ("b.txt,a2.txt", ["b.txt", "a2.txt"]),
        ("a*.txt", ["a10.txt", "a2.txt"]),
        ("b.txt,a?.txt", ["b.txt", "a2.txt"]),
        ("a*.txt,a2.txt", ["a10.txt", "a2.txt", "a2.txt"]),
        ("b.txt,", ["b.txt"]),
    ],
)
def test_patterns_keep_their_order_and_are_sorted_within(patterns, names):
    assert files.expand(patterns) == names


@pytest.mark.usefixtures("shards")
@pytest.mark.parametrize(
    ("patterns", "message"),
    [
        ("", "At least one input file must be named. Received: ''"),
        (",", "At least one input file must be named. Received: ','"),
        ("d.txt", "must exist. Received: 'd.txt'.*Check the path"),
        ("b.txt,d*", "must exist. Received: 'd[*]'.*quote patterns"),
        (
            "c.txt",
            "'c.txt', which is a folder. Name the files in it.*c.txt/[*]",
        ),
        ("*.txt", "'c.txt', which is a folder"),
    ],
)
def test_patterns_without_files_are_refused(patterns, message):
    with pytest.raises(InputError, match=message):
        files.expand(patterns)


@pytest.mark.usefixtures("shards")
@pytest.mark.parametrize("name", ["d.txt", "c.txt"])
def test_a_file_that_must_exist_is_named(name):
    files.require("b.txt", "The vocabulary")

    with pytest.raises(
        InputError, match=f"The vocabulary must be .* Received: '{name}'. Check"
    ):
        files.require(name, "The vocabulary")


def test_files_of_a_pattern_come_sorted_however_the_folder_lists_them(tmp_path):
    names = [str(tmp_path / f"{7 * i % 32:02d}") for i in range(32)]
    for name in names:
        open(name, "w").close()

    assert files.expand(str(tmp_path / "*")) == sorted(names)


def test_text_is_written_as_utf8_with_its_line_ends(tmp_path):
    path = tmp_path / "out.txt"

    files.write_text(str(path), "é\r\n\u2028\n")

    assert path.read_bytes() == b"\xc3\xa9\r\n\xe2\x80\xa8\n"
    assert files.read_text(str(path)) == "é\r\n\u2028\n"
    assert os.listdir(tmp_path) == ["out.txt"]


@pytest.mark.parametrize("before", ["old", None])
@pytest.mark.parametrize("failure", [OSError, KeyboardInterrupt, SystemExit])
def test_a_failed_writer_leaves_no_trace(tmp_path, before, failure):
    path = tmp_path / "out.txt"
    if before:
        path.write_text(before)

    def write():
        with files.replacing(str(path)) as temporary:
            with open(temporary, "w") as file:
                file.write("half of the new")
            raise failure

    with pytest.raises(failure):
        write()

    assert [p.read_text() for p in tmp_path.iterdir()] == (
        [before] if before else []
    )


def test_a_file_appears_under_its_name_only_when_it_is_whole(tmp_path):
    path = tmp_path / "out.txt"
    path.write_text("old")

    with files.replacing(str(path)) as temporary:
        assert os.path.dirname(temporary) == str(tmp_path)
        with open(temporary, "w") as file:
            file.write("new")
        assert path.read_text() == "old"

    assert path.read_text() == "new"
    assert os.listdir(tmp_path) == ["out.txt"]


@pytest.mark.parametrize("old", ["old", None])
@pytest.mark.parametrize("leads_to", ["target", "there/target", "middle"])
def test_a_link_stays_one(tmp_path, old, leads_to):
    target = tmp_path / leads_to
    if leads_to == "middle":
        target.symlink_to("target")
        target = tmp_path / "target"
    if old:
        target.parent.mkdir(exist_ok=True)
        target.write_text(old)
    (tmp_path / "link").symlink_to(leads_to)
    files.require_writable_file(str(tmp_path / "link"))
    files.write_text(str(tmp_path / "link"), "new")
    assert (tmp_path / "link").is_symlink()
    assert not target.is_symlink()
    assert target.read_text() == "new"
    assert os.listdir(target.parent).count("target") == 1
    assert not list(tmp_path.rglob("*.tmp-*"))


@pytest.mark.parametrize("path", ["fifo", "link"])
def test_what_is_no_file_is_not_replaced(tmp_path, path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    os.mkfifo("fifo")
    os.symlink("fifo", "link")
    for write in (
        files.require_writable_file,
        lambda path: files.write_text(path, "text"),
        lambda path: files.replacing(path).__enter__(),
    ):
        with pytest.raises(InputError, match="a device, pipe or socket"):
            write(path)
    assert sorted(os.listdir()) == ["fifo", "link"]
    assert os.path.islink("link")
    with pytest.raises(InputError, match="a device, pipe or socket"):
        files.require_writable_file(os.devnull)


def test_a_folder_is_made_with_all_above_it(tmp_path):
    path = tmp_path / "a" / "b"

    files.make_directory(str(path))
    files.make_directory(str(path))

    assert os.listdir(path) == []


def test_a_file_is_written_into_a_new_folder(tmp_path):
    path = tmp_path / "a" / "b" / "c.txt"
    files.write_text(str(path), "text")
    assert path.read_text() == "text"


@pytest.mark.parametrize("name", ["taken", "taken/below"])
def test_a_folder_that_cannot_be_made_is_refused(tmp_path, name):
    # A file in the way stops every user, root included.
    (tmp_path / "taken").touch()

    with pytest.raises(
        InputError,
        match=f"must be writable. Received: .*{name}' .*Choose another",
    ):
        files.make_directory(str(tmp_path / name))


@pytest.mark.skipif(not os.path.isdir("/proc"), reason="needs Linux")
def test_a_folder_that_takes_no_files_is_refused():
    # Not even root may write there.
    with pytest.raises(InputError, match=r"must be writable. .*'/proc'"):
        files.make_directory("/proc")


def test_paths_with_a_scheme_go_to_gfile(tmp_path):
    address = f"file://{tmp_path}"
    files.make_directory(f"{address}/new")
    files.write_text(f"{address}/new/a.txt", "é\r\nb")

    assert (tmp_path / "new" / "a.txt").read_bytes() == b"\xc3\xa9\r\nb"
    assert files.expand(f"{address}/new/*.txt") == [f"{address}/new/a.txt"]
    assert list(files.read_lines(f"{address}/new/a.txt")) == ["é", "b"]
    with pytest.raises(InputError, match=r"b.txt.*No such file"):
        files.read_text(f"{address}/new/b.txt")
    with pytest.raises(InputError, match=r"must be writable. Received: 'file:"):
        files.make_directory(f"{address}/new/a.txt/below")
    with pytest.raises(InputError, match=r"a.txt: must be writable.*No such"):
        files.write_text(f"{address}/missing/a.txt", "text")
    with pytest.raises(InputError, match=r"look for .*b.txt': .*No such"):
        files.size(f"{address}/new/b.txt")


def test_writers_of_one_file_do_not_meet(tmp_path):
    # As two threads of one process, or processes of one number elsewhere.
    path = str(tmp_path / "out.txt")
    with files.writing(path) as one, files.writing(path) as other:
        one.write(b"one")
        other.write(b"other")
    assert os.listdir(tmp_path) == ["out.txt"]
    assert files.read_text(path) == "one"  # The last to end.


@pytest.mark.parametrize("scheme", ["", "file://"])
def test_a_folder_is_listed(tmp_path, scheme):
    (tmp_path / "[a]" / "b").mkdir(parents=True)
    (tmp_path / "[a]" / "a.txt").touch()

    assert files.list_directory(f"{scheme}{tmp_path}/[a]") == ["a.txt", "b"]
    assert files.list_directory(f"{scheme}{tmp_path}/[a]/b") == []
    assert files.list_directory(f"{scheme}{tmp_path}/[a]/a.txt") == []
    assert files.list_directory(f"{scheme}{tmp_path}/missing") == []


def test_leftovers_of_dead_processes_are_removed(tmp_path):
    dead = subprocess.Popen(["true"])
    dead.wait()
    left, alive = f"tmp-{dead.pid}.0123abcd", f"tmp-{os.getppid()}.0123abcd"
    for name in ("a", "a.b", "b"):
        (tmp_path / f"{name}.{left}").mkdir()
        (tmp_path / f"{name}.{left}" / "file").touch()
        (tmp_path / f"{name}.{left}.index").touch()
        (tmp_path / f"{name}.{alive}").touch()
    files.remove_leftovers(str(tmp_path), "a")
    kept = [f"a.{alive}", f"a.b.{alive}", f"b.{alive}"]
    others = [
        f"{n}.{left}{end}" for n in ("a.b", "b") for end in ("", ".index")
    ]
    assert sorted(os.listdir(tmp_path)) == sorted(kept + others)
    files.remove_leftovers(str(tmp_path))
    assert sorted(os.listdir(tmp_path)) == sorted(kept)
    files.remove_leftovers(str(tmp_path / "missing"), "a")


def write_folder(path, name):
    with files.replacing_directory(path) as folder:
        files.write_text(os.path.join(folder, name), "text")


@pytest.mark.parametrize("scheme", ["", "file://"])
def test_a_folder_is_replaced(tmp_path, scheme):
    path = f"{scheme}{tmp_path}/a"
    (tmp_path / "a").mkdir()
    for name in ("old", "new"):
        write_folder(path, name)
        assert files.list_directory(path) == [name]
    assert os.listdir(tmp_path) == ["a"]
    assert files.directory_size(path) == 4


def test_what_a_killed_process_left_of_a_folder_goes(tmp_path):
    left = tmp_path / f"a.tmp-{2**22 + 1}.0123abcd"
    left.mkdir()
    (left / "variables").touch()
    write_folder(str(tmp_path / "a"), "new")
    assert os.listdir(tmp_path) == ["a"]


@pytest.mark.parametrize("is_full", [False, True])
def test_a_link_stays_one_and_its_folder_is_replaced(tmp_path, is_full):
    (tmp_path / "real").mkdir()
    if is_full:
        (tmp_path / "real" / "old").write_text("text")
    (tmp_path / "a").symlink_to("real")
    write_folder(str(tmp_path / "a"), "new")
    assert sorted(os.listdir(tmp_path)) == ["a", "real"]
    assert (tmp_path / "a").is_symlink()
    assert os.listdir(tmp_path / "real") == ["new"]


@pytest.mark.parametrize("failure", [OSError, KeyboardInterrupt])
def test_what_cannot_be_replaced_comes_back(tmp_path, monkeypatch, failure):
    path, replace = str(tmp_path / "a"), os.replace
    write_folder(path, "old")

    def fail_with_the_new_one(source, target):
        if ".tmp-" in source and target == path:
            raise failure
        replace(source, target)

    monkeypatch.setattr(os, "replace", fail_with_the_new_one)
    with pytest.raises((InputError, KeyboardInterrupt)):
        write_folder(path, "new")
    assert os.listdir(tmp_path) == ["a"]
    assert os.listdir(path) == ["old"]


def test_room_is_looked_for_without_making_anything(tmp_path):
    files.require_writable_directory(str(tmp_path / "a" / "b"))
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file", tmp_path / "file" / "b"):
        with pytest.raises(InputError, match="folder must be writable"):
            files.require_writable_directory(str(path))
    files.require_writable_directory("gs://bucket/folder")


def test_a_folder_is_no_place_for_a_file(tmp_path):
    files.require_writable_file(str(tmp_path / "file"))
    with pytest.raises(InputError, match="which is a folder"):
        files.require_writable_file(str(tmp_path))


def test_an_address_of_no_known_kind_is_an_input_error():
    for look in (files.exists, files.expand):
        with pytest.raises(InputError, match="Cannot look for 'nope://a'"):
            look("nope://a")


def test_a_pipe_is_read_like_a_file(tmp_path):
    """As `--input_file=<(zcat text.gz)` has it."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=(b"a\nb\n",))
    writer.start()
    assert list(files.read_lines(str(path), on_bytes=print)) == ["a", "b"]
    writer.join()


def test_a_name_with_brackets_is_a_name_if_there_is_such_a_file(tmp_path):
    for name in ("part [1].txt", "part 1.txt"):
        (tmp_path / name).touch()
    exact = str(tmp_path / "part [1].txt")
    assert files.expand(exact) == [exact]
    assert len(files.expand(str(tmp_path / "part*[1].txt"))) == 1
