"""XNLI: Chinese like the original, and all other languages."""

import pytest
from support import recorded_texts, tiny

from official_bert import tasks
from official_bert.errors import InputError
from official_bert.tasks.xnli import XnliData

HEADER = (
    "language gold_label sentence1_binary_parse sentence2_binary_parse "
    "sentence1_parse sentence2_parse sentence1 sentence2 promptID pairID genre "
    "label1 label2 label3 label4 label5 sentence1_tokenized "
    "sentence2_tokenized match"
).replace(" ", "\t")


@pytest.mark.parametrize("split", ["train", "dev"])
def test_features_equal_the_original(golden, shared_data, tmp_path, split):
    tokenizer = recorded_texts.tokenizer(golden, shared_data, tmp_path, "XNLI")
    options = tiny.options(
        tmp_path,
        task_name="XNLI",
        data_dir=str(golden / "classifier" / "data" / "XNLI"),
    )
    recorded_texts.assert_equals(
        golden, f"XNLI_{split}", tasks.get(options), tokenizer, split
    )


def line(language, text, label="neutral"):
    cells = [language, label, "", "", "", "", text, "b", *"12345678901"]
    return "\t".join(cells)


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
    folder, flags, train, evaluated
):
    task = tasks.get(tiny.options(folder, task_name="xnli", **flags))
    [example] = task.examples("train")
    assert example.text_a == f"train {train}"
    assert example.label == "contradiction"
    for split in ("dev", "test"):
        found = task.examples(split)
        assert {e.text_a for e in found} == {f"{split} {evaluated}"}
        assert found[0].label == "neutral"
        if flags:
            assert [e.guid for e in found] == [f"{split}-1", f"{split}-3"]
            assert found[1].label == "entailment"


def test_the_test_set_is_evaluated_after_the_development_set(folder):
    task = tasks.get(tiny.options(folder, task_name="xnli"))
    assert task.splits("dev") == ["dev", "test"]
    assert task.splits("test") == ["test"]
    assert task.splits("train") == ["train"]
    (folder / "xnli.test.tsv").unlink()
    assert task.splits("dev") == ["dev"]


def test_a_missing_language_is_reported(folder):
    data = XnliData(str(folder), "fr", "fr", False)
    with pytest.raises(InputError, match=r"'fr'\. Received: de, zh\."):
        data.read("dev")
    with pytest.raises(InputError, match=r"multinli\.train\.fr\.tsv"):
        data.read("train")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("zh\tneutral\ta\tb", "8 columns"),
        ("", "8 columns"),
        (line("zh", "a", "nonsense"), "Received: 'nonsense'"),
    ],
)
def test_malformed_lines_are_reported(folder, text, message):
    path = folder / "xnli.dev.tsv"
    path.write_text(f"{HEADER}\n{line('zh', 'a')}\n{text}\n")
    data = XnliData(str(folder), "zh", "zh", False)
    with pytest.raises(InputError, match=rf"dev\.tsv:3: (.|\n)*{message}"):
        data.read("dev")


@pytest.mark.slow
def test_a_run_reports_both_sets(folder):
    output, results = tiny.run(
        folder, task_name="xnli", train_batch_size=1, num_train_epochs=1.0
    )
    assert 0 <= results["accuracy"] <= 1
    assert 0 <= results["test"]["accuracy"] <= 1
    lines = (output / "XNLI-zh.tsv").read_text().splitlines()
    assert lines[0] == "index\tprediction"
    assert lines[1].split("\t")[1] in ("contradiction", "entailment", "neutral")
    assert len(lines) == 2
    assert len((output / "test_results.tsv").read_text().split("\t")) == 3
