"""`--teacher`: training records with the answers of another model.

The expected answers are those of `predict.py`.
"""

import shlex
import shutil

import numpy as np
import pytest
import tensorflow as tf
from support import ROOT, command_lines, squad_files, tiny, write_json_lines
from support.run_outputs import (
    assert_close_weights,
    assert_same_weights,
    rewind,
    weights,
)

from official_bert import Embedder, tasks
from official_bert.commands import run_classifier, run_squad
from official_bert.errors import InputError
from official_bert.inference import engine_choice, teacher, trained_models
from official_bert.inference.predictor import Predictor
from official_bert.modeling.layers import Dropout
from official_bert.options import RunClassifier, RunSquad
from official_bert.tasks.choice import ChoiceExample, ChoiceTask
from official_bert.tasks.classification import ClassificationTask
from official_bert.tasks.conll import Sentence
from official_bert.tasks.embedding import EmbeddingExample, EmbeddingTask
from official_bert.tasks.regression import RegressionTask
from official_bert.tasks.squad.task import SquadTask
from official_bert.tasks.tagging import TaggingTask

TEXTS = [*dict.fromkeys(tiny.texts(60, 0, longest=6))]
LABELS = {text: "yes" if "good" in text else "no" for text in TEXTS[:30]}
CLASSES = ClassificationTask(labels=("yes", "no"))
NUMBERS = RegressionTask(labels=(), target_deviation=3.0)
TAGS = TaggingTask(labels=("O", "B-X"))
SPANS = SquadTask(doc_stride=9, max_query_length=5)
# {kind: the task, its data and other flags}; {} is the folder.
KINDS = {
    "classes": (CLASSES, "--unlabeled_file={}/more.csv"),
    "tags": (
        TAGS,
        "--train_file={}/tags.jsonl --task_name=ner --max_seq_length=6 "
        "--unlabeled_file={}/lines.txt",
    ),
    "vectors": (
        EmbeddingTask(),
        "--train_file={}/lines.txt --task_type=embedding "
        "--unlabeled_file={}/more.csv --embedding_size=4",
    ),
    "spans": (
        SPANS,
        "--train_file={}/squad.json --do_train --max_seq_length=9 "
        "--max_query_length=3 --doc_stride=2 --pad_to=bucket",
    ),
}
PARTS = "--distribution_strategy=mirrored --gradient_accumulation_steps=2"


@pytest.fixture(autouse=True)
def without_openvino(monkeypatch):
    """Conversion takes seconds."""
    monkeypatch.setattr(teacher, "missing_package", lambda name: "is missing")


@pytest.fixture
def loaded(monkeypatch):
    """Returns the directories and engines of the models that are loaded."""
    models, load = [], engine_choice.load_finetuned

    def load_finetuned(model_files, choice, directory, explain=None):
        models.append((directory, choice.engine))
        return load(model_files, choice, directory, explain)

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
    (folder / "lines.txt").write_text("".join(f"{text}\n" for text in TEXTS))
    sentences = [text.split() for text in LABELS]
    tags = [[TAGS.labels[n > 0]] * len(s) for n, s in enumerate(sentences)]
    lines = zip(sentences, tags, strict=True)
    lines = [{"tokens": words, "tags": names} for words, names in lines]
    write_json_lines(folder / "tags.jsonl", lines)
    questions = [
        (text, (str(n), "what ?", text.split()[-1], text.rindex(" ") + 1))
        for n, text in enumerate(TEXTS)
        if " " in text
    ]
    squad_files.write(folder / "squad.json", *questions)
    return folder


def parse(folder, *flags, output="out", options_class=RunClassifier):
    given = command_lines.flags_of_run(folder, output)
    given += [f"--train_file={folder / 'train.csv'}"]
    if options_class is RunClassifier:
        given.append("--dev_share=0")
    given += [f"--teacher={folder / 'teacher'}", "--train_batch_size=8"]
    return command_lines.parse(options_class, shlex.join([*given, *flags]))


def make(folder, *flags):
    """Returns the task of a run."""
    return tasks.get(*run_classifier.complete_options(parse(folder, *flags)))


