"""Lines tokenized per CPU second.

  python -m benchmarks.tokenization CORPUS VOCAB_FILE

CORPUS has one sentence per line; 100,000 lines take half a minute. Reading the
vocabulary is not measured. README.md describes the rows and columns.
"""

import itertools
import sys
import time
from collections.abc import Callable, Iterator

from official_bert import files
from official_bert.tokenization import FullTokenizer, Tokenizer

LINES_PER_BLOCK = 2000

Tokenize = Callable[[str], list[str]]


def measure(tokenize: Tokenize, corpus: str) -> tuple[float, list[int]]:
    """Returns the CPU seconds for a corpus, and a hash for each line."""
    seconds = 0.0
    hashes: list[int] = []
    for lines in blocks(corpus):
        start = time.process_time()
        tokens_of_lines = [tokenize(line) for line in lines]
        seconds += time.process_time() - start
        hashes += [hash(tuple(tokens)) for tokens in tokens_of_lines]
    return seconds, hashes


def measure_arrays(
    tokenizer: Tokenizer, corpus: str
) -> tuple[float, list[int]]:
    """Measures `encode_lines` in the same way."""
    seconds = 0.0
    hashes: list[int] = []
    for lines in blocks(corpus):
        start = time.process_time()
        encoded = tokenizer.encode_lines(lines)
        seconds += time.process_time() - start
        tokens = tokenizer.convert_ids_to_tokens(encoded.ids.tolist())
        for first, end in itertools.pairwise(encoded.row_splits.tolist()):
            hashes.append(hash(tuple(tokens[first:end])))
    return seconds, hashes


def blocks(corpus: str) -> Iterator[list[str]]:
    lines = files.read_lines(corpus)
    while block := list(itertools.islice(lines, LINES_PER_BLOCK)):
        yield block


def main(corpus: str, vocab_file: str) -> None:
    with_offsets = Tokenizer(vocab_file).tokenize_with_offsets
    arrays = Tokenizer(vocab_file)
    results = {
        "FullTokenizer": measure(FullTokenizer(vocab_file).tokenize, corpus),
        "  with offsets": measure(lambda line: with_offsets(line)[0], corpus),
        "  encode_lines": measure_arrays(arrays, corpus),
        "  again": measure_arrays(arrays, corpus),
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
