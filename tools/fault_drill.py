"""Kills runs at random moments; compares results with uninterrupted runs.

  python -m tools.fault_drill [NUM_KILLS] [SEED] [NAME]

Each scenario trains a tiny model on random data over many epochs. NAME selects
the scenarios whose names contain it. README.md describes what is compared, and
the columns.
"""

import collections
import contextlib
import json
import multiprocessing
import os
import pathlib
import random
import re
import runpy
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

import tensorflow as tf
import tqdm

import official_bert.training.finetuning_run
import official_bert.training.pretraining_run  # noqa: F401 - For the forked runs.
from official_bert.commands import create_pretraining_data
from official_bert.options import CreatePretrainingData
from official_bert.training import loop

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
WORDS = [f"word{number}" for number in range(60)]
VOCAB = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
LENGTH = 32

# Saving three checkpoints takes about as many accesses to the disk.
_MAX_ACCESSES = 45


class Scenario(NamedTuple):
    """A command to kill, its flags, and the steps between its checkpoints."""

    name: str
    command: str
    flags: Sequence[str]
    save_steps: int = 2


class Kill(NamedTuple):
    """A kill `delay` seconds after `num_accesses` accesses to the disk."""

    num_accesses: int
    delay: float


def scenarios(folder: str) -> list[Scenario]:
    """Returns all scenarios, of 60 to 90 steps each.

    Epochs end in the middle of a batch.
    """
    pretraining = [
        "--do_eval",
        "--max_eval_steps=5",
        "--train_batch_size=8",
        "--num_train_steps=90",
        "--num_warmup_steps=10",
        "--max_predictions_per_seq=5",
        f"--input_file={folder}/*.tfrecord",
    ]
    dynamic = [*pretraining, f"--input_file={folder}/dynamic.records"]
    tuning = [
        f"--vocab_file={folder}/vocab.txt",
        "--train_batch_size=8",
        "--num_train_epochs=6",
    ]
    cola = ["--task_name=CoLA", f"--data_dir={folder}", "--do_eval", *tuning]
    own = [
        f"--train_file={folder}/opinions.csv",
        f"--test_file={folder}/opinions.csv",
        *("--text_column=text", "--label_column=label", "--eval_every=20"),
        *tuning,
    ]
    squad = [
        f"--train_file={folder}/squad.json",
        f"--predict_file={folder}/squad.json",
        "--do_predict",
        "--max_query_length=8",
        "--doc_stride=8",
        *tuning,
        "--num_train_epochs=24",
    ]
    parts = "--gradient_accumulation_steps=2"
    pretrain, classify = "run_pretraining.py", "run_classifier.py"
    return [
        Scenario("masked records, 2 parts", pretrain, [*pretraining, parts]),
        Scenario("dynamic masking", pretrain, dynamic),
        Scenario("a checkpoint per step", pretrain, pretraining, save_steps=1),
        Scenario("CoLA", classify, cola),
        Scenario(
            "CoLA, --pad_to=bucket",
            classify,
            [*cola, "--pad_to=bucket", "--eval_every=20"],
        ),
        Scenario("--train_file", classify, own),
        Scenario("SQuAD", "run_squad.py", squad),
    ]


def write_inputs(folder: str) -> None:
    """Writes a config, a vocabulary, and data for all commands."""
    rng = random.Random(1)
    config = {
        "vocab_size": len(VOCAB),
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 64,
        "max_position_embeddings": LENGTH,
        "type_vocab_size": 2,
    }
    texts = {
        "bert_config.json": json.dumps(config),
        "vocab.txt": "\n".join(VOCAB) + "\n",
        "train.tsv": "".join(_cola(rng) for _ in range(90)),
        "dev.tsv": "".join(_cola(rng) for _ in range(20)),
        "squad.json": json.dumps({"version": "1.1", "data": [_squad(rng)]}),
        "opinions.csv": "text,label\n"
        + "".join(f"{_words(rng)},{rng.choice('yn')}\n" for _ in range(90)),
        "corpus.txt": "".join(f"{_words(rng)}\n" * 6 + "\n" for _ in range(40)),
    }
    for name, text in texts.items():
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(text)
    records = {
        "static": f"{folder}/a.tfrecord,{folder}/b.tfrecord",
        "dynamic": f"{folder}/dynamic.records",
    }
    for masking, output_file in records.items():
        create_pretraining_data.main(
            CreatePretrainingData(
                input_file=f"{folder}/corpus.txt",
                output_file=output_file,
                vocab_file=f"{folder}/vocab.txt",
                masking=masking,
                dupe_factor=1,
                max_seq_length=LENGTH,
                max_predictions_per_seq=5,
            )
        )


def _words(rng: random.Random) -> str:
    return " ".join(rng.choices(WORDS, k=rng.randint(2, LENGTH - 2)))


def _cola(rng: random.Random) -> str:
    return f"id\t{rng.randrange(2)}\t\t{_words(rng)}\n"


def _squad(rng: random.Random) -> dict[str, Any]:
    words = rng.sample(WORDS, 40)
    start = len(" ".join(words[:7])) + 1
    questions = [
        {
            "id": f"q{number}",
            "question": " ".join(rng.choices(WORDS, k=5)),
            "answers": [{"text": words[7], "answer_start": start}],
        }
        for number in range(20)
    ]
    paragraph = {"context": " ".join(words), "qas": questions}
    return {"title": "t", "paragraphs": [paragraph]}


def command_line(scenario: Scenario, folder: str) -> list[str]:
    """Returns the command of a run in `out`, without Python."""
    return [
        os.path.join(ROOT, scenario.command),
        "--do_train",
        f"--bert_config_file={folder}/bert_config.json",
        f"--output_dir={folder}/out",
        f"--max_seq_length={LENGTH}",
        "--learning_rate=1e-3",
        f"--save_checkpoints_steps={scenario.save_steps}",
        *scenario.flags,
    ]


