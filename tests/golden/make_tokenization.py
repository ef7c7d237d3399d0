"""Extracts tokenization.json from recorded results of the original.

  python tests/golden/make_tokenization.py GOLDEN_DIRECTORY

It keeps a few short strings of every kind, on which all versions of Python
agree, and the odd vocabulary files. Of each vocabulary it keeps the tokens in
the results, which suffice to tokenize the kept strings in the same way.
"""

import base64
import collections
import gzip
import json
import pathlib
import sys
from typing import Any

HERE = pathlib.Path(__file__).parent
NUM_PER_KIND = 5
MAX_LENGTH = 24
VOCABULARIES = ("uncased", "multi_cased")


def choose_records(golden: pathlib.Path) -> list[dict[str, Any]]:
    kept = []
    num_of_kind: collections.Counter[str] = collections.Counter()
    path = golden / "tokenization" / "tokenized.jsonl.gz"
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        records = [json.loads(line) for line in lines]
    for record in records:
        kind = record["kind"]
        length = len(record.get("text", record.get("b64")))
        if "pydiff" in record or not 0 < length <= MAX_LENGTH:
            continue
        num_of_kind[kind] += 1
        if kind == "fixed" or num_of_kind[kind] <= NUM_PER_KIND:
            kept.append(
                {name: record[name] for name in record if is_kept(name)}
            )
    return kept


def is_kept(field: str) -> bool:
    return (
        field in ("text", "b64", "basic_lower", "basic_cased", "wp_raw_uncased")
        or field.removeprefix("tok_") in VOCABULARIES
    )


def used_tokens(records: list[dict[str, Any]], vocabulary: str) -> list[str]:
    used: dict[str, None] = {}
    for record in records:
        used |= dict.fromkeys(record[f"tok_{vocabulary}"])
        if vocabulary == "uncased":
            used |= dict.fromkeys(record["wp_raw_uncased"])
    return list(used)


def odd_files(golden: pathlib.Path) -> dict[str, Any]:
    directory = golden / "vocab_edge"
    expected = json.loads((directory / "expected.json").read_text())
    return {
        name: {
            "b64": base64.b64encode(
                (directory / f"{name}.txt").read_bytes()
            ).decode(),
            # None if the file cannot be read.
            "load_vocab": expected[name].get("load_vocab"),
        }
        for name in expected
    }


def main(golden: pathlib.Path) -> None:
    records = choose_records(golden)
    extract = {
        "vocabularies": {
            name: used_tokens(records, name) for name in VOCABULARIES
        },
        "vocab_edge": odd_files(golden),
        "records": records,
    }
    # One record per line, for readable differences.
    text = json.dumps(extract, separators=(",", ":"))
    text = text.replace('},{"', '},\n{"')
    (HERE / "tokenization.json").write_text(text + "\n")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
