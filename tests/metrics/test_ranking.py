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


def test_ndcg_of_groups_equals_scikit_learns_also_with_equal_scores():
    random = np.random.default_rng(0)
    sizes = [2, 7, 30, 12, 5]
    groups = np.repeat(["a", "b", "c", "d", "e"], sizes)
    gains = random.integers(0, 4, len(groups)).astype(float)
    gains[groups == "e"] = 0  # No relevant document.
    scores = random.integers(0, 5, len(groups)) / 4
    expected = [
        ndcg_score([gains[groups == name]], [scores[groups == name]], k=10)
        for name in "abcde"
    ]
    order = random.permutation(len(groups))
    found = ranking.ranking_of_groups(
        groups[order].tolist(), gains[order], scores[order]
    )
    assert found["ndcg@10"] == pytest.approx(np.mean(expected))


@pytest.mark.parametrize(
    ("gains", "scores", "mrr"),
    [
        ([0, 0, 3, 1], [0.9, 0.1, 0.8, 0.7], 1 / 2),
        ([1] + [0] * 10, range(11), 0.0),  # Rank 11.
        ([0, 0], [1, 2], 0.0),
        ([1, 0, 0], [5, 5, 5], (1 + 1 / 2 + 1 / 3) / 3),
        # Behind the first one: relevant in 2 of 3 places, or after another.
        ([0, 1, 1, 0], [9, 5, 5, 5], (1 / 2) * (2 / 3) + (1 / 3) * (1 / 3)),
        ([1, 0, 0], [math.nan, -math.inf, math.nan], (1 / 2 + 1 / 3) / 2),
    ],
)
def test_equal_scores_count_in_all_orders(gains, scores, mrr):
    found = ranking.ranking_of_groups(["q"] * len(gains), gains, scores)
    assert found["mrr@10"] == pytest.approx(mrr)


def test_groups_have_the_same_weight():
    found = ranking.ranking_of_groups([1, 2, 1, 1], [1, 0, 0, 0], [0, 1, 2, 3])
    assert found["mrr@10"] == pytest.approx((1 / 3 + 0) / 2)