def run_kind(folder, kind, *flags, output="out"):
    """Trains a student of a kind, see `KINDS`; returns its directory."""
    flags = [*KINDS[kind][1].format(folder, folder).split(), *flags]
    if kind != "spans":
        return run(folder, *flags, output=output)
    options = parse(folder, *flags, output=output, options_class=RunSquad)
    run_squad.main(options)
    return folder / output


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
@pytest.mark.usefixtures("without_learning")
def test_records_have_the_answers_of_the_teacher_in_the_order_of_the_labels(
    tmp_path, monkeypatch, loaded, has_openvino
):
    if has_openvino:
        pytest.importorskip("openvino")
        monkeypatch.setattr(teacher, "missing_package", lambda name: None)
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
@pytest.mark.usefixtures("without_learning")
def test_resumed_run_keeps_the_answers_of_one_teacher(tmp_path, loaded):
    write(tmp_path)
    flags = [f"--unlabeled_file={tmp_path / 'more.csv'}"]
    flags += ["--save_checkpoints_steps=10", "--distill_temperature=3"]
    output = run(tmp_path, *flags)
    resumed = shutil.copytree(output, tmp_path / "resumed")
    rewind(resumed, 10)
    run(tmp_path, *flags, output="resumed")
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


def taught_batch(task, examples, options, length):
    """Returns the features of examples, with a teacher's answers."""
    source = teacher.with_teacher(task, options).teacher
    blocks = source.featurize(examples, options.model_files.tokenizer, length)
    sizes = ((block, len(block.lengths)) for block in blocks)
    batches = [b.batch(range(size), length, size) for b, size in sizes]
    return {n: np.concatenate([b[n] for b in batches]) for n in batches[0]}


@pytest.mark.slow
def test_answers_of_regression_have_our_scale(tmp_path, caplog, monkeypatch):
    monkeypatch.setattr("official_bert.tasks.task._EXAMPLES_PER_BLOCK", 2)
    numbers = {text: len(text) / 3 for text in LABELS}
    write(tmp_path, NUMBERS, numbers)
    student = make(tmp_path, "--task_type=regression")
    examples = student.data.read("train")
    batch = taught_batch(student, examples, parse(tmp_path), 9)
    answers, labels = (
        batch[name][:, 0] * student.target_deviation + student.target_mean
        for name in ("teacher_answers", "label_ids")
    )
    texts = [example.text_a for example in examples]
    expected = [numbers[text] for text in texts]
    np.testing.assert_allclose(labels, expected, atol=1e-4)
    found = Predictor.from_dir(tmp_path / "teacher")(texts)
    scores = [answer["score"] for answer in found]
    np.testing.assert_allclose(answers, scores, atol=1e-4)
    errors = np.subtract(scores, expected)
    assert np.square(errors).mean() > np.var(expected)
    message = "numbers are further from the labels than the mean"
    assert caplog.text.count(message) == 1


@pytest.mark.slow
def test_teacher_of_choices_may_have_fewer_choices(tmp_path):
    write(tmp_path, ChoiceTask(num_choices=2))
    texts = ["red", "cat ?", "sun"]
    examples = [ChoiceExample("", "it is", texts[:n], 0) for n in (2, 3)]
    options = tiny.options(tmp_path, teacher=str(tmp_path / "teacher"))
    batch = taught_batch(ChoiceTask(num_choices=3), examples, options, 9)
    found = batch["teacher_answers"]
    assert found[0][2] == 0 < min(found[1])
    np.testing.assert_allclose(np.sum(found, 1), 1.0, rtol=1e-5)


@pytest.mark.slow
def test_answers_of_tags_are_the_probabilities_of_each_word(tmp_path):
    """A student in which sentences have two windows, and other token ids."""
    write(tmp_path, TAGS)
    vocab = [*tiny.VOCAB[:4], *tiny.VOCAB[:3:-1]]
    (tmp_path / "vocab.txt").write_text("\n".join(vocab))
    student = TaggingTask(labels=("B-X", "O"))
    sentences = [text.split() for text in TEXTS]
    examples = [
        Sentence(words, ["O"] * len(words) if n % 2 else None, words)
        for n, words in enumerate(sentences)
    ]
    batch = taught_batch(student, examples, parse(tmp_path), 6)
    assert len(batch["input_ids"]) > len(TEXTS)
    found = batch["teacher_answers"].transpose(0, 2, 1)
    is_word = batch["label_mask"] > 0
    assert not found[~is_word].any()
    expected = [
        [share, 1 - share] if tag == "B-X" else [1 - share, share]
        for answer in Predictor.from_dir(tmp_path / "teacher")(sentences)
        for tag, share in zip(
            answer["tags"], answer["probabilities"], strict=True
        )
    ]
    np.testing.assert_allclose(found[is_word], expected, atol=1e-5)
    words = batch["label_mask"][batch["has_label"][:, 0] > 0].sum()
    assert words == sum(map(len, sentences[1::2]))


