import json
import re
import shutil

import numpy as np
import pytest
import tensorflow as tf
from support import command_lines, recorded, review_runs, tiny, write_json
from support.conversions import convert
from support.review_runs import run
from support.run_outputs import read_json, weights

from official_bert.commands import run_classifier
from official_bert.config import BertConfig
from official_bert.errors import InputError
from official_bert.inference.predictor import Predictor
from official_bert.inputs import datasets
from official_bert.modeling.finetuning_models import SequenceClassifier
from official_bert.options import RunClassifier
from official_bert.runs import checkpoints
from official_bert.sources.formats.tf1 import checkpoint as tf1
from official_bert.sources.pretrained import ModelFiles
from official_bert.tasks import task
from official_bert.tasks.classification import ClassificationTask
from official_bert.tasks.regression import RegressionTask
from official_bert.tokenization import Tokenizer
from official_bert.training import evaluate, loop, output_layer

CONFIG = review_runs.CONFIG | {"num_hidden_layers": 2}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Data that no test changes."""
    return review_runs.write(tmp_path_factory.mktemp("reviews"), CONFIG)


@pytest.fixture(scope="module")
def trained(folder):
    """The output directory of a run, which no test changes."""
    flags = dict.fromkeys(("do_train", "do_eval", "do_predict"), True)
    flags |= {"num_train_epochs": 10.0, "learning_rate": 3e-3}
    flags |= {"save_checkpoints_steps": 40, "long_document": "head_tail"}
    return run(folder, "trained", **flags)


@pytest.fixture
def copy(trained, folder):
    """The name of a copy of `trained`."""
    shutil.copytree(trained, folder / "copy")
    yield "copy"
    shutil.rmtree(folder / "copy")


@pytest.fixture
def without_training(monkeypatch):
    monkeypatch.setattr(loop, "train", lambda *_: None)


def scores(output):
    return np.loadtxt(output / "test_results.tsv")


def random_weights():
    model = SequenceClassifier(BertConfig.from_dict(CONFIG), 2)
    return {w.path: w.numpy() for w in model.trainable_variables}


@pytest.mark.trains
@pytest.mark.slow
def test_training_learns_the_task(trained):
    assert read_json(trained / "eval_results.json")["accuracy"] > 0.9
    labels = [label for _, label in review_runs.sentences(30, 30)]
    header, *lines = (trained / "SST-2.tsv").read_text().splitlines()
    assert header == "index\tprediction"
    predicted = [int(line.split("\t")[1]) for line in lines]
    assert np.mean(np.equal(predicted, labels)) > 0.9
    np.testing.assert_allclose(scores(trained).sum(1), 1.0, atol=1e-5)
    assert scores(trained).argmax(1).tolist() == predicted


@pytest.mark.slow
def test_run_writes_the_files_of_the_original(trained):
    checkpoint_files = {
        f"model.ckpt-{step}.{part}"
        for step in (0, 40, 80, 100)  # 160 / 16 * 10
        for part in ("index", "data-00000-of-00001")
    }
    files = {
        *("checkpoint", "train.tf_record", "eval.tf_record"),
        *("predict.tf_record", "eval_results.txt", "eval_results.json"),
        *("task.json", "vocab.txt", "bert_config.json", "train_options.json"),
    }
    assert checkpoint_files | files <= {path.name for path in trained.iterdir()}
    lines = (trained / "eval_results.txt").read_text().splitlines()
    names = [line.split(" = ")[0] for line in lines]
    assert names == ["eval_accuracy", "eval_loss", "global_step", "loss"]
    assert lines[2] == "global_step = 100"
    results = read_json(trained / "eval_results.json")
    assert np.sum(results["confusion_matrix"]) == 50
    described = read_json(trained / "task.json")
    assert described["labels"] == ["0", "1"]
    assert described["max_seq_length"] == 32


@pytest.mark.trains
@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "block"),
    [
        ({"eval_pad_to": "max"}, 16384),
        ({"eval_pad_to": "bucket"}, 7),
        ({"distribution_strategy": "mirrored"}, 16384),
    ],
)
def test_results_do_not_depend_on_padding_blocks_or_devices(
    folder, trained, copy, changes, block, monkeypatch
):
    monkeypatch.setattr(task, "_EXAMPLES_PER_BLOCK", block)
    flags = {"long_document": "head_tail", **changes}
    output = run(folder, copy, do_eval=True, do_predict=True, **flags)
    found, expected = (
        read_json(path / "eval_results.json") for path in (output, trained)
    )
    assert found["confusion_matrix"] == expected["confusion_matrix"]
    for name in ("loss", "eval_loss"):
        assert found[name] == pytest.approx(expected[name], rel=1e-5)
    np.testing.assert_allclose(scores(output), scores(trained), atol=1e-5)


@pytest.mark.slow
def test_omitted_flags_have_the_values_of_training(folder, trained, copy):
    output = folder / copy
    line = f"--do_predict --output_dir={output}"
    (output / "test_results.tsv").unlink()
    options = command_lines.parse(RunClassifier, line)
    assert options.vocab_file == str(output / "vocab.txt")
    assert options.bert_config_file == str(output / "bert_config.json")
    assert options.long_document == "head_tail"
    assert options.max_seq_length == 32
    run_classifier.main(options)
    np.testing.assert_allclose(scores(output), scores(trained), rtol=1e-5)
    for name, is_training in (("train", True), ("eval", False)):
        record = read_json(output / f"{name}_options.json")
        assert record["command"] == "run_classifier.py"
        assert record["options"]["do_train"] == is_training
    options = command_lines.parse(RunClassifier, f"{line} --max_seq_length=16")
    assert options.max_seq_length == 16
    with pytest.raises(InputError, match="--bert_config_file"):
        command_lines.parse(RunClassifier, f"{line} --do_train")


@pytest.mark.slow
@pytest.mark.usefixtures("without_learning")
def test_later_commands_use_the_tokenizer_of_training(tmp_path):
    rows = [f"{text}\t{len(text) % 2}" for text in tiny.texts(32, 1, 9)]
    (tmp_path / "train.tsv").write_text("\n".join(["sentence\tlabel", *rows]))
    others = dict.fromkeys(("do_eval", "do_predict"), False)
    flags = {"strip_accents": "false", "never_split": "[E1],good", **others}
    config = {**tiny.SMALL, "vocab_size": len(tiny.VOCAB) + 2}
    vocab = [*tiny.VOCAB, "[E1]", "é"]
    options = tiny.options(
        tmp_path, config, vocab, task_name="SST-2", do_export=True, **flags
    )
    run_classifier.main(options)
    out = tmp_path / "out"
    hf = convert(input=out, output=tmp_path / "hf", to="huggingface")
    assets = out / "export" / "1" / "assets" / "vocab.txt"
    for tokenizer in (
        Predictor.from_dir(out).tokenizer,
        Predictor.from_dir(out, engine="openvino").tokenizer,
        Tokenizer.from_pretrained(out),
        Tokenizer.from_pretrained(hf),
        ModelFiles(vocab_file=str(assets)).tokenizer,
    ):
        tokens = tokenizer.tokenize("[E1]goodé É [e1]")
        assert tokens == ["[E1]", "good", "é", "é", "[UNK]", "[UNK]", "[UNK]"]


@pytest.mark.slow
@pytest.mark.usefixtures("without_learning")
def test_mismatched_set_is_evaluated_only_last(folder, tmp_path, monkeypatch):
    unused = "-\t" * 8
    header = f"{unused}sentence1\tsentence2\tgold_label\n"
    row = f"{unused}a good film\ta bad film\tneutral\n"
    sizes = {"train": 16, "dev_matched": 3, "dev_mismatched": 2}
    for name, size in sizes.items():
        (tmp_path / f"{name}.tsv").write_text(header + row * size)
    evaluate_model, found = evaluate.evaluate, []

    def keep(*arguments, **named):
        results = evaluate_model(*arguments, **named)
        found.append(results)
        return results

    monkeypatch.setattr(evaluate, "evaluate", keep)
    flags = {"task_name": "MNLI", "data_dir": str(tmp_path), "eval_every": 1}
    flags |= {"do_train": True, "do_eval": True, "num_train_epochs": 1.0}
    run(folder, "mnli", **flags)
    sizes = [np.sum(results["confusion_matrix"]) for results in found]
    assert sizes == [3, 3, 2]  # During training, and two sets at the end.


@pytest.mark.slow
@pytest.mark.usefixtures("without_learning")
def test_early_stopping_ends_training_and_evaluates_the_best(folder, caplog):
    caplog.set_level("INFO", logger="absl")
    flags = {"do_train": True, "num_train_epochs": 50.0, "eval_every": 5}
    flags |= {"early_stopping": 3, "learning_rate": 0.0}
    output = run(folder, "stopped", do_eval=True, **flags)
    history = output / "eval_history.jsonl"
    lines = history.read_text().splitlines(keepends=True)
    # Nothing changes, so the first evaluation stays the best.
    steps = [json.loads(line)["global_step"] for line in lines]
    assert steps == [5, 10, 15, 20]
    assert weights(output)["global_step"] == 20
    assert "after step 20: accuracy was best at step 5" in caplog.text
    assert re.search(r"Step 5: accuracy = 0\.\d+, eval_loss = \d", caplog.text)
    results, best = json.loads(lines[0]), weights(output / "best")
    assert read_json(output / "eval_results.json").items() >= results.items()
    assert best["global_step"] == 5
    assert not any(name.endswith("adam_m") for name in best)
    # As if the run was killed between the last checkpoint and its evaluation.
    history.write_text("".join(lines[:3]))
    run(folder, "stopped", **flags)
    assert history.read_text() == "".join(lines)
    assert weights(output)["global_step"] == 20
    message = r"train \(--early_stopping=3 ends it at step 20; larger values"
    with pytest.raises(InputError, match=message):
        run(folder, "stopped", **{**flags, "num_train_epochs": 60.0})


@pytest.mark.slow
@pytest.mark.usefixtures("without_learning")
def test_training_in_the_directory_of_the_model_resumes(folder, tmp_path):
    initial = str(tmp_path / "bert_model.ckpt")
    tf1.write(initial, random_weights())
    for epochs, path in ((0.1, initial), (0.2, str(tmp_path))):
        flags = {"init_checkpoint": path, "num_train_epochs": epochs}
        run(folder, tmp_path, do_train=True, **flags)
    assert weights(tmp_path)["global_step"] == 2


@pytest.mark.slow
@pytest.mark.usefixtures("without_learning")
def test_training_starts_from_models_with_other_heads(folder, tmp_path, caplog):
    pretrained = random_weights()
    del pretrained["output_weights"], pretrained["output_bias"]
    checkpoint = str(tmp_path / "bert.ckpt")
    names = ("cls/predictions/output_bias", "cls/squad/output_bias")
    heads = dict.fromkeys(names, np.zeros(20, np.float32))
    heads["output_weights"] = np.zeros((3, 16), np.float32)  # Of 3 classes.
    tf1.write(checkpoint, {**pretrained, **heads})
    (tmp_path / "vocab.txt").write_text("other")
    tokenizer_config = tmp_path / "tokenizer_config.json"
    tokenizer_config.write_text('{"do_lower_case": false}')
    flags = {"init_checkpoint": checkpoint, "num_train_epochs": 0.1}
    output = run(folder, "pretrained", do_train=True, **flags)
    recorded.assert_all_close(weights(output, 0), pretrained, rtol=0)
    assert f"differs from {tmp_path}/vocab.txt" in caplog.text
    warning = f"True, but the tokenizer_config.json of {checkpoint} has"
    assert warning in caplog.text
    with pytest.raises(InputError, match="missing: output_bias"):
        run(folder, "other", do_eval=True, init_checkpoint=checkpoint)
    tf1.write(checkpoint, pretrained)
    with pytest.raises(InputError, match="not fine-tuned"):
        run(folder, "other", do_eval=True, init_checkpoint=checkpoint)


@pytest.mark.slow
@pytest.mark.parametrize(("labels", "is_same"), [("01", True), ("10", False)])
@pytest.mark.usefixtures("without_learning")
def test_output_layer_is_loaded_only_for_the_same_labels(
    folder, tmp_path, caplog, monkeypatch, labels, is_same
):
    caplog.set_level("INFO", logger="absl")
    checkpoint = str(tmp_path / "model.ckpt-1")
    bias = np.array([3.0, 4.0], np.float32)
    tf1.write(checkpoint, random_weights() | {"output_bias": bias})
    write_json(tmp_path / "task.json", {"kind": "text", "labels": [*labels]})
    flags = {"init_checkpoint": checkpoint, "num_train_epochs": 0.1}
    output = run(folder, f"labels{labels}", do_train=True, **flags)
    initial = weights(output, 0)["output_bias"].tolist()
    assert initial == ([3.0, 4.0] if is_same else [0.0, 0.0])
    message = "because the labels of .*model.ckpt-1 were 1, 0"
    assert len(re.findall(message, caplog.text)) == (not is_same)
    # A resumed run does not load it.
    monkeypatch.setattr(loop, "train", lambda *_: None)
    flags["num_train_epochs"] = 0.2
    run(folder, f"labels{labels}", do_train=True, **flags)
    assert len(re.findall(message, caplog.text)) == (not is_same)
    if not is_same:
        with pytest.raises(InputError, match=r"labels 1, 0, .* for 0, 1\."):
            run(folder, "evaluated", do_eval=True, init_checkpoint=checkpoint)


@pytest.mark.parametrize(
    ("labels", "others", "message"),
    [
        ("NO Yes", {"is_pair": True}, ""),
        ("no yes", {}, ""),
        ("no yes", {"is_pair": False}, "on single texts, .* has text pairs"),
        ("yes no", {}, "labels yes, no, .* for no, yes. Use predict"),
        ("LABEL_0 LABEL_1", {}, "LABEL_1, .* for no, yes. They are compared"),
    ],
)
def test_model_of_another_task_is_not_evaluated_silently(
    tmp_path, caplog, labels, others, message
):
    described = {"kind": "text", "labels": labels.split(), **others}
    (tmp_path / "task.json").write_text(json.dumps(described))
    model_files = ModelFiles("", "", f"{tmp_path}/model.ckpt-1", True)
    classifier = ClassificationTask(labels=("no", "yes"), is_pair=True)
    try:
        output_layer.require_same_outputs(classifier, model_files)
        found = caplog.text
    except InputError as error:
        found = str(error)
    assert re.search(message, found) if message else not found


SCALED, RAW = {"target_mean": 5.0, "target_deviation": 3.0}, {}
CLASSIFIER = {"labels": ["a", "b"]}


@pytest.mark.parametrize("task_scale", [SCALED, RAW])
@pytest.mark.parametrize("trained", [SCALED, RAW, CLASSIFIER])
def test_output_layer_is_loaded_only_for_targets_in_the_same_unit(
    tmp_path, caplog, trained, task_scale
):
    caplog.set_level("INFO", logger="absl")
    described = {"kind": "text", "labels": [], **trained}
    write_json(tmp_path / "task.json", described)
    model_files = ModelFiles("", "", f"{tmp_path}/model.ckpt-1", True)
    regression = RegressionTask(labels=(), **task_scale)
    # The output layer of a classifier has another shape.
    is_other = trained not in (task_scale, CLASSIFIER)
    left_out = output_layer.weights_to_initialize(regression, model_files)
    assert bool(left_out) == is_other
    if is_other:
        with pytest.raises(InputError, match="differently scaled targets"):
            output_layer.require_same_outputs(regression, model_files)
    assert ("differently scaled targets" in caplog.text) == is_other


@pytest.mark.parametrize(
    ("every", "patience", "message"),
    [
        (7, 3, None),
        (8, 3, "--early_stopping=3 has no effect: 31 .* only 4 evaluations"),
        (31, 0, "single evaluation"),
        (0, 0, None),
    ],
)
def test_too_few_evaluations_are_a_warning(
    folder, tmp_path, without_training, caplog, every, patience, message
):
    flags = {"eval_every": every, "early_stopping": patience}
    run(folder, tmp_path, do_train=True, num_train_epochs=3.1, **flags)
    warnings = [text for text in caplog.messages if "evaluation" in text]
    assert len(warnings) == bool(message)
    assert re.search(message or "", "".join(warnings))


SEVEN = {"eval_batch_size": 7, "distribution_strategy": "mirrored"}
RELEASED = "uncased_L-12_H-768_A-12/bert_model.ckpt"
CASED = {"do_lower_case": False, "init_checkpoint": RELEASED}


@pytest.mark.parametrize(
    ("mode", "changes", "message"),
    [
        ("do_eval", {"task_name": "sts"}, "--task_name.*sts"),
        ("do_eval", {"data_dir": "."}, r"dev\.tsv:2: .*'2'"),
        ("do_train", {"num_train_epochs": 0.01}, "--num_train_epochs=0.01"),
        ("do_eval", {}, "--init_checkpoint"),
        ("do_eval", SEVEN, "--eval_batch_size.*7"),
        # The batch size is not checked if it is not used.
        ("do_predict", SEVEN, "--init_checkpoint"),
        ("do_train", {"init_checkpoint": "x.ckpt"}, "missing: bert/embeddings"),
        ("do_train", CASED, "lowercased model"),
    ],
)
def test_unusable_flags_or_data_are_an_error_before_features_are_made(
    folder, tmp_path, monkeypatch, mode, changes, message
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "dev.tsv").write_text("sentence\tlabel\ngood\t2\n")
    tf1.write("x.ckpt", {"bert/x": np.zeros(2, np.float32)})
    (tmp_path / RELEASED).parent.mkdir()
    (tmp_path / f"{RELEASED}.index").touch()
    with pytest.raises(InputError, match=message):
        run(folder, tmp_path / "out", **{mode: True}, **changes)
    # The number of steps is known only when the records are written.
    if "num_train_epochs" not in changes:
        assert not list(tmp_path.glob("out/*.tf_record"))
    if "data_dir" in changes:
        assert not (tmp_path / "out").exists()


def test_flags_set_schedule_seed_and_rates_of_layers(folder, monkeypatch):
    seen, trainer = {}, loop.Trainer

    def seen_trainer(*arguments, **named):
        seen.update(schedule=arguments[3], scales=arguments[-1], **named)
        return trainer(*arguments, **named)

    def batches(*_, **named):
        seen.update(named)
        raise StopIteration

    monkeypatch.setattr(loop, "Trainer", seen_trainer)
    monkeypatch.setattr(datasets, "finetuning_batches", batches)
    flags = {"train_batch_size": 32, "num_train_epochs": 10.0, "seed": 7}
    flags |= {"learning_rate": 2e-5, "layerwise_lr_decay": 0.5}
    with pytest.raises(StopIteration):
        run(folder, "flags", do_train=True, warmup_proportion=0.1, **flags)
    assert seen["seed"] == 7
    assert seen["trims"]
    assert seen["removes_padding"]
    schedule = seen["schedule"]
    assert schedule.num_train_steps == 50  # 160 / 32 * 10
    rates = [float(schedule(tf.constant(step))) for step in (0, 1, 5, 49)]
    # Section A.2 of the paper: warm-up, then linear decay, in 50 steps.
    expected = [0.0, 2e-5 / 5, 2e-5 * 45 / 50, 2e-5 / 50]
    np.testing.assert_allclose(rates, expected, rtol=1e-5)
    # There are two layers between the embeddings and the task's weights.
    assert seen["scales"]["bert/embeddings/word_embeddings"] == 0.5**3
    assert seen["scales"]["output_weights"] == 1.0


@pytest.mark.slow
def test_layers_are_frozen_or_start_from_scratch(folder, trained, tmp_path):
    flags = {"init_checkpoint": checkpoints.latest(str(trained))}
    flags |= {"reinit_layers": 1, "freeze": "embeddings,0"}
    flags |= {"adam_bias_correction": True, "lr_schedule": "constant"}
    flags |= {"learning_rate": 1e-3, "warmup_proportion": 0.0}
    flags["num_train_epochs"] = 0.1
    output = run(folder, tmp_path / "out", do_train=True, **flags)
    loaded, start, end = weights(trained), weights(output, 0), weights(output)
    changed = {n for n in start if not np.array_equal(start[n], loaded.get(n))}
    top = {n for n in random_weights() if re.match(r"bert/(.*_1/|pooler/)", n)}
    assert changed - top == {n for n in start if "adam_" in n} | {"global_step"}
    assert top < changed
    # The first bias-corrected update of Adam is the learning rate.
    update = np.abs(end["output_bias"] - start["output_bias"])
    np.testing.assert_allclose(update, 1e-3, rtol=1e-2)
    prefixes = ("bert/embeddings/", "bert/encoder/layer_0/")
    frozen = {name for name in end if name.startswith(prefixes)}
    assert not any("adam" in name for name in frozen)
    same = {name for name in start if np.array_equal(start[name], end[name])}
    assert frozen <= same
    assert any("/layer_1/" in name for name in start.keys() - same)


SHORT = {"nsp": "none", "max_seq_length": 16}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("trained", "checkpoint", "warns"),
    [
        (SHORT, "model.ckpt-5", True),
        (SHORT, "", True),
        (SHORT | {"max_seq_length": 32}, "", False),
        # A second stage: earlier stages may have had longer sequences.
        (SHORT | {"init_checkpoint": "first"}, "", False),
        ({"task_name": "mrpc", "max_seq_length": 16}, "", False),
    ],
)
def test_positions_that_pretraining_did_not_reach_are_a_warning(
    folder, tmp_path, without_training, caplog, trained, checkpoint, warns
):
    write_json(tmp_path / "train_options.json", {"options": trained})
    checkpoints.save(str(tmp_path), 5, random_weights(), None, keep=1)
    flags = {"init_checkpoint": str(tmp_path / checkpoint)}
    run(folder, tmp_path / "out", do_train=True, **flags)
    assert ("sequences of 16 tokens" in caplog.text) == warns
