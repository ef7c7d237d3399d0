"""`--teacher`: training records with the answers of another model.

The expected answers are those of `predict.py`.
"""

import json
import shlex
import shutil
import types

import numpy as np
import pytest
import tensorflow as tf
from support import command_lines, tiny
from support.run_outputs import assert_same_weights, rewind, weights

from official_bert import tasks
from official_bert.commands import run_classifier
from official_bert.errors import InputError
from official_bert.inference import engine_choice, teacher
from official_bert.inference.predictor import Predictor
from official_bert.io import processes
from official_bert.options import RunClassifier
from official_bert.tasks.choice import ChoiceTask
from official_bert.tasks.text import TextTask

TEXTS = [*dict.fromkeys(tiny.texts(60, 0, longest=6))]
LABELS = {text: "yes" if "good" in text else "no" for text in TEXTS[:30]}
CLASSES = TextTask(task_type="classification", labels=("yes", "no"))
NUMBERS = TextTask(task_type="regression", labels=(), target_deviation=3.0)


@pytest.fixture
def without_openvino(monkeypatch):
    """Conversion takes seconds."""
    monkeypatch.setattr(teacher, "missing_package", lambda name: "is missing")


@pytest.fixture
def loaded(monkeypatch):
    """Returns the directories and engines of the models that are loaded."""
    models, load = [], engine_choice.load_finetuned

    def load_finetuned(model_files, choice, directory):
        models.append((directory, choice.engine))
        return load(model_files, choice, directory)

    monkeypatch.setattr(engine_choice, "load_finetuned", load_finetuned)
    return models


def write(folder, task=CLASSES, labels=LABELS):
    """Writes the data and a teacher."""
    tiny.save_finetuned(folder / "teacher", task)
    tiny.write_model_files(folder, tiny.CONFIG)
    rows = [f"{text},{label}\n" for text, label in labels.items()]
    (folder / "train.csv").write_text("text,label\n" + "".join(rows))
    rows = [f"7,{text}\n" for text in TEXTS[30:]]
    (folder / "more.csv").write_text("label,text\n" + "".join(rows))
    return folder


def parse(folder, *flags, output="out"):
    given = command_lines.files_of_run(folder, output)
    given = [f"--{name}={value}" for name, value in given.items()]
    given += [f"--train_file={folder / 'train.csv'}", "--dev_share=0"]
    given += [f"--teacher={folder / 'teacher'}", "--train_batch_size=8"]
    return command_lines.parse(RunClassifier, shlex.join([*given, *flags]))


def run(folder, *flags, output="out"):
    run_classifier.main(parse(folder, *flags, output=output))
    return folder / output


def read_records(folder, output):
    """Returns {text: (answers of the teacher, has_label, label)}."""
    vocab = (folder / "vocab.txt").read_text().split("\n")
    records = {}
    for serialized in tf.data.TFRecordDataset(str(output / "train.tf_record")):
        example = tf.train.Example.FromString(serialized.numpy())
        feature = example.features.feature
        ids = [i for i in feature["input_ids"].int64_list.value if i]
        label = feature["label_ids"]
        records[" ".join(vocab[i] for i in ids[1:-1])] = (
            [*feature["teacher_answers"].float_list.value],
            feature["has_label"].int64_list.value[0],
            [*label.int64_list.value, *label.float_list.value][0],
        )
    return records


@pytest.mark.slow
@pytest.mark.parametrize("has_openvino", [False, True])
def test_records_have_the_answers_of_the_teacher_in_the_order_of_the_labels(
    tmp_path, monkeypatch, loaded, has_openvino
):
    if has_openvino:
        pytest.importorskip("openvino")
    else:
        monkeypatch.setattr(teacher, "missing_package", lambda name: name)
    write(tmp_path)  # With the labels in the other order.
    output = run(tmp_path, f"--unlabeled_file={tmp_path / 'more.csv'}")
    records = read_records(tmp_path, output)
    assert [*records] != TEXTS  # They are shuffled together.
    answers = Predictor.from_dir(tmp_path / "teacher", engine="tensorflow")(
        TEXTS
    )
    for text, answer in zip(TEXTS, answers, strict=True):
        found, has_label, label = records[text]
        expected = [answer["probabilities"][name] for name in ("no", "yes")]
        np.testing.assert_allclose(found, expected, atol=1e-5)
        assert has_label == (text in LABELS)
        assert label == (LABELS.get(text) == "yes")
    engine = "openvino" if has_openvino else "auto"
    assert loaded[0] == (str(tmp_path / "teacher"), engine)