@pytest.mark.slow
def test_answers_of_questions_are_the_probabilities_of_each_window(tmp_path):
    write(tmp_path, SPANS)
    student = SquadTask(doc_stride=2, max_query_length=3)
    context = "good cat is red sun"
    examples = [
        student.parse([question, context[:end]], "")
        for question, end in (("what is it ?", None), ("red ?", 8))
    ]
    flags = {"teacher": str(tmp_path / "teacher")}
    options = tiny.options(tmp_path, **flags)
    batch = taught_batch(student, examples, options, 9)
    assert len(batch["input_ids"]) == 3
    model = trained_models.load_finetuned(str(tmp_path / "teacher")).model
    for number, mask in enumerate(batch["input_mask"]):
        length = mask.sum()
        names = ("input_ids", "input_mask", "segment_ids")
        window = {n: batch[n][number : number + 1, :length] for n in names}
        expected = tf.nn.softmax(model(window)[0], axis=0).numpy().T
        found = batch["teacher_answers"][number]
        np.testing.assert_allclose(found[:, :length], expected, atol=1e-5)
        assert not found[:, length:].any()
    options = tiny.options(tmp_path, vocab=[*tiny.VOCAB, "new"], **flags)
    with pytest.raises(InputError, match="vocabulary and casing must be those"):
        teacher.with_teacher(student, options)


@pytest.mark.slow
def test_answers_of_texts_are_vectors_of_the_students_size(tmp_path, caplog):
    write(tmp_path, EmbeddingTask())
    vectors = Embedder.from_pretrained(tmp_path / "teacher")(TEXTS)
    task = EmbeddingTask(num_texts=3)
    examples = [EmbeddingExample("", (text,)) for text in TEXTS]
    flags = {"teacher": str(tmp_path / "teacher")}
    options = tiny.options(tmp_path, tiny.SMALL, **flags)
    batch = taught_batch(task, examples, options, 9)
    found = batch["teacher_answers"]
    assert batch["input_ids"].shape == (len(TEXTS), 9)
    np.testing.assert_allclose(found, vectors, atol=1e-5)
    # The best approximation of rank 4 in float64.
    options = tiny.options(tmp_path, {**tiny.SMALL, "hidden_size": 4}, **flags)
    found = taught_batch(task, examples, options, 9)["teacher_answers"]
    u, s, _ = np.linalg.svd(vectors.astype(np.float64))
    expected = u[:, :4] * s[:4]
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(
        found @ found.T, expected @ expected.T, atol=1e-4
    )
    options = tiny.options(tmp_path, tiny.CONFIG, **flags)
    with pytest.raises(InputError, match=r"at least 32 dimensions.*: 8"):
        teacher.with_teacher(task, options)


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind",
    [
        "tags",
        pytest.param("vectors", marks=pytest.mark.nightly),
        pytest.param("spans", marks=pytest.mark.nightly),
    ],
)
def test_resumed_and_divided_runs_of_each_kind_have_the_same_weights(
    tmp_path, monkeypatch, kind
):
    """Without dropout, whose masks differ."""
    monkeypatch.setattr(Dropout, "call", lambda self, x, **_: x)
    write(tmp_path, KINDS[kind][0])
    flags = ["--save_checkpoints_steps=5"]
    output = run_kind(tmp_path, kind, *flags)
    divided = run_kind(tmp_path, kind, *PARTS.split(), output="divided")
    assert_close_weights(divided, output, atol=1e-4)
    resumed = shutil.copytree(output, tmp_path / "resumed")
    rewind(resumed, 5)
    records = (resumed / "train.tf_record").stat().st_ino
    run_kind(tmp_path, kind, *flags, output="resumed")
    assert (resumed / "train.tf_record").stat().st_ino == records
    assert_same_weights(resumed, output)


@pytest.mark.slow
@pytest.mark.usefixtures("started_runs")
@pytest.mark.parametrize(
    ("kind", "flag", "num_loaded"),
    [
        ("classes", "--sweep=distill_alpha=0.1,0.9", 1),
        ("classes", "--folds=2", 3),
        pytest.param("tags", "--folds=2", 3, marks=pytest.mark.nightly),
    ],
)
def test_runs_of_a_sweep_share_the_answers_and_folds_do_not(
    tmp_path, loaded, request, kind, flag, num_loaded
):
    if "folds" in flag:
        request.getfixturevalue("without_learning")
    write(tmp_path, KINDS[kind][0])
    flags = [flag]
    if "sweep" in flag:
        flags.append(f"--dev_file={tmp_path / 'train.csv'}")
    output = run_kind(tmp_path, kind, *flags)
    assert len([d for d, _ in loaded if d.endswith("teacher")]) == num_loaded
    if "sweep" in flag:
        one, other = (
            weights(output / f"distill_alpha={share}") for share in (0.1, 0.9)
        )
        assert any(np.any(one[name] != other[name]) for name in one)
    elif kind == "classes":
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
    [example] = make(tmp_path, *flags).data.read("unlabeled")
    assert example.texts == ("red", "sun")
    assert (example.label, example.weight, example.group) == (None, None, None)


