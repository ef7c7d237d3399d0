"""`convert_checkpoint.py`: its flags, and models that commands go on with."""

import json
import shutil

import numpy as np
import pytest
from support.conversions import (
    arrays_of,
    assert_same,
    change_json,
    convert,
    released,
)

from official_bert.checkpoints import run_directory, tf1
from official_bert.errors import InputError
from official_bert.inference.predictor import Predictor
from official_bert.options import ConvertCheckpoint

pytest.importorskip("safetensors")

from official_bert.checkpoints.conversion import huggingface

TEXT_TASK = {
    "kind": "text",
    "task_type": "classification",
    "labels": ["no", "perhaps", "yes"],
    "metric": "accuracy",
    "long_documents": {
        "mode": "truncate_tail",
        "stride": 0,
        "pooling": "mean",
    },
    "max_seq_length": 12,
    "do_lower_case": False,
}


def finetuned(folder, head, task, num_classes=3):
    arrays = released(folder, head, num_classes)
    (folder / "task.json").write_text(json.dumps(task))
    (folder / "checkpoint").write_text(
        'model_checkpoint_path: "bert_model.ckpt"\n'
    )
    return arrays


def test_the_optimizers_state_is_left_out(tmp_path, capsys):
    arrays = released(tmp_path / "a", "pretraining")
    convert(
        input=tmp_path / "a" / "bert_model.ckpt",
        output=tmp_path / "b",
        to="tf1",
        strip_optimizer=True,
    )
    assert_same(arrays_of(tmp_path / "b"), arrays)
    assert f"Left out: {len(arrays) + 1} arrays" in capsys.readouterr().out
    for name in ("vocab.txt", "bert_config.json"):
        assert (tmp_path / "b" / name).read_bytes() == (
            tmp_path / "a" / name
        ).read_bytes()


def test_labels_go_and_come_back(tmp_path):
    arrays = finetuned(tmp_path / "a", "sequence_classification", TEXT_TASK)
    said = Predictor.from_dir(str(tmp_path / "a"))(["a b", "q r s"])
    convert(input=tmp_path / "a", output=tmp_path / "hf", to="huggingface")
    config = json.loads((tmp_path / "hf" / "config.json").read_text())
    assert config["architectures"] == ["BertForSequenceClassification"]
    assert config["id2label"] == {"0": "no", "1": "perhaps", "2": "yes"}
    assert config["label2id"] == {"no": 0, "perhaps": 1, "yes": 2}
    assert config["problem_type"] == "single_label_classification"
    tokenizer = json.loads(
        (tmp_path / "hf" / "tokenizer_config.json").read_text()
    )
    assert tokenizer["do_lower_case"] is False
    convert(input=tmp_path / "hf", output=tmp_path / "b", to="tf1")
    assert_same(arrays_of(tmp_path / "b"), arrays)
    assert json.loads((tmp_path / "b" / "task.json").read_text()) == TEXT_TASK
    assert Predictor.from_dir(str(tmp_path / "b"))(["a b", "q r s"]) == said


def test_others_classifiers_answer_here(tmp_path):
    """Without our task.json, labels are those of config.json."""
    finetuned(tmp_path / "a", "sequence_classification", TEXT_TASK)
    said = Predictor.from_dir(str(tmp_path / "a"))(["a b", "q r s"])
    convert(input=tmp_path / "a", output=tmp_path / "hf", to="huggingface")
    (tmp_path / "hf" / "task.json").unlink()
    convert(input=tmp_path / "hf", output=tmp_path / "b", to="tf1")
    assert Predictor.from_dir(str(tmp_path / "b"))(["a b", "q r s"]) == said


@pytest.mark.parametrize(
    ("head", "num_classes", "problem_type", "item"),
    [
        ("token_classification", 3, None, ["a", "b"]),
        ("question_answering", 2, None, ["a ?", "b c d"]),
        ("sequence_classification", 1, "regression", "a b"),
        ("sequence_classification", 3, "multi_label_classification", "a b"),
    ],
)
def test_other_tasks_answer_here(
    tmp_path, head, num_classes, problem_type, item
):
    released(tmp_path / "a", head, num_classes)
    flags = {} if head == "question_answering" else {"head": head}
    convert(
        input=tmp_path / "a", output=tmp_path / "hf", to="huggingface", **flags
    )
    change_json(tmp_path / "hf" / "config.json", problem_type=problem_type)
    convert(input=tmp_path / "hf", output=tmp_path / "b", to="tf1")
    [answer] = Predictor.from_dir(str(tmp_path / "b"))([item])
    wanted = {
        "token_classification": "tags",
        "question_answering": "answer",
    }.get(head, "score" if problem_type == "regression" else "labels")
    assert wanted in answer


