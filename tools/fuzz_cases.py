"""The valid inputs that `tools.fuzz` damages, and their commands.

`write_inputs` fills a directory; every command in `CASES` succeeds in it.
"""

import gzip
import importlib
import itertools
import json
import os
import shutil
from collections.abc import Callable
from typing import Any, NamedTuple

from absl import flags

from official_bert.commands import COMMANDS
from official_bert.options import cli
from tools import fault_drill


class Case(NamedTuple):
    """A command that reads a file.

    Attributes:
        reader: The row of the table.
        file: The file to damage, or the prefix of a checkpoint.
        file_format: See `fuzz_mutations.damaged`; "" to add odd flags instead.
        command: The command line.
    """

    reader: str
    file: str
    file_format: str
    command: str


def main_of(command: str) -> tuple[Callable[[Any], None], Any]:
    """Returns `main` of a command line, and the class of its options."""
    name = command.split()[0]
    module = importlib.import_module(f"official_bert.commands.{name}")
    return module.main, COMMANDS[name]


def run(command: str, more_flags: tuple[str, ...] = ()) -> None:
    """Calls `main` with the options of a command line, in this process."""
    main, options_class = main_of(command)
    values = flags.FlagValues()
    cli.define_flags(options_class, values)
    values([*command.split(), *more_flags])
    main(cli.options_from_flags(options_class, values))


_MODEL = "--bert_config_file=bert_config.json --vocab_file=vocab.txt"
_LENGTH = "--max_seq_length=32"
_TRAIN = f"--do_train {_MODEL} {_LENGTH} --num_train_epochs=1"
_PRETRAIN = (
    f"run_pretraining {_MODEL} {_LENGTH} --max_predictions_per_seq=5 "
    "--train_batch_size=8 --output_dir=pretrained --num_warmup_steps=0"
)
_INSTANCES = (
    "create_pretraining_data --vocab_file=vocab.txt --max_seq_length=16 "
    "--max_predictions_per_seq=3 --dupe_factor=1 --output_file=old.tfrecord"
)
_CREATE = f"{_INSTANCES} --input_file=text.txt"
_CLASSIFIER = f"run_classifier {_TRAIN} --train_batch_size=8"
_COLA = f"{_CLASSIFIER} --task_name=CoLA --data_dir=. --output_dir=tuned"
_NER = f"{_CLASSIFIER} --task_name=ner --data_dir=ner --output_dir=tagger"
_OWN = f"{_CLASSIFIER} --output_dir=own --dev_file=data.jsonl"
_CHOICES = f"{_CLASSIFIER} --task_name=choices --data_dir=. --output_dir=chosen"
_SQUAD = (
    f"run_squad {_TRAIN} --train_file=squad.json --output_dir=answers "
    "--max_query_length=8 --doc_stride=8 --train_batch_size=8"
)
_FEATURES = (
    "extract_features --layers=-1 --output_file=old.jsonl "
    f"--input_file=lines.txt {_LENGTH}"
)
_CHECKPOINT = "pretrained/model.ckpt-1"
_EXTRACT = f"{_FEATURES} {_MODEL} --init_checkpoint={_CHECKPOINT}"
_PREDICT = "predict --output_file=old.jsonl --model_dir"
_CONVERT = "convert_checkpoint --overwrite --output=converted"

# In the order in which they can first be run.
_SETUP = [
    _CREATE,
    f"{_CREATE} --masking=dynamic --output_file=unmasked.tfrecord",
    "build_vocab --input_file=text.txt --vocab_file=old_vocab.txt",
    f"{_PRETRAIN} --input_file=a.tfrecord --do_train --num_train_steps=1",
    f"{_PRETRAIN} --input_file=a.tfrecord --do_eval --max_eval_steps=1",
    *(_COLA, _NER, _CHOICES, _SQUAD, f"{_OWN} --train_file=data.csv"),
    f"{_CONVERT} --to=huggingface --input=pretrained --output=hf",
    f"{_CONVERT} --to=huggingface --input=tuned --output=hf_tuned",
    f"{_CONVERT} --to=keras_hub --input=pretrained --output=preset "
    "--skip=^cls/seq_relationship/",
    f"{_CONVERT} --to=tf1 --input=hf",
    _EXTRACT,
]


