"""The Beam pipeline writes the same records as --num_workers."""

import contextlib
import itertools
import logging
import random
import sys
import types
from collections import defaultdict

import pytest
from support import pretraining_records
from support.pretraining_records import make

from official_bert.errors import InputError
from official_bert.pretraining_data import beam_pipeline, corpus

# Beam and its dependencies raise warnings of their own.
pytestmark = pytest.mark.filterwarnings("default")

WORDS = ["the", "cat", "sat", "on", "mat", ".", "it", "was", "warm"]


@pytest.fixture
def inputs(tmp_path, monkeypatch):
    """Five files: some end within a document, or have no text."""
    logging.getLogger().setLevel(logging.WARNING)
    rng = random.Random(1)
    lines = [" ".join(rng.choices(WORDS, k=9)) for _ in range(400)]
    lines[::20] = [""] * 20
    texts = [lines[:150], lines[150:152], ["", ""], [], lines[152:]]
    pretraining_records.write_inputs(tmp_path, "", [*WORDS, "##s"])
    for number, text in enumerate(texts):
        (tmp_path / f"{number}.txt").write_text("\n".join(text))
    monkeypatch.setattr(corpus, "_LINES_PER_BLOCK", 30)
    return tmp_path


def make_both(inputs, runner="DirectRunner", beam_options=None, **changes):
    """Returns the records of the pipeline and of --num_workers."""
    flags = {"input_file": f"{inputs}/[0-9].txt", **changes}
    before = {path.name for path in inputs.iterdir()}
    outputs = f"{inputs}/a,{inputs}/b"
    beam = {"runner": runner, "beam_options": beam_options}
    records = make(inputs, outputs, **beam, **flags)
    written = {"a", "b", "a.tokenizer.json", "b.tokenizer.json"}
    assert {path.name for path in inputs.iterdir()} == before | written
    return records, make(inputs, outputs, num_workers=1, **flags)


class Transform:
    """A Beam transform of lists instead of PCollections."""

    def __init__(self, function):
        self.function = function

    def __rrshift__(self, label):
        return self

    def __ror__(self, values):
        return self.function(values)


@pytest.fixture
def without_beam(monkeypatch):
    """Runs each step of the pipeline twice, on elements in random order."""
    rng = random.Random(2)

    def flat_map(function, *arguments):
        def apply(elements):
            results = []
            for element in elements:
                list(function(element, *arguments))  # This result is lost.
                results += function(element, *arguments)
            rng.shuffle(results)
            return results

        return Transform(apply)

    def group(pairs):
        groups = defaultdict(list)
        for key, value in pairs:
            groups[key].append(value)
        return [*groups.items()]

    def group_several(inputs):
        groups = {name: dict(group(pairs)) for name, pairs in inputs.items()}
        return [
            (key, {name: groups[name].get(key, []) for name in groups})
            for key in set().union(*groups.values())
        ]

    beam = types.SimpleNamespace(
        Create=lambda elements: Transform(lambda _: elements),
        Reshuffle=lambda: Transform(list),
        FlatMap=flat_map,
        Map=lambda function, *arguments: flat_map(
            lambda element: [function(element, *arguments)]
        ),
        Filter=lambda function, *arguments: flat_map(
            lambda element: [element] * function(element, *arguments)
        ),
        Flatten=lambda: Transform(lambda parts: [*itertools.chain(*parts)]),
        GroupByKey=lambda: Transform(group),
        CoGroupByKey=lambda: Transform(group_several),
    )
    monkeypatch.setitem(sys.modules, "apache_beam", beam)
    monkeypatch.setattr(
        beam_pipeline,
        "_make_pipeline",
        lambda options: contextlib.nullcontext(),
    )


@pytest.mark.parametrize(
    "changes",
    [
        {"dupe_factor": 40},
        dict.fromkeys(("do_whole_word_mask", "words_are_separated"), True),
        {"compress": True},
        {"nsp": "sop", "mask_share": 0.0, "random_share": 0.9},
        {"nsp": "none", "pack_sequences": True, "masking": "dynamic"},
    ],
    ids=str,
)
def test_steps_in_any_order_make_the_records_of_workers(
    inputs, without_beam, caplog, changes
):
    caplog.set_level(logging.INFO, logger="absl")
    records, expected = make_both(inputs, **changes)
    assert records == expected
    logged = [record.getMessage() for record in caplog.records]
    beam, local = logged[: len(logged) // 2], logged[len(logged) // 2 :]
    assert beam == local
    assert any("Dropped or truncated" in message for message in beam)


@pytest.mark.parametrize(
    ("pattern", "name", "content", "message"),
    [
        ("[0-9].txt", "3.txt", b"the\nsat \xff\n", "3.txt:2: text must be UTF"),
        ("*.gz", "3.txt.gz", b"the cat", "3.txt.gz:1: invalid gzip data"),
        ("[23].txt", "3.txt", b"\n", "must contain text"),
    ],
)
def test_unusable_file_is_reported(
    inputs, without_beam, pattern, name, content, message
):
    (inputs / name).write_bytes(content)
    (inputs / "a").write_text("before")
    names = sorted(inputs.iterdir())
    with pytest.raises(InputError, match=message):
        make_both(inputs, input_file=f"{inputs}/{pattern}")
    assert sorted(inputs.iterdir()) == names
    assert (inputs / "a").read_text() == "before"


@pytest.mark.parametrize(
    "beam_options",
    [None, "--direct_running_mode=multi_processing --direct_num_workers=2"],
)
@pytest.mark.slow
def test_beam_makes_the_records_of_workers(inputs, beam_options):
    pytest.importorskip("apache_beam", reason="needs the extra beam")
    records, expected = make_both(inputs, beam_options=beam_options)
    assert records == expected


@pytest.mark.slow
def test_dask_makes_the_records_of_workers(inputs):
    pytest.importorskip("apache_beam", reason="needs the extra beam")
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(2, threads_per_worker=1) as cluster:
        beam_options = f"--dask_client_address={cluster.scheduler_address}"
        beam_options += " --dask_npartitions=4"
        records, expected = make_both(inputs, "DaskRunner", beam_options)
        distributed.default_client().close()  # Beam leaves it open.
    assert records == expected


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"runner": "DataflowRunner", "beam_options": "--region=x"}, "project"),
        ({"beam_options": "--direct_num_workers=many"}, "2"),  # Beam's error.
    ],
)
def test_runner_and_its_options_are_checked_before_the_text_is_read(
    inputs, monkeypatch, changes, error
):
    pytest.importorskip("apache_beam", reason="needs the extra beam")
    monkeypatch.setattr(beam_pipeline, "_build", None)
    with pytest.raises((InputError, SystemExit), match=error):
        make_both(inputs, **changes)
