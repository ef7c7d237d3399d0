r"""A baseline for MRPC, RTE and STS-B: the tokens that two texts share.

  python -m benchmarks.shared_words DIRECTORY VOCAB_FILE

DIRECTORY contains `glue/MRPC`, `glue/RTE` and `glue/STS-B`. Each pair has two
features: the number of different tokens that both texts contain, divided by the
number in either text and by the number in the shorter one. A linear model is
fitted on the training data. A BERT below this baseline has not learned to
compare texts.
"""

import sys
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from sklearn.linear_model import LinearRegression, LogisticRegression

from official_bert.metrics.regression import pearson_and_spearman
from official_bert.options import RunClassifier
from official_bert.tasks import glue
from official_bert.tasks.text import TextExample
from official_bert.tokenization import Tokenizer

Floats = npt.NDArray[np.float64]


def pair_features(
    examples: Sequence[TextExample], tokenizer: Tokenizer
) -> Floats:
    """Returns the features of each pair, float64 [N, 2]."""
    texts = (text for e in examples for text in (e.text_a, e.text_b or ""))
    tokens = map(set, tokenizer.tokenize_lines_to_ids(texts))
    features = [
        (len(a & b) / len(a | b), len(a & b) / min(len(a), len(b)))
        for a, b in zip(tokens, tokens, strict=True)
    ]
    return np.array(features)


def main(directory: str, vocab_file: str) -> None:
    tokenizer = Tokenizer(vocab_file)
    for name in ("MRPC", "RTE", "STS-B"):
        options = RunClassifier(
            task_name=name, data_dir=f"{directory}/glue/{name}"
        )
        task = glue.make(options)
        train, dev = task.data.read("train"), task.data.read("dev")
        x, dev_x = (pair_features(part, tokenizer) for part in (train, dev))
        y, dev_y = ([e.label for e in part] for part in (train, dev))
        if name == "STS-B":
            predicted = LinearRegression().fit(x, y).predict(dev_x)
            pearson = pearson_and_spearman(dev_y, predicted)["pearson"]
            print(f"{name:6} pearson  {100 * pearson:.1f}")
        else:
            model = LogisticRegression().fit(x, y)
            print(f"{name:6} accuracy {100 * model.score(dev_x, dev_y):.1f}")


if __name__ == "__main__":
    main(*sys.argv[1:])
