r"""Learns a WordPiece vocabulary from your own text.

  python build_vocab.py \
    --input_file='wikipedia/*.txt.gz' \
    --vocab_file=vocab.txt --vocab_size=30522 \
    --bert_config_file=bert_config.json

For 15 MB of Wikipedia (490 articles) this takes five seconds and prints:

  30,522 tokens in vocab.txt.
  2,940,000 words (83,273 different), 1.060 tokens each, 0.00% unknown.
"""

import itertools
import os
from collections import Counter

from absl import logging

from official_bert.errors import InputError
from official_bert.io import files, progress, tables
from official_bert.options import BuildVocab
from official_bert.tokenization import learning
from official_bert.tokenization.learning import LONGEST_WORD
from official_bert.tokenization.normalize import warn_of_removed_signs
from official_bert.tokenization.vocab import MAX_SHARE_UNKNOWN

# Otherwise, a warning names the flag to increase.
_MAX_SHARE_LEFT_OUT = 0.005


def main(options: BuildVocab) -> None:
    """Learns and writes a vocabulary, and prints how well it fits the text."""
    options = options.resolve()
    for path in filter(None, (options.vocab_file, options.bert_config_file)):
        files.make_directory(os.path.dirname(path) or ".")
    words = count_words(options)
    vocab = learning.learn(
        words,
        vocab_size=options.vocab_size,
        min_count=options.min_count,
        num_unused=options.num_unused,
        limit_alphabet=options.limit_alphabet,
    )
    files.write_text(options.vocab_file, "\n".join(vocab) + "\n")
    if options.bert_config_file:
        config = options.config(len(vocab))
        files.write_text(options.bert_config_file, config.to_json_string())
    print(f"{len(vocab):,} tokens in {options.vocab_file}.")
    print(describe(vocab, words))
    warn_of_left_out(vocab, words, options)


def count_words(options: BuildVocab) -> Counter[str]:
    """Counts the words of all input files."""
    names = files.expand(options.input_file)
    sample = tables.warn_of_lines(names)
    warn_of_removed_signs("".join(sample), options.settings)
    lines = itertools.chain.from_iterable(progress.read_files(names, "Reading"))
    words = learning.count_words(lines, options.settings)
    if not words:
        raise InputError(
            f"--input_file={options.input_file} must contain words."
        )
    return words


def describe(vocab: list[str], words: Counter[str]) -> str:
    """Describes how many tokens a word has, and how many are unknown."""
    tokens = learning.count_tokens(vocab, words)
    num_words = words.total()
    return (
        f"{num_words:,} words ({len(words):,} different), "
        f"{tokens.total() / num_words:.3f} tokens each, "
        f"{tokens['[UNK]'] / num_words:.2%} unknown."
    )


def warn_of_left_out(
    vocab: list[str], words: Counter[str], options: BuildVocab
) -> None:
    """Warns if the vocabulary lacks characters, or words are too long."""
    num_long = sum(
        count for word, count in words.items() if len(word) > LONGEST_WORD
    )
    if num_long > MAX_SHARE_UNKNOWN * words.total():
        logging.warning(
            f"{num_long / words.total():.2%} of all words have more than "
            f"{LONGEST_WORD} characters, so they are unknown. Separate words "
            "by spaces: text in Thai, for example, must be segmented first"
        )
    counts = learning.count_characters(words)
    missing = counts.keys() - set(vocab)
    share = sum(counts[char] for char in missing) / counts.total()
    if share > _MAX_SHARE_LEFT_OUT:
        flag = "limit_alphabet" if options.limit_alphabet else "vocab_size"
        logging.warning(
            f"{share:.2%} of all characters are not in the vocabulary "
            f"({len(missing):,} of {len(counts):,} different ones), so their "
            f"words are unknown. Increase {options.flag(flag)}"
        )
