"""Metrics of search: where the relevant documents of each query rank."""

from collections.abc import Iterator, Sequence

import numpy as np

_BLOCK = 2**22  # The number of similarities in memory.
_DEPTHS = (1, 10, 100)  # Of the recall.


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
    values["mrr@10"] = [1 / r if r <= 10 else 0.0 for r in firsts]
    values["ndcg@10"] = [_ndcg(r) for r in ranks_of_queries]
    return {name: float(np.mean(found)) for name, found in values.items()}


def _ndcg(found: np.ndarray) -> float:
    ideal = np.arange(1, min(len(found), 10) + 1)
    gains, best = (
        np.sum(1 / np.log2(1 + positions))
        for positions in (found[found <= 10], ideal)
    )
    return float(gains / best)
