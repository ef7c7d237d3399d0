import random

import numpy as np
import pytest
from support import pretraining_runs, tiny, write_json
from support.run_outputs import read_json, weights

from official_bert import tasks
from official_bert.commands import run_classifier
from official_bert.errors import InputError
from official_bert.inference.predictor import Predictor

FIRST_NAMES = ["ada", "grace", "jo"]
LAST_NAMES = ["lovelace", "hopper"]
OTHER = ["sees", "a", "dog", "and", "runs"]
VOCAB = [
    *("[PAD]", "[UNK]", "[CLS]", "[SEP]", *FIRST_NAMES, "lovelace", "hop"),
    *("##per", *OTHER),
]
CONFIG = {
    **tiny.CONFIG,
    "vocab_size": len(VOCAB),
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "intermediate_size": 32,
}


def sentence(rng):
    lines = []
    for _ in range(rng.randint(1, 8)):
        if rng.random() < 0.5:
            lines.append(f"{rng.choice(OTHER)} O\n")
        else:
            first, last = rng.choice(FIRST_NAMES), rng.choice(LAST_NAMES)
            lines += [f"{first} B-PER\n", f"{last} I-PER\n"]
    return "".join(lines)


@pytest.fixture(scope="module")
def pretrained(tmp_path_factory):
    directory = tmp_path_factory.mktemp("pretrained")
    tiny.save_pretrained(directory, CONFIG, 3)
    return directory


@pytest.fixture
def folder(tmp_path):
    rng = random.Random(0)
    for name, number in (("train", 64), ("valid", 20), ("test", 20)):
        sentences = "\n".join(sentence(rng) for _ in range(number))
        (tmp_path / f"{name}.txt").write_text(f"-DOCSTART- O\n\n{sentences}")
    return tmp_path


def options(folder, name="out", **changes):
    flags = {
        "task_name": "NER",
        "output_dir": str(folder / name),
        "max_seq_length": 10,
        "train_batch_size": 8,
        "num_train_epochs": 1.0,
        "learning_rate": 1e-2,
        "do_eval": False,
        "do_predict": False,
    }
    return tiny.options(folder, CONFIG, VOCAB, **{**flags, **changes})


def run(folder, name="out", **changes):
    run_classifier.main(options(folder, name, **changes))
    return folder / name


@pytest.fixture
def run_with_bilstm(folder, pretrained):
    flags = {"init_checkpoint": str(pretrained), "bilstm_size": 16}
    return lambda name="out", **changes: run(folder, name, **flags | changes)


def columns(path):
    return [line.split() for line in path.read_text().splitlines()]


def assert_predictor_agrees(output, folder):
    """Compares `Predictor` with the predictions file; returns its lines."""
    predicted = columns(output / "test_predictions.txt")
    blocks = (folder / "test.txt").read_text().split("\n\n")[1:]
    sentences = [[line.split()[0] for line in b.splitlines()] for b in blocks]
    answers = Predictor.from_dir(str(output))(sentences)
    tags = [tag for answer in answers for tag in answer["tags"]]
    assert tags == [line[-1] for line in predicted[1:] if line]
    return predicted


@pytest.mark.trains
@pytest.mark.slow
def test_names_are_learned_and_predicted_without_the_training_data(folder):
    flags = {"pad_to": "bucket", "num_train_epochs": 8.0}
    output = run(folder, do_eval=True, do_predict=True, **flags)
    results = read_json(output / "eval_results.json")
    assert results["f1"] > 0.9
    assert results["accuracy"] > 0.9
    found = pretraining_runs.results(output)
    for name in ("accuracy", "precision", "recall", "f1"):
        assert found[f"eval_{name}"] == pytest.approx(results[name], rel=1e-6)
    predicted = assert_predictor_agrees(output, folder)
    assert [line[:-1] for line in predicted] == columns(folder / "test.txt")
    (folder / "train.txt").unlink()
    (output / "test_predictions.txt").unlink()
    run(folder, do_train=False, do_predict=True)
    assert columns(output / "test_predictions.txt") == predicted


def test_labels_come_from_a_file_or_the_model_or_the_training_data(folder):
    evaluates = {"do_train": False, "do_eval": True, "task_name": "pos"}
    for flags in ({}, evaluates):
        labels = tasks.get(options(folder, **flags)).labels
        assert labels == ("B-PER", "I-PER", "O")
    described = {"kind": "tagging", "labels": ["A"]}
    write_json(folder / "out" / "task.json", described)
    assert tasks.get(options(folder, **evaluates)).labels == ("A",)
    (folder / "labels").write_text("O\n\nI-PER\nB-PER\nB-LOC\n")
    with_file = options(folder, label_file=str(folder / "labels"))
    assert tasks.get(with_file).labels == ("O", "I-PER", "B-PER", "B-LOC")


@pytest.mark.trains
@pytest.mark.nightly
def test_frozen_bert_does_not_change_and_the_layers_above_learn(
    folder, pretrained, run_with_bilstm
):
    flags = {"feature_layers": "weighted_sum_all", "num_train_epochs": 6.0}
    modes = {"do_eval": True, "do_predict": True}
    output = run_with_bilstm(pad_to="bucket", **flags, **modes)
    before, after = weights(pretrained), weights(output)
    bert = {name for name in before if name.startswith("bert/")}
    for name in bert:
        np.testing.assert_array_equal(after[name], before[name], name)
    slots = {name for name in after if name.endswith(("adam_m", "adam_v"))}
    above = set(after) - bert - slots - {"global_step"}
    assert {name.partition("/")[0] for name in above} == {
        *("bilstm", "features", "output_weights", "output_bias")
    }
    assert len(slots) == 2 * len(above)
    assert np.any(after["features/layer_weights"])
    assert after["features/scale"] != [1]
    assert np.any(after["output_bias"])
    assert read_json(output / "eval_results.json")["f1"] > 0.8
    assert_predictor_agrees(output, folder)
    # The weights would fit, but `feature_layers` differs.
    with pytest.raises(InputError, match="`top`"):
        run_with_bilstm(feature_layers="last")


JIT = {"feature_layers": "weighted_sum_last_4", "jit_compile": True}
BFLOAT16 = {"learning_rate": 3e-3, "mixed_precision": "bfloat16", "remat": True}
BFLOAT16["distribution_strategy"] = "mirrored"


@pytest.mark.trains
@pytest.mark.nightly
@pytest.mark.parametrize(
    "flags",
    [JIT, pytest.param(BFLOAT16, marks=pytest.mark.bfloat16)],
    ids=["jit_compile", "bfloat16,mirrored"],
)
def test_bilstm_learns_with_xla_bfloat16_and_replicas(run_with_bilstm, flags):
    output = run_with_bilstm(num_train_epochs=6.0, do_eval=True, **flags)
    results = read_json(output / "eval_results.json")
    assert results["accuracy"] > 0.8  # Guessing gives less than 0.5.


def test_flags_set_the_context_and_the_size_of_the_paper(folder):
    assert not tasks.get(options(folder)).document_context
    assert tasks.get(options(folder, document_context=True)).document_context
    frozen = {"feature_layers": "last"}
    assert options(folder).pooling_head.bilstm_size == 0
    assert options(folder, **frozen).pooling_head.bilstm_size == 768
    without = options(folder, **frozen, bilstm_size=0)
    assert without.pooling_head.bilstm_size == 0
