import contextlib
import dataclasses
import json
import math
import os
import re
import shutil
import signal

import numpy as np
import pytest
from scipy.stats import entropy
from support import command_lines, conversions, pretraining_runs, record_files
from support.pretraining_runs import CONFIG, event_values, results, run
from support.run_outputs import (
    assert_same_weights,
    read_json_lines,
    rewind,
    weights,
)

from official_bert.config import BertConfig
from official_bert.errors import InputError
from official_bert.inputs import datasets, records, tfrecords
from official_bert.modeling.pretraining_model import PretrainingModel
from official_bert.options import RunPretraining
from official_bert.runs import checkpoints
from official_bert.runs.directory import RunDirectory
from official_bert.sources.formats.tf1 import checkpoint as tf1
from official_bert.sources.formats.tf1 import weights as tf1_weights
from official_bert.training import checkpointing, loop, resuming

pytestmark = pytest.mark.slow

VOCAB = ["[UNK]", "[CLS]", "[SEP]", *(f"w{i}" for i in range(27))]
LOSSES = ("loss", "masked_lm_loss", "next_sentence_loss")


def resume(folder, **changes):
    return run(folder, **{"do_train": True, "num_train_steps": 8, **changes})


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """The output directory of 8 steps of training, and an evaluation."""
    folder = pretraining_runs.write(tmp_path_factory.mktemp("finished"))
    (folder / "words.txt").write_text("\n".join(VOCAB) + "\n")
    changes = {"do_eval": True, "vocab_file": str(folder / "words.txt")}
    return resume(folder, keep_checkpoint_max=2, **changes)


@pytest.fixture
def folder(tmp_path):
    """A directory with a config and 40 records."""
    return pretraining_runs.write(tmp_path)


@pytest.fixture
def copy(finished, folder):
    """A copy of the finished run, as the output directory of `folder`."""
    return shutil.copytree(finished, folder / "out")


def save(copy, changes):
    """Saves a checkpoint of step 9 with changed weights."""
    state = checkpoints.ResumeState(seed=1, examples_seen=64)
    checkpoints.save(str(copy), 9, weights(copy) | changes, state, keep=1)


@pytest.fixture(autouse=True)
def info_is_logged(caplog):
    caplog.set_level("INFO", logger="absl")


def test_training_writes_checkpoints_options_config_and_vocabulary(finished):
    names = {path.name for path in finished.iterdir()}
    parts = ("index", "data-00000-of-00001", "resume.json")
    assert {n for n in names if not n.startswith("events.out.tfevents")} == {
        *("checkpoint", "eval", "eval_results.txt", "train_options.json"),
        *("bert_config.json", "vocab.txt"),
        # The newest two.
        *(f"model.ckpt-{step}.{part}" for step in (4, 8) for part in parts),
    }
    state = weights(finished)
    assert state["global_step"] == 8
    assert state["global_step"].dtype == np.int64
    assert len(state) == 3 * 30 + 1
    record = json.loads((finished / "train_options.json").read_text())
    assert record["command"] == "run_pretraining.py"
    assert record["options"]["train_batch_size"] == 8
    assert (finished / "vocab.txt").read_text().split() == VOCAB


def test_evaluation_writes_sorted_results_and_events(finished):
    found = results(finished)
    accuracies = ("masked_lm_accuracy", "next_sentence_accuracy")
    assert list(found) == sorted([*LOSSES, *accuracies, "global_step"])
    expected = {(8, n): found[n] for n in (*LOSSES, *accuracies)}
    events = event_values(finished / "eval")
    assert events == pytest.approx(expected, rel=1e-6)


@pytest.mark.trains
def test_training_learns_both_tasks_and_writes_their_curves(folder, caplog):
    # With dropout, whether so small a model learns depends on the seed.
    config = json.dumps(pretraining_runs.WITHOUT_DROPOUT)
    (folder / "bert_config.json").write_text(config)
    output = run(folder, do_train=True, do_eval=True, num_train_steps=200)
    assert results(output)["masked_lm_loss"] < 0.5 * math.log(30)
    assert "by their frequency" not in caplog.text
    assert results(output)["next_sentence_accuracy"] > 0.9
    others = ("gradient_norm", "learning_rate", "examples_per_second")
    assert set(event_values(output)) == {
        (step, name) for step in range(10, 201, 10) for name in LOSSES + others
    }


