"""The command as its user runs it: learns tags, predicts, complains."""

import json
import random

import pytest

import run_classifier
from official_bert import tasks
from official_bert.errors import InputError
from official_bert.inference.predictor import Predictor
from official_bert.options import RunClassifier

CONFIG = {
    "vocab_size": 20,
    "hidden_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "max_position_embeddings": 16,
    "type_vocab_size": 2,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
    "initializer_range": 0.2,
}
FIRST = ["ada", "grace", "jo"]
LAST = ["lovelace", "hop##per"]
OTHER = ["sees", "a", "dog", "and", "runs"]
VOCAB = [
    *("[PAD]", "[UNK]", "[CLS]", "[SEP]", *FIRST, "lovelace", "hop", "##per"),
    *OTHER,
]


def sentence(rng):
    """Returns the lines of a sentence: names, and what is none."""
    lines = []
    for _ in range(rng.randint(1, 8)):
        if rng.random() < 0.5:
            lines.append(f"{rng.choice(OTHER)} O\n")
        else:
            last = rng.choice(LAST).replace("##", "")
            lines += [f"{rng.choice(FIRST)} B-PER\n", f"{last} I-PER\n"]
    return "".join(lines)


@pytest.fixture
def folder(tmp_path):
    """A tiny model's config, its vocabulary, and three column files."""
    rng = random.Random(0)
    (tmp_path / "bert_config.json").write_text(json.dumps(CONFIG))
    (tmp_path / "vocab.txt").write_text("".join(f"{v}\n" for v in VOCAB))
    data = tmp_path / "data"
    data.mkdir()
    for name, number in (("train", 64), ("valid", 20), ("test", 20)):
        sentences = "\n".join(sentence(rng) for _ in range(number))
        (data / f"{name}.txt").write_text(f"-DOCSTART- O\n\n{sentences}")
    return tmp_path


def options(folder, **changes):
    return RunClassifier(
        **{
            "task_name": "NER",
            "data_dir": str(folder / "data"),
            "bert_config_file": str(folder / "bert_config.json"),
            "vocab_file": str(folder / "vocab.txt"),
            "output_dir": str(folder / "out"),
            "max_seq_length": 10,
            "train_batch_size": 8,
            "num_train_epochs": 8.0,
            "learning_rate": 1e-2,
            "pad_to": "bucket",
            **changes,
        }
    )


def columns(path):
    return [line.split() for line in path.read_text().splitlines()]


@pytest.mark.slow
def test_names_are_learned(folder):
    """And predicted again without the data they were learned from."""
    run_classifier.main(
        options(folder, do_train=True, do_eval=True, do_predict=True)
    )
    output = folder / "out"
    results = json.loads((output / "eval_results.json").read_text())
    assert results["f1"] > 0.9
    assert results["accuracy"] > 0.9
    predicted = columns(output / "test_predictions.txt")
    assert [line[:-1] for line in predicted] == columns(
        folder / "data/test.txt"
    )
    words = [line[1:] for line in predicted if line]
    right = sum(gold == guess for gold, guess in words)
    assert right / len(words) > 0.9

    (folder / "data/train.txt").unlink()
    (output / "test_predictions.txt").unlink()
    run_classifier.main(options(folder, do_predict=True))
    assert columns(output / "test_predictions.txt") == predicted


def test_context_is_learned_from(folder):
    """A tag that only the sentence before can tell."""
    rng = random.Random(0)
    for name, number in (("train", 128), ("dev", 32), ("test", 16)):
        text = ""
        for _ in range(number):
            word, tag = rng.choice([("ada", "X"), ("dog", "Y")])
            text += f"-DOCSTART- O\n\n{word} Z\n\nruns {tag}\n\n"
        (folder / f"data/{name}.txt").write_text(text)
    run_classifier.main(
        options(
            folder,
            task_name="tagging",
            do_train=True,
            do_eval=True,
            do_predict=True,
            document_context=True,
            num_train_epochs=4.0,
        )
    )
    results = json.loads((folder / "out/eval_results.json").read_text())
    assert results["accuracy"] > 0.95  # Without context it is about 0.75.
    # A predictor that is given the context finds the same.
    predicted = filter(None, columns(folder / "out/test_predictions.txt"))
    found = {(word, tag) for word, *_, tag in predicted if word == "runs"}
    assert found == {("runs", "X"), ("runs", "Y")}
    answers = Predictor.from_dir(str(folder / "out"))(
        [{"tokens": ["runs"], "before": [word]} for word in ("ada", "dog")]
    )
    assert [answer["tags"] for answer in answers] == [["X"], ["Y"]]


def test_where_labels_come_from(folder):
    labels = folder / "labels.txt"
    labels.write_text("O\n\nI-PER\nB-PER\nB-LOC\n")
    given = {"do_train": True, "label_file": str(labels)}
    found = tasks.get(options(folder, **given))
    assert found.labels == ("O", "I-PER", "B-PER", "B-LOC")
    found = tasks.get(options(folder, do_train=True, task_name="pos"))
    assert found.labels == ("B-PER", "I-PER", "O")
    found = tasks.get(options(folder, do_eval=True))
    assert found.labels == ("B-PER", "I-PER", "O")
    (folder / "out").mkdir()
    described = folder / "out/task.json"
    described.write_text(json.dumps({"kind": "tagging", "labels": ["A"]}))
    assert tasks.get(options(folder, do_eval=True)).labels == ("A",)


@pytest.mark.parametrize(
    ("trained", "flag", "name"),
    [
        ({"kind": "tagging", "labels": ["A", "B", "C"]}, "do_train", "labels"),
        ({"kind": "text", "labels": ["A"]}, "do_predict", "kind"),
        ({"kind": "squad"}, "do_predict", "kind"),
    ],
)
def test_another_model_in_the_folder(folder, trained, flag, name):
    (folder / "out").mkdir()
    (folder / "out/task.json").write_text(json.dumps(trained))
    with pytest.raises(InputError, match=rf"task\.json: .*`{name}`"):
        run_classifier.main(options(folder, **{flag: True}))


def test_a_tag_that_training_data_lack(folder):
    path = folder / "data/valid.txt"
    path.write_text(path.read_text() + "\nzoo B-LOC\n")
    number = len(path.read_text().splitlines())
    with pytest.raises(InputError, match=rf"valid\.txt:{number}: the tag must"):
        run_classifier.main(options(folder, do_train=True, do_eval=True))