def _glue(task: str, file: str, *more_flags: str) -> Case:
    folder = os.path.dirname(file) or "."
    flags = f"--task_name={task} --data_dir={folder} --output_dir=tuned"
    flags = " ".join([flags, "--overwrite_output_dir", *more_flags])
    return Case("GLUE files", file, "tsv", f"{_CLASSIFIER} {flags}")


def _own(file: str, file_format: str, *more_flags: str) -> Case:
    flags = f"--train_file={file} --overwrite_output_dir"
    command = " ".join([_OWN, flags, *more_flags])
    return Case("tables", file, file_format, command)


def _lines(file: str, file_format: str, model: str, *more_flags: str) -> Case:
    command = " ".join([f"{_PREDICT}={model} --input_file={file}", *more_flags])
    return Case("prediction lines", file, file_format, command)


def _task(directory: str, file: str) -> Case:
    command = f"{_PREDICT}={directory} --input_file={file}"
    return Case("task.json", f"{directory}/task.json", "json", command)


def _hugging_face(file: str, file_format: str, directory: str = "hf") -> Case:
    command = f"{_CONVERT} --to=tf1 --input={directory}"
    return Case("Hugging Face", f"{directory}/{file}", file_format, command)


def _keras_hub(file: str, file_format: str) -> Case:
    command = f"{_CONVERT} --to=tf1 --input=preset"
    return Case("KerasHub", f"preset/{file}", file_format, command)


def _corpus(file: str, file_format: str, command: str) -> Case:
    return Case("corpora", file, file_format, f"{command} --input_file={file}")


_OVERWRITE = "--overwrite_output_dir"
_RECORDS = f"{_PRETRAIN} --input_file=a.tfrecord"
_DO_TRAIN = f"{_RECORDS} --do_train --num_train_steps=2"
_DO_EVAL = f"{_RECORDS} --do_eval --max_eval_steps=1"
_UNMASKED = (
    "--input_file=unmasked.tfrecord --max_seq_length=16 "
    "--max_predictions_per_seq=3"
)
_EVALUATE = "--do_eval --do_train=false"

