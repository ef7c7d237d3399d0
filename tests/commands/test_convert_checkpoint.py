import json
import re

import numpy as np
import pytest
from safetensors.numpy import load_file
from support.conversions import (
    VOCAB,
    arrays_of,
    assert_arrays,
    assert_equal_files,
    change_json,
    convert,
    released,
    to_hf,
    to_tf1,
)
from support.run_outputs import read_json

from official_bert.errors import InputError
from official_bert.inference.predictor import Predictor
from official_bert.options import ConvertCheckpoint
from official_bert.runs import checkpoints
from official_bert.sources import pretrained
from official_bert.sources.formats.huggingface import weights as hf_weights
from official_bert.sources.formats.tf1 import checkpoint as tf1
from official_bert.tokenization import Tokenizer

TEXT_TASK = {
    "kind": "text",
    "task_type": "classification",
    "labels": ["no", "perhaps", "yes"],
    "metric": "accuracy",
    "long_documents": {"mode": "truncate_tail", "stride": 0, "pooling": "mean"},
    "max_seq_length": 12,
    "do_lower_case": False,
}
KERAS_HUB = {"to": "keras_hub"}
STRIP = {"to": "tf1", "input_format": "tf1", "strip_optimizer": True}


def write_task(folder, **task):
    (folder / "task.json").write_text(json.dumps({**TEXT_TASK, **task}))


def finetuned(folder):
    arrays = released(folder, "sequence_classification")
    write_task(folder)
    text = 'model_checkpoint_path: "bert_model.ckpt"\n'
    (folder / "checkpoint").write_text(text)
    return arrays


def answers(folder, items=("a b", "q r s")):
    return Predictor.from_dir(str(folder))(list(items))


def test_optimizer_state_is_stripped(tmp_path, capsys):
    arrays = released(tmp_path / "a", "pretraining")
    output = to_tf1(tmp_path / "a", strip_optimizer=True)
    assert_arrays(output, arrays)
    assert f"Left out: {len(arrays) + 1} arrays" in capsys.readouterr().out
    assert_equal_files(tmp_path / "a", output, "vocab.txt", "bert_config.json")


@pytest.mark.parametrize(
    "flags", [{"to": "huggingface"}, {"to": "tf1", "strip_optimizer": True}]
)
def test_weights_that_are_not_finite_are_an_error(tmp_path, flags):
    arrays = released(tmp_path / "a", "pretraining")
    name = "bert/pooler/dense/kernel"
    arrays[name][1, 2] = np.nan
    tf1.write(str(tmp_path / "a" / "bert_model.ckpt"), arrays)
    with pytest.raises(InputError, match=f"{name} must have finite numbers"):
        convert(input=tmp_path / "a", output=tmp_path / "b", **flags)
    assert not (tmp_path / "b").exists()


def test_average_is_the_mean_of_the_newest_checkpoints(tmp_path, capsys):
    run = tmp_path / "run"
    arrays = finetuned(run)
    (run / "bert_model.ckpt.index").unlink()
    saved = []
    for step in (0, 20, 30):
        noise = np.random.default_rng(step)
        changed = {n: a + noise.normal(size=a.shape) for n, a in arrays.items()}
        saved.append({n: a.astype(np.float32) for n, a in changed.items()})
        step_array = {"global_step": np.int64(step)}
        checkpoints.save(str(run), step, saved[-1] | step_array, None, 3)
    output = to_tf1(run, average_checkpoints=2)
    means = {n: (saved[1][n].astype(float) + saved[2][n]) / 2 for n in arrays}
    assert_arrays(output, {n: a.astype(np.float32) for n, a in means.items()})
    assert_equal_files(run, output, "vocab.txt", "bert_config.json")
    assert re.search(f"input .*  {run}\n", capsys.readouterr().out)
    assert answers(output) != answers(run)
    # The model of step 0 is not trained.
    message = r"3 checkpoints of trained steps\. Received: model\.ckpt-20, "
    with pytest.raises(InputError, match=message):
        to_tf1(run, "c", average_checkpoints=3)
    # A checkpoint of another run.
    other = {**saved[1], "output_bias": np.zeros(7, np.float32)}
    tf1.write(str(run / "model.ckpt-20"), other)
    with pytest.raises(InputError, match="output_bias is missing in one"):
        to_tf1(run, "c", average_checkpoints=2)


