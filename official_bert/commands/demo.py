"""Shows in a few minutes what BERT does, and the commands that do it.

  python demo.py

1. bert_tiny_demo, the model in data/bert_tiny, fills in blanks.
2. It is fine-tuned to decide whether the words of a sentence are in order.
3. Another BERT is pre-trained from scratch on the English text in Python.
4. bert_tiny_demo learns to find the functions of Python by descriptions.

Each command is printed as you would type it, and demo/report.html shows the
results. Finished steps of an earlier run are skipped; to start again, remove
the output directory.
"""

import os
import shlex
import sys
from typing import Any, NamedTuple

from official_bert.errors import require_package
from official_bert.io import files, processes
from official_bert.options import Demo, cli
from official_bert.runs import file_names
from official_bert.sources.released_models import DEMO as MODEL

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
QUERIES = (
    "Delete a directory.",
    "Wait for another thread to finish.",
    "Choose a random number.",
    "Open a web page in the browser.",
    "Split a path into its parts.",
    "Draw a circle.",
    "Make a new folder.",
)

# About a minute of pre-training on two slow cores.
NUM_TRAIN_STEPS = 900

# {title of a chapter: its steps}. A step is a title, a file that exists if it
# has succeeded, and a command. The records and the training of chapter 3 must
# have the same {shape}.
_SHAPE = "--nsp=none --max_seq_length=32 --max_predictions_per_seq=5"
STEPS = {
    "1. The model of data/bert_tiny, --model={model}": """
Fill in the blanks
{demo}/blanks.jsonl
predict.py --fill_mask --model={model}
    --input_file={demo}/blanks.txt --output_file={demo}/blanks.jsonl

Draw the attention between the tokens of two sentences
{demo}/attention.html
visualize_attention.py --model={model} --text_a={text_a} --text_b={text_b}
    --output_file={demo}/attention.html""",
    "2. Fine-tuning": """
Swap two words in half of the sentences of Python's English
{demo}/word_order/sentences.tsv
data/python_word_order.py --output_dir={demo}/word_order

Are the words in order?
{demo}/finetuning/pretrained/{metrics}
run_classifier.py --model={model}
    --train_file={demo}/word_order/sentences.tsv --learning_rate=1e-3
    --num_train_epochs=2 --output_dir={demo}/finetuning/pretrained

Train the same task from random weights
{demo}/finetuning/random/{metrics}
run_classifier.py --model={model} --init_checkpoint=
    --train_file={demo}/word_order/sentences.tsv --learning_rate=1e-3
    --num_train_epochs=2 --output_dir={demo}/finetuning/random

Predict new sentences
{demo}/sentences.jsonl
predict.py --model_dir={demo}/finetuning/pretrained
    --input_file={demo}/sentences.txt --output_file={demo}/sentences.jsonl""",
    "3. Pre-training from scratch": """
Extract the English text from Python's source code
{data}/held_out.txt
data/python_english.py --output_dir={data}

Learn a vocabulary, and choose the size of the model
{data}/bert_config.json
build_vocab.py --input_file={data}/train.txt --vocab_size=4000
    --vocab_file={data}/vocab.txt --bert_config_file={data}/bert_config.json
    --hidden_size=128 --num_hidden_layers=2 --num_attention_heads=2

Text to records
{data}/train.tfrecord
create_pretraining_data.py --input_file={data}/train.txt
    --vocab_file={data}/vocab.txt --output_file={data}/train.tfrecord
    --dupe_factor=1 --masking=dynamic {shape}

Text to records, masked: the held-out documents
{data}/held_out.tfrecord
create_pretraining_data.py --input_file={data}/held_out.txt
    --vocab_file={data}/vocab.txt --output_file={data}/held_out.tfrecord
    --dupe_factor=1 {shape}

Pre-train
{data}/model/{last_checkpoint}.index
run_pretraining.py --do_train --input_file={data}/train.tfrecord
    --bert_config_file={data}/bert_config.json
    --vocab_file={data}/vocab.txt {shape} --learning_rate=1e-3
    --num_train_steps={num_train_steps} --num_warmup_steps={num_warmup_steps}
    --output_dir={data}/model

Evaluate the initial weights on the held-out documents
{data}/untrained/{metrics_text}
run_pretraining.py --do_eval --init_checkpoint={data}/model/{first_checkpoint}
    {shape} --input_file={data}/held_out.tfrecord
    --bert_config_file={data}/bert_config.json --output_dir={data}/untrained

Evaluate the model on the held-out documents
{data}/model/{metrics_text}
run_pretraining.py --do_eval {shape} --input_file={data}/held_out.tfrecord
    --bert_config_file={data}/bert_config.json --output_dir={data}/model""",
    "4. Search": """
Collect the functions of Python, and the first sentence about each
{demo}/functions/test.tsv
data/python_signatures.py --pairs --output_dir={demo}/functions

Learn vectors that are similar for a function and its sentence
{demo}/search/{metrics}
run_classifier.py --task_type=embedding --model={model}
    --train_file={demo}/functions/train.tsv
    --dev_file={demo}/functions/dev.tsv --train_batch_size=128
    --learning_rate=1e-3 --num_train_epochs=1 --output_dir={demo}/search""",
}

NEXT = """\
Next, fine-tune on your own CSV file. Here, it has the columns review and
opinion:

  python run_classifier.py --model=bert_tiny_demo --output_dir=out \\
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
    options = options.resolve()
    require_package("matplotlib", "The report")
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
        summary = demo_report.write(directory, MODEL, QUERIES, NEXT)
    print(f"\n{summary}\n\n{NEXT}\n")
    print(f"All results are on one page: {directory}/report.html")


def write_inputs(directory: str) -> None:
    """Writes the files that are not results of a command."""
    for name, lines in (("blanks", BLANKS), ("sentences", SENTENCES)):
        files.write_text(f"{directory}/{name}.txt", "\n".join(lines) + "\n")


def run(step: Step) -> None:
    """Prints and runs a command; ends the demo if it does not succeed."""
    shown = " \\\n    ".join(shlex.quote(word) for word in step.command)
    print(f"\n# {step.title}\npython {shown}", flush=True)
    script, *flags = step.command
    if script.startswith("data/"):
        program = os.path.join(files.data_directory(), os.path.basename(script))
        process = processes.start(program, *flags)
    else:
        process = processes.start_command(script.removesuffix(".py"), flags)
    if status := processes.wait(process):
        sys.exit(status if status > 0 else 128 - status)  # As a shell does.


def chapters(directory: str) -> dict[str, list[Step]]:
    """Returns all steps in order, by the title of their chapter."""
    values: dict[str, Any] = {
        "demo": directory,
        "data": f"{directory}/pretraining",
        "model": MODEL,
        "text_a": TEXT_A,
        "text_b": TEXT_B,
        "num_train_steps": NUM_TRAIN_STEPS,
        "num_warmup_steps": NUM_TRAIN_STEPS // 10,
        "first_checkpoint": file_names.checkpoint(0),
        "last_checkpoint": file_names.checkpoint(NUM_TRAIN_STEPS),
        "metrics": file_names.METRICS,
        "metrics_text": file_names.METRICS_TEXT,
    }

    def parse(text: str) -> Step:
        title, result, command = text.strip().split("\n", 2)
        words = command.replace("{shape}", _SHAPE).split()
        # Formatted last, because values may contain spaces.
        filled = [word.format(**values) for word in words]
        return Step(title, result.format(**values), filled)

    return {
        chapter.format(**values): [*map(parse, text.split("\n\n"))]
        for chapter, text in STEPS.items()
    }