def test_more_texts_may_be_lines_or_sentences(tmp_path):
    write(tmp_path)
    more = tmp_path / "more.txt"
    more.write_text("red cat\n\nIs it?\n")

    def read(kind, *flags):
        given = KINDS[kind][1].format(tmp_path, tmp_path).split()
        given += [f"--unlabeled_file={more}", *flags]
        return make(tmp_path, *given).data.read("unlabeled")

    texts = tmp_path / "train.csv"
    texts.write_text(texts.read_text().replace("text,", "review,", 1))
    assert [e.texts[0] for e in read("classes")] == ["red cat", "Is it?"]
    assert [e.texts for e in read("vectors")] == [("red cat",), ("Is it?",)]
    (tmp_path / "pairs.csv").write_text("query,positive\na,b\nb,c\n")
    pairs = f"--train_file={tmp_path / 'pairs.csv'}"
    assert [e.texts[0] for e in read("vectors", pairs)] == ["red cat", "Is it?"]
    words = [["red", "cat"], ["Is", "it", "?"]]
    assert [sentence.words for sentence in read("tags")] == words
    more.write_text("red O\ncat B-X\n\nIs ?\nit ?\n? ?\n")
    sentences = read("tags")
    assert [sentence.words for sentence in sentences] == words
    assert {sentence.tags for sentence in sentences} == {None}


def test_vectors_of_a_teacher_depend_on_the_files_of_its_modules(tmp_path):
    golden = ROOT / "tests" / "golden" / "sentence_transformers"
    model = shutil.copytree(golden, tmp_path / "teacher")
    config = {**tiny.SMALL, "hidden_size": 4}
    options = tiny.options(tmp_path, config, teacher=str(model))

    def files():
        return teacher.with_teacher(EmbeddingTask(), options).teacher.files

    # The vocabulary is taken from tokenizer.json.
    used = {*model.rglob("*.json")} - {model / "tokenizer.json"}
    used.add(model / "2_Dense" / "model.safetensors")
    assert len(used) == 9
    assert {*map(str, used)} <= set(files())
    (model / "modules.json").unlink()  # As in a cross-encoder.
    assert str(model / "config_sentence_transformers.json") in files()
    shutil.rmtree(model)
    tiny.save_finetuned(model, EmbeddingTask())
    assert str(model / "task.json") in files()


def test_student_of_vectors_learns_each_text_once(tmp_path):
    write(tmp_path)
    rows = "query,positive,negative\na b,c,\na b,d,c\n"
    (tmp_path / "pairs.csv").write_text(rows)
    flags = ["--task_type=embedding", f"--train_file={tmp_path / 'pairs.csv'}"]
    task = make(tmp_path, *flags)
    assert task.loss == "teacher"
    texts = [example.texts for example in task.data.read("train")]
    assert sorted(texts) == [("a b",), ("c",), ("d",)]


OTHER_LABELS = ClassificationTask(labels=("yes", "other"))
PAIRS = ClassificationTask(labels=("yes", "no"), is_pair=True)
REGRESSION = "--task_type=regression --distill_temperature=3"
TEXT_PAIRS = "--text_b_column=text --unlabeled_file={}/lines.txt"
VECTORS = "--task_type=embedding"


@pytest.mark.parametrize(
    ("task", "flags", "message"),
    [
        (NUMBERS, "", "its `task_type` .*'classification'.*: 'regression'"),
        (OTHER_LABELS, "", r"`labels` .*\['no', 'yes'\]. .*: \['other', 'y"),
        (ChoiceTask(num_choices=2), "", "its `kind` .* 'text'.*: 'choice'"),
        (PAIRS, "", "its `is_pair` must be .* False. Received: True"),
        (CLASSES, "--teacher=a.csv", "--teacher=a.csv must be a fine-tuned"),
        (CLASSES, REGRESSION, "=3.0 is for classification, choices, tags"),
        (CLASSES, "--teacher= --unlabeled_file=x.csv", "=x.csv needs --teach"),
        (CLASSES, "--unlabeled_file=x.csv", "x.csv must be an existing file"),
        (CLASSES, TEXT_PAIRS, r"\.txt must be a table, such as .csv, with pa"),
        (EmbeddingTask(), f"{VECTORS} --distill_alpha=0.1", "0.1 is for .*emb"),
        (EmbeddingTask(), f"{VECTORS} --temperature=0.1", "0.1 conflicts with"),
    ],
)
def test_teacher_must_fit_the_task(tmp_path, task, flags, message):
    numbers = {text: str(len(text)) for text in LABELS}
    write(tmp_path, task, numbers if flags is REGRESSION else LABELS)
    with pytest.raises(InputError, match=message):
        run(tmp_path, *flags.format(tmp_path).split())