@pytest.mark.slow
@pytest.mark.parametrize("has_task_file", [True, False])
def test_classifier_and_labels_survive_a_round_trip(tmp_path, has_task_file):
    arrays = finetuned(tmp_path / "a")
    hf = to_hf(tmp_path / "a")
    config = read_json(hf / "config.json")
    assert config["architectures"] == ["BertForSequenceClassification"]
    assert config["id2label"] == {"0": "no", "1": "perhaps", "2": "yes"}
    assert config["label2id"] == {"no": 0, "perhaps": 1, "yes": 2}
    assert config["problem_type"] == "single_label_classification"
    if not has_task_file:  # As in a model from elsewhere.
        (hf / "task.json").unlink()
    back = to_tf1(hf)
    assert_arrays(back, arrays)
    if has_task_file:
        assert read_json(back / "task.json") == TEXT_TASK
    assert answers(back) == answers(tmp_path / "a")


def test_model_card_has_usage_metrics_and_given_text(tmp_path):
    finetuned(tmp_path / "a")
    first = (to_hf(tmp_path / "a", name="b") / "README.md").read_text()
    assert 'BertForSequenceClassification.from_pretrained("b")' in first
    assert "Labels: no, perhaps, yes." in first
    results = (
        "eval_accuracy = 0.75\neval_loss = 0.5\nglobal_step = 7\nloss = 0.6\n"
    )
    (tmp_path / "a" / "eval_results.txt").write_text(results)
    text = tmp_path / "text.md"
    text.write_text("## Data\n\n{{ name }}\n")
    hf = to_hf(tmp_path / "a", name="c", model_card=text)
    second = (hf / "README.md").read_text()
    assert "\n```\n\n## Data\n\n{{ name }}\n\n## Metrics\n" in second
    table = "|---|---|\n| eval_accuracy | 0.75 |\n| eval_loss | 0.5 |\n"
    assert second.endswith(table)


def test_metrics_and_calibration_of_other_weights_are_left_out(tmp_path):
    run = tmp_path / "run"
    arrays = finetuned(run)
    write_task(run, calibration={"temperature": 2.5, "thresholds": []})
    (run / "bert_model.ckpt.index").unlink()
    results = "eval_accuracy = 0.75\nglobal_step = 30\n"
    (run / "eval_results.txt").write_text(results)
    for step in (20, 30):
        step_array = {"global_step": np.int64(step)}
        checkpoints.save(str(run), step, arrays | step_array, None, 3)

    def has_metrics(source, name, **flags):
        folder = to_hf(source, name=name, **flags)
        has_them = "eval_accuracy" in (folder / "README.md").read_text()
        assert ("calibration" in read_json(folder / "task.json")) == has_them
        return has_them

    assert has_metrics(run, "newest")
    assert has_metrics(run / "model.ckpt-30", "prefix")
    assert not has_metrics(run / "model.ckpt-20", "earlier")
    assert not has_metrics(run, "mean", average_checkpoints=2)
    for step, is_evaluated in ((30, True), (20, False)):
        source = run / f"model.ckpt-{step}"
        copy = to_tf1(source, f"../{step}", strip_optimizer=True)
        assert ("calibration" in read_json(copy / "task.json")) == is_evaluated


def test_model_card_names_a_license_only_if_it_is_known(tmp_path):
    finetuned(tmp_path / "a")

    def card(name, **flags):
        folder = to_hf(tmp_path / "a", name=name, **flags)
        return (folder / "README.md").read_text()

    assert "icense" not in card("b")
    assert card("c", license="mit").startswith("---\nlicense: mit\n")
    own = "---\ntags:\n- bert\nlicense: cc-by-4.0\n---\nlicense: mit\n"
    (tmp_path / "a" / "README.md").write_text(own)
    assert card("d").startswith("---\nlicense: cc-by-4.0\n")
    assert card("e", license="mit").startswith("---\nlicense: mit\n")
    (tmp_path / "a" / "README.md").write_text("# Model\nlicense: mit\n")
    assert "icense" not in card("f")


def test_float16_holds_the_nearest_weights_or_is_an_error(tmp_path, capsys):
    arrays = released(tmp_path / "a", "pretraining")
    hf = to_hf(tmp_path / "a", dtype="float16")
    stored = load_file(hf / "model.safetensors")
    assert {array.dtype.name for array in stored.values()} == {"float16"}
    # transformers loads the weights as float32.
    assert read_json(hf / "config.json")["dtype"] == "float32"
    report = capsys.readouterr().out
    lost = "exact weights; they differ by at most 0.0"
    assert f"Not kept by huggingface: {lost}" in report
    back = to_tf1(hf)
    nearest = {n: a.astype("float16").astype("f") for n, a in arrays.items()}
    assert_arrays(back, nearest)
    name = "bert/pooler/dense/bias"
    arrays[name][:] = 65520  # The smallest that rounds to infinity.
    tf1.write(str(tmp_path / "a" / "bert_model.ckpt"), arrays)
    with pytest.raises(InputError, match=f"{name} has values up to 65520"):
        to_hf(tmp_path / "a", name="c", dtype="float16")
    assert not (tmp_path / "c").exists()


