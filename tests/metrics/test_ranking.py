import math

import numpy as np
import pytest
from sklearn.metrics import ndcg_score

from official_bert.metrics import ranking


def test_metrics_of_ranks_equal_their_definitions():
    ranks = [np.array([1]), np.array([12, 3]), np.array([101])]
    gain, ideal = 1 / math.log2(4), 1 + 1 / math.log2(3)
    assert ranking.ranking(ranks) == pytest.approx(
        {
            "recall@1": 1 / 3,
            "recall@10": (1 + 0.5) / 3,
            "recall@100": 2 / 3,
            "mrr@10": (1 + 1 / 3) / 3,
            "ndcg@10": (1 + gain / ideal) / 3,
        }
    )


def test_gains_equal_those_of_scikit_learn(monkeypatch):
    monkeypatch.setattr(ranking, "_BLOCK", 100)  # Three queries at a time.
    random = np.random.default_rng(0)
    queries, documents = random.normal(size=(7, 4)), random.normal(size=(30, 4))
    relevant = [random.permutation(30)[: n + 1] for n in range(7)]
    ranks = [*ranking.ranks(queries, documents, relevant)]
    similarities = queries @ documents.T
    truth = np.zeros_like(similarities)
    for row, found, indices in zip(truth, ranks, relevant, strict=True):
        row[indices] = 1
        assert len(found) == len(indices)
    expected = ndcg_score(truth, similarities, k=10)
    assert ranking.ranking(ranks)["ndcg@10"] == pytest.approx(expected)


def test_equal_documents_rank_by_their_order_and_nan_ranks_last():
    queries, documents = np.ones((1, 1)), np.array([[2.0], [3.0], [3.0], [2.0]])
    [found] = ranking.ranks(queries, documents, [[0, 1, 2, 3]])
    assert found.tolist() == [3, 1, 2, 4]
    [found] = ranking.ranks(queries * np.nan, documents, [[0]])
    assert found.tolist() == [5]
