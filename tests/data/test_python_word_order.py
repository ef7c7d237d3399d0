import random

import python_english
import python_word_order
from python_word_order import PythonWordOrder


def test_two_neighboring_words_inside_the_sentence_are_swapped():
    words = ["The", "first", "of", "all", "words", "is", "here."]
    for seed in range(20):
        text = " ".join(words)
        found = python_word_order.swap(text, random.Random(seed)).split()
        (n, _) = differ = [n for n in range(len(words)) if words[n] != found[n]]
        assert differ == [n, n + 1]
        assert [found[n + 1], found[n]] == words[n : n + 2]
        assert 0 < n < len(words) - 2


def test_equal_neighbors_are_not_swapped():
    text = "It is is Is here."
    assert python_word_order.swap(text, random.Random(1)) == text


def test_half_of_the_sentences_are_swapped(tmp_path, monkeypatch, capsys):
    sentences = [" ".join(map(str, range(n))) for n in range(3, 31)]
    documents = [sentences, sentences]
    monkeypatch.setattr(python_english, "collect", lambda library: documents)
    python_word_order.main(PythonWordOrder(output_dir=str(tmp_path)))
    lines = (tmp_path / "sentences.tsv").read_text("utf-8").splitlines()
    rows = [line.split("\t") for line in lines]
    assert rows.pop(0) == ["text", "label"]
    for text, label in rows:
        assert label == ("correct" if text in sentences else "swapped")
    labels = [label for _, label in rows]
    assert labels.count("swapped") == labels.count("correct") == 20
    lengths = [len(text.split()) for text, _ in rows]
    assert sorted(lengths) == sorted([*range(5, 25)] * 2) != lengths
    assert "40 sentences" in capsys.readouterr().out
