"""Command blocks of the documentation run as they are; flags.md is current.

A block that cannot run here has the comment `<!-- not tested: REASON -->`
before it.
"""

import csv
import os
import random
import re
import runpy
import subprocess
import sys

import pytest
from support import ROOT, conversions, hub_server

BLOCK = re.compile(r"^(<!-- .* -->\n)?```shell\n([^`]*)^```$", re.M)
REPOSITORIES = [
    "google/bert_uncased_L-2_H-128_A-2",
    "google-bert/bert-base-uncased",
]


@pytest.fixture(scope="module")
def hub(tmp_path_factory):
    """Serves a small random model under the names of released ones."""
    root = tmp_path_factory.mktemp("hub")
    sizes = {"hidden_dropout_prob": 0.1, "max_position_embeddings": 128}
    conversions.released(root / "tf1", "masked_lm", **sizes)
    for name in REPOSITORIES:
        output = root / name
        output.parent.mkdir(exist_ok=True)
        conversions.convert(input=root / "tf1", output=output, to="huggingface")
    with hub_server.serving(root) as server:
        yield server


def write_reviews(path, number):
    texts = random.Random(number).choices(["a b c", "d e", "f g h i"], k=number)
    rows = [(text, "good" if "e" in text else "bad") for text in texts]
    with open(path, "w", newline="") as file:
        csv.writer(file).writerows([("review", "opinion"), *rows])


def write_sst2(directory):
    """Writes a training file; each eleventh row is "a b c" or "d e"."""
    directory.mkdir()
    rows = [("a b c ", 0), ("d e ", 1)] * 30
    lines = ["sentence\tlabel\n"]
    for text, label in rows:
        lines += [f"{text}\t{label}\n", *["x \t0\n"] * 10]
    (directory / "train.tsv").write_text("".join(lines))


def write_mrpc(directory):
    directory.mkdir(parents=True)
    header = "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\n"
    rows = [f"{i % 2}\t{i}\t{i}\ta b\t{'a b' * (i % 2)} c\n" for i in range(32)]
    for split in ("train", "dev"):
        (directory / f"{split}.tsv").write_text(header + "".join(rows))


def command_blocks():
    """Returns the different blocks of the pages that have no mark."""
    blocks = []
    for page in ("README.md", "docs/quickstart_csv.md"):
        blocks += BLOCK.findall((ROOT / page).read_text(encoding="utf-8"))
    unmarked = [block for mark, block in blocks if "not tested:" not in mark]
    return list(dict.fromkeys(unmarked))


@pytest.mark.slow
def test_command_blocks_run_as_they_are(hub, tmp_path):
    for path in [*ROOT.glob("*.py"), ROOT / "sample_text.txt"]:
        (tmp_path / path.name).symlink_to(path)
    for name in ("reviews.csv", "new.csv"):
        write_reviews(tmp_path / name, 60)
    write_sst2(tmp_path / "SST-2")
    write_mrpc(tmp_path / "glue" / "MRPC")
    bin_directory = os.path.dirname(sys.executable)
    environment = {
        **os.environ,
        **hub.environment(tmp_path),
        "PATH": f"{bin_directory}:{os.environ['PATH']}",
        "GLUE_DIR": str(tmp_path / "glue"),
    }
    process = subprocess.run(
        ["bash", "-euxo", "pipefail"],
        input="\n".join(command_blocks()),
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    assert process.stdout.count('"guesses": ') == 1
    assert process.stdout.count('"label": ') == 60
    # The table of the page on CSV files, made after README's run.
    reviews = (tmp_path / "reviews.csv").read_text().splitlines()
    assert reviews[1:3] == ['"a b c",negative', '"d e",positive']
    assert len(reviews) == 61


def test_page_of_flags_is_current():
    generator = runpy.run_path(str(ROOT / "docs" / "generate_flags.py"))
    message = "Run `python docs/generate_flags.py` and commit docs/flags.md."
    page = ROOT / "docs" / "flags.md"
    assert page.read_text(encoding="utf-8") == generator["render"](), message