CASES = [
    _corpus("text.txt", "lines", _INSTANCES),
    _corpus("text.txt", "lines", f"{_INSTANCES} --split_sentences"),
    _corpus("text.txt", "lines", f"{_INSTANCES} --do_whole_word_mask"),
    _corpus("text.txt.gz", "bytes", _INSTANCES),
    _corpus("text.txt", "lines", "build_vocab --vocab_file=old_vocab.txt"),
    Case("vocabularies", "vocab.txt", "lines", _CREATE),
    Case("vocabularies", "vocab.txt", "lines", f"{_COLA} {_OVERWRITE}"),
    Case(
        "bert_config.json",
        "bert_config.json",
        "json",
        f"{_DO_TRAIN} {_OVERWRITE}",
    ),
    Case("bert_config.json", "bert_config.json", "json", _EXTRACT),
    Case("TFRecords", "a.tfrecord", "records", f"{_DO_TRAIN} {_OVERWRITE}"),
    Case("TFRecords", "a.tfrecord", "records", _DO_EVAL),
    Case(
        "TFRecords",
        "unmasked.tfrecord",
        "records",
        f"{_DO_TRAIN} {_OVERWRITE} {_UNMASKED}",
    ),
    Case(
        "TFRecords", "unmasked.tfrecord", "records", f"{_DO_EVAL} {_UNMASKED}"
    ),
    _glue("CoLA", "train.tsv"),
    _glue("MRPC", "mrpc/train.tsv"),
    _glue("STS-B", "stsb/train.tsv"),
    Case("GLUE files", "dev.tsv", "tsv", f"{_COLA} {_EVALUATE}"),
    _own("data.csv", "csv"),
    _own("data.tsv", "tsv"),
    _own("data.jsonl", "jsonl"),
    _own("data.csv", "csv", "--text_column=text", "--label_column=label"),
    Case("CoNLL files", "ner/train.txt", "lines", f"{_NER} {_OVERWRITE}"),
    Case(
        "CoNLL files",
        "ner/train.txt",
        "tsv",
        f"{_NER} --document_context {_OVERWRITE}",
    ),
    Case("SQuAD files", "squad.json", "json", f"{_SQUAD} {_OVERWRITE}"),
    Case(
        "SQuAD files",
        "squad.json",
        "json",
        f"{_SQUAD} --do_train=false --do_predict --predict_file=squad.json",
    ),
    Case("multiple choice", "train.jsonl", "jsonl", f"{_CHOICES} {_OVERWRITE}"),
    Case(
        "multiple choice",
        "swag/train.csv",
        "csv",
        f"{_CHOICES} {_OVERWRITE} --task_name=swag --data_dir=swag",
    ),
    Case("TF1 checkpoints", _CHECKPOINT, "checkpoint", _EXTRACT),
    Case("TF1 checkpoints", _CHECKPOINT, "checkpoint", _DO_TRAIN),
    Case(
        "TF1 checkpoints",
        _CHECKPOINT,
        "checkpoint",
        f"{_CONVERT} --to=huggingface --input={_CHECKPOINT}",
    ),
    Case("TF1 checkpoints", "pretrained/checkpoint", "lines", _DO_EVAL),
    _hugging_face("config.json", "json"),
    _hugging_face("model.safetensors", "safetensors"),
    _hugging_face("tokenizer_config.json", "json"),
    _hugging_face("vocab.txt", "lines"),
    _hugging_face("tokenizer.json", "json", "hf_fast"),
    _hugging_face("config.json", "json", "hf_tuned"),
    _hugging_face("model.safetensors", "safetensors", "hf_tuned"),
    _keras_hub("config.json", "json"),
    _keras_hub("tokenizer.json", "json"),
    _keras_hub("model.weights.h5", "bytes"),
    *(
        Case("KerasHub", file, "json", f"{_FEATURES} --model=preset")
        for file in ("preset/config.json", "preset/tokenizer.json")
    ),
    _task("tuned", "lines.txt"),
    _task("tagger", "lines.txt"),
    _task("answers", "questions.jsonl"),
    _task("chosen", "choices.jsonl"),
    Case("task.json", "tuned/task.json", "json", f"{_COLA} {_EVALUATE}"),
    Case(
        "train_options.json",
        "tuned/train_options.json",
        "json",
        "run_classifier --do_eval --data_dir=. --task_name=CoLA "
        "--output_dir=tuned",
    ),
    Case(
        "train_options.json", "pretrained/train_options.json", "json", _DO_TRAIN
    ),
    Case("resume.json", f"{_CHECKPOINT}.resume.json", "json", _DO_TRAIN),
    _lines("lines.txt", "lines", "tuned"),
    _lines("lines.txt", "lines", "tagger"),
    _lines("blanks.txt", "lines", "pretrained", "--fill_mask"),
    _lines("lines.txt", "lines", "pretrained", "--score"),
    _lines("lines.tsv", "tsv", "tuned"),
    _lines("data.csv", "csv", "own"),
    _lines("data.jsonl", "jsonl", "own"),
    _lines("questions.jsonl", "jsonl", "answers"),
    _lines("choices.jsonl", "jsonl", "chosen"),
    _lines("ner/train.txt", "tsv", "tagger", "--input_format=conll"),
    Case("prediction lines", "lines.txt", "lines", _EXTRACT),
    *(
        Case("flags", "", "", command)
        for command in (
            _CREATE,
            "build_vocab --vocab_file=old_vocab.txt --input_file=text.txt",
            *(_DO_TRAIN, _DO_EVAL, _COLA, f"{_COLA} {_EVALUATE}", _SQUAD),
            *(f"{_OWN} --train_file=data.csv", _EXTRACT),
            f"{_PREDICT}=tuned --input_file=lines.txt",
            f"{_CONVERT} --to=tf1 --input=hf",
        )
    ),
]