@pytest.mark.parametrize("seed", [0, 2**31 - 1])
def test_seeds_that_tensorflow_treats_as_0_shuffle_the_data(folder, seed):
    names = [str(folder / "train.tfrecord")]
    data = records.RecordFiles(names, pretraining_runs.SCHEMA)

    def first_ids(batches):
        return next(iter(batches))["input_ids"].numpy().tolist()

    def first_shuffled():
        checkpointing.set_seed(seed)
        return first_ids(datasets.training_batches(data, 20, seed=seed))

    in_order = first_ids(datasets.evaluation_batches(data, 20, 2))
    assert first_shuffled() == first_shuffled() != in_order


def test_evaluations_during_training_do_not_change_it(folder, finished):
    held_out = str(folder / "held_out.tfrecord")
    record_files.write(held_out, pretraining_runs.make_examples(60)[40:])
    flags = {"eval_file": held_out, "eval_every": 3, "do_eval": True}
    output = resume(folder, eval_batch_size=4, **flags)
    history = read_json_lines(output / "eval_history.jsonl")
    assert [entry["global_step"] for entry in history] == [3, 6, 8]
    assert history[-1] == pytest.approx(results(output), rel=1e-6)
    assert history[-1]["loss"] != results(finished)["loss"]
    assert_same_weights(finished, output)


@pytest.mark.parametrize(
    # In float16, steps are skipped until the loss scale has fallen to 1.
    ("mixed_precision", "step"),
    [("none", 3), ("float16", 3 + 15)],
)
def test_diverged_training_names_the_step_and_keeps_checkpoints(
    folder, mixed_precision, step
):
    flags = {"mixed_precision": mixed_precision, "num_train_steps": 30}
    with pytest.raises(InputError, match=rf"Received: nan at step {step}\."):
        run(folder, do_train=True, learning_rate=1e30, **flags)
    assert (folder / "out" / "model.ckpt-0.index").exists()


def damage_data(folder):
    with open(folder / "train.tfrecord", "rb+") as file:
        file.seek(file.seek(0, 2) // 2 + 50)  # Not in the header of a record.
        file.write(b"????")


def cut_fifth_example(folder):
    path = folder / "train.tfrecord"
    data = list(tfrecords.read(str(path)))
    data[4] = data[4][:-20]
    path.write_bytes(tfrecords.join(data, compress=False))


def shrink_vocabulary(folder):
    smaller = {**CONFIG, "vocab_size": 29}
    (folder / "bert_config.json").write_text(json.dumps(smaller))


ID_TOO_LARGE = r"record \d+: `.*ids` must .* vocab_size=29"


@pytest.mark.parametrize(
    ("change", "changes", "message"),
    [
        (damage_data, {}, r"train\.tfrecord: record \d+ "),
        (cut_fifth_example, {}, r"train\.tfrecord: record 5 "),
        # Without XLA, TensorFlow itself reports the id on CPUs.
        (shrink_vocabulary, {"jit_compile": True}, ID_TOO_LARGE),
    ],
)
def test_unusable_records_are_an_error(folder, change, changes, message):
    change(folder)
    with pytest.raises(InputError, match=message):
        run(folder, do_train=True, **changes)


def test_failed_evaluation_keeps_the_files_of_the_last_one(folder, copy):
    run(folder, do_eval=True)
    before = (copy / "eval_options.json").read_bytes()
    cut_fifth_example(folder)
    with pytest.raises(InputError, match="record 5 "):
        run(folder, do_eval=True, max_eval_steps=2)
    assert (copy / "eval_options.json").read_bytes() == before


def test_empty_file_is_skipped_unless_it_is_the_only_one(folder, copy, caplog):
    (folder / "empty.tfrecord").touch()
    run(folder, do_eval=True, input_file=str(folder / "*.tfrecord"))
    assert f"{folder}/empty.tfrecord" in caplog.text
    with pytest.raises(InputError, match=r"empty\.tfrecord"):
        run(folder, "no", do_train=True, input_file=f"{folder}/empty.tfrecord")


# Not in `copy`, where the damaged records differ from those of training.
MIRRORED = {"distribution_strategy": "mirrored", "output": "new"}
PARTS = {**MIRRORED, "gradient_accumulation_steps": 2}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({**MIRRORED, "train_batch_size": 7}, "size=7 .* 2, .* of devices"),
        ({**PARTS, "train_batch_size": 6}, r"size=6 .* 4, .*\(2\).*_steps=2"),
        ({"vocab_file": "larger.txt"}, r"larger\.txt"),
        ({"vocab_file": "other.txt"}, r"other\.txt"),
        ({"bert_config_file": "heads.json"}, "`num_attention_heads` must be 2"),
    ],
)
def test_cheap_checks_come_first(copy, folder, monkeypatch, changes, message):
    monkeypatch.chdir(folder)
    (folder / "train.tfrecord").write_bytes(b"no record")
    (folder / "larger.txt").write_text("\n".join([*VOCAB, "more"]) + "\n")
    (folder / "other.txt").write_text("\n".join([*VOCAB[:-1], "more"]) + "\n")
    heads = json.dumps({**CONFIG, "num_attention_heads": 4})
    (folder / "heads.json").write_text(heads)
    files = sorted(os.listdir(copy))
    with pytest.raises(InputError, match=message):
        run(folder, do_train=True, **changes)
    assert sorted(os.listdir(copy)) == files


