"""Metrics of search: where the relevant documents of each query rank."""

import collections
from collections.abc import Hashable, Iterator, Sequence

import numpy as np
from numpy.typing import ArrayLike

_BLOCK = 2**22  # The number of similarities in memory.
_DEPTHS = (1, 10, 100)  # Of the recall.
_DEPTH = 10  # Of MRR and nDCG.
METRICS = (*(f"recall@{depth}" for depth in _DEPTHS), "mrr@10", "ndcg@10")


def ranks(
    queries: np.ndarray,
    documents: np.ndarray,
    relevant: Sequence[Sequence[int]],
) -> Iterator[np.ndarray]:
    """Yields the ranks, from 1, of each query's relevant documents.

    Args:
        queries: float [N, H].
        documents: float [M, H]; they rank by their products with the query,
            equal ones by their order. NaN ranks last.
        relevant: The indices of the relevant documents of each query.
    """
    step = max(1, _BLOCK // len(documents))
    for start in range(0, len(queries), step):
        similarities = queries[start : start + step] @ documents.T
        rows = zip(similarities, relevant[start : start + step], strict=True)
        for row, indices in rows:
            yield np.array([_rank(row, index) for index in indices])


def _rank(similarities: np.ndarray, index: int) -> int:
    own = similarities[index]
    num_better = np.count_nonzero(~(similarities <= own))
    num_equal = np.count_nonzero(similarities[:index] == own)
    return int(1 + num_better + num_equal)


def ranking(ranks_of_queries: Sequence[np.ndarray]) -> dict[str, float]:
    """Returns means over queries; each has the ranks of its relevant documents.

    `recall@K` is the share of the relevant documents among the first K,
    `mrr@10` the reciprocal rank of the first relevant one, 0 beyond 10, and
    `ndcg@10` the normalized discounted cumulative gain with gains of 1.
    """
    values = {
        f"recall@{depth}": [
            float(np.mean(r <= depth)) for r in ranks_of_queries
        ]
        for depth in _DEPTHS
    }
    firsts = [int(r.min()) for r in ranks_of_queries]
    values["mrr@10"] = [1 / r if r <= _DEPTH else 0.0 for r in firsts]
    values["ndcg@10"] = [_ndcg_of_ranks(r) for r in ranks_of_queries]
    return {name: float(np.mean(found)) for name, found in values.items()}


def _ndcg_of_ranks(found: np.ndarray) -> float:
    ranked = np.zeros(_DEPTH)
    ranked[found[found <= _DEPTH] - 1] = 1
    return _ndcg(ranked, np.ones(len(found)))


def ranking_of_groups(
    groups: Sequence[Hashable], gains: ArrayLike, scores: ArrayLike
) -> dict[str, float]:
    """Returns `mrr@10` and `ndcg@10`, means over the groups of N documents.

    As in scikit-learn's `ndcg_score`, documents with equal scores count as if
    in all orders, gains are not exponential, and a group without a relevant
    document counts as 0. NaN ranks last.

    Args:
        groups: The query of each document.
        gains: The relevance of each document, numbers [N] of at least 0; 0
            means not relevant.
        scores: Numbers [N]; higher ones rank first.
    """
    indices = collections.defaultdict(list)
    for index, group in enumerate(groups):
        indices[group].append(index)
    keys = -np.asarray(scores, np.float64)
    gain = np.asarray(gains, np.float64)
    values = [_metrics(gain[rows], keys[rows]) for rows in indices.values()]
    names = ("mrr@10", "ndcg@10")
    return dict(zip(names, np.mean(values, axis=0).tolist(), strict=True))


def _metrics(gains: np.ndarray, keys: np.ndarray) -> tuple[float, float]:
    """Returns the reciprocal rank and nDCG of a group; small keys are first."""
    _, ties, sizes = np.unique(keys, return_inverse=True, return_counts=True)
    means = np.bincount(ties, gains) / sizes
    num_relevant = np.bincount(ties, gains > 0).astype(int)
    ndcg = _ndcg(np.repeat(means, sizes), gains)
    if not num_relevant.any():
        return 0.0, ndcg
    first = int(np.flatnonzero(num_relevant)[0])
    start, size = int(sizes[:first].sum()), int(sizes[first])
    reciprocal, share_left = 0.0, 1.0  # Of the orders of these equal scores.
    for place in range(min(size, _DEPTH - start)):
        is_next = num_relevant[first] / (size - place)
        reciprocal += share_left * is_next / (start + place + 1)
        share_left *= 1 - is_next
    return reciprocal, ndcg


def _ndcg(ranked: np.ndarray, gains: np.ndarray) -> float:
    """Returns nDCG; `ranked` are the gains in the order of the ranks."""
    best = _dcg(-np.sort(-gains))
    return _dcg(ranked) / best if best else 0.0


def _dcg(ranked: np.ndarray) -> float:
    first = ranked[:_DEPTH]
    return float(np.sum(first / np.log2(np.arange(2, len(first) + 2))))