def test_first_position_embeddings_are_repeated(tmp_path):
    arrays = released(tmp_path / "a", "pretraining")
    name = "bert/embeddings/position_embeddings"
    first = arrays[name][:3]
    arrays[name] = np.resize(first, arrays[name].shape)
    assert_arrays(to_tf1(to_hf(tmp_path / "a", repeat_positions=3)), arrays)
    with pytest.raises(InputError, match="--repeat_positions=999 exceeds"):
        to_hf(tmp_path / "a", name="c", repeat_positions=999)


def test_ids_of_added_tokens_must_follow_the_vocabulary(tmp_path):
    released(tmp_path / "a", "encoder")
    hf = to_hf(tmp_path / "a")
    *learned, last = (hf / "vocab.txt").read_text().split()
    (hf / "vocab.txt").write_text("\n".join(learned))
    (hf / "added_tokens.json").write_text(json.dumps({last: len(learned)}))
    to_tf1(hf)
    assert_equal_files(tmp_path / "a", tmp_path / "b", "vocab.txt")
    (hf / "added_tokens.json").write_text(json.dumps({last: len(learned) + 1}))
    with pytest.raises(InputError, match=f"{hf}.*{last!r}: {len(learned) + 1}"):
        to_tf1(hf, "c")


def test_settings_of_the_tokenizer_survive_a_round_trip(tmp_path):
    arrays = released(tmp_path / "a", "masked_lm")
    flags = {"never_split": "b,[MASK]", "strip_accents": "false"}
    hf = to_hf(tmp_path / "a", **flags)
    change_json(hf / "tokenizer_config.json", tokenize_chinese_chars=False)
    *learned, last = (hf / "vocab.txt").read_text().split()
    (hf / "vocab.txt").write_text("\n".join([*learned, ""]))
    (hf / "added_tokens.json").write_text(json.dumps({last: len(learned)}))
    tf1_folder = to_tf1(hf)
    assert_arrays(tf1_folder, arrays)
    back = to_hf(tf1_folder, name="back")
    assert_equal_files(hf, back, "vocab.txt")
    found = [pretrained.find(str(f)).settings for f in (hf, tf1_folder, back)]
    assert found[0] == found[1] == found[2]
    contents = [token.content for token in found[0].added_tokens]
    assert contents == ["[MASK]", "b", last]
    assert found[0].num_wordpieces == len(learned)
    assert found[0].strip_accents is False
    assert found[0].tokenize_chinese_chars is False
    for folder in (hf, tf1_folder, back):
        tokenizer = Tokenizer.from_pretrained(folder)
        tokens = ["a", "b", "[UNK]", last, "[UNK]"]
        assert tokenizer.tokenize(f"abé{last}中a") == tokens


@pytest.mark.parametrize("head", ["masked_lm", "token_classification"])
def test_maximum_length_survives_a_round_trip(tmp_path, head):
    released(tmp_path / "a", head)
    hf = to_hf(tmp_path / "a", head)
    config = "tokenizer_config.json"
    change_json(hf / config, model_max_length=9)  # Of 12 positions.
    back = to_hf(to_tf1(hf), name="back")
    assert read_json(back / config)["model_max_length"] == 9