def test_only_dropout_and_initial_weights_may_change_on_resume(finished):
    files = {"output_dir": str(finished), "bert_config_file": "new.json"}
    may_change = set()
    for field in dataclasses.fields(BertConfig):
        config = BertConfig.from_dict(CONFIG | {field.name: "new"})
        with contextlib.suppress(InputError):
            resuming.check(RunPretraining(**files), config, {})
            may_change.add(field.name)
    dropouts = {"hidden_dropout_prob", "attention_probs_dropout_prob"}
    assert may_change == {*dropouts, "initializer_range"}


def damage_last_checkpoint(run):
    os.truncate(run / "model.ckpt-8.data-00000-of-00001", 100)


def forget_resume_files(run):
    """Like checkpoints of the original implementation."""
    for path in [*run.glob("*.resume.json"), run / "model.ckpt-8.index"]:
        path.unlink()


@pytest.mark.parametrize(
    ("change", "seed"),
    [(damage_last_checkpoint, 2), (forget_resume_files, 12345)],
)
def test_resumed_run_ends_with_the_weights_of_an_uninterrupted_run(
    finished, copy, folder, caplog, change, seed
):
    change(copy)
    resume(folder, seed=seed)
    assert_same_weights(copy, finished)
    assert f"Resuming from {copy / 'model.ckpt-4'}" in caplog.text
    if change == damage_last_checkpoint:
        assert re.search(r"WARNING.*model\.ckpt-8", caplog.text)
        assert re.search("--seed=2 .*--seed=12345", caplog.text)


def test_sigterm_saves_and_ends_the_run(finished, folder, monkeypatch, caplog):
    def save(output_dir, step, *others):
        if step == 4:
            signal.raise_signal(signal.SIGTERM)
        return original_save(output_dir, step, *others)

    original_save = checkpoints.save
    monkeypatch.setattr(checkpoints, "save", save)
    with pytest.raises(SystemExit, match=r"^143$"):
        resume(folder, do_eval=True)
    # The signal came while step 4 was written, and later steps trained.
    assert re.search(r"by SIGTERM after step [5-8] of 8, saved", caplog.text)
    files = {path.name for path in (folder / "out").iterdir()}
    assert not files & {"eval_results.txt", "run.lock"}
    monkeypatch.undo()
    assert_same_weights(resume(folder), finished)