def test_what_is_above_bert_must_be_known_there(tmp_path):
    """transformers would compute without it, and answer otherwise."""
    top = {"feature_layers": "last", "bilstm_size": 0}
    finetuned(
        tmp_path / "a", "sequence_classification", {**TEXT_TASK, "top": top}
    )
    given = {"input": tmp_path / "a", "output": tmp_path / "hf"}
    with pytest.raises(InputError, match="no model on frozen vectors"):
        convert(**given, to="huggingface")
    convert(**given, to="huggingface", skip="^output_")
    assert not (tmp_path / "hf" / "task.json").exists()


@pytest.mark.parametrize("is_fast", [False, True])
def test_added_tokens_stand_behind_the_others(tmp_path, caplog, is_fast):
    """As `add_tokens` and `save_pretrained` leave them, of old and of late."""
    released(tmp_path / "a", "encoder")
    hf = tmp_path / "hf"
    convert(input=tmp_path / "a", output=hf, to="huggingface")
    *learned, last = (hf / "vocab.txt").read_text().split()
    (hf / "vocab.txt").write_text("\n".join(learned))

    def add(number):
        special = {"content": learned[0], "id": 0}
        tokens = [special, {"content": last, "id": number}]
        name, added = "added_tokens.json", {last: number}
        if is_fast:
            name, added = "tokenizer.json", {"added_tokens": tokens}
        (hf / name).write_text(json.dumps(added))

    add(len(learned))
    convert(input=hf, output=tmp_path / "b", to="tf1")
    read = [(tmp_path / name / "vocab.txt").read_bytes() for name in "ab"]
    assert read[0] == read[1]
    assert f"1 added tokens, such as {last!r}" in caplog.text
    add(len(learned) + 1)
    with pytest.raises(InputError, match="must go on where"):
        convert(input=hf, output=tmp_path / "c", to="tf1")
    add("7")
    with pytest.raises(InputError, match=f"its id. Received: '7' of {last!r}"):
        convert(input=hf, output=tmp_path / "c", to="tf1")


def test_a_skip_that_leaves_nothing_out_is_told(tmp_path, caplog):
    released(tmp_path / "a", "encoder")
    given = {"input": tmp_path / "a", "to": "huggingface"}
    convert(**given, output=tmp_path / "b", skip="pooler")
    assert "leaves nothing out" not in caplog.text
    convert(**given, output=tmp_path / "c", skip="^pooler")
    assert "--skip=^pooler leaves nothing out" in caplog.text
    assert "but bert/embeddings/" in caplog.text


@pytest.mark.parametrize("flags", [{"strip_optimizer": True}, {}])
def test_a_task_goes_with_its_head(tmp_path, flags):
    finetuned(tmp_path / "a", "sequence_classification", TEXT_TASK)
    to = "tf1" if flags else "huggingface"
    given = {"input": tmp_path / "a", "to": to, **flags}
    convert(**given, output=tmp_path / "all")
    convert(**given, output=tmp_path / "encoder", skip="^output_")
    found = [(tmp_path / n / "task.json").exists() for n in ("all", "encoder")]
    assert found == [True, False]


def test_a_regression_has_one_number(tmp_path):
    finetuned(tmp_path / "a", "sequence_classification", TEXT_TASK)
    convert(input=tmp_path / "a", output=tmp_path / "hf", to="huggingface")
    (tmp_path / "hf" / "task.json").unlink()
    change_json(tmp_path / "hf" / "config.json", problem_type="regression")
    with pytest.raises(InputError, match="Received: no, perhaps, yes"):
        convert(input=tmp_path / "hf", output=tmp_path / "b", to="tf1")


def test_casing_is_kept_without_a_vocabulary(tmp_path):
    finetuned(tmp_path / "a", "sequence_classification", TEXT_TASK)
    convert(input=tmp_path / "a", output=tmp_path / "hf", to="huggingface")
    for name in ("task.json", "vocab.txt"):
        (tmp_path / "hf" / name).unlink()
    convert(input=tmp_path / "hf", output=tmp_path / "b", to="tf1")
    task = json.loads((tmp_path / "b" / "task.json").read_text())
    assert task["do_lower_case"] is False


def test_labels_must_fit(tmp_path):
    finetuned(tmp_path / "a", "sequence_classification", TEXT_TASK)
    change_json(tmp_path / "a" / "task.json", labels=["no", "yes"])
    with pytest.raises(InputError, match="2 labels and 3 classes"):
        convert(input=tmp_path / "a", output=tmp_path / "hf", to="huggingface")