@pytest.mark.parametrize(
    "to",
    ["tf1", "huggingface", pytest.param("openvino", marks=pytest.mark.slow)],
)
def test_weights_of_new_tokens_are_means_over_their_tokens_today(tmp_path, to):
    """In a model with two rows that no token of the vocabulary uses."""
    size = len(VOCAB) + 2
    arrays = released(tmp_path / "a", "masked_lm", vocab_size=size)
    new = tmp_path / "new.txt"
    new.write_text("[AB]\n\nAbc\ncab\nb中b\n")
    flags = {"input": tmp_path / "a", "to": to, "add_tokens": new}
    out = convert(output=tmp_path / "b", **flags)
    ids = {token: number for number, token in enumerate(VOCAB)}
    unknown = ids["[UNK]"]
    # Only "a", "b", "c" are tokens; words of several characters are unknown.
    parts = [[unknown] * 3, [unknown], [unknown], [ids["b"], unknown, ids["b"]]]
    tokens = [*VOCAB, "[AB]", "abc", "cab", "b中b"]
    tokenizer = Tokenizer.from_pretrained(out)
    assert list(tokenizer.vocab) == tokens
    text = "[AB]abc ABC [ab]"
    expected = ["[AB]", "abc", "abc", "[UNK]", "[UNK]", "[UNK]"]
    assert tokenizer.tokenize(text) == expected
    if to == "openvino":
        return
    folder = out if to == "tf1" else to_tf1(out, "c")
    found = arrays_of(folder)
    for name, array in arrays.items():
        rows = array
        if name.endswith(("word_embeddings", "predictions/output_bias")):
            means = [array[part].mean(axis=0) for part in parts]
            rows = np.concatenate([array[: len(VOCAB)], means])
        np.testing.assert_array_equal(found[name], rows)


@pytest.mark.parametrize("lower", [True, False])
def test_added_words_are_found_in_any_case_by_uncased_models(tmp_path, lower):
    """As transformers finds them, unlike markers; see the test above."""
    folder = tmp_path / "a"
    released(folder, "encoder")
    config = json.dumps({"do_lower_case": lower})
    (folder / "tokenizer_config.json").write_text(config)
    (tmp_path / "new.txt").write_text("Covid-19\nCOVID-19\nc++\n新冠\n")
    out = to_hf(folder, add_tokens=tmp_path / "new.txt")
    tokenizer = Tokenizer.from_pretrained(out)
    words = tokenizer.tokenize("COVID-19,covid-19 C++新冠")
    upper = ["COVID-19", "[UNK]", *3 * ["[UNK]"], *3 * ["[UNK]"], "新冠"]
    expected = ["covid-19", "[UNK]", "covid-19", "c++", "新冠"]
    assert words == (expected if lower else upper)


@pytest.mark.parametrize("line", ["a", "A", "##x", "x  y", "\u200b"])
def test_line_that_is_no_new_token_is_an_error(tmp_path, line):
    released(tmp_path / "a", "encoder")
    (tmp_path / "new.txt").write_text(f"xyz\n{line}\n")
    with pytest.raises(InputError, match=r"one word or marker .*--never_split"):
        to_tf1(tmp_path / "a", add_tokens=tmp_path / "new.txt")
    assert not (tmp_path / "b").exists()


def test_unused_files_and_flags_are_reported(tmp_path, caplog):
    released(tmp_path / "a", "masked_lm")
    hf = to_hf(tmp_path / "a", skip="cls")
    assert "are not used" not in caplog.text
    assert "matches no weight" not in caplog.text
    (hf / "adapter_config.json").write_text("{}")
    to_tf1(hf)
    assert "adapter_config.json are not used" in caplog.text
    to_hf(tmp_path / "a", name="c", skip="^pooler")
    assert "--skip=^pooler matches no weight" in caplog.text
    assert "bert/embeddings/" in caplog.text


def test_task_file_is_kept_with_its_head_only(tmp_path):
    finetuned(tmp_path / "a")
    for name, skip in (("all", None), ("encoder", "^output_")):
        stripped = to_tf1(tmp_path / "a", name, strip_optimizer=True, skip=skip)
        hf = to_hf(tmp_path / "a", name=f"hf_{name}", skip=skip)
        for output in (stripped, hf):
            assert (output / "task.json").exists() == (name == "all")


