"""Invalid flags of predict.py, found before TensorFlow is imported."""

import sys

import pytest
from support import command_lines, untrained_models

from official_bert.errors import InputError
from official_bert.options import Predict


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Two models: `tuned` and `pretrained`."""
    return untrained_models.write(tmp_path_factory.mktemp("models"))


FILES = "--score --bert_config_file=PRE/bert_config.json"
VOCABULARY = f"{FILES} --vocab_file=PRE/vocab.txt"
CASED = "cased_L-12_H-768_A-12"
LEFT_TO_RIGHT = '{"is_left_to_right": true, "vocab_size": 9}'
TUNED = "--model_dir=TUNED"
PRETRAINED = "--model_dir=PRE"
SCORE = f"--score {PRETRAINED}"
WRONG = [
    ("", "--model_dir must be given"),
    ("--model_dir=none", "--model_dir=none"),
    (PRETRAINED, "pretrained: .* task.json"),
    (f"{TUNED} --score", "tuned: --fill_mask and --score"),
    (f"{TUNED} --do_lower_case", "--do_lower_case needs"),
    (f"{TUNED} --vocab_file=v", "conflicts with --vocab_file=v"),
    ("--fill_mask --score", "--fill_mask conflicts with --score"),
    ("--score --model=", "--model, --model_dir or .*--init_checkpoint must be"),
    (f"{SCORE} --vocab_file=v", "conflicts with --vocab_file"),
    ("--score --vocab_file=v", "--bert_config_file, --init_checkpoint must"),
    (
        f"{FILES} --vocab_file=none --init_checkpoint=PRE/model.ckpt-3",
        "--vocab_file must be an existing file",
    ),
    (f"{VOCABULARY} --init_checkpoint=PRE/none", "--init_checkpoint=.*none "),
    (f"{VOCABULARY} --init_checkpoint={CASED}/bert_model.ckpt", "cased model"),
    (f"{TUNED} --input_file=none", "--input_file=none"),
    (f"{TUNED} --input_file=a.txt --output_file=./a.txt", "=./a.txt"),
    (f"{TUNED} --output_file=TUNED/vocab.txt", "--output_file=.*vocab.txt"),
    (f"{TUNED} --output_file=TUNED/task.json", "--output_file=.*task.json"),
    (f"{TUNED} --output_file=TUNED/model.ckpt-3.index", "--output_file=.*ckpt"),
    (f"{TUNED} --output_file=TUNED/checkpoint", "--output_file=.*checkpoint"),
    (f"{TUNED} --output_file=answers/", "--output_file=answers/"),
    ("--model=PRE", "pretrained must be .*--fill_mask .* run_classifier.py"),
    ("--model=HF", "--model=HF must .* BertForMaskedLM. .*--score"),
    ("--model_dir=LTR --fill_mask", r"config\.json: .* left-to-right model"),
    (f"{TUNED} --batch_size=0", "--batch_size=0"),
    (f"{TUNED} --chunk_size=0", "--chunk_size=0"),
    (f"{TUNED} --top_k=0", "--top_k=0"),
    (f"{TUNED} --input_format=xml", "--input_format=xml"),
    (f"{TUNED} --input_format=csv", "--input_format=csv needs --input_file"),
    ("--model_dir=TAGS --input_format=conll", "=conll needs --input_file"),
    (f"{TUNED} --input_file=a.conll", "--input_file=a.conll .* tags words"),
    (
        f"{TUNED} --input_file=a.txt --input_format=conll",
        "--input_format=conll .* tags words",
    ),
    (f"{SCORE} --input_file=a.conll", "--input_file=a.conll"),
    (f"{TUNED} --text_b_column=b", "--text_b_column=b needs --text_a_column"),
    (f"{SCORE} --text_a_column=a --input_file=a.tsv", "--text_a_column=a"),
    (f"{SCORE} --input_file=a.csv", "--input_file=a.csv"),
    (f"{TUNED} --input_format=tsv --text_a_column=a", "--text_a_column=a"),
    (f"{TUNED} --input_file=a.txt --nohas_header", "--nohas_header"),
    (f"{TUNED} --input_file=a.csv", "=a.csv needs --text_a_column"),
    (f"{TUNED} --input_file=a.tsv --has_header", "--has_header needs --text_a"),
    (
        "--model_dir=TAGS --input_file=a.tsv --text_a_column=a",
        "--text_a_column=a .*'tagging'",
    ),
]


@pytest.mark.parametrize(("command_line", "message"), WRONG)
def test_invalid_flags_are_an_error(
    command_line, message, models, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    for name in ("a.txt", "a.tsv", "a.csv", "a.conll"):
        (tmp_path / name).touch()
    (tmp_path / "TAGS").mkdir()
    for name in ("task.json", "vocab.txt", "bert_config.json"):
        (tmp_path / "TAGS" / name).write_text('{"kind": "tagging"}')
    (tmp_path / "LTR").mkdir()
    for name in ("vocab.txt", "bert_config.json"):
        (tmp_path / "LTR" / name).write_text(LEFT_TO_RIGHT)
    (tmp_path / "HF").mkdir()
    config = '{"architectures": ["BertForMaskedLM"], "model_type": "bert"}'
    (tmp_path / "HF" / "config.json").write_text(config)
    (tmp_path / "HF" / "vocab.txt").write_text("a")
    (tmp_path / "HF" / "model.safetensors").touch()
    (tmp_path / CASED).mkdir()
    (tmp_path / CASED / "bert_model.ckpt.index").touch()
    for word, name in (("PRE", "pretrained"), ("TUNED", "tuned")):
        command_line = command_line.replace(word, str(models / name))
    with pytest.raises(InputError, match=message):
        command_lines.parse(Predict, command_line)


@pytest.mark.parametrize(
    ("stream", "flag"), [("stdin", "--input_file"), ("stdout", "--output_file")]
)
def test_closed_standard_stream_is_an_error(models, monkeypatch, stream, flag):
    monkeypatch.setattr(sys, stream, None)
    with pytest.raises(InputError, match=f"{flag} must be given"):
        Predict(model_dir=str(models / "tuned"))
