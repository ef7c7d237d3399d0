"""Lines per CPU second of tokenizers in a TensorFlow graph.

  python -m benchmarks.graph_tokenizer CORPUS VOCAB_FILE

CORPUS has one sentence per line. `export_tfhub.py` and `--do_export` save
`GraphTokenizer` with a model; TensorFlow's own preprocessors use the tokenizers
of tensorflow_text. These get 100 lines at a time, `FullTokenizer` gets one. The
last two columns are the shares of lines with the ids of `FullTokenizer`: of the
lines of CORPUS, and of the same number of random lines, each with characters
that are neighbors in Unicode. Time for creating tokenizers and converting
Tensors to lists is not counted. 20,000 lines take half a minute.
"""

import random
import sys
import time
import unicodedata
from collections.abc import Callable
from typing import Any

import tensorflow as tf
import tensorflow_text

from official_bert.export.graph_tokenizer import GraphTokenizer
from official_bert.io import files
from official_bert.tokenization import FullTokenizer

LINES_PER_BATCH = 100

Ids = list[list[int]]
Tokenize = Callable[[list[str]], Any]  # Ids, or a RaggedTensor of them.


def random_lines(num_lines: int) -> list[str]:
    """Returns lines of characters that are neighbors in Unicode."""
    rng = random.Random(0)
    characters = map(chr, range(sys.maxunicode + 1))
    assigned = [
        char
        for char in characters
        if unicodedata.category(char) not in ("Cn", "Co", "Cs", "Cc")
    ]
    lines = []
    for _ in range(num_lines):
        first = rng.randrange(len(assigned))
        near = [*assigned[first : first + 300], *("a", "E", " ", ".") * 20]
        lines.append("".join(rng.choices(near, k=rng.randrange(1, 40))))
    return lines


def measure(tokenize: Tokenize, lines: list[str]) -> tuple[float, Ids]:
    """Returns the CPU seconds for lines, and their ids."""
    tokenize(lines[:LINES_PER_BATCH])  # The first call of a function traces it.
    seconds = 0.0
    ids: Ids = []
    for first in range(0, len(lines), LINES_PER_BATCH):
        batch = lines[first : first + LINES_PER_BATCH]
        start = time.process_time()
        rows = tokenize(batch)
        seconds += time.process_time() - start
        ids += rows if isinstance(rows, list) else rows.to_list()
    return seconds, ids


def in_graph(tokenize: Callable[[tf.Tensor], Any]) -> Tokenize:
    """Returns a function of lists, which runs as it would in a SavedModel."""
    function = tf.function(
        tokenize,
        input_signature=[tf.TensorSpec([None], tf.string)],
        autograph=False,
    )
    return lambda lines: function(tf.constant(lines))


def engines(vocab_file: str) -> dict[str, Tokenize]:
    """Returns all tokenizers, the reference first."""
    reference = FullTokenizer(vocab_file)
    ours = GraphTokenizer(FullTokenizer(vocab_file))
    bert = tensorflow_text.BertTokenizer(vocab_file, lower_case=True)
    fast = tensorflow_text.FastBertTokenizer(
        list(files.read_lines(vocab_file)),
        token_out_type=tf.int32,
        lower_case_nfd_strip_accents=True,
    )
    return {
        "FullTokenizer": lambda lines: [
            reference.convert_tokens_to_ids(reference.tokenize(line))
            for line in lines
        ],
        "GraphTokenizer": in_graph(ours.tokenize),
        "  with offsets": in_graph(
            lambda t: ours.tokenize_words_with_offsets(t)[0].merge_dims(1, 2)
        ),
        "tf_text.Bert": in_graph(lambda t: bert.tokenize(t).merge_dims(1, 2)),
        "tf_text.FastBert": in_graph(fast.tokenize),
    }


def main(corpus: str, vocab_file: str) -> None:
    lines = list(files.read_lines(corpus))
    odd_lines = random_lines(len(lines))
    print("engine              lines  CPU s  lines / CPU s   equal    odd")
    expected: tuple[Ids, Ids] | None = None
    for name, tokenize in engines(vocab_file).items():
        seconds, ids = measure(tokenize, lines)
        results = ids, measure(tokenize, odd_lines)[1]
        expected = expected or results
        num_equal = [
            sum(map(list.__eq__, *pair))
            for pair in zip(results, expected, strict=True)
        ]
        print(
            f"{name:16} {len(lines):8,} {seconds:6.2f} "
            f"{len(lines) / seconds:14,.0f} "
            f"{num_equal[0] / len(lines):7.2%} {num_equal[1] / len(lines):6.2%}"
        )


if __name__ == "__main__":
    main(*sys.argv[1:])
