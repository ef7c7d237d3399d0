"""Shows in a few minutes what BERT does, and the commands that do it.

  python demo.py

1. bert_tiny_demo, the model in data/bert_tiny, fills in blanks.
2. It is fine-tuned to decide whether the words of a sentence are in order.
3. Another BERT is pre-trained from scratch on the English text in Python.

Each command is printed as you would type it, and demo/report.html shows the
results. Finished steps of an earlier run are skipped; to start again, remove
the output directory.
"""

import os
import shlex
import sys
from typing import NamedTuple

from official_bert.config import BertConfig
from official_bert.errors import InputError, missing_package
from official_bert.io import files, processes
from official_bert.options import Demo, cli
from official_bert.runs import file_names
from official_bert.sources.released_models import DEMO as MODEL
from official_bert.sources.released_models import data_directory

BLANKS = (
    "She opened the [MASK] and went in.",
    "He was born in the [MASK] of New York.",
    "They drank a cup of [MASK].",
    "The sun rises in the [MASK].",
    "The river flows into the [MASK].",
    "I do not [MASK] what you mean.",
)
TEXT_A = "The old man opened the door."
TEXT_B = "He was tired, and he sat down."
SENTENCES = (
    "She opened the door and went in.",
    "She opened door the and went in.",
    "Two of the books are on the table.",
    "Two of the books on are the table.",
)

# About a minute of pre-training on two slow cores.
NUM_TRAIN_STEPS = 1000
# At first, the loss stays on a plateau: the model predicts each token with its
# frequency in the text. With smaller initial weights or with dropout, training
# would still be there after a minute.
CONFIG = BertConfig(
    vocab_size=4000,
    hidden_size=128,
    num_hidden_layers=2,
    num_attention_heads=2,
    intermediate_size=512,
    initializer_range=0.1,
    hidden_dropout_prob=0.0,
    attention_probs_dropout_prob=0.0,
)

NEXT = """\
Next, fine-tune on your own CSV file. Here, it has the columns review and
opinion:

  python run_classifier.py --model=bert_tiny_demo --output_dir=out \\
    --learning_rate=3e-4 \\
    --train_file=reviews.csv --text_column=review --label_column=opinion
  python predict.py --model_dir=out --input_file=new.csv

Guides: docs/quickstart_csv.md (this example, step by step), docs/models.md
(other models), docs/pretraining.md (your own text)."""


class Step(NamedTuple):
    """A command, and a file that exists if it has succeeded."""

    title: str
    result: str
    command: list[str]


def main(options: Demo) -> None:
    """Runs all unfinished steps, then writes the report.

    Raises `InputError` if matplotlib is missing, which draws the report.
    """
    if missing := missing_package("matplotlib"):
        raise InputError(f"The report {missing}")
    directory = options.output_dir
    write_inputs(directory)
    for chapter, steps in chapters(directory).items():
        print(f"\n=== {chapter} ===")
        for step in steps:
            if files.exists(step.result):
                print(f"# {step.title}: already done, see {step.result}")
            else:
                run(step)
    # Imported here because errors in flags should not wait for matplotlib.
    from official_bert.inference import demo_report

    with cli.quiet_imports():  # TensorBoard imports TensorFlow to read curves.
        summary = demo_report.write(directory, MODEL, NEXT)
    print(f"\n{summary}\n\n{NEXT}\n")
    print(f"All results are on one page: {directory}/report.html")


def write_inputs(directory: str) -> None:
    """Writes the files that are not results of a command."""
    for name, lines in (("blanks", BLANKS), ("sentences", SENTENCES)):
        text = "\n".join(lines) + "\n"
        files.write_text(f"{directory}/{name}.txt", text)
    config = f"{directory}/pretraining/bert_config.json"
    files.write_text(config, CONFIG.to_json_string())


def run(step: Step) -> None:
    """Prints and runs a command; ends the demo if it does not succeed."""
    shown = " \\\n    ".join(shlex.quote(word) for word in step.command)
    print(f"\n# {step.title}\npython {shown}", flush=True)
    script, *flags = step.command
    if script.startswith("data/"):
        program = os.path.join(data_directory(), os.path.basename(script))
        process = processes.start(program, *flags)
    else:
        process = processes.start_command(script.removesuffix(".py"), flags)
    if status := processes.wait(process):
        sys.exit(status if status > 0 else 128 - status)  # As a shell does.
    if not files.exists(step.result):
        sys.exit("The command was stopped. Run the demo again to resume.")


def chapters(directory: str) -> dict[str, list[Step]]:
    """Returns all steps in order, by the title of their chapter."""
    first = f"1. The model of data/bert_tiny, --model={MODEL}"
    return {
        first: model_steps(directory),
        "2. Fine-tuning": finetuning_steps(directory),
        "3. Pre-training from scratch": pretraining_steps(directory),
    }