@pytest.mark.slow
def test_records_of_regression_have_the_number_in_the_scale_of_the_student(
    tmp_path, without_openvino
):
    numbers = {text: len(text) / 3 for text in LABELS}
    output = run(write(tmp_path, NUMBERS, numbers), "--task_type=regression")
    described = json.loads((output / "task.json").read_text())
    records = read_records(tmp_path, output)
    answers = Predictor.from_dir(tmp_path / "teacher")([*numbers])
    for text, answer in zip(numbers, answers, strict=True):
        [found], _, target = records[text]
        scale = described["target_deviation"], described["target_mean"]
        assert found * scale[0] + scale[1] == pytest.approx(
            answer["score"], abs=1e-4
        )
        assert target * scale[0] + scale[1] == pytest.approx(
            numbers[text], abs=1e-4
        )


@pytest.mark.slow
def test_teacher_of_choices_may_have_fewer_choices(tmp_path, without_openvino):
    write(tmp_path, ChoiceTask(num_choices=2))
    rows = [
        {"context": "it is", "choices": ["red", "cat ?", "sun"][:n], "label": 0}
        for n in (2, 3)
    ]
    lines = "".join(f"{json.dumps(row)}\n" for row in rows)
    (tmp_path / "train.jsonl").write_text(lines)
    options = tiny.options(
        tmp_path,
        task_name="choices",
        teacher=str(tmp_path / "teacher"),
        train_batch_size=2,
        do_eval=False,
        do_predict=False,
    )
    run_classifier.main(options)
    found = [
        [*example.features.feature["teacher_answers"].float_list.value]
        for example in map(
            tf.train.Example.FromString,
            tf.data.TFRecordDataset(
                str(tmp_path / "out" / "train.tf_record")
            ).as_numpy_iterator(),
        )
    ]
    assert found[0][2] == 0 < min(found[1])
    np.testing.assert_allclose(np.sum(found, 1), 1.0, rtol=1e-5)


@pytest.mark.slow
def test_resumed_run_has_the_weights_of_an_uninterrupted_one_and_one_teacher(
    tmp_path, without_openvino, loaded
):
    write(tmp_path)
    flags = [f"--unlabeled_file={tmp_path / 'more.csv'}"]
    flags += ["--save_checkpoints_steps=10", "--distill_temperature=3"]
    output = run(tmp_path, *flags)
    resumed = shutil.copytree(output, tmp_path / "resumed")
    rewind(resumed, 10)
    run(tmp_path, *flags, output="resumed")
    assert_same_weights(resumed, output)
    assert len(loaded) == 1
    rewind(resumed, 10)
    with pytest.raises(InputError, match=r"unlabeled_file: '.*more\.csv', now"):
        run(tmp_path, *flags[1:], output="resumed")
    more = (tmp_path / "more.csv").read_text()
    (tmp_path / "more.csv").write_text(f"{more}7,red\n")
    shutil.rmtree(tmp_path / "teacher")
    other = {**tiny.SMALL, "hidden_size": 16}
    tiny.save_finetuned(tmp_path / "teacher", CLASSES, other)
    with pytest.raises(InputError, match="other options or data") as error:
        run(tmp_path, *flags, output="resumed")
    for line in (r"teacher: .*\.index", "unlabeled data: more"):
        assert error.match(line)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("flag", "num_loaded"),
    [("--sweep=distill_alpha=0.1,0.9;seed=1,2", 1), ("--folds=2", 3)],
)
def test_runs_of_a_sweep_share_the_answers_and_folds_do_not(
    tmp_path, without_openvino, loaded, monkeypatch, flag, num_loaded
):
    def start_command(name, flags):
        run_classifier.main(
            command_lines.parse(RunClassifier, shlex.join(flags))
        )
        return types.SimpleNamespace(wait=lambda: 0)

    monkeypatch.setattr(processes, "start_command", start_command)
    flags = [flag, f"--unlabeled_file={write(tmp_path) / 'more.csv'}"]
    if "sweep" in flag:
        flags.append(f"--dev_file={tmp_path / 'train.csv'}")
    output = run(tmp_path, *flags)
    assert len([d for d, _ in loaded if d.endswith("teacher")]) == num_loaded
    if "sweep" in flag:
        one, other = (
            weights(output / f"distill_alpha={share},seed=1")
            for share in (0.1, 0.9)
        )
        assert any(np.any(one[name] != other[name]) for name in one)
    else:
        records = read_records(tmp_path, output / "fold=1of2")
        num_labeled = sum(has_label for _, has_label, _ in records.values())
        assert (num_labeled, len(records)) == (15, len(TEXTS) - 15)