def test_use_of_an_unfinished_run_is_a_warning(copy, folder, caplog):
    def warnings():
        caplog.clear()
        run(folder, do_eval=True)
        PretrainingModel.from_pretrained(copy)
        tf1_weights.open_arrays(str(copy))
        shutil.copytree(copy, copy / "best", dirs_exist_ok=True)
        RunDirectory(f"{copy}/best").warn_if_unfinished()
        return re.findall(r"out: the training was stopped at .*", caplog.text)

    assert not warnings()
    shutil.rmtree(copy / "best")
    rewind(copy, 4)
    (copy / "checkpoint").write_text('model_checkpoint_path: "model.ckpt-4"')
    shown = "out: the training was stopped at step 4 of 8, or it is still "
    assert warnings() == 4 * [
        f"{shown}running. To finish it, run its command again"
    ]


OF_EVALUATION = [
    "train.tfrecord: the first record has no segment B",
    "The evaluation is on the training data",
    "not shorter than the training of 3 steps",
    "by their frequency",
]
OF_FLAGS = ["needs --do_eval or --eval_every", "is also training data"]


@pytest.mark.parametrize(
    ("changes", "warnings"),
    [
        ({"num_warmup_steps": 10, "do_eval": True}, OF_EVALUATION),
        ({"eval_file": "train.tfrecord", "nsp": "none"}, OF_FLAGS),
    ],
)
def test_flags_and_records_that_do_not_fit_each_other_give_warnings(
    folder, caplog, monkeypatch, changes, warnings
):
    monkeypatch.chdir(folder)
    monkeypatch.setattr(loop, "train", lambda *_: None)
    examples = pretraining_runs.make_examples(8)
    pairs = record_files.write("pairs.tfrecord", examples)
    for example in examples:
        example["segment_ids"] = [0] * 10
    single = record_files.write("train.tfrecord", examples)
    changes |= {"input_file": f"{pairs},{single}"}
    run(folder, do_train=True, num_train_steps=3, **changes)
    logged = [r.getMessage() for r in caplog.records if r.levelno > 20]
    for message, warning in zip(logged, warnings, strict=True):
        assert warning in message


def test_training_prints_the_next_command(copy, folder, capsys):
    end = "--train_file=labeled.csv --output_dir=finetuned"
    for flags in (f"--model={copy}", f"--model={copy} --vocab_file=VOCAB_FILE"):
        resume(folder)
        command = f"  python run_classifier.py {flags} {end}"
        lines = ["", "Fine-tune the model:", command]
        assert capsys.readouterr().out.splitlines() == lines
        (copy / "vocab.txt").unlink(missing_ok=True)
    run(folder, do_eval=True)
    assert "Fine-tune" not in capsys.readouterr().out


def test_evaluation_uses_the_config_and_the_loss_of_the_run(copy, folder):
    conversions.change_json(copy / "train_options.json", options={"nsp": "sop"})
    line = f"--input_file={folder}/train.tfrecord --output_dir={copy}"
    flags = f"--do_eval --max_seq_length=16 {line}"
    options = command_lines.parse(RunPretraining, flags)
    assert options.bert_config_file == str(copy / "bert_config.json")
    assert options.nsp == "sop"
    other = command_lines.parse(RunPretraining, f"{flags} --nsp=none")
    assert other.nsp == "none"
    with pytest.raises(InputError, match="--bert_config_file"):
        command_lines.parse(RunPretraining, f"--do_train {line}")


def test_evaluating_another_checkpoint_is_a_warning(copy, folder, caplog):
    for step in (8, 4):
        assert "is not used" not in caplog.text
        checkpoint = str(copy / f"model.ckpt-{step}")
        run(folder, do_eval=True, init_checkpoint=checkpoint)
        assert results(copy)["global_step"] == 8
    assert "model.ckpt-4 is not used" in caplog.text
    assert f" is {copy}/model.ckpt-8. " in caplog.text