def test_a_runs_best_checkpoint_is_taken(tmp_path, capsys):
    arrays = released(tmp_path / "a", "masked_lm")
    for part in (".index", ".data-00000-of-00001"):
        (tmp_path / "a" / f"bert_model.ckpt{part}").unlink()
    (tmp_path / "a" / "best").mkdir()
    for folder, factor in (("a", 1.0), ("a/best", 2.0)):
        changed = {name: factor * array for name, array in arrays.items()}
        run_directory.save(str(tmp_path / folder), 5, changed, None, keep=1)
    convert(input=tmp_path / "a", output=tmp_path / "hf", to="huggingface")
    assert "best/model.ckpt-5" in capsys.readouterr().out
    convert(input=tmp_path / "hf", output=tmp_path / "b", to="tf1")
    found = arrays_of(tmp_path / "b")
    name = "bert/pooler/dense/kernel"
    np.testing.assert_array_equal(found[name], 2.0 * arrays[name])


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"to": "tf1", "input_format": "tf1"}, "add --strip_optimizer"),
        ({"input": "nowhere"}, "--input=.*nowhere"),
        ({"input": "a/bert_config.json"}, "--input=.*bert_config.json"),
        ({"input": "."}, "--input=.* config.json"),
        ({"output": "a", "overwrite": True}, "--output="),
        ({"output": "", "overwrite": True}, "--output="),
        ({"output": "full"}, "must be new or empty"),
        ({"skip": "("}, "--skip="),
        ({"strip_optimizer": True}, "--strip_optimizer needs"),
        (
            {"to": "tf1", "strip_optimizer": True, "do_lower_case": False},
            "--strip_optimizer .*--nodo_lower_case",
        ),
        (
            {
                **{"to": "tf1", "input_format": "tf1"},
                **{"strip_optimizer": True, "head": "multiple_choice"},
            },
            "--strip_optimizer .*--head=multiple_choice",
        ),
        ({"output": "a/best"}, "--output="),
        ({"vocab_file": "nowhere.txt"}, "--vocab_file=.*nowhere.txt"),
        ({"input_format": "keras_hub"}, "--input_format=keras_hub"),
        ({"output": "gs://bucket/x"}, "--output=gs://bucket/x"),
    ],
)
def test_wrong_flags_end_before_anything_slow(tmp_path, flags, message):
    released(tmp_path / "a", "encoder")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").write_text("x")
    given = {"input": "a", "output": "out", "to": "huggingface", **flags}
    for name in ("input", "output", "vocab_file"):
        if name in given and "://" not in given[name]:
            given[name] = str(tmp_path / given[name])
    with pytest.raises(InputError, match=message):
        ConvertCheckpoint(**given)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("pytorch_model.bin", "is a pickle.*save_pretrained"),
        ("model.pt", "is a pickle"),
        ("tf_model.h5", "former TensorFlow models"),
        ("flax_model.msgpack", "former Flax models"),
    ],
)
def test_unsafe_and_old_files_are_never_opened(tmp_path, name, reason):
    (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    (tmp_path / name).write_bytes(b"\x80\x04N.")
    for path in (tmp_path, tmp_path / name):
        with pytest.raises(InputError, match=reason):
            ConvertCheckpoint(
                input=str(path), output=str(tmp_path / "out"), to="tf1"
            )


def test_safetensors_without_a_config_are_refused(tmp_path):
    (tmp_path / "model.safetensors").write_bytes(b"")
    with pytest.raises(InputError, match=r"--input=.* config\.json"):
        ConvertCheckpoint(
            input=str(tmp_path), output=str(tmp_path / "out"), to="tf1"
        )


def test_there_must_be_something_to_convert(tmp_path):
    released(tmp_path / "a", "encoder")
    with pytest.raises(InputError, match="add --strip_optimizer"):
        convert(input=tmp_path / "a", output=tmp_path / "b", to="tf1")


def test_a_classifier_must_be_known(tmp_path):
    released(tmp_path / "a", "token_classification")
    with pytest.raises(InputError, match="Give --head"):
        convert(input=tmp_path / "a", output=tmp_path / "hf", to="huggingface")


def test_a_config_of_another_model_is_refused(tmp_path):
    released(tmp_path / "a", "encoder")
    change_json(tmp_path / "a" / "bert_config.json", hidden_size=16)
    with pytest.raises(InputError, match=r"wrong shape: bert/.*\[24, 16\]"):
        convert(input=tmp_path / "a", output=tmp_path / "hf", to="huggingface")
    (tmp_path / "a" / "bert_config.json").unlink()
    with pytest.raises(InputError, match="Give --bert_config_file"):
        convert(input=tmp_path / "a", output=tmp_path / "hf", to="huggingface")


def test_a_left_to_right_model_has_no_counterpart(tmp_path):
    released(tmp_path / "a", "encoder", is_left_to_right=True)
    with pytest.raises(InputError, match="`is_left_to_right` has no counter"):
        convert(input=tmp_path / "a", output=tmp_path / "hf", to="huggingface")


def test_casing_is_told_by_the_vocabulary(tmp_path, shared_data):
    released(tmp_path / "a", "encoder", vocab_size=30522)
    for name, lower in (("uncased", True), ("cased", False), ("chinese", True)):
        vocab = shared_data / "vocab" / f"{name}.txt"
        out = tmp_path / name
        convert(
            input=tmp_path / "a", output=out, to="huggingface", vocab_file=vocab
        )
        written = json.loads((out / "tokenizer_config.json").read_text())
        assert written["do_lower_case"] is lower
        assert (out / "vocab.txt").read_bytes() == vocab.read_bytes()


def test_casing_goes_through_tf1(tmp_path):
    released(tmp_path / "a", "encoder")  # Its vocabulary looks uncased.
    convert(
        input=tmp_path / "a",
        output=tmp_path / "hf",
        to="huggingface",
        do_lower_case=False,
    )
    convert(input=tmp_path / "hf", output=tmp_path / "b", to="tf1")
    flags = {"to": "tf1", "strip_optimizer": True}
    convert(input=tmp_path / "b", output=tmp_path / "c", **flags)
    for name in ("b", "c"):
        out = tmp_path / f"hf_{name}"
        convert(input=tmp_path / name, output=out, to="huggingface")
        written = json.loads((out / "tokenizer_config.json").read_text())
        assert written["do_lower_case"] is False


def test_a_config_of_another_direction_is_refused(tmp_path):
    released(tmp_path / "a", "encoder", is_left_to_right=True)
    config = json.loads((tmp_path / "a" / "bert_config.json").read_text())
    del config["is_left_to_right"]
    (tmp_path / "other.json").write_text(json.dumps(config))
    with pytest.raises(InputError, match="trained with is_left_to_right=True"):
        convert(
            input=tmp_path / "a",
            output=tmp_path / "hf",
            to="huggingface",
            bert_config_file=tmp_path / "other.json",
        )


def test_a_released_models_casing_is_known(tmp_path):
    folder = tmp_path / "cased_L-12_H-768_A-12"
    released(folder, "encoder")
    with pytest.raises(InputError, match="seems to be a cased model"):
        convert(
            input=folder / "bert_model.ckpt",
            output=tmp_path / "hf",
            to="huggingface",
            do_lower_case=True,
        )


def test_overwriting_must_be_asked_for(tmp_path):
    released(tmp_path / "a", "encoder")
    (tmp_path / "hf").mkdir()
    (tmp_path / "hf" / "old").write_text("x")
    flags = {"input": tmp_path / "a", "output": tmp_path / "hf"}
    with pytest.raises(InputError, match="must be new or empty"):
        convert(to="huggingface", **flags)
    convert(to="huggingface", overwrite=True, **flags)
    assert not (tmp_path / "hf" / "old").exists()


def test_a_failed_check_leaves_nothing(tmp_path, monkeypatch):
    released(tmp_path / "a", "encoder")
    write = tf1.write

    def spoil(prefix, arrays):
        name = "bert/pooler/dense/bias"
        write(prefix, {**arrays, name: arrays[name] + np.float32(1e-6)})

    convert(input=tmp_path / "a", output=tmp_path / "hf", to="huggingface")
    monkeypatch.setattr(tf1, "write", spoil)
    with pytest.raises(RuntimeError, match="must come back as it was"):
        convert(input=tmp_path / "hf", output=tmp_path / "b", to="tf1")
    shutil.rmtree(tmp_path / "hf")
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_a_lost_array_is_noticed(tmp_path, monkeypatch):
    """The pooler, without which reading it would not fail."""
    released(tmp_path / "a", "masked_lm")
    save = huggingface.save_file

    def lose(arrays, path, metadata):
        kept = {name: arrays[name] for name in arrays if "pooler" not in name}
        save(kept, path, metadata=metadata)

    monkeypatch.setattr(huggingface, "save_file", lose)
    with pytest.raises(RuntimeError, match="difference of inf"):
        convert(input=tmp_path / "a", output=tmp_path / "hf", to="huggingface")
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