def test_more_texts_need_only_the_columns_of_texts(tmp_path):
    write(tmp_path)
    rows = [
        f"{n},{n % 5},{text},sun,{label}\n"
        for n, (text, label) in enumerate(LABELS.items())
    ]
    (tmp_path / "train.csv").write_text("id,n,text,b,label\n" + "".join(rows))
    (tmp_path / "more.csv").write_text("b,text\nsun,red\n")
    flags = ["--id_column=id", "--text_b_column=b", "--text_column=text"]
    flags += ["--weight_column=n", "--group_column=n", "--label_column=label"]
    flags.append(f"--unlabeled_file={tmp_path / 'more.csv'}")
    options, rows = run_classifier.resolve(parse(tmp_path, *flags))
    [example] = tasks.get(options, rows).data.read("unlabeled")
    assert example.texts == ("red", "sun")
    assert (example.label, example.weight, example.group) == (None, None, None)


@pytest.mark.parametrize(
    ("task", "flags", "message"),
    [
        (NUMBERS, [], "its `task_type` .*'classification'.*: 'regression'"),
        (
            TextTask(task_type="classification", labels=("yes", "other")),
            [],
            r"`labels` .*\['no', 'yes'\]. Received: \['other', 'yes'\]",
        ),
        (ChoiceTask(num_choices=2), [], "its `kind` .* 'text'.*: 'choice'"),
        (
            TextTask(
                task_type="classification", labels=("yes", "no"), is_pair=True
            ),
            [],
            "its `is_pair` must be .* False. Received: True",
        ),
        (CLASSES, ["--teacher=a.csv"], "--teacher=a.csv must be a fine-tuned"),
        (
            CLASSES,
            ["--task_type=regression", "--distill_temperature=3"],
            "--distill_temperature=3.0 is for classification, choices. Rec",
        ),
        (
            CLASSES,
            ["--teacher=", "--unlabeled_file=x.csv"],
            "--unlabeled_file=x.csv needs --teacher",
        ),
        (CLASSES, ["--unlabeled_file=x.csv"], "x.csv must be an existing file"),
    ],
)
def test_teacher_must_fit_the_task(tmp_path, task, flags, message):
    numbers = {text: str(len(text)) for text in LABELS}
    labels = numbers if "--task_type=regression" in flags else LABELS
    write(tmp_path, task, labels)
    with pytest.raises(InputError, match=message):
        run(tmp_path, *flags)


def test_other_tasks_have_no_teacher(tmp_path):
    (tmp_path / "train.txt").write_text("good B-X\nbad O\n\n")
    options = tiny.options(tmp_path, task_name="ner", teacher=str(tmp_path))
    with pytest.raises(InputError, match=r"is for .*, choices\. Received: tag"):
        tasks.get(options)
