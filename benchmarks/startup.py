"""Seconds from a command to its first training step and first prediction.

  python -m benchmarks.startup PYTHON [ROUNDS]

PYTHON has torch, transformers and accelerate. `run_classifier.py` and
`predict.py`, and the Trainer and the text-classification pipeline of
transformers, run in turn on the same random weights and texts. In the rows
`exported`, `predict.py` runs a model for OpenVINO. Each run is a new process.
Each row has the fastest round. Files are in the page cache. The first step has
8 texts of 128 tokens. The last row compares `import tensorflow` with `import
torch, transformers`. TensorFlow imports scikit-learn and matplotlib too, which
our commands avoid.
"""

import csv
import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import tempfile
import termios
import time
from typing import Any

LENGTH, BATCH_SIZE, NUM_STEPS = 128, 8, 8
SCRIPT = os.path.abspath(__file__)
TEXT = " ".join(f"w{number}" for number in range(2 * LENGTH))


def write_models(folder: str, name: str, config_json: str) -> None:
    """Writes a pre-trained and a fine-tuned model, and texts to train on."""
    import transformers

    config = json.loads(config_json)
    vocab = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    vocab += [f"w{number}" for number in range(config["vocab_size"] - 5)]
    for kind in ("PreTraining", "SequenceClassification"):
        directory = os.path.join(folder, name, kind)
        model = getattr(transformers, f"BertFor{kind}")
        model(transformers.BertConfig(**config)).save_pretrained(directory)
        with open(f"{directory}/vocab.txt", "w", encoding="utf-8") as file:
            file.writelines(f"{token}\n" for token in vocab)
        ids = {token: number for number, token in enumerate(vocab)}
        transformers.BertTokenizer(vocab=ids).save_pretrained(directory)
    with open(f"{folder}/train.csv", "w", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["text", "label"])
        for number in range(BATCH_SIZE * NUM_STEPS):
            writer.writerow([f"w{number} {TEXT}", number % 2])


def train_peer(model: str, path: str) -> None:
    """Trains with the Trainer; prints a line after the first step."""
    import transformers

    class Report(transformers.TrainerCallback):
        def on_step_end(self, *_: Any, **__: Any) -> None:
            print("first step", flush=True)

    tokenizer = transformers.AutoTokenizer.from_pretrained(model)
    with open(path, encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    examples = [
        {
            **tokenizer(row["text"], truncation=True, max_length=LENGTH),
            "labels": int(row["label"]),
        }
        for row in rows
    ]
    with tempfile.TemporaryDirectory() as folder:
        transformers.Trainer(
            transformers.AutoModelForSequenceClassification.from_pretrained(
                model
            ),
            transformers.TrainingArguments(
                folder,
                per_device_train_batch_size=BATCH_SIZE,
                max_steps=NUM_STEPS,
                report_to=[],
                use_cpu=True,
            ),
            transformers.DataCollatorWithPadding(tokenizer),
            examples,
            callbacks=[Report()],
        ).train()


def predict_peer(model: str) -> None:
    import transformers

    classify = transformers.pipeline("text-classification", model)
    print(classify(TEXT, truncation=True, max_length=LENGTH), flush=True)


def seconds_until(pattern: str, command: list[str]) -> float:
    """Returns the seconds until a process prints a pattern; then kills it."""
    reader, terminal = pty.openpty()  # A terminal shows every step.
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("4H", 24, 80, 0, 0))
    begin, text = time.perf_counter(), ""
    # With TF_CPP_MIN_LOG_LEVEL, our commands log more and import more.
    environment = {n: v for n, v in os.environ.items() if "TF_CPP" not in n}
    process = subprocess.Popen(
        command, stdout=terminal, stderr=terminal, env=environment
    )
    os.close(terminal)
    try:
        while not re.search(pattern, text):
            text += os.read(reader, 10_000).decode(errors="replace")
        return time.perf_counter() - begin
    except OSError:  # The process has ended.
        raise SystemExit(text) from None
    finally:
        process.kill()
        process.wait()
        os.close(reader)


def measure(python: str, folder: str, model: str) -> dict[str, list[float]]:
    """Returns {row: [our seconds, seconds of the peer]}."""
    pretrained, finetuned = (
        os.path.join(folder, model, kind)
        for kind in ("PreTraining", "SequenceClassification")
    )
    table = f"{folder}/train.csv"
    with tempfile.TemporaryDirectory() as output:
        ours = [
            *(sys.executable, "run_classifier.py", "--do_train"),
            *(f"--model={pretrained}", f"--train_file={table}"),
            *(f"--dev_file={table}", f"--output_dir={output}"),
            f"--max_seq_length={LENGTH}",
            f"--train_batch_size={BATCH_SIZE}",
            "--num_train_epochs=1",
        ]
        peer = [python, SCRIPT, "--train", pretrained, table]
        train = [
            seconds_until(rf"\b[1-9]/{NUM_STEPS} ", ours),
            seconds_until("first step", peer),
        ]
    text = os.path.join(folder, "text.txt")
    with open(text, "w", encoding="utf-8") as file:
        file.write(TEXT + "\n")
    predict = [sys.executable, "predict.py", f"--input_file={text}"]
    named, exported = (
        seconds_until("probabilities", [*predict, flag])
        for flag in (
            f"--model={finetuned}",
            f"--model_dir={finetuned}_openvino",
        )
    )
    theirs = seconds_until("score", [python, SCRIPT, "--predict", finetuned])
    return {
        "train": train,
        "predict": [named, theirs],
        "exported": [exported, theirs],
    }


def main(python: str, rounds: str = "3") -> None:
    from benchmarks.sizes import SIZES
    from benchmarks.step import machine

    print(machine())
    print(f"{'model':6}{'kind':9}{'ours':>6}{'peer':>7}  ratio")
    with tempfile.TemporaryDirectory() as folder:
        for model in ("tiny", "base"):
            config = SIZES[model].to_json_string()
            write = [python, SCRIPT, "--write", folder, model, config]
            subprocess.run(write, check=True, capture_output=True)
            finetuned = os.path.join(folder, model, "SequenceClassification")
            convert = [
                *(sys.executable, "convert_checkpoint.py", "--to=openvino"),
                f"--input={finetuned}",
                f"--output={finetuned}_openvino",
            ]
            subprocess.run(convert, check=True, capture_output=True)
            times = [measure(python, folder, model) for _ in range(int(rounds))]
            for kind in times[0]:
                show(model, kind, [by_kind[kind] for by_kind in times])
    imports = []
    for _ in range(int(rounds)):
        code = "import {}; print('imported')"
        imports.append(
            [
                seconds_until("imported", [p, "-c", code.format(name)])
                for p, name in (
                    (sys.executable, "tensorflow"),
                    (python, "torch, transformers"),
                )
            ]
        )
    show("", "import", imports)


def show(model: str, kind: str, pairs: list[list[float]]) -> None:
    """Prints a row of [our seconds, seconds of the peer]."""
    ours, peer = (min(times) for times in zip(*pairs, strict=True))
    print(
        f"{model:6}{kind:9}{ours:6.1f}{peer:7.1f}{peer / ours:7.2f}", flush=True
    )


if __name__ == "__main__":
    if sys.argv[1] == "--write":
        write_models(*sys.argv[2:])
    elif sys.argv[1] == "--train":
        train_peer(*sys.argv[2:])
    elif sys.argv[1] == "--predict":
        predict_peer(*sys.argv[2:])
    else:
        main(*sys.argv[1:])
