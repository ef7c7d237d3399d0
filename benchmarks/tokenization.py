"""Lines tokenized per CPU second.

  python -m benchmarks.tokenization CORPUS VOCAB_FILE

CORPUS has one sentence per line; 100,000 lines take half a minute. Reading the
vocabulary is not measured. README.md describes the rows and columns.
"""

import itertools
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from official_bert.io import files
from official_bert.tokenization import FullTokenizer, Tokenizer
from official_bert.tokenization.tokenizer import EncodedLines

LINES_PER_BLOCK = 2000


def measure(
    tokenize: Callable[[list[str]], Any],
    corpus: str,
    tokens_of: Callable[[Any], Iterable[list[str]]] = iter,
) -> tuple[float, list[int]]:
    """Returns the CPU seconds for a corpus, and a hash for each line.

    `tokens_of` converts the results to lists of tokens; it is not measured.
    """
    seconds = 0.0
    hashes: list[int] = []
    lines = files.read_lines(corpus)
    while block := list(itertools.islice(lines, LINES_PER_BLOCK)):
        start = time.process_time()
        results = tokenize(block)
        seconds += time.process_time() - start
        hashes += [hash(tuple(tokens)) for tokens in tokens_of(results)]
    return seconds, hashes


def main(corpus: str, vocab_file: str) -> None:
    reference, tokenizer = FullTokenizer(vocab_file), Tokenizer(vocab_file)

    def tokens_of_arrays(encoded: EncodedLines) -> Iterator[list[str]]:
        tokens = tokenizer.convert_ids_to_tokens(encoded.ids.tolist())
        for start, end in itertools.pairwise(encoded.row_splits.tolist()):
            yield tokens[start:end]

    def with_offsets(lines: list[str]) -> list[list[str]]:
        return [tokenizer.tokenize_with_offsets(line)[0] for line in lines]

    arrays = tokenizer.encode_lines, corpus, tokens_of_arrays
    results = {
        "FullTokenizer": measure(
            lambda lines: [reference.tokenize(line) for line in lines], corpus
        ),
        "  with offsets": measure(with_offsets, corpus),
        "  encode_lines": measure(*arrays),
        "  again": measure(*arrays),
    }
    reference_seconds, expected = results["FullTokenizer"]
    print("engine            lines  CPU s  lines / CPU s  ratio   equal")
    for name, (seconds, hashes) in results.items():
        num_lines = len(hashes)
        num_equal = sum(map(int.__eq__, hashes, expected))
        print(
            f"{name:14} {num_lines:8,} {seconds:6.2f} "
            f"{num_lines / seconds:14,.0f} {reference_seconds / seconds:6.1f} "
            f"{num_equal / num_lines:7.2%}"
        )


if __name__ == "__main__":
    main(*sys.argv[1:])
