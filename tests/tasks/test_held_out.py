"""Which examples are held out, and the folds of --folds."""

import collections

import numpy as np
from support.own_tables import REVIEWS, complete, table

from official_bert import tasks
from official_bert.sources.formats.tf1 import checkpoint as tf1
from official_bert.tasks.held_out import assign_folds, hold_out


def test_one_tenth_of_each_class_is_held_out():
    labels = ["rare"] * 20 + ["common"] * 180 + ["single"]
    chosen = hold_out(range(201), labels, 0.1)
    counts = collections.Counter(labels[i] for i in chosen)
    assert counts == {"rare": 2, "common": 18}
    chosen = hold_out(range(100), [float(i) for i in range(100)], 0.1)
    assert np.histogram(list(chosen), 10, (0, 100))[0].tolist() == [1] * 10
    assert len(hold_out("xy", ["a", "a"], 0.1)) == 1


def test_equal_texts_are_held_out_together():
    texts = [f"text {i % 40}" for i in range(200)]
    chosen = hold_out(texts, ["a"] * 200, 0.1)
    others = {*range(200)} - chosen
    assert len(chosen) == 20
    assert {texts[i] for i in chosen}.isdisjoint(texts[i] for i in others)


def test_held_out_share_is_a_share_of_rows_even_if_texts_repeat():
    # One text is too frequent to be held out.
    texts = ["same"] * 30 + [f"text {i // 2}" for i in range(170)]
    labels = [("b",)] * 30 + [("a",)] * 100 + [("b",)] * 70
    chosen = hold_out(texts, labels, 0.1)
    assert "same" not in {texts[i] for i in chosen}
    assert 16 <= len(chosen) <= 18
    assert sum(labels[i] == ("a",) for i in chosen) == 10
    assert len(hold_out(["a", "b"] * 50, ["x"] * 100, 0.1)) == 50


def test_folds_have_the_same_share_of_each_class_and_equal_texts_together():
    random = np.random.default_rng(0)
    labels = random.choice(list("abc"), 203, p=[0.7, 0.2, 0.1])
    folds = np.array(assign_folds(range(203), labels, 5))
    for label in "abc":
        counts = np.bincount(folds[labels == label], minlength=6)[1:]
        assert max(counts) - min(counts) <= 1
    texts = [f"text {i // 3}" for i in range(90)]
    folds = assign_folds(texts, ["a"] * 90, 4)
    assert len({*zip(texts, folds, strict=True)}) == 30
    assert sorted(collections.Counter(folds).values()) == [21, 21, 24, 24]
    numbers = [float(i) for i in range(100)]
    folds = np.array(assign_folds(range(100), numbers, 10))
    assert all(np.ptp(np.flatnonzero(folds == n)) >= 80 for n in range(1, 11))


def test_held_out_examples_of_a_finetuned_model_are_a_warning(tmp_path, caplog):
    checkpoint = tmp_path / "earlier" / "model.ckpt-1"
    checkpoint.parent.mkdir()
    tf1.write(str(checkpoint), {"a": np.zeros(1, np.float32)})
    flag = f"--init_checkpoint={checkpoint}"
    # The first is as in a KerasHub preset.
    for text, is_finetuned in (("{}", False), ('{"kind": "text"}', True)):
        (checkpoint.parent / "task.json").write_text(text)
        tasks.get(complete(tmp_path, "a.csv", table(*REVIEWS), flag))
        assert ("was fine-tuned. " in caplog.text) == is_finetuned