@pytest.mark.slow
def test_output_layer_of_standardized_targets_is_converted(tmp_path):
    released(tmp_path / "a", "sequence_classification", 1)
    task = {"kind": "text", "task_type": "regression", "labels": []}
    task |= {"max_seq_length": 8, "do_lower_case": True}
    found = []
    standardized = {"target_mean": 5.0, "target_deviation": 3.0}
    for name, scale in (("b", {}), ("c", standardized)):
        (tmp_path / "a" / "task.json").write_text(json.dumps(task | scale))
        back = to_tf1(to_hf(tmp_path / "a", name=f"hf-{name}"), name)
        assert "target_mean" not in read_json(back / "task.json")
        found.append(answers(back)[0]["score"])
    assert found[1] == pytest.approx(found[0] * 3 + 5)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"to": "tf1", "input_format": "tf1"}, "add --strip_optimizer"),
        ({"input": "nowhere"}, "--input=.*nowhere"),
        ({"input": "a/vocab.txt"}, "--input=.*vocab.txt must .* a file"),
        ({"input": "."}, "--input=.* config.json"),
        ({"output": "a", "overwrite": True}, "--output="),
        ({"output": "", "overwrite": True}, "--output="),
        ({"output": "full"}, "--output=.*full must be new"),
        ({"output": "a/best"}, "--output="),
        ({"output": "gs://bucket/x"}, "--output=gs://bucket/x"),
        ({"skip": "("}, "--skip="),
        ({"strip_optimizer": True}, "--strip_optimizer needs"),
        ({**STRIP, "do_lower_case": False}, "--strip_.*--nodo_lower_case"),
        ({**STRIP, "head": "multiple_choice"}, "--strip_.*--head=mult"),
        ({"vocab_file": "nowhere.txt"}, "--vocab_file=.*nowhere.txt"),
        ({"input_format": "keras_hub"}, "=keras_hub must .*, tf1"),
        ({**KERAS_HUB, "dtype": "float16"}, "--dtype=.* --to=huggingface"),
        ({**KERAS_HUB, "model_card": "a/vocab.txt"}, "card=.* --to=hugging"),
    ],
)
def test_wrong_flags_are_an_error_before_any_reading(tmp_path, flags, message):
    released(tmp_path / "a", "encoder")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").write_text("x")
    flags = {"input": "a", "output": "out", "to": "huggingface", **flags}
    for name in ("input", "output", "vocab_file", "model_card"):
        if name in flags and "://" not in flags[name]:
            flags[name] = str(tmp_path / flags[name])
    with pytest.raises(InputError, match=message):
        ConvertCheckpoint(**flags).resolve()


