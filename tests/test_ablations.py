"""The paper's ablations as a user runs them: what each flag changes."""

import json
import random

import numpy as np
import pytest
import tensorflow as tf

import create_pretraining_data
import predict
import run_classifier
import run_pretraining
from official_bert.checkpoints import run_directory, tf1
from official_bert.errors import InputError
from official_bert.inference.predictor import Predictor
from official_bert.options import (
    CreatePretrainingData,
    ExportTfhub,
    ExtractFeatures,
    Predict,
    RunClassifier,
    RunPretraining,
    VisualizeAttention,
)

WORDS = [f"w{n}" for n in range(20)]
VOCAB = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
CONFIG = {
    "vocab_size": len(VOCAB),
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "max_position_embeddings": 32,
    "type_vocab_size": 2,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
    "initializer_range": 0.1,
}
PAIRS = ("bert/pooler/", "cls/seq_relationship/")


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    """Documents that count up: w3 w4 w5 ... from anywhere, three a line."""
    folder = tmp_path_factory.mktemp("inputs")
    rng = random.Random(0)
    documents = []
    for _ in range(60):
        first = rng.randint(0, 5)
        lines = [
            " ".join(WORDS[n : n + 3]) for n in range(first, first + 12, 3)
        ]
        documents.append("\n".join(lines))
    (folder / "text.txt").write_text("\n\n".join(documents))
    (folder / "vocab.txt").write_text("\n".join(VOCAB) + "\n")
    (folder / "bert_config.json").write_text(json.dumps(CONFIG))
    for name, changes in {
        "next": {},
        "sop": {"nsp": "sop"},
        "none": {"nsp": "none"},
        "packed": {
            "nsp": "none",
            "pack_sequences": True,
            "max_seq_length": 32,
            "max_predictions_per_seq": 8,
        },
    }.items():
        create_pretraining_data.main(
            CreatePretrainingData(
                **{
                    "input_file": str(folder / "text.txt"),
                    "output_file": str(folder / name),
                    "vocab_file": str(folder / "vocab.txt"),
                    "max_seq_length": 16,
                    "max_predictions_per_seq": 4,
                    "masked_lm_prob": 0.2,
                    "short_seq_prob": 0.0,
                    **changes,
                }
            )
        )
    return folder


def run(inputs, output, data, **changes):
    run_pretraining.main(
        RunPretraining(
            **{
                "bert_config_file": str(inputs / "bert_config.json"),
                "input_file": str(inputs / data),
                "output_dir": str(output),
                "max_seq_length": 16,
                "max_predictions_per_seq": 4,
                "train_batch_size": 16,
                "num_train_steps": 4,
                "num_warmup_steps": 1,
                "learning_rate": 5e-3,
                "eval_batch_size": 16,
                "max_eval_steps": 10,
                "do_train": True,
                "do_eval": True,
                **changes,
            }
        )
    )
    lines = (output / "eval_results.txt").read_text().splitlines()
    return {
        name: float(value)
        for name, value in (line.split(" = ") for line in lines)
    }


def weights(output, step):
    reader = tf.train.load_checkpoint(str(output / f"model.ckpt-{step}"))
    return {
        name: reader.get_tensor(name)
        for name in reader.get_variable_to_shape_map()
    }


MASKED_LM = {"masked_lm_accuracy", "masked_lm_loss"}
ALWAYS = {"global_step", "loss"}


@pytest.mark.slow
def test_sentence_order_is_learned(inputs, tmp_path):
    found = run(
        inputs,
        tmp_path,
        "sop",
        nsp="sop",
        num_train_steps=400,
        learning_rate=2e-3,
    )
    pairs = {"sentence_order_accuracy", "sentence_order_loss"}
    assert found.keys() == ALWAYS | MASKED_LM | pairs
    assert found["sentence_order_accuracy"] > 0.95
    assert found["masked_lm_loss"] < 0.5 * np.log(len(VOCAB))


