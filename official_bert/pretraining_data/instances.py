"""Documents to instances: pairs of segments, masked.

Every random draw is made in the order in which the 2018 release makes it, so
the same text, options and seed give the same instances in the same order.
"""

import random
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from official_bert import progress
from official_bert.inputs import features
from official_bert.options import CreatePretrainingData
from official_bert.pretraining_data.documents import Document, Sentence
from official_bert.pretraining_data.masking import mask_tokens


class Instance(NamedTuple):
    """One training instance.

    Attributes:
        tokens: `[CLS] a [SEP] b [SEP]`, masked.
        num_tokens_a: How many of them are A's own.
        is_random_next: Whether B comes from elsewhere rather than after A.
        masked_lm_positions: Where the model must guess, ascending.
        masked_lm_labels: What stood there.
    """

    tokens: list[str]
    num_tokens_a: int
    is_random_next: bool
    masked_lm_positions: list[int]
    masked_lm_labels: list[str]

    @property
    def segment_ids(self) -> list[int]:
        """The segment of each token, 0 or 1."""
        return features.segment_ids(len(self.tokens), self.num_tokens_a)


def create_instances(
    documents: list[Document],
    vocab_words: Sequence[str],
    options: CreatePretrainingData,
    rng: random.Random,
) -> list[Instance]:
    """Goes over the documents `dupe_factor` times, and shuffles the result.

    Args:
        documents: None of them empty; their order is shuffled in place.
        vocab_words: What random pieces are taken from.
        options: Lengths and shares.
        rng: The random stream, which is moved on.
    """
    rng.shuffle(documents)
    instances: list[Instance] = []
    rounds = [
        index
        for _ in range(options.dupe_factor)
        for index in range(len(documents))
    ]
    for index in progress.bar(
        rounds, description="Making instances", unit="document"
    ):
        instances += _document_instances(
            documents, index, vocab_words, options, rng
        )
    rng.shuffle(instances)
    return instances


def _document_instances(
    documents: list[Document],
    index: int,
    vocab_words: Sequence[str],
    options: CreatePretrainingData,
    rng: random.Random,
) -> Iterator[Instance]:
    """Yields the instances whose A comes from one document."""
    document = documents[index]
    max_num_tokens = options.max_seq_length - 3  # [CLS], [SEP], [SEP].

    # Sequences are mostly filled up, since padding is computed in vain; some
    # are made short, since the model will be used on short texts as well.
    target_length = max_num_tokens
    if rng.random() < options.short_seq_prob:
        target_length = rng.randint(2, max_num_tokens)

    chunk: list[Sentence] = []
    chunk_length = 0
    position = 0
    while position < len(document):
        chunk.append(document[position])
        chunk_length += len(document[position])
        position += 1
        if position < len(document) and chunk_length < target_length:
            continue

        num_sentences_a = 1
        if len(chunk) >= 2:
            num_sentences_a = rng.randint(1, len(chunk) - 1)
        tokens_a = _join(chunk[:num_sentences_a])

        is_random_next = len(chunk) == 1 or rng.random() < 0.5
        if is_random_next:
            tokens_b = _random_next(
                documents, index, target_length - len(tokens_a), rng
            )
            # The sentences that B did not use are read again.
            position -= len(chunk) - num_sentences_a
        else:
            tokens_b = _join(chunk[num_sentences_a:])

        _truncate_pair(tokens_a, tokens_b, max_num_tokens, rng)
        yield _mask_pair(
            tokens_a, tokens_b, is_random_next, vocab_words, options, rng
        )
        chunk, chunk_length = [], 0


def _join(sentences: Sequence[Sentence]) -> list[str]:
    return [token for sentence in sentences for token in sentence]


def _random_next(
    documents: list[Document],
    index: int,
    target_length: int,
    rng: random.Random,
) -> list[str]:
    """Returns sentences from a random place of another document."""
    # Ten tries, since there may be one document only, which then has to do.
    for _ in range(10):
        other = rng.randint(0, len(documents) - 1)
        if other != index:
            break
    document = documents[other]
    start = rng.randint(0, len(document) - 1)
    tokens: list[str] = []
    for sentence in document[start:]:
        tokens += sentence
        if len(tokens) >= target_length:
            break
    return tokens


def _truncate_pair(
    tokens_a: list[str],
    tokens_b: list[str],
    max_num_tokens: int,
    rng: random.Random,
) -> None:
    """Shortens the longer one, at either end by chance, until both fit."""
    while len(tokens_a) + len(tokens_b) > max_num_tokens:
        longer = tokens_a if len(tokens_a) > len(tokens_b) else tokens_b
        if rng.random() < 0.5:
            del longer[0]
        else:
            longer.pop()


def _mask_pair(
    tokens_a: list[str],
    tokens_b: list[str],
    is_random_next: bool,
    vocab_words: Sequence[str],
    options: CreatePretrainingData,
    rng: random.Random,
) -> Instance:
    masked = mask_tokens(
        features.pack(tokens_a, tokens_b),
        masked_lm_prob=options.masked_lm_prob,
        max_predictions_per_seq=options.max_predictions_per_seq,
        whole_words=options.do_whole_word_mask,
        vocab_words=vocab_words,
        rng=rng,
    )
    return Instance(
        tokens=masked.tokens,
        num_tokens_a=len(tokens_a),
        is_random_next=is_random_next,
        masked_lm_positions=masked.positions,
        masked_lm_labels=masked.labels,
    )