def run(scenario: Scenario, folder: str, kill: Kill | None = None) -> bool:
    """Runs a scenario; returns whether it was killed. Exits if it failed."""
    line = command_line(scenario, folder)
    log = os.path.join(folder, "log")
    # Forked, because importing TensorFlow takes longer than most runs.
    forking = multiprocessing.get_context("fork")
    process = forking.Process(target=_run, args=(line, log, kill))
    process.start()
    process.join()
    if process.exitcode not in (0, -signal.SIGKILL):
        with open(log, encoding="utf-8") as file:
            raise SystemExit(f"{scenario.name}: {file.read()[-3000:]}")
    return process.exitcode != 0


def _run(line: list[str], log: str, kill: Kill | None) -> None:
    """Runs a command in this process, and logs the losses of every step."""
    with open(log, "w", encoding="utf-8") as file:
        for stream in (1, 2):
            os.dup2(file.fileno(), stream)
    # By default, forked processes share the lock of progress bars. A process
    # that is killed while it holds the lock never releases it.
    tqdm.tqdm.set_lock(threading.RLock())
    loop._SUMMARY_STEPS = 1
    if kill:
        die_at(kill)
    sys.argv = line
    runpy.run_path(line[0], run_name="__main__")


def die_at(kill: Kill) -> None:
    """Makes this process kill itself at the moment that `kill` describes."""
    num_remaining = kill.num_accesses

    def counting(function: Any) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            nonlocal num_remaining
            num_remaining -= 1
            if num_remaining == 0 and not kill.delay:
                os.kill(os.getpid(), signal.SIGKILL)
            elif num_remaining == 0:
                args_of_kill = (os.getpid(), signal.SIGKILL)
                threading.Timer(kill.delay, os.kill, args_of_kill).start()
            return function(*args, **kwargs)

        return call

    for module, name in (
        *((os, name) for name in ("replace", "fsync", "remove")),
        (tf.raw_ops, "SaveV2"),
    ):
        setattr(module, name, counting(getattr(module, name)))


def newest_step(output_dir: str) -> int:
    """Returns the step from which a run resumes; 0 without a checkpoint."""
    prefix = tf.train.latest_checkpoint(output_dir)
    return int(prefix.rpartition("-")[2]) if prefix else 0


def is_saving(output_dir: str) -> bool:
    """Whether a killed run left parts of a later checkpoint."""
    names = "\n".join(os.listdir(output_dir))
    steps = map(int, re.findall(r"^model\.ckpt-(\d+)\.", names, re.MULTILINE))
    return max(steps, default=0) > newest_step(output_dir)


def read_scalars(output_dir: str) -> dict[tuple[int, str], set[bytes]]:
    """Returns {(step, name): all values with this name} of all event files."""
    scalars = collections.defaultdict(set)
    for path in pathlib.Path(output_dir).rglob("events.out.*"):
        # The run may have been killed while it wrote the file.
        with contextlib.suppress(tf.errors.DataLossError):
            for event in tf.compat.v1.train.summary_iterator(str(path)):
                for value in event.summary.value:
                    array = tf.make_ndarray(value.tensor)
                    scalars[event.step, value.tag].add(array.tobytes())
    return {k: v for k, v in scalars.items() if k[1] != "examples_per_second"}


def read_files(output_dir: str) -> dict[str, bytes]:
    """Returns {path: content} of all files except events."""
    return {
        str(path.relative_to(output_dir)): path.read_bytes()
        for path in pathlib.Path(output_dir).rglob("*")
        if path.is_file() and "events.out." not in path.name
    }


def row(
    scenario: Scenario, folder: str, num_kills: int, rng: random.Random
) -> str:
    """Runs a scenario; returns its row of the table."""
    output_dir = os.path.join(folder, "out")
    uninterrupted = os.path.join(folder, "uninterrupted")
    run(scenario, folder)
    os.rename(output_dir, uninterrupted)
    num_killed = num_saving = 0
    for _ in range(num_kills):
        delay = rng.choice([0, rng.uniform(0, 0.3)])
        kill = Kill(rng.randint(1, _MAX_ACCESSES), delay)
        if not run(scenario, folder, kill):
            break  # The run ended before the kill.
        num_killed += 1
        num_saving += is_saving(output_dir)
        step = newest_step(output_dir)
        print(scenario.name, kill, step, num_saving, file=sys.stderr)
    run(scenario, folder)
    scalars, files = (
        _count_equal(read(uninterrupted), read(output_dir))
        for read in (read_scalars, read_files)
    )
    shutil.rmtree(uninterrupted)
    shutil.rmtree(output_dir)
    return (
        f"{scenario.name:23} {num_killed:5} {num_saving:6}  "
        f"{scalars:>14}  {files:>11}"
    )


def _count_equal(expected: dict[Any, Any], resumed: dict[Any, Any]) -> str:
    """Returns "N of M": the keys with equal values in both, and all keys."""
    num_equal = sum(expected[key] == resumed.get(key) for key in expected)
    return f"{num_equal:,} of {len({*expected, *resumed}):,}"


def main(num_kills: str = "20", seed: str = "1", name: str = "") -> None:
    tf.get_logger().setLevel("ERROR")
    print("scenario                kills saving   equal scalars  equal files")
    with tempfile.TemporaryDirectory() as folder:
        write_inputs(folder)
        for scenario in scenarios(folder):
            if name in scenario.name:
                rng = random.Random(int(seed))
                line = row(scenario, folder, int(num_kills), rng)
                print(line, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
