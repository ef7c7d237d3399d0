"""Writes a labeled data set: are the words of a sentence in order?

    python data/python_word_order.py --output_dir=/tmp/word_order

The sentences are those of `python_english.py` with 5 to 24 words. In half of
them, two neighboring words are swapped:

    text                                  label
    Return a list of the names.           correct
    Return a of list the names.           swapped

In a few seconds this writes `sentences.tsv`.
"""

import random

import python_english

from official_bert.io import files
from official_bert.options import cli
from official_bert.options.flags import Options, option, path_option


class PythonWordOrder(Options):
    """Options of `data/python_word_order.py`."""

    output_dir: str = path_option("Directory of sentences.tsv.")
    seed: int = option("Random seed of the swapped words.", 12345)


def main(options: PythonWordOrder) -> None:
    """Writes the sentences of all documents."""
    options = options.resolve()
    documents = python_english.collect(python_english.LIBRARY)
    sentences = [sentence for document in documents for sentence in document]
    rows = label(sentences, random.Random(options.seed))
    lines = ("\t".join(row) + "\n" for row in (("text", "label"), *rows))
    path = f"{options.output_dir}/sentences.tsv"
    files.write_text(path, "".join(lines))
    print(f"{len(rows):,} sentences in {path}")


def label(
    sentences: list[str], generator: random.Random
) -> list[tuple[str, str]]:
    """Returns the sentences of 5 to 24 words in random order, with labels."""
    kept = [s for s in sentences if 5 <= len(s.split()) <= 24]
    generator.shuffle(kept)
    return [
        (swap(sentence, generator), "swapped")
        if n % 2
        else (sentence, "correct")
        for n, sentence in enumerate(kept)
    ]


def swap(sentence: str, generator: random.Random) -> str:
    """Swaps two neighboring words, except the first and the last one.

    Capitals and periods would reveal the swap. A sentence without
    different neighbors is unchanged.
    """
    words = sentence.split()
    places = [
        n
        for n in range(1, len(words) - 2)
        if words[n].lower() != words[n + 1].lower()
    ]
    if places:
        n = generator.choice(places)
        words[n], words[n + 1] = words[n + 1], words[n]
    return " ".join(words)


if __name__ == "__main__":
    cli.run(main, PythonWordOrder)
