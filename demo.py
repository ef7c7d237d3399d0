"""Pre-trains a small BERT in minutes, on the English that Python ships.

  python demo.py

It runs the commands that a real pre-training takes, one after the other, shows
each as you would type it, and reports what the model learned. Whatever an
earlier run finished is used again; remove the output folder to start anew.
"""

import os
import shlex
import shutil
import subprocess
import sys
from typing import NamedTuple

from official_bert import cli, files
from official_bert.errors import InputError
from official_bert.options import Demo

ROOT = os.path.dirname(os.path.abspath(__file__))

SENTENCES = (
    "This function returns [MASK] if the file does not exist.",
    "The [MASK] of the list are evaluated from left to right.",
    "If the key is not found, a KeyError is [MASK].",
    "Return the [MASK] of bytes that were read.",
    "An instance of a class is created by calling the [MASK] object.",
)


class Step(NamedTuple):
    """A command, and the file that is there once it has succeeded."""

    title: str
    result: str
    command: list[str]


def main(options: Demo) -> None:
    """Runs every step that is not done yet, then reports."""
    files.make_directory(options.output_dir)
    keep_options(options)
    outdated = False
    for step in steps(options):
        if not outdated and files.exists(step.result):
            print(f"# {step.title}: done before, see {step.result}")
            continue
        if outdated and "--do_train" in step.command:
            # Going on with a model of older records would spoil it.
            shutil.rmtree(os.path.dirname(step.result), ignore_errors=True)
        run(step)
        # What follows was made from older files, if it was made at all.
        outdated = True
    report(options)


def keep_options(options: Demo) -> None:
    """Makes sure that a folder holds what one and the same options made."""
    path = os.path.join(options.output_dir, "demo_options.json")
    told = options.to_json("demo.py")
    if files.exists(path) and files.read_text(path) != told:
        raise InputError(
            f"{path}: must be the options of this run, whose results lie "
            "beside it. Received: others. Name another --output_dir, or remove "
            "this one."
        )
    files.write_text(path, told)


def run(step: Step) -> None:
    """Shows a command and runs it; ends the demo if it fails."""
    shown = " \\\n    ".join(shlex.quote(word) for word in step.command)
    print(f"\n# {step.title}\npython {shown}", flush=True)
    script, *flags = step.command
    command = [sys.executable, os.path.join(ROOT, script), *flags]
    status = subprocess.run(command, check=False).returncode
    if status:
        sys.exit(status)


def steps(options: Demo) -> list[Step]:
    """Returns the commands of a pre-training, in their order."""
    folder = options.output_dir
    text = f"{folder}/text"
    vocab = f"--vocab_file={folder}/vocab.txt"
    config = f"--bert_config_file={folder}/bert_config.json"
    lengths = [
        f"--max_seq_length={options.max_seq_length}",
        f"--max_predictions_per_seq={options.max_predictions_per_seq}",
    ]
    trained = f"model.ckpt-{options.num_train_steps}"

    def records(name: str, dupe_factor: int) -> Step:
        return Step(
            f"Mask the text: {name}",
            f"{folder}/{name}.tfrecord",
            [
                "create_pretraining_data.py",
                f"--input_file={text}/{name}.txt",
                f"--output_file={folder}/{name}.tfrecord",
                f"--dupe_factor={dupe_factor}",
                vocab,
                *lengths,
            ],
        )

    def evaluation(title: str, output: str, *more: str) -> Step:
        return Step(
            title,
            f"{folder}/{output}/eval_results.txt",
            [
                "run_pretraining.py",
                "--do_eval",
                f"--input_file={folder}/held_out.tfrecord",
                f"--output_dir={folder}/{output}",
                config,
                *lengths,
                *more,
            ],
        )

    return [
        Step(
            "Gather Python's English",
            f"{text}/held_out.txt",
            ["data/python_english.py", f"--output_dir={text}"],
        ),
        Step(
            "Learn a vocabulary",
            f"{folder}/bert_config.json",
            [
                "build_vocab.py",
                f"--input_file={text}/train.txt",
                f"--vocab_size={options.vocab_size}",
                f"--hidden_size={options.hidden_size}",
                f"--num_hidden_layers={options.num_hidden_layers}",
                f"--num_attention_heads={options.num_attention_heads}",
                vocab,
                config,
            ],
        ),
        records("train", options.dupe_factor),
        records("held_out", 2),
        Step(
            "Pre-train",
            f"{folder}/model/{trained}.index",
            [
                "run_pretraining.py",
                "--do_train",
                f"--input_file={folder}/train.tfrecord",
                f"--output_dir={folder}/model",
                f"--train_batch_size={options.train_batch_size}",
                f"--learning_rate={options.learning_rate}",
                f"--num_train_steps={options.num_train_steps}",
                f"--num_warmup_steps={options.num_train_steps // 10}",
                # Five checkpoints are kept, and the first is yet needed.
                f"--save_checkpoints_steps={-(-options.num_train_steps // 4)}",
                config,
                vocab,
                *lengths,
            ],
        ),
        evaluation(
            "Evaluate the model before training, on held-out documents",
            "untrained",
            f"--init_checkpoint={folder}/model/model.ckpt-0",
        ),
        evaluation("Evaluate it after training, on the same", "model"),
    ]


def report(options: Demo) -> None:
    """Prints what was learned, and keeps it in `report.txt`."""
    # TensorFlow takes seconds to import; errors in flags should not.
    from official_bert.inference import baselines, masked_lm
    from official_bert.inputs.records import RecordFiles, pretraining_schema

    folder = options.output_dir
    schema = pretraining_schema(
        options.max_seq_length, options.max_predictions_per_seq
    )
    train, held_out = (
        RecordFiles([f"{folder}/{name}.tfrecord"], schema)
        for name in ("train", "held_out")
    )
    word = baselines.always_the_same(
        train, held_out, "masked_lm_ids", "masked_lm_weights"
    )
    pair = baselines.always_the_same(train, held_out, "next_sentence_labels")
    model, tokenizer = masked_lm.load(f"{folder}/model", do_lower_case=True)
    (piece,) = tokenizer.convert_ids_to_tokens([word.answer])
    names = ("IsNext", "NotNext")
    trained, untrained = (
        read_results(f"{folder}/{name}/eval_results.txt")
        for name in ("model", "untrained")
    )
    lines = [
        "",
        "Accuracy on held-out documents   masked LM   next sentence",
        _row("this model", trained),
        _row("before training", untrained),
        f"  always {piece!r}, {names[pair.answer]}".ljust(33)
        + f"{word.accuracy:9.1%}{pair.accuracy:16.1%}",
        "",
    ]
    for sentence in SENTENCES:
        (guesses,) = masked_lm.fill(model, tokenizer, sentence)
        lines += [
            sentence,
            "    "
            + "  ".join(f"{g.piece} {g.probability:.0%}" for g in guesses),
        ]
    text = "\n".join(lines) + "\n"
    print(text)
    files.write_text(f"{folder}/report.txt", text)


def read_results(path: str) -> dict[str, float]:
    """Reads an `eval_results.txt`."""
    lines = files.read_text(path).splitlines()
    return {
        key: float(value)
        for key, value in (line.split(" = ") for line in lines)
    }


def _row(name: str, results: dict[str, float]) -> str:
    return (
        f"  {name}".ljust(33) + f"{results['masked_lm_accuracy']:9.1%}"
        f"{results['next_sentence_accuracy']:16.1%}"
    )


if __name__ == "__main__":
    cli.run(main, Demo)
