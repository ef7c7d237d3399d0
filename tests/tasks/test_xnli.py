"""XNLI: Chinese like the original, and all other languages."""

import pytest
from support import recorded_texts, tiny
from support.run_outputs import read_json

from official_bert import tasks
from official_bert.commands import run_classifier
from official_bert.errors import InputError

HEADER = "\t".join(
    ["language", "gold_label", *"pqrs", "sentence1", "sentence2"]
)


def make(folder, **flags):
    return tasks.get(tiny.options(folder, task_name="XNLI", **flags))


@pytest.mark.parametrize("split", ["train", "dev"])
def test_features_equal_the_original(golden, vocab_files, tmp_path, split):
    tokenizer = recorded_texts.tokenizer(golden, vocab_files, "XNLI")
    task = make(tmp_path, data_dir=str(golden / "classifier" / "data" / "XNLI"))
    recorded_texts.assert_equals(golden, "XNLI", task, tokenizer, split)


def line(language, text, label="neutral"):
    return "\t".join([language, label, "", "", "", "", text, "b", *"12345"])


@pytest.fixture
def folder(tmp_path):
    """The unpacked archives, with a line or two in each file."""
    for name in ("multinli", "xnli"):
        (tmp_path / name).mkdir()
    for language in ("zh", "de", "en"):
        (tmp_path / "multinli" / f"multinli.train.{language}.tsv").write_text(
            f"premise\thypo\tlabel\ntrain {language}\tb\tcontradictory\n"
        )
    for split in ("dev", "test"):
        for name, by in (
            (f"xnli.{split}.tsv", "by people"),
            (f"xnli/xnli.{split}.en.tsv", "by machine"),
        ):
            lines = [line(lg, f"{split} {lg} {by}") for lg in ("de", "zh")]
            lines = [HEADER, *lines, lines[0].replace("neutral", "entailment")]
            (tmp_path / name).write_text("\n".join(lines) + "\n")
    return tmp_path


@pytest.mark.parametrize(
    ("flags", "train", "evaluated"),
    [
        ({}, "zh", "zh by people"),
        ({"language": "de"}, "de", "de by people"),
        ({"language": "de", "train_language": "de"}, "de", "de by people"),
        ({"language": "de", "train_language": "en"}, "en", "de by people"),
        ({"language": "de", "translate_test": True}, "en", "de by machine"),
    ],
)
def test_flags_choose_the_languages_of_training_and_evaluation(
    folder, caplog, flags, train, evaluated
):
    task = make(folder, **flags)
    [example] = task.data.read("train")
    assert example.text_a == f"train {train}"
    assert example.label == "contradiction"
    for split in ("dev", "test"):
        found = task.data.read(split)
        assert {e.text_a for e in found} == {f"{split} {evaluated}"}
        assert found[0].label == "neutral"
        if flags:
            assert [e.guid for e in found] == [f"{split}-1", f"{split}-3"]
            assert found[1].label == "entailment"
    assert not caplog.records


@pytest.mark.slow
@pytest.mark.usefixtures("without_learning")
def test_each_language_keeps_its_results_and_needs_only_files_in_use(
    folder, caplog
):
    test_set = folder / "xnli.test.tsv"
    hidden = test_set.rename(folder / "hidden.tsv")
    flags = {"train_batch_size": 1, "num_train_epochs": 1.0}
    flags |= {"task_name": "XNLI", "do_predict": False}
    output, german = tiny.run(folder, language="de", **flags)
    flags["do_train"] = False
    # Without --language, evaluation takes over that of training.
    flags["language"] = "zh"
    for changes in ({}, {"language": "de", "translate_test": True}):
        _, last = tiny.run(folder, **{**flags, **changes})
    assert "test" not in last
    assert read_json(output / "eval_results_de.json") == german
    assert read_json(output / "eval_results_zh.json") != german
    assert read_json(output / "eval_results_de_translated.json") == last
    written = sorted(path.name for path in output.glob("eval_results*.txt"))
    assert written == [
        *("eval_results.txt", "eval_results_de.txt"),
        *("eval_results_de_translated.txt", "eval_results_zh.txt"),
    ]
    texts = [(output / name).read_text() for name in written]
    assert texts[0] == texts[2]
    # Predicting evaluates the test set; the development set is not read.
    hidden.rename(test_set)
    (folder / "xnli.dev.tsv").unlink()
    flags |= {"do_eval": False, "do_predict": True}
    run_classifier.main(tiny.options(folder, **flags))
    assert "accuracy" in read_json(output / "predict_results_zh.json")
    assert "% of the first tokens of test are [UNK]" in caplog.text
    header, first = (output / "XNLI-zh.tsv").read_text().splitlines()
    assert header == "index\tprediction"
    assert first.startswith("0\t")


def test_missing_language_is_reported(folder):
    task = make(folder, language="fr")
    with pytest.raises(InputError, match=r"'fr'\. Received: de, zh\."):
        task.data.read("dev")
    with pytest.raises(InputError, match=r"multinli\.train\.fr\.tsv"):
        task.data.read("train")
