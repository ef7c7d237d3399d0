"""How many lines become pieces in a second of processor time.

  python -m benchmarks.tokenization CORPUS VOCAB_FILE

CORPUS has one sentence per line. `FullTokenizer` stands for the 2018 release:
it goes character by character in the same way, and is about as fast (the
release reached 0.87 times its lines where both were measured). The fast engine
starts with nothing remembered. The last column says for how many lines its
pieces equal the reference's. A hundred thousand lines take half a minute.
"""

import itertools
import sys
import time
from collections.abc import Callable, Iterator

from official_bert import files
from official_bert.tokenization import BatchTokenizer, FullTokenizer

LINES_PER_BLOCK = 100


def blocks(corpus: str) -> Iterator[list[str]]:
    """Yields the lines in portions, whose results are soon thrown away."""
    lines = files.read_lines(corpus)
    while block := list(itertools.islice(lines, LINES_PER_BLOCK)):
        yield block


def measure(
    tokenize: Callable[[str], list[str]], corpus: str
) -> tuple[float, list[int]]:
    """Returns the CPU seconds for a corpus, and a hash for each line."""
    seconds = 0.0
    hashes: list[int] = []
    for lines in blocks(corpus):
        start = time.process_time()
        pieces_of_lines = [tokenize(line) for line in lines]
        seconds += time.process_time() - start
        hashes += [hash(tuple(pieces)) for pieces in pieces_of_lines]
    return seconds, hashes


def main(corpus: str, vocab_file: str) -> None:
    aligned = BatchTokenizer(vocab_file)
    engines = {
        "FullTokenizer": FullTokenizer(vocab_file).tokenize,
        "BatchTokenizer": BatchTokenizer(vocab_file).tokenize,
        "  with offsets": lambda line: aligned.tokenize_with_offsets(line)[0],
    }
    results = {
        name: measure(tokenize, corpus) for name, tokenize in engines.items()
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
