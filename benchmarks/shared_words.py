r"""What the words that two texts share tell of MRPC, RTE and STS-B.

  python -m benchmarks.shared_words FOLDER VOCAB_FILE

FOLDER has `glue/MRPC`, `glue/RTE` and `glue/STS-B` in it. Of each pair two
numbers are known: how many different pieces its texts share, as a part of
those of both, and of those of the shorter. A linear model of them is fitted on
the training data. Below it, a BERT has not learned to compare.
"""

import sys
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from sklearn.linear_model import LinearRegression, LogisticRegression

from official_bert.metrics.regression import pearson_and_spearman
from official_bert.tasks import glue
from official_bert.tasks.text import TextExample
from official_bert.tokenization import BatchTokenizer

Floats = npt.NDArray[np.float64]


def shared(
    examples: Sequence[TextExample], tokenizer: BatchTokenizer
) -> Floats:
    """Returns both parts of each pair, float64 [N, 2]."""
    texts = (text for e in examples for text in (e.text_a, e.text_b or ""))
    pieces = map(set, tokenizer.tokenize_lines_to_ids(texts))
    parts = [
        (len(a & b) / len(a | b), len(a & b) / min(len(a), len(b)))
        for a, b in zip(pieces, pieces, strict=True)
    ]
    return np.array(parts)


def main(folder: str, vocab_file: str) -> None:
    tokenizer = BatchTokenizer(vocab_file)
    for name in ("MRPC", "RTE", "STS-B"):
        row = glue.TASKS[name.lower().replace("-", "")]
        task = glue.make_task(row, f"{folder}/glue/{name}")
        train, dev = task.examples("train"), task.examples("dev")
        known, asked = shared(train, tokenizer), shared(dev, tokenizer)
        labels = [example.label for example in train]
        wanted = [example.label for example in dev]
        if name == "STS-B":
            said = LinearRegression().fit(known, labels).predict(asked)
            pearson = pearson_and_spearman(wanted, said)["pearson"]
            print(f"{name:6} pearson  {100 * pearson:.1f}")
        else:
            model = LogisticRegression().fit(known, labels)
            print(f"{name:6} accuracy {100 * model.score(asked, wanted):.1f}")


if __name__ == "__main__":
    main(*sys.argv[1:])