@pytest.mark.slow
@pytest.mark.parametrize("data", ["next", "none"])
def test_without_pairs_their_weights_stay(inputs, tmp_path, data):
    found = run(inputs, tmp_path, data, nsp="none", num_train_steps=300)
    assert found.keys() == ALWAYS | MASKED_LM
    # The mean of batches' losses, and that of all pieces.
    assert found["loss"] == pytest.approx(found["masked_lm_loss"], rel=0.1)
    assert found["masked_lm_loss"] < 0.8 * np.log(len(VOCAB))
    before, after = weights(tmp_path, 0), weights(tmp_path, 300)
    moments = {name for name in after if name.endswith(("/adam_m", "/adam_v"))}
    names = after.keys() - moments - {"global_step"}
    assert len(moments) == 2 * (len(names) - 4)
    for name in names:
        is_same = np.array_equal(before[name], after[name])
        assert is_same == name.startswith(PAIRS), name


@pytest.mark.slow
def test_a_checkpoint_without_pairs_is_one_of_any_bert(inputs, tmp_path):
    run(inputs, tmp_path / "alone", "none", nsp="none")
    found = run(
        inputs,
        tmp_path / "pairs",
        "next",
        init_checkpoint=str(tmp_path / "alone" / "model.ckpt-4"),
    )
    assert "next_sentence_loss" in found


@pytest.mark.slow
def test_pieces_are_guessed_from_left_to_right(inputs, tmp_path):
    found = run(
        inputs,
        tmp_path,
        "next",
        nsp="none",
        left_to_right=True,
        num_train_steps=150,
    )
    assert found.keys() == ALWAYS | {
        "lm_accuracy",
        "lm_loss",
        "lm_perplexity",
    }
    assert found["lm_perplexity"] == pytest.approx(np.exp(found["lm_loss"]))
    # Words count up; what starts a segment, and its end, is chance.
    assert 0.6 < found["lm_accuracy"] < 0.95
    assert found["lm_loss"] < 0.5 * np.log(len(VOCAB))
    config = json.loads((tmp_path / "bert_config.json").read_text())
    assert config == {**CONFIG, **config, "is_left_to_right": True}
    assert weights(tmp_path, 150).keys() >= {"cls/predictions/output_bias"}


@pytest.mark.slow
def test_left_to_right_works_with_pairs_too(inputs, tmp_path):
    """The last piece, which is pooled, has seen all of them."""
    found = run(
        inputs,
        tmp_path,
        "sop",
        nsp="sop",
        left_to_right=True,
        num_train_steps=150,
    )
    assert found["sentence_order_accuracy"] > 0.95
    assert "lm_perplexity" in found


@pytest.mark.slow
@pytest.mark.parametrize(
    "is_packed", [False, pytest.param(True, marks=pytest.mark.slow)]
)
def test_however_it_is_computed(inputs, tmp_path, is_packed):
    """Losses are those of the whole batch, of uneven texts as well."""
    given = {"nsp": "none", "left_to_right": True, "learning_rate": 1e-3}
    if is_packed:
        given |= {"pack_sequences": True}
        given |= {"max_seq_length": 32, "max_predictions_per_seq": 8}
    data = "packed" if is_packed else "none"
    expected = run(inputs, tmp_path / "a", data, **given)
    found = run(
        inputs,
        tmp_path / "b",
        data,
        **given,
        gradient_accumulation_steps=2,
        distribution_strategy="mirrored",
        remat=True,
    )
    assert found == pytest.approx(expected, rel=1e-5)
    one, other = weights(tmp_path / "a", 4), weights(tmp_path / "b", 4)
    for name, value in one.items():
        np.testing.assert_allclose(other[name], value, atol=2e-5, err_msg=name)


@pytest.mark.slow
def test_a_run_keeps_its_direction(inputs, tmp_path):
    run(inputs, tmp_path, "none", nsp="none", left_to_right=True)
    with pytest.raises(InputError, match="`is_left_to_right` must be True"):
        run(inputs, tmp_path, "none", nsp="none", do_train=False)
    # The config it left says so without the flag.
    again = run(
        inputs,
        tmp_path,
        "none",
        nsp="none",
        bert_config_file=str(tmp_path / "bert_config.json"),
        do_train=False,
    )
    assert "lm_loss" in again


