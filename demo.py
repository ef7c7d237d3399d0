"""Pre-trains a small BERT, fine-tunes it and predicts with it, in minutes.

  python demo.py

The text is the English in Python's own documentation. The demo runs the
commands of a real project one after the other, and prints each as you would
type it. Its report compares the model with baselines on masked LM, and on
whether a summary belongs to a function. Finished steps of an earlier run are
skipped; to start again, remove the output directory.
"""

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
from typing import NamedTuple

from official_bert import cli, files, json_files, signals
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
    """A command, and a file that exists if it has succeeded."""

    title: str
    result: str
    command: list[str]


def main(options: Demo) -> None:
    """Runs all unfinished steps, then writes and prints the report."""
    files.make_directory(options.output_dir)
    check_options(options)
    write_examples(options.output_dir)
    outdated = False
    for step in steps(options):
        if not outdated and files.exists(step.result):
            print(f"# {step.title}: already done, see {step.result}")
            continue
        if outdated and "--do_train" in step.command:
            # Training must not resume from a model of the old records.
            shutil.rmtree(os.path.dirname(step.result), ignore_errors=True)
        run(step)
        # Results of later steps, if any, are from old inputs.
        outdated = True
    # Imported here: TensorFlow takes seconds, errors in flags should not.
    with cli.quiet_imports():
        from official_bert.inference import demo_report

    print(demo_report.write(options))


def check_options(options: Demo) -> None:
    """Raises `InputError` if the directory has results of other options."""
    path = os.path.join(options.output_dir, "demo_options.json")
    text = options.to_json("demo.py")
    if files.exists(path) and json_files.read(path) != json.loads(text):
        raise InputError(
            f"{path} differs from the options of this run. Use another "
            "--output_dir, or remove this one."
        )
    files.write_text(path, text)


def write_examples(directory: str) -> None:
    """Writes the examples that the models predict at the end."""
    # With the columns of the training data.
    pairs = ["\t".join(pair) for pair in [("signature", "summary"), *PAIRS]]
    for name, lines in (("blanks.txt", SENTENCES), ("pairs.tsv", pairs)):
        files.write_text(f"{directory}/{name}", "\n".join(lines) + "\n")


def run(step: Step) -> None:
    """Prints and runs a command; ends the demo if it does not succeed."""
    shown = " \\\n    ".join(shlex.quote(word) for word in step.command)
    print(f"\n# {step.title}\npython {shown}", flush=True)
    script, *flags = step.command
    command = [sys.executable, os.path.join(ROOT, script), *flags]
    status = wait_for(subprocess.Popen(command))
    if status:
        sys.exit(status if status > 0 else 128 - status)  # As a shell does.
    if not files.exists(step.result):
        sys.exit("The command was stopped. Run the demo again to resume.")


def wait_for(process: subprocess.Popen[bytes]) -> int:
    """Returns the exit status of a command, or -N if signal N stopped it.

    A command that saves its state and exits with 0 on a signal was stopped too.
    """
    stopped_by = []

    def stop(number: int, frame: object) -> None:
        stopped_by.append(number)
        process.send_signal(number)

    with signals.temporary_handler(stop, signal.SIGTERM):
        try:
            status = process.wait()
        except KeyboardInterrupt:  # The terminal sends Ctrl-C to both.
            process.wait()
            raise
    return -stopped_by[0] if stopped_by else status


def steps(options: Demo) -> list[Step]:
    """Returns all steps in order."""
    return [
        *data_steps(options),
        *pretraining_steps(options),
        *finetuning_steps(options),
    ]


def data_steps(options: Demo) -> list[Step]:
    """Returns the steps from Python's source to a vocabulary and records."""
    directory = options.output_dir
    return [
        Step(
            "Extract the English text from Python's source code",
            f"{directory}/text/held_out.txt",
            ["data/python_english.py", f"--output_dir={directory}/text"],
        ),
        Step(
            "Learn a vocabulary",
            f"{directory}/bert_config.json",
            [
                "build_vocab.py",
                f"--input_file={directory}/text/train.txt",
                f"--vocab_size={options.vocab_size}",
                f"--hidden_size={options.hidden_size}",
                f"--num_hidden_layers={options.num_hidden_layers}",
                f"--num_attention_heads={options.num_attention_heads}",
                f"--vocab_file={directory}/vocab.txt",
                f"--bert_config_file={directory}/bert_config.json",
            ],
        ),
        masking(options, "train", options.dupe_factor),
        masking(options, "held_out", 2),
    ]


