"""Pre-trains a small BERT, fine-tunes it and asks it, in minutes.

  python demo.py

All its text is the English that Python ships. It runs the commands that real
work takes, one after the other, shows each as you would type it, and reports
what was learned: to fill in blanks, and then whether a summary belongs to a
function, as against a model that was not pre-trained. Whatever an earlier run
finished is used again; remove the output folder to start anew.
"""

import os
import shlex
import shutil
import signal
import subprocess
import sys
from typing import NamedTuple

from official_bert import cli, files, signals
from official_bert.errors import InputError
from official_bert.options import Demo
from official_bert.options.demo import FINETUNED, PREDICTIONS

ROOT = os.path.dirname(os.path.abspath(__file__))

SENTENCES = (
    "This function returns [MASK] if the file does not exist.",
    "The [MASK] of the list are evaluated from left to right.",
    "If the key is not found, a KeyError is [MASK].",
    "Return the [MASK] of bytes that were read.",
    "An instance of a class is created by calling the [MASK] object.",
)
PAIRS = (
    ("Shelf.add_book(book)", "Put another book on the shelf."),
    ("Shelf.add_book(book)", "Return the day of the week."),
    ("read_file(path, encoding)", "Open a file and return its text."),
    ("read_file(path, encoding)", "Wait until the thread has ended."),
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
    write_questions(options.output_dir)
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
    # TensorFlow takes seconds to import; errors in flags should not.
    from official_bert.inference import demo_report

    print(demo_report.write(options))


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


def write_questions(folder: str) -> None:
    """Writes what the models are asked in the end."""
    # Under the names of the columns, as in what the model was trained on.
    pairs = ["\t".join(pair) for pair in [("signature", "summary"), *PAIRS]]
    for name, lines in (("blanks.txt", SENTENCES), ("pairs.tsv", pairs)):
        files.write_text(f"{folder}/{name}", "\n".join(lines) + "\n")


def run(step: Step) -> None:
    """Shows a command and runs it; ends the demo if it does not succeed."""
    shown = " \\\n    ".join(shlex.quote(word) for word in step.command)
    print(f"\n# {step.title}\npython {shown}", flush=True)
    script, *flags = step.command
    command = [sys.executable, os.path.join(ROOT, script), *flags]
    status = wait_for(subprocess.Popen(command))
    if status:
        sys.exit(status if status > 0 else 128 - status)  # As shells say it.
    if not files.exists(step.result):
        sys.exit("Stopped on the way. Run the demo again to go on from there.")


def wait_for(process: subprocess.Popen[bytes]) -> int:
    """Returns the status of a command, or of the signal that stopped it.

    It may save what it has before it ends, and then call that a success.
    """
    stopped_by = []

    def stop(number: int, frame: object) -> None:
        stopped_by.append(number)
        process.send_signal(number)

    with signals.temporary_handler(stop, signal.SIGTERM):
        try:
            status = process.wait()
        except KeyboardInterrupt:  # A terminal's Ctrl-C goes to both.
            process.wait()
            raise
    return -stopped_by[0] if stopped_by else status


def steps(options: Demo) -> list[Step]:
    """Returns all commands, in their order."""
    return [
        *data_steps(options),
        *pretraining_steps(options),
        *finetuning_steps(options),
    ]


def data_steps(options: Demo) -> list[Step]:
    """Returns the commands from Python's source to a vocabulary and records."""
    folder = options.output_dir
    return [
        Step(
            "Gather Python's English",
            f"{folder}/text/held_out.txt",
            ["data/python_english.py", f"--output_dir={folder}/text"],
        ),
        Step(
            "Learn a vocabulary",
            f"{folder}/bert_config.json",
            [
                "build_vocab.py",
                f"--input_file={folder}/text/train.txt",
                f"--vocab_size={options.vocab_size}",
                f"--hidden_size={options.hidden_size}",
                f"--num_hidden_layers={options.num_hidden_layers}",
                f"--num_attention_heads={options.num_attention_heads}",
                f"--vocab_file={folder}/vocab.txt",
                f"--bert_config_file={folder}/bert_config.json",
            ],
        ),
        masking(options, "train", options.dupe_factor),
        masking(options, "held_out", 2),
    ]


def masking(options: Demo, name: str, dupe_factor: int) -> Step:
    """Returns the command that makes records of a text."""
    folder = options.output_dir
    return Step(
        f"Mask the text: {name}",
        f"{folder}/{name}.tfrecord",
        [
            "create_pretraining_data.py",
            f"--input_file={folder}/text/{name}.txt",
            f"--output_file={folder}/{name}.tfrecord",
            f"--dupe_factor={dupe_factor}",
            f"--vocab_file={folder}/vocab.txt",
            *lengths(options),
        ],
    )


def lengths(options: Demo) -> list[str]:
    """Returns the flags that records and their model have in common."""
    return [
        f"--max_seq_length={options.max_seq_length}",
        f"--max_predictions_per_seq={options.max_predictions_per_seq}",
    ]


def pretraining_steps(options: Demo) -> list[Step]:
    """Returns the commands from records to a model and its guesses."""
    folder = options.output_dir
    return [
        Step(
            "Pre-train",
            f"{pretrained(options)}.index",
            [
                "run_pretraining.py",
                "--do_train",
                f"--input_file={folder}/train.tfrecord",
                f"--output_dir={folder}/model",
                f"--train_batch_size={options.train_batch_size}",
                f"--learning_rate={options.learning_rate}",
                f"--num_train_steps={options.num_train_steps}",
                f"--num_warmup_steps={options.num_train_steps // 10}",
                f"--save_checkpoints_steps={-(-options.num_train_steps // 4)}",
                # The first is yet needed, however often this is stopped.
                "--keep_checkpoint_max=1000",
                f"--bert_config_file={folder}/bert_config.json",
                f"--vocab_file={folder}/vocab.txt",
                *lengths(options),
            ],
        ),
        evaluation(
            options,
            "Evaluate the model before training, on held-out documents",
            "untrained",
            f"--init_checkpoint={folder}/model/model.ckpt-0",
        ),
        evaluation(options, "Evaluate it after training, on the same", "model"),
        predicting(folder, "model", "blanks.txt", "--fill_mask"),
    ]


def evaluation(options: Demo, title: str, output: str, *more: str) -> Step:
    """Returns the command that measures a model on held-out documents."""
    folder = options.output_dir
    return Step(
        title,
        f"{folder}/{output}/eval_results.txt",
        [
            "run_pretraining.py",
            "--do_eval",
            f"--input_file={folder}/held_out.tfrecord",
            f"--output_dir={folder}/{output}",
            f"--bert_config_file={folder}/bert_config.json",
            *lengths(options),
            *more,
        ],
    )


def finetuning_steps(options: Demo) -> list[Step]:
    """Returns the commands from labelled pairs to answers about new ones."""
    folder = options.output_dir
    data = f"{folder}/signatures"
    with_it, without_it = FINETUNED.values()
    return [
        Step(
            "Pair Python's functions with summaries",
            f"{data}/test.tsv",
            ["data/python_signatures.py", f"--output_dir={data}"],
        ),
        finetuning(
            options,
            "Fine-tune the pre-trained model: does the summary belong?",
            with_it,
            f"--init_checkpoint={pretrained(options)}",
        ),
        finetuning(options, "The same from random weights", without_it),
        predicting(folder, with_it, "pairs.tsv"),
    ]


def finetuning(options: Demo, title: str, output: str, *more: str) -> Step:
    """Returns the command that learns which summaries belong, and is tested."""
    folder = options.output_dir
    return Step(
        title,
        f"{folder}/{output}/{PREDICTIONS}",
        [
            "run_classifier.py",
            "--do_train",
            "--do_eval",
            "--do_predict",
            "--task_name=tsv",
            f"--data_dir={folder}/signatures",
            "--text_a_column=signature",
            "--text_b_column=summary",
            "--label_column=label",
            f"--vocab_file={folder}/vocab.txt",
            f"--bert_config_file={folder}/bert_config.json",
            f"--max_seq_length={options.max_seq_length}",
            "--pad_to=bucket",
            f"--train_batch_size={options.train_batch_size}",
            f"--learning_rate={options.finetuning_learning_rate}",
            f"--num_train_epochs={options.num_train_epochs}",
            f"--output_dir={folder}/{output}",
            *more,
        ],
    )


def predicting(folder: str, model: str, questions: str, *more: str) -> Step:
    """Returns the command that asks a model; see `write_questions`."""
    answers = f"{folder}/{model}_answers.jsonl"
    return Step(
        f"Ask the model about {questions}",
        answers,
        [
            "predict.py",
            f"--model_dir={folder}/{model}",
            f"--input_file={folder}/{questions}",
            f"--output_file={answers}",
            *more,
        ],
    )


def pretrained(options: Demo) -> str:
    """Returns the name of the checkpoint that pre-training ends with."""
    return f"{options.output_dir}/model/model.ckpt-{options.num_train_steps}"


if __name__ == "__main__":
    cli.run(main, Demo)