def test_a_left_to_right_model_fills_no_blanks(inputs, tmp_path):
    run(
        inputs,
        tmp_path / "model",
        "none",
        nsp="none",
        left_to_right=True,
        vocab_file=str(inputs / "vocab.txt"),
    )
    (tmp_path / "in.txt").write_text("w1 [MASK]\n")
    for given in ({"fill_mask": True}, {"score": True}):
        with pytest.raises(InputError, match=r"config.json: --fill_mask"):
            predict.main(
                Predict(
                    model_dir=str(tmp_path / "model"),
                    input_file=str(tmp_path / "in.txt"),
                    **given,
                )
            )


@pytest.mark.parametrize("folder", ["", "best"])
@pytest.mark.parametrize(
    ("options", "given"),
    [
        (Predict, {"fill_mask": True}),
        (Predict, {"score": True}),
        (VisualizeAttention, {"text_a": "w1", "output_file": "out.html"}),
        (
            ExtractFeatures,
            {
                "input_file": "IN",
                "output_file": "o",
                "max_seq_length": 16,
                "layers": "-1",
            },
        ),
        (ExportTfhub, {"export_path": "out"}),
    ],
)
def test_a_model_is_not_read_in_another_direction(
    inputs, tmp_path, options, given, folder, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    # All that counts; other keys are of other models.
    (tmp_path / "bert_config.json").write_text('{"is_left_to_right": true}')
    checkpoint = tmp_path / folder / "a.ckpt"
    checkpoint.parent.mkdir(exist_ok=True)
    tf1.write(str(checkpoint), {"a": np.zeros(3, np.float32)})
    (tmp_path / "IN").write_text("w1\n")
    message = r"bert_config.json: .* trained with is_left_to_right=True"
    with pytest.raises(InputError, match=message):
        options(
            bert_config_file=str(inputs / "bert_config.json"),
            vocab_file=str(inputs / "vocab.txt"),
            init_checkpoint=str(checkpoint),
            **given,
        )


@pytest.mark.slow
def test_fine_tuning_from_left_to_right(inputs, tmp_path, caplog):
    """What the first word says reaches the last, and `Predictor` knows how."""
    rng = random.Random(1)
    for name, number in (("train", 200), ("dev", 50)):
        rows = ["text,label"]
        for _ in range(number):
            words = rng.choices(WORDS, k=rng.randint(2, 8))
            rows.append(f"{' '.join(words)},{WORDS.index(words[0]) % 2}")
        (tmp_path / f"{name}.csv").write_text("\n".join(rows) + "\n")
    pretrained, output = tmp_path / "pretrained", tmp_path / "out"
    run(inputs, pretrained, "none", nsp="none", left_to_right=True)
    given = {
        "task_name": "csv",
        "data_dir": str(tmp_path),
        "vocab_file": str(inputs / "vocab.txt"),
        "bert_config_file": str(inputs / "bert_config.json"),
        "init_checkpoint": str(pretrained / "model.ckpt-4"),
        "may_skip": "^cls/",
        "max_seq_length": 16,
        "train_batch_size": 16,
        "learning_rate": 3e-3,
        "do_train": True,
        "do_eval": True,
    }
    run_classifier.main(
        RunClassifier(
            **given,
            output_dir=str(output),
            left_to_right=True,
            num_train_epochs=12.0,
        )
    )
    assert "learn to read anew" not in caplog.text
    results = json.loads((output / "eval_results.json").read_text())
    assert results["accuracy"] > 0.9
    assert run_directory.latest(str(output))
    config = json.loads((output / "bert_config.json").read_text())
    assert config["is_left_to_right"] is True
    texts = (f"{word} w0 w1 w2 w3" for word in WORDS)
    labels = [
        answer["label"] for answer in Predictor.from_dir(str(output))(texts)
    ]
    assert np.mean([int(a) == n % 2 for n, a in enumerate(labels)]) > 0.8

    run_classifier.main(
        RunClassifier(
            **given, output_dir=str(tmp_path / "both"), num_train_epochs=0.1
        )
    )
    assert "learn to read anew" in caplog.text
