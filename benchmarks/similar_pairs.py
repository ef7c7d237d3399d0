"""Pairs of similar sentences, for `--unlabeled_file` of a task on pairs.

  python -m benchmarks.similar_pairs MODEL SENTENCES PAIRS NUMBER

MODEL is an embedding model. SENTENCES has one sentence per line. PAIRS is a TSV
file with the columns `sentence1` and `sentence2`. For each sentence, it has the
two most similar others, one of the next ten, and a random one; NUMBER of these
pairs are kept. Random pairs alone would almost all be dissimilar (Thakur et
al., 2021, Augmented SBERT).
"""

import random
import sys

from official_bert import Embedder
from official_bert.io import files, tables
from official_bert.tasks.sentence_vectors import nearest


def main(model: str, sentences: str, path: str, number: str) -> None:
    """Writes the pairs."""
    random.seed(1)
    texts = [*dict.fromkeys(files.read_lines(sentences))]
    embedder = Embedder.from_pretrained(model)
    vectors = embedder(texts)
    # The most similar text is the sentence itself.
    found, _ = nearest(vectors, vectors, 13, embedder.settings.similarity)
    pairs = set()
    for first, row in enumerate(found):
        others = [int(other) for other in row if other != first]
        chosen = [*others[:2], random.choice(others[2:])]
        for other in (*chosen, random.randrange(len(texts))):
            if other != first:
                pairs.add((min(first, other), max(first, other)))
    rows = [
        [texts[index] for index in pair]
        for pair in random.sample(sorted(pairs), int(number))
    ]
    header = ["sentence1", "sentence2"]
    files.write_text(path, tables.to_tsv([header, *rows]))


if __name__ == "__main__":
    main(*sys.argv[1:])
