"""Kills runs at random moments and compares their results with whole runs.

  python -m benchmarks.fault_drill [NUM_KILLS] [SEED]

Each command trains a tiny model with dropout on random data over many epochs:
once without interruption, and once killed by SIGKILL at random moments and
restarted, repeatedly. Every loss of every step, repeated steps included, and
all final weights and moments must be equal bit for bit. Twenty kills take about
ten minutes on one core.
"""

import glob
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from official_bert.inputs import schemas, tfrecords

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
WORDS = [f"word{number}" for number in range(60)]
VOCAB = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
LENGTH = 32

# Runs a command that writes the losses of every step, not of every tenth.
CHILD = """
import runpy, sys
from official_bert.training import loop
loop._SUMMARY_STEPS = 1
del sys.argv[0]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


class Drill(NamedTuple):
    """A command to kill, its flags, and its number of steps."""

    name: str
    command: str
    flags: Sequence[str]
    num_steps: int


class Outcome(NamedTuple):
    """The results of a run.

    Attributes:
        scalars: {(step, name): all values found}, as bytes.
        arrays: {name: array} of the last checkpoint.
    """

    scalars: dict[tuple[int, str], set[bytes]]
    arrays: dict[str, np.ndarray]


def drills(folder: str) -> list[Drill]:
    """Returns all drills. Epochs of 90 or 20 examples end inside batches."""
    tuning = [f"--vocab_file={folder}/vocab.txt", "--train_batch_size=8"]
    cola = ["--task_name=CoLA", f"--data_dir={folder}", *tuning]
    cola += ["--num_train_epochs=40"]
    return [
        Drill(
            "run_pretraining, 2 parts a batch",
            "run_pretraining.py",
            [
                f"--input_file={folder}/*.tfrecord",
                "--train_batch_size=8",
                "--num_train_steps=450",
                "--num_warmup_steps=10",
                "--max_predictions_per_seq=5",
                "--gradient_accumulation_steps=2",
            ],
            450,
        ),
        Drill("run_classifier", "run_classifier.py", cola, 450),
        Drill(
            "run_classifier --pad_to=bucket",
            "run_classifier.py",
            [*cola, "--pad_to=bucket", "--eval_every=60"],
            450,
        ),
        Drill(
            "run_squad",
            "run_squad.py",
            [
                f"--train_file={folder}/squad.json",
                "--num_train_epochs=120",
                "--max_query_length=8",
                "--doc_stride=8",
                *tuning,
            ],
            300,
        ),
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
    }
    for name, text in texts.items():
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(text)
    schema = schemas.pretraining_schema(LENGTH, 5)
    for name in ("a", "b"):
        path = os.path.join(folder, f"{name}.tfrecord")
        instances = [_instance(rng) for _ in range(45)]
        columns = {
            field: np.array(
                [instance[field] for instance in instances],
                np.float32 if schema[field].is_float else np.int64,
            )
            for field in schema
        }
        with open(path, "wb") as file:
            examples = tfrecords.encode_examples(columns)
            file.write(tfrecords.join(examples, compress=False))


def _instance(rng: random.Random) -> dict[str, list[Any]]:
    return {
        "input_ids": rng.choices(range(len(VOCAB)), k=LENGTH),
        "input_mask": [1] * LENGTH,
        "segment_ids": [0] * (LENGTH // 2) + [1] * (LENGTH // 2),
        "masked_lm_positions": sorted(rng.sample(range(LENGTH), 5)),
        "masked_lm_ids": rng.choices(range(len(VOCAB)), k=5),
        "masked_lm_weights": [1.0, 1.0, 1.0, 1.0, float(rng.randrange(2))],
        "next_sentence_labels": [rng.randrange(2)],
    }


def _cola(rng: random.Random) -> str:
    words = " ".join(rng.choices(WORDS, k=rng.randint(2, LENGTH - 2)))
    return f"id\t{rng.randrange(2)}\t\t{words}\n"


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


def start(drill: Drill, folder: str, output_dir: str) -> Any:
    """Starts a run that saves every 20 steps."""
    return subprocess.Popen(
        [
            *(sys.executable, "-c", CHILD, os.path.join(ROOT, drill.command)),
            "--do_train",
            f"--bert_config_file={folder}/bert_config.json",
            f"--output_dir={output_dir}",
            f"--max_seq_length={LENGTH}",
            "--learning_rate=1e-3",
            "--save_checkpoints_steps=20",
            *drill.flags,
        ],
        cwd=ROOT,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(run: Any) -> None:
    """Waits for the end of a run, which must succeed."""
    _, errors = run.communicate()
    if run.returncode:
        raise SystemExit(errors[-3000:])


def kill(run: Any, output_dir: str, rng: random.Random) -> None:
    """Kills a run shortly after its first new checkpoint."""
    pattern = os.path.join(output_dir, "model.ckpt-[1-9]*.index")
    before = set(glob.glob(pattern))
    while not set(glob.glob(pattern)) - before and run.poll() is None:
        time.sleep(0.01)
    time.sleep(rng.uniform(0, 0.3))
    run.send_signal(signal.SIGKILL)
    run.communicate()


def outcome(output_dir: str) -> Outcome:
    """Reads all events and the last checkpoint."""
    scalars: dict[tuple[int, str], set[bytes]] = {}
    for step, name, value in _scalars(output_dir):
        if name != "examples_per_second":
            scalars.setdefault((step, name), set()).add(value)
    reader = tf.train.load_checkpoint(tf.train.latest_checkpoint(output_dir))
    names = reader.get_variable_to_shape_map()
    arrays = {name: reader.get_tensor(name) for name in names}
    return Outcome(scalars, arrays)


def _scalars(output_dir: str) -> Iterator[tuple[int, str, bytes]]:
    for path in glob.glob(os.path.join(output_dir, "events.out.*")):
        try:
            for event in tf.compat.v1.train.summary_iterator(path):
                for value in event.summary.value:
                    array = tf.make_ndarray(value.tensor)
                    yield event.step, value.tag, array.tobytes()
        except tf.errors.DataLossError:
            pass  # The run was killed while writing it.


def row(drill: Drill, folder: str, num_kills: int, rng: random.Random) -> str:
    """Runs a drill; returns its row of the table."""
    whole, killed = (
        os.path.join(folder, f"{drill.name} {kind}")
        for kind in ("whole", "killed")
    )
    finish(start(drill, folder, whole))
    resumed_at = []
    for _ in range(num_kills):
        kill(start(drill, folder, killed), killed, rng)
        newest = tf.train.latest_checkpoint(killed)
        resumed_at.append(int(newest.rpartition("-")[2]))
        if resumed_at[-1] == drill.num_steps:
            break
    finish(start(drill, folder, killed))
    one, other = outcome(whole), outcome(killed)
    equal = sum(
        values == other.scalars.get(key) for key, values in one.scalars.items()
    )
    same = sum(
        np.array_equal(array, other.arrays.get(name, np.nan))
        for name, array in one.arrays.items()
    )
    return (
        f"{drill.name:33} {one.arrays['global_step']:5} {len(resumed_at):5}  "
        f"{equal:,} of {len(one.scalars):,}  {same} of {len(one.arrays)}  "
        f"{' '.join(map(str, resumed_at))}"
    )


def main(num_kills: str = "20", seed: str = "1") -> None:
    """Prints a row for each command."""
    tf.get_logger().setLevel("ERROR")
    rng = random.Random(int(seed))
    print(
        "command                           steps kills  "
        "equal scalars   equal arrays  resumed from step"
    )
    with tempfile.TemporaryDirectory() as folder:
        write_inputs(folder)
        todo = drills(folder)
        for number, drill in enumerate(todo):
            share = len(range(number, int(num_kills), len(todo)))
            print(row(drill, folder, share, rng), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
