"""Features, metrics and negatives of sentence embeddings."""

import numpy as np
import pytest
from sklearn.metrics import ndcg_score

from official_bert.tasks.embedding import EmbeddingExample, EmbeddingTask


def test_features_have_a_sequence_of_each_text(tokenizer):
    task = EmbeddingTask(num_texts=3, score_range=(1.0, 5.0))
    examples = [
        EmbeddingExample("0", ("good cat", "cat"), 4.0),
        EmbeddingExample("1", ("cat", "dog dog dog", ""), None),
    ]
    [features] = task.featurize(examples, tokenizer, 4)
    batch = features.batch([0, 1], 4, 2)
    lengths = batch["input_mask"].sum(-1)
    assert lengths.tolist() == [[4, 3, 0], [3, 4, 2]]
    assert batch["label_ids"].tolist() == [[0.75], [-0.25]]
    (a, b, missing), (cat, dogs, empty) = batch["text_ids"].tolist()
    assert b == cat
    assert len({a, b, dogs}) == 3
    assert (missing, empty) == (0, 0)
    assert min(a, b, dogs) > 0


def vectors_at(angles):
    """Returns vectors of length 1, float32 [N, 2], for angles in degrees."""
    radians = np.radians(angles)
    return np.stack([np.cos(radians), np.sin(radians)], 1).astype(np.float32)


def test_metrics_are_those_of_scores_or_of_the_search_among_all_matches():
    v = vectors_at([0, 10, 20, 30, 40, 90])
    task = EmbeddingTask(num_texts=2)
    scored = [EmbeddingExample(str(n), ("a", "b"), 3.0 - n) for n in range(3)]
    found = task.metrics(scored, [v[[0, 1]], v[[0, 3]], v[[0, 2]]])
    assert found == {
        "spearmanr": pytest.approx(0.5),
        "pearson": pytest.approx(np.corrcoef([3, 2, 1], v[[1, 3, 2], 0])[0, 1]),
    }
    # The third numbers reverse the order of the cosines.
    third = np.array([[5, 9], [5, 0], [5, -3]])[..., None]
    pairs = v[np.array([[0, 4], [0, 1], [0, 2]])]
    answers = np.concatenate([pairs, third], axis=2)
    found = EmbeddingTask(matryoshka=(2,)).metrics(scored, answers)
    assert found["spearmanr"] == pytest.approx(1)
    assert found["spearmanr_2"] == pytest.approx(-0.5)
    pairs = [("q", "a"), ("q", "b"), ("r", "c", "n"), ("s", "c", "")]
    examples = [EmbeddingExample(str(n), t) for n, t in enumerate(pairs)]
    vectors = [v[[0, 1]], v[[0, 5]], v[[4, 3, 2]], v[[5, 3, 0]]]
    # Documents: a 10, b 90, c 30 and n 20 degrees. The ranks of the matches
    # are 1 and 4 for q, at 0 degrees, 1 for r, at 40, and 2 for s, at 90.
    found = task.metrics(examples, vectors)
    assert found["documents"] == 4
    assert found["recall@1"] == pytest.approx((0.5 + 1 + 0) / 3)
    assert found["mrr@10"] == pytest.approx((1 + 1 + 0.5) / 3)
    # Passages of a corpus: p at 5 degrees, and a again. They replace n. Now,
    # the ranks are 2 and 4 for q, 1 for r and 2 for s.
    [passages] = task.passages(["A  ", "p", "", "p"])
    assert passages.texts == ("p", "A  ")
    found = task.metrics([*examples, passages], [*vectors, vectors_at([5, 10])])
    assert found["documents"] == 4
    assert found["recall@1"] == pytest.approx(1 / 3)
    assert found["mrr@10"] == pytest.approx((1 / 2 + 1 + 1 / 2) / 3)
    of_q, of_s = np.cos(np.radians([[10, 90, 30, 5], [80, 0, 60, 85]]))
    first, last = [[1, 1, 0, 0]], [[0, 0, 1, 0]]
    ndcg = ndcg_score(first, [of_q]), 1, ndcg_score(last, [of_s])
    assert found["ndcg@10"] == pytest.approx(np.mean(ndcg))


def test_mined_negatives_are_the_nearest_texts_that_are_not_right():
    task = EmbeddingTask(num_texts=3)
    angles = {
        **{"q": 0, "Q ": 0, "a": 10, "b": 20, "B": 20, "n": 5, "p": 30},
        **{"q2": 90, "c": 80, "far": 180},
    }
    texts = [("q", "a", "n"), ("Q ", "b", ""), ("q2", "c", "")]
    pairs = [EmbeddingExample(str(n), t) for n, t in enumerate(texts)]
    corpus = ["p", "B", "far", "q"]
    passages = task.passages([*angles])
    vectors = [
        vectors_at([angles[text] for text in example.texts])
        * [[9 if text == "c" else 1] for text in example.texts]
        for example in passages
    ]
    rows = [*task.with_negatives(pairs, corpus, passages, vectors, 3)]
    assert rows == [
        ["query", "positive", "negative_1", "negative_2", "negative_3"],
        ["q", "a", "n", "p", "c"],
        ["Q ", "b", "n", "p", "c"],
        ["q2", "c", "p", "B", "a"],
    ]
    rows = [*task.with_negatives(pairs[2:], ["p"], passages, vectors, 3)]
    assert rows[1] == ["q2", "c", "p", "", ""]