def test_model_that_cannot_be_converted_is_an_error(tmp_path):
    finetuned(tmp_path / "a")
    with pytest.raises(InputError, match="--head=multiple_choice must be omit"):
        to_hf(tmp_path / "a", head="multiple_choice")
    hf = to_hf(tmp_path / "a")
    message = "--to=huggingface must differ .* another format"
    with pytest.raises(InputError, match=message):
        to_hf(hf, name="b")
    # Regression must have one output.
    (hf / "task.json").unlink()
    change_json(hf / "config.json", problem_type="regression")
    with pytest.raises(InputError, match="no, perhaps, yes"):
        to_tf1(hf)
    arrays = released(tmp_path / "c", "pretraining")
    arrays |= released(tmp_path / "c", "question_answering")
    tf1.write(str(tmp_path / "c" / "bert_model.ckpt"), arrays)
    with pytest.raises(InputError, match=r"one head.*cls/squad"):
        to_hf(tmp_path / "c", name="d")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("pytorch_model.bin", "pickle.*version .*save_pretrained.*use that"),
        ("model.pt", "pickle"),
        ("tf_model.h5", "TensorFlow models"),
        ("flax_model.msgpack", "Flax models"),
        ("model.safetensors", "config.json"),
    ],
)
def test_unsupported_files_are_never_opened(tmp_path, name, message):
    if name != "model.safetensors":
        (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    (tmp_path / name).write_bytes(b"\x80\x04N.")
    output = str(tmp_path / "out")
    for path in (tmp_path, tmp_path / name):
        options = ConvertCheckpoint(input=str(path), output=output, to="tf1")
        with pytest.raises(InputError, match=message):
            options.resolve()


TOP = {"top": {"feature_layers": "last", "bilstm_size": 0}}
TWO_LABELS = {"labels": ["no", "yes"]}


@pytest.mark.parametrize(
    ("head", "config", "task", "message"),
    [
        ("token_classification", {}, None, "--head: "),
        ("encoder", {"is_left_to_right": True}, None, "`is_left_to_right`"),
        ("sequence_classification", {}, TOP, "pooling head.*--skip="),
        ("sequence_classification", {}, TWO_LABELS, "2 labels and 3 classes"),
    ],
)
def test_unsuitable_model_is_an_error(tmp_path, head, config, task, message):
    released(tmp_path / "a", head, **config)
    if task:
        write_task(tmp_path / "a", **task)
    with pytest.raises(InputError, match=message):
        to_hf(tmp_path / "a", name="b")
    assert not (tmp_path / "b").exists()


@pytest.mark.parametrize("to", ["huggingface", "openvino"])
def test_error_about_a_bilstm_does_not_list_its_weights(tmp_path, to):
    arrays = released(tmp_path / "a", "token_classification")
    arrays["bilstm/layer_0/forward_lstm/lstm_cell/bias"] = np.zeros(3, "f")
    tf1.write(str(tmp_path / "a" / "bert_model.ckpt"), arrays)
    flags = {"input": str(tmp_path / "a"), "output": str(tmp_path / "b")}
    with pytest.raises(InputError, match="--export_openvino") as caught:
        convert(to=to, **flags)
    assert "lstm_cell" not in str(caught.value)


def test_config_of_another_model_is_an_error(tmp_path):
    released(tmp_path / "a", "encoder", is_left_to_right=True)
    path, other = tmp_path / "a" / "bert_config.json", tmp_path / "other.json"
    other.write_bytes(path.read_bytes())
    change_json(other, is_left_to_right=False)
    with pytest.raises(InputError, match="is_left_to_right=True"):
        to_hf(tmp_path / "a", bert_config_file=other)
    change_json(path, hidden_size=16, is_left_to_right=None)
    with pytest.raises(InputError, match=r"\[24, 16\]"):
        to_hf(tmp_path / "a")
    path.unlink()
    with pytest.raises(InputError, match="Pass --bert_config_file"):
        to_hf(tmp_path / "a")


@pytest.mark.slow
def test_casing_is_guessed_from_the_vocabulary(tmp_path, shared_data):
    released(tmp_path / "a", "encoder", vocab_size=30522)
    for name, lower in (("uncased", True), ("cased", False), ("chinese", True)):
        vocab = shared_data / "vocab" / f"{name}.txt"
        out = to_hf(tmp_path / "a", name=name, vocab_file=vocab)
        written = read_json(out / "tokenizer_config.json")
        assert written["do_lower_case"] is lower
        assert (out / "vocab.txt").read_bytes() == vocab.read_bytes()


def test_accents_of_an_uncased_vocabulary_are_kept(tmp_path):
    released(tmp_path / "a", "encoder")
    path = tmp_path / "a" / "vocab.txt"
    *tokens, _ = path.read_text("utf-8").split()
    path.write_text("\n".join([*tokens, "münchen"]), "utf-8")
    for flag, is_stripped in ((None, False), ("true", True)):
        flags = {"strip_accents": flag} if flag else {}
        out = to_hf(tmp_path / "a", name=f"strip-{flag}", **flags)
        written = read_json(out / "tokenizer_config.json")
        assert written["do_lower_case"] is True
        assert written["strip_accents"] is is_stripped


def test_casing_is_kept_by_every_conversion(tmp_path):
    released(tmp_path / "a", "encoder")  # Its vocabulary looks uncased.
    back = to_tf1(to_hf(tmp_path / "a", do_lower_case=False))
    for folder in (back, to_tf1(back, "c", strip_optimizer=True)):
        hf = to_hf(folder, name=f"hf_{folder.name}")
        assert not read_json(hf / "tokenizer_config.json")["do_lower_case"]
    # The casing is also kept without a vocabulary.
    finetuned(tmp_path / "d")
    hf = to_hf(tmp_path / "d", name="hf_d")
    for name in ("task.json", "vocab.txt"):
        (hf / name).unlink()
    assert not read_json(to_tf1(hf, "e") / "task.json")["do_lower_case"]
    # The name of a released model shows it.
    folder = tmp_path / "cased_L-12_H-768_A-12"
    released(folder, "encoder")
    with pytest.raises(InputError, match="cased model"):
        to_hf(folder / "bert_model.ckpt", name="../f", do_lower_case=True)


@pytest.mark.parametrize("to", ["tf1", "huggingface"])
def test_difference_on_reading_back_leaves_no_output(tmp_path, monkeypatch, to):
    released(tmp_path / "a", "masked_lm")
    folder = to_hf(tmp_path / "a") if to == "tf1" else tmp_path / "a"
    write, save = tf1.write, hf_weights.save_file

    def change(prefix, arrays):
        name = "bert/pooler/dense/bias"
        write(prefix, {**arrays, name: arrays[name] + np.float32(1e-6)})

    def lose(arrays, path, metadata):
        # Loses the pooler, because reading does not fail without it.
        kept = {name: arrays[name] for name in arrays if "pooler" not in name}
        save(kept, path, metadata=metadata)

    monkeypatch.setattr(tf1, "write", change)
    monkeypatch.setattr(hf_weights, "save_file", lose)
    with pytest.raises(RuntimeError, match=r"differ .* by (inf|9|1)"):
        convert(input=folder, output=tmp_path / "b", to=to)
    assert {path.name for path in tmp_path.iterdir()} <= {"a", "hf"}
