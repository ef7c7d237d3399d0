"""How many lines become pieces in a second of processor time.

  python -m benchmarks.tokenization CORPUS VOCAB_FILE

CORPUS has one sentence per line. `FullTokenizer` stands for the 2018 release:
it goes character by character in the same way, and is about as fast (the
release reached 0.87 times its lines where both were measured). The fast engines
start with nothing remembered. Reading the vocabulary and importing NumPy are
left out; the tables that `encode_lines` makes of the vocabulary are not. The
last row is the same once more, with its memory and tables at hand. The last
column says for how many lines the pieces equal the reference's. A hundred
thousand lines take half a minute.
"""

import itertools
import sys
import time
from collections.abc import Callable, Iterator

from official_bert import files
from official_bert.tokenization import BatchTokenizer, FullTokenizer
from official_bert.tokenization.vectorized import Encoded

LINES_PER_BLOCK = 100
LINES_PER_ARRAY = 50_000


def blocks(corpus: str, num_lines: int) -> Iterator[list[str]]:
    """Yields the lines in portions, whose results are soon thrown away."""
    lines = files.read_lines(corpus)
    while block := list(itertools.islice(lines, num_lines)):
        yield block


def measure(
    tokenize: Callable[[str], list[str]], corpus: str
) -> tuple[float, list[int]]:
    """Returns the CPU seconds for a corpus, and a hash for each line."""
    seconds = 0.0
    hashes: list[int] = []
    for lines in blocks(corpus, LINES_PER_BLOCK):
        start = time.process_time()
        pieces_of_lines = [tokenize(line) for line in lines]
        seconds += time.process_time() - start
        hashes += [hash(tuple(pieces)) for pieces in pieces_of_lines]
    return seconds, hashes


def measure_arrays(
    tokenizer: BatchTokenizer, corpus: str
) -> tuple[float, list[int]]:
    """Does the same for the engine that takes many lines at once."""
    seconds = 0.0
    hashes: list[int] = []
    for lines in blocks(corpus, LINES_PER_ARRAY):
        start = time.process_time()
        encoded = tokenizer.encode_lines(lines)
        seconds += time.process_time() - start
        hashes += [hash(pieces) for pieces in unpack(encoded, tokenizer)]
    return seconds, hashes


def unpack(
    encoded: Encoded, tokenizer: BatchTokenizer
) -> Iterator[tuple[str, ...]]:
    """Yields the pieces of every line."""
    pieces = tokenizer.convert_ids_to_tokens(encoded.ids.tolist())
    for start, end in itertools.pairwise(encoded.row_splits.tolist()):
        yield tuple(pieces[start:end])


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
    # It gives offsets as well.
    arrays = BatchTokenizer(vocab_file)
    results["  encode_lines"] = measure_arrays(arrays, corpus)
    results["  once more"] = measure_arrays(arrays, corpus)
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