def test_loss_of_predicting_frequencies_is_shown_beside_the_models(
    copy, folder, capsys, caplog
):
    counts = np.zeros(30)
    for example in pretraining_runs.make_examples(40):
        labels, used = example["masked_lm_ids"], example["masked_lm_weights"]
        np.add.at(counts, labels, used)
    num_seen = np.count_nonzero(counts)
    # Miller and Madow's estimate of the entropy.
    expected = entropy(counts) + (num_seen - 1) / (2 * counts.sum())
    # All tokens have the same probability.
    head = {k: v for k, v in weights(copy).items() if "cls/predictions" in k}
    save(copy, {name: 0.0 * value for name, value in head.items()})
    run(folder, do_eval=True)
    shown = f"masked_lm_loss .* {expected:9.4f}\n"
    assert re.search(shown, capsys.readouterr().out)
    advice = "the model has learned nothing else yet. Train for more steps"
    assert f"frequency gives {expected:.2f}: {advice}" in caplog.text


@pytest.mark.trains
def test_loss_above_that_of_random_guesses_is_a_warning(copy, folder, caplog):
    message = "worse than that of random guesses (3.40)"
    run(folder, do_eval=True)
    assert message not in caplog.text
    bias = "cls/predictions/output_bias"
    save(copy, {bias: 50.0 * np.eye(30, dtype=np.float32)[0]})
    run(folder, do_eval=True)
    assert message in caplog.text


@pytest.mark.usefixtures("without_learning")
def test_init_checkpoint_initializes_weights_but_not_slots(finished, folder):
    """The flag names a checkpoint or a run directory."""
    prefix = str(finished / "model.ckpt-8")
    output = run(folder, do_train=True, init_checkpoint=prefix)
    start, name = weights(output, 0), "bert/pooler/dense/kernel"
    np.testing.assert_array_equal(start[name], weights(finished)[name])
    assert not start[f"{name}/adam_m"].any()
    assert start["global_step"] == 0
    output = run(folder, "eval", do_eval=True, init_checkpoint=str(finished))
    assert results(output) == {**results(finished), "global_step": 0}
    for flags in ({"init_checkpoint": str(folder)}, {}):
        with pytest.raises(InputError, match=rf"--init_checkpoint.*{folder}"):
            run(folder, "new", do_eval=True, **flags)


@pytest.mark.usefixtures("without_learning")
def test_missing_or_unused_weights_are_errors_unless_allowed(finished, folder):
    arrays = weights(finished)
    bert = {n: a for n, a in arrays.items() if n.startswith("bert/")}
    prefix = str(folder / "bert.ckpt")
    head = {"output_weights": np.ones(2)}  # Of another task: ignored.
    tf1.write(prefix, {**bert, **head, "another": np.ones(2)})
    message = r"(?s)missing: cls/predictions.*unused: another\n"
    with pytest.raises(InputError, match=message):
        run(folder, do_train=True, init_checkpoint=prefix)
    flags = {"may_initialize": "^cls/", "may_skip": "^another$"}
    run(folder, do_train=True, init_checkpoint=prefix, **flags)


@pytest.mark.usefixtures("without_learning")
def test_without_pairs_a_model_of_masked_lm_alone_is_enough(finished, folder):
    unused = ("bert/pooler/", "cls/seq_relationship/")
    stored = weights(finished).items()
    arrays = {n: a for n, a in stored if not n.startswith(unused)}
    prefix = str(folder / "masked_lm.ckpt")
    tf1.write(prefix, arrays)
    flags = {"do_eval": True, "init_checkpoint": prefix}
    message = r"(?s)missing: bert/pooler.* --may_initialize='\^cls/"
    with pytest.raises(InputError, match=message):
        run(folder, **flags)
    found = results(run(folder, nsp="none", **flags))
    expected = results(finished)["masked_lm_loss"]
    assert found["masked_lm_loss"] == expected
    output = run(folder, "trained", do_train=True, nsp="none", **flags)
    # Any BERT model can load the checkpoint.
    assert {n for n in weights(output) if n.startswith(unused)} == {
        n for n, _ in stored if n.startswith(unused) and "/adam_" not in n
    }