def write_inputs() -> None:
    """Writes all inputs to the current directory; trains and converts."""
    fault_drill.write_inputs(".")
    with open("bert_config.json") as file:
        config = json.load(file)
    config |= {
        "hidden_size": 8,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 8,
    }
    words = fault_drill.WORDS
    sentences = [" ".join(words[n : n + 5]) for n in range(0, 50, 5)]
    text = "\n".join([*sentences[:4], "", *sentences[4:7], "", *sentences[7:]])
    pairs = [*itertools.pairwise(sentences)]
    data = [{"text": s, "label": "yn"[n % 2]} for n, s in enumerate(sentences)]
    chosen = [
        {"context": a, "choices": [b, a], "label": n % 2}
        for n, (a, b) in enumerate(pairs)
    ]
    tagged = "\n\n".join(
        "\n".join(f"{word}\t{'OB'[n % 2]}" for n, word in enumerate(s.split()))
        for s in sentences
    ).replace("\tB", "\tB-x")
    swag = "sent1,sent2,ending0,ending1,ending2,ending3,label\n"
    question = {"context": sentences[0], "question": sentences[1]}
    texts = {
        "bert_config.json": json.dumps(config),
        "text.txt": text + "\n",
        "data.csv": "text,label\n" + _rows(data, ","),
        "data.tsv": "text\tlabel\n" + _rows(data, "\t"),
        "data.jsonl": _json_lines(data),
        "train.jsonl": _json_lines(chosen),
        "choices.jsonl": _json_lines(chosen),
        "questions.jsonl": _json_lines([question, [*question.values()]]),
        "ner/train.txt": tagged + "\n",
        "swag/train.csv": swag
        + "".join(f"{a},b,{b},c,d,e,0\n" for a, b in pairs),
        "mrpc/train.tsv": "header\n"
        + "".join(
            f"{n % 2}\t1\t2\t{a}\t{b}\n" for n, (a, b) in enumerate(pairs)
        ),
        "stsb/train.tsv": "header\n"
        + "".join(
            f"{n}{7 * chr(9)}{a}\t{b}\t2.5\n" for n, (a, b) in enumerate(pairs)
        ),
        "lines.txt": "\n".join(sentences[:3]) + "\n",
        "blanks.txt": "a [MASK] b\n[MASK][MASK]\n",
        "lines.tsv": "\n".join(sentences[:3]) + "\n",
    }
    for name, content in texts.items():
        os.makedirs(os.path.dirname(name) or ".", exist_ok=True)
        with open(name, "w", encoding="utf-8") as file:
            file.write(content)
    with gzip.open("text.txt.gz", "wt") as file:
        file.write(text)
    for command in _SETUP:
        run(command)
    _write_fast_tokenizer()


def _write_fast_tokenizer() -> None:
    """Writes `hf_fast`, a model whose vocabulary is in `tokenizer.json`."""
    shutil.copytree("hf", "hf_fast")
    os.remove("hf_fast/vocab.txt")
    with open("hf/vocab.txt", encoding="utf-8") as file:
        vocab = {line.strip(): n for n, line in enumerate(file)}
    content = {
        "added_tokens": [{"id": 0, "content": "[PAD]", "special": True}],
        "normalizer": {"lowercase": True, "strip_accents": None},
        "model": {"type": "WordPiece", "vocab": vocab},
    }
    with open("hf_fast/tokenizer.json", "w", encoding="utf-8") as file:
        json.dump(content, file)


def _rows(data: list[dict[str, Any]], separator: str) -> str:
    return "".join(separator.join(row.values()) + "\n" for row in data)


def _json_lines(data: list[Any]) -> str:
    return "".join(json.dumps(value) + "\n" for value in data)