def masking(options: Demo, name: str, dupe_factor: int) -> Step:
    """Returns the step that creates the records of a text."""
    directory = options.output_dir
    return Step(
        f"Create masked instances: {name}",
        f"{directory}/{name}.tfrecord",
        [
            "create_pretraining_data.py",
            f"--input_file={directory}/text/{name}.txt",
            f"--output_file={directory}/{name}.tfrecord",
            f"--dupe_factor={dupe_factor}",
            f"--vocab_file={directory}/vocab.txt",
            *lengths(options),
        ],
    )


def lengths(options: Demo) -> list[str]:
    """Returns the flags that must be equal for records and training."""
    return [
        f"--max_seq_length={options.max_seq_length}",
        f"--max_predictions_per_seq={options.max_predictions_per_seq}",
    ]


def pretraining_steps(options: Demo) -> list[Step]:
    """Returns the steps from records to a pre-trained model."""
    directory = options.output_dir
    return [
        Step(
            "Pre-train",
            f"{pretrained(options)}.index",
            [
                "run_pretraining.py",
                "--do_train",
                f"--input_file={directory}/train.tfrecord",
                f"--output_dir={directory}/model",
                f"--train_batch_size={options.train_batch_size}",
                f"--learning_rate={options.learning_rate}",
                f"--num_train_steps={options.num_train_steps}",
                f"--num_warmup_steps={options.num_train_steps // 10}",
                f"--save_checkpoints_steps={-(-options.num_train_steps // 4)}",
                # The first checkpoint is evaluated later.
                "--keep_checkpoint_max=1000",
                f"--bert_config_file={directory}/bert_config.json",
                f"--vocab_file={directory}/vocab.txt",
                *lengths(options),
            ],
        ),
        evaluation(
            options,
            "Evaluate the model before training, on held-out documents",
            "untrained",
            f"--init_checkpoint={directory}/model/model.ckpt-0",
        ),
        evaluation(options, "Evaluate the model after training", "model"),
        predicting(directory, "model", "blanks.txt", "--fill_mask"),
    ]


def evaluation(options: Demo, title: str, output: str, *more: str) -> Step:
    """Returns the step that evaluates a model on held-out documents."""
    directory = options.output_dir
    return Step(
        title,
        f"{directory}/{output}/eval_results.txt",
        [
            "run_pretraining.py",
            "--do_eval",
            f"--input_file={directory}/held_out.tfrecord",
            f"--output_dir={directory}/{output}",
            f"--bert_config_file={directory}/bert_config.json",
            *lengths(options),
            *more,
        ],
    )


def finetuning_steps(options: Demo) -> list[Step]:
    """Returns the steps from labelled pairs to predictions of new ones."""
    directory = options.output_dir
    data = f"{directory}/signatures"
    pretrained_model, random_model = FINETUNED.values()
    return [
        Step(
            "Pair Python's functions with summaries",
            f"{data}/test.tsv",
            ["data/python_signatures.py", f"--output_dir={data}"],
        ),
        finetuning(
            options,
            "Fine-tune the model: does the summary belong to the function?",
            pretrained_model,
            f"--init_checkpoint={pretrained(options)}",
        ),
        finetuning(
            options, "Fine-tune a model with random weights", random_model
        ),
        predicting(directory, pretrained_model, "pairs.tsv"),
    ]


def finetuning(options: Demo, title: str, output: str, *more: str) -> Step:
    """Returns the step that fine-tunes and tests a model of the pairs."""
    directory = options.output_dir
    return Step(
        title,
        f"{directory}/{output}/{PREDICTIONS}",
        [
            "run_classifier.py",
            "--do_train",
            "--do_eval",
            "--do_predict",
            "--task_name=tsv",
            f"--data_dir={directory}/signatures",
            "--text_a_column=signature",
            "--text_b_column=summary",
            "--label_column=label",
            f"--vocab_file={directory}/vocab.txt",
            f"--bert_config_file={directory}/bert_config.json",
            f"--max_seq_length={options.max_seq_length}",
            "--pad_to=bucket",
            f"--train_batch_size={options.train_batch_size}",
            f"--learning_rate={options.finetuning_learning_rate}",
            f"--num_train_epochs={options.num_train_epochs}",
            f"--output_dir={directory}/{output}",
            *more,
        ],
    )


def predicting(directory: str, model: str, examples: str, *more: str) -> Step:
    """Returns the step that predicts examples of `write_examples`."""
    answers = f"{directory}/{model}_answers.jsonl"
    return Step(
        f"Predict {examples}",
        answers,
        [
            "predict.py",
            f"--model_dir={directory}/{model}",
            f"--input_file={directory}/{examples}",
            f"--output_file={answers}",
            *more,
        ],
    )


def pretrained(options: Demo) -> str:
    """Returns the prefix of the last checkpoint of pre-training."""
    return f"{options.output_dir}/model/model.ckpt-{options.num_train_steps}"


if __name__ == "__main__":
    cli.run(main, Demo)