def model_steps(directory: str) -> list[Step]:
    """Returns the steps that use the model as it is."""
    fill = ["predict.py", "--fill_mask", f"--model={MODEL}"]
    page = f"{directory}/attention.html"
    return [
        prediction_step(f"{directory}/blanks.txt", "Fill in the blanks", *fill),
        Step(
            "Draw the attention between the tokens of two sentences",
            page,
            [
                "visualize_attention.py",
                f"--model={MODEL}",
                f"--text_a={TEXT_A}",
                f"--text_b={TEXT_B}",
                f"--output_file={page}",
            ],
        ),
    ]


def prediction_step(examples: str, title: str, *command: str) -> Step:
    """Returns the step that predicts examples of `write_inputs`."""
    answers = os.path.splitext(examples)[0] + ".jsonl"
    flags = [f"--input_file={examples}", f"--output_file={answers}"]
    return Step(title, answers, [*command, *flags])


def finetuning_steps(directory: str) -> list[Step]:
    """Returns the steps from labelled sentences to predictions of new ones."""
    data = f"{directory}/word_order"
    runs = f"{directory}/finetuning"

    def train(title: str, output: str, *more_flags: str) -> Step:
        return Step(
            title,
            f"{output}/{file_names.METRICS}",
            [
                "run_classifier.py",
                f"--model={MODEL}",
                *more_flags,
                f"--train_file={data}/sentences.tsv",
                "--learning_rate=3e-4",
                "--num_train_epochs=2",
                f"--output_dir={output}",
            ],
        )

    return [
        Step(
            "Swap two words in half of the sentences of Python's English",
            f"{data}/sentences.tsv",
            ["data/python_word_order.py", f"--output_dir={data}"],
        ),
        train("Are the words in order?", f"{runs}/pretrained"),
        train(
            "Train the same task from random weights",
            f"{runs}/random",
            "--init_checkpoint=",
        ),
        prediction_step(
            f"{directory}/sentences.txt",
            "Predict new sentences",
            "predict.py",
            f"--model_dir={runs}/pretrained",
        ),
    ]


def pretraining_steps(directory: str) -> list[Step]:
    """Returns the steps from text to a pre-trained model."""
    data = f"{directory}/pretraining"
    vocab_file = f"--vocab_file={data}/vocab.txt"
    # Records and training must have the same values of these flags.
    last_checkpoint = file_names.checkpoint(NUM_TRAIN_STEPS)
    shape = ["--nsp=none", "--max_seq_length=32", "--max_predictions_per_seq=5"]

    def records(title: str, name: str, *more_flags: str) -> Step:
        output = f"{data}/{name}.tfrecord"
        text = f"--input_file={data}/{name}.txt"
        command = ["create_pretraining_data.py", text, vocab_file]
        flags = [f"--output_file={output}", "--dupe_factor=1"]
        return Step(title, output, [*command, *flags, *more_flags, *shape])

    def evaluation(title: str, name: str, *more_flags: str) -> Step:
        command = ["run_pretraining.py", "--do_eval", *more_flags, *shape]
        flags = [
            f"--input_file={data}/held_out.tfrecord",
            f"--bert_config_file={data}/bert_config.json",
            f"--output_dir={data}/{name}",
        ]
        result = f"{data}/{name}/{file_names.METRICS_TEXT}"
        return Step(title, result, command + flags)

    return [
        Step(
            "Extract the English text from Python's source code",
            f"{data}/held_out.txt",
            ["data/python_english.py", f"--output_dir={data}"],
        ),
        Step(
            "Learn a vocabulary",
            f"{data}/vocab.txt",
            [
                "build_vocab.py",
                f"--input_file={data}/train.txt",
                f"--vocab_size={CONFIG.vocab_size}",
                vocab_file,
            ],
        ),
        records("Text to records", "train", "--masking=dynamic"),
        records("Text to records, masked: the held-out documents", "held_out"),
        Step(
            "Pre-train",
            f"{data}/model/{last_checkpoint}.index",
            [
                "run_pretraining.py",
                "--do_train",
                f"--input_file={data}/train.tfrecord",
                f"--bert_config_file={data}/bert_config.json",
                vocab_file,
                *shape,
                "--learning_rate=1e-3",
                f"--num_train_steps={NUM_TRAIN_STEPS}",
                f"--num_warmup_steps={NUM_TRAIN_STEPS // 10}",
                f"--output_dir={data}/model",
            ],
        ),
        evaluation(
            "Evaluate the initial weights on the held-out documents",
            "untrained",
            f"--init_checkpoint={data}/model/{file_names.checkpoint(0)}",
        ),
        evaluation("Evaluate the model on the held-out documents", "model"),
    ]
