r"""The cost of padding in fine-tuning, compared with Hugging Face's Trainer.

  python -m benchmarks.padding DATA_DIR VOCAB_FILE SIZE \
    [TORCH_PYTHON] [MAX_STEPS]

DATA_DIR contains `glue/MRPC`, `glue/SST-2` and `squad/train-v1.1.json`. A BERT
of SIZE tiny (2 layers of 128) or small (4 of 512) is trained from random
weights on each task: for one epoch (SQuAD: of 2,000 questions) or MAX_STEPS
steps, with batches of 32 (SQuAD: 12). The Trainer gets the same examples, batch
sizes and steps. README.md describes the columns. On two cores, tiny takes
minutes with MAX_STEPS=114, an epoch of MRPC; small takes twenty minutes with
MAX_STEPS=20.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence

import keras
import numpy as np

from benchmarks.sizes import SIZES
from benchmarks.step import training_step
from official_bert.config import BertConfig
from official_bert.inputs import datasets
from official_bert.inputs.records import RecordFiles
from official_bert.io import files
from official_bert.modeling.finetuning_models import build_model
from official_bert.options import RunClassifier, RunSquad
from official_bert.tasks import glue, record_files
from official_bert.tasks.squad.task import SquadData, SquadTask
from official_bert.tasks.task import Features, Task
from official_bert.tokenization import Tokenizer
from official_bert.training.objectives import FinetuningObjective

NUM_WARM = 5
# {our name of a feature: its name in transformers}.
IDS = {
    "input_ids": "input_ids",
    "input_mask": "attention_mask",
    "segment_ids": "token_type_ids",
}
LABELS = {
    "label_ids": "labels",
    "start_positions": "start_positions",
    "end_positions": "end_positions",
}
TRAINER = os.path.join(os.path.dirname(__file__), "padding_trainer.py")


def our_seconds(
    task: Task,
    config: BertConfig,
    data: RecordFiles,
    batch_size: int,
    num_steps: int,
    pad_to: str,
    removes_padding: bool,
) -> float:
    keras.utils.set_random_seed(1)
    batches = datasets.finetuning_batches(
        data,
        batch_size,
        seed=1,
        num_examples=num_steps * batch_size,
        pad_to=pad_to,
        trims=removes_padding,
    )
    _, step = training_step(
        build_model(task.head, config),
        FinetuningObjective(task.head),
        removes_padding=removes_padding,
        input_signature=[batches.element_spec],
    )
    start = 0.0
    for number, batch in enumerate(batches):
        if number == NUM_WARM:
            start = time.perf_counter()
        step(batch)["loss"].numpy()
    return time.perf_counter() - start


def trainer_seconds(
    python: str, rows_file: str, config: BertConfig, *settings: str
) -> float:
    command = [python, TRAINER, rows_file, config.to_json_string(), *settings]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    return float(result.stdout.split()[-1])


def unpadded(features: Features, length: int) -> list[dict[str, np.ndarray]]:
    """Returns the features of each example, without padding."""
    num_features = len(features.lengths)
    batch = features.batch(range(num_features), length, num_features)
    return [
        {name: values[i][:size] for name, values in batch.items()}
        for i, size in enumerate(features.lengths)
    ]


def save_rows(path: str, rows: Sequence[dict[str, np.ndarray]]) -> None:
    """Writes rows for the Trainer: lists of ids, numbers or lists as labels."""
    lists = []
    for row in rows:
        if "label_mask" in row:  # Transformers ignores tokens with -100.
            labels = np.where(row["label_mask"], row["label_ids"], -100)
            row = {**row, "label_ids": labels}
        # The Trainer expects the one label of a text as a number.
        lists.append(
            {
                peer_name: row[name].tolist()
                if name in IDS or row[name].size > 1
                else row[name].item()
                for name, peer_name in {**IDS, **LABELS}.items()
                if name in row
            }
        )
    files.write_text(path, json.dumps(lists))


def main(
    data_dir: str,
    vocab_file: str,
    model: str,
    python: str = "",
    max_steps: str = "0",
) -> None:
    config = SIZES[model]
    tokenizer = Tokenizer(vocab_file)
    options = RunSquad(train_file=f"{data_dir}/squad/train-v1.1.json")
    squad = SquadTask(data=SquadData(options))
    mrpc, sst2 = (
        glue.make(
            RunClassifier(task_name=name, data_dir=f"{data_dir}/glue/{name}")
        )
        for name in ("MRPC", "SST-2")
    )
    tasks: dict[str, tuple[Task, int, int]] = {
        "MRPC": (mrpc, 128, 32),
        "SST-2": (sst2, 128, 32),
        "SQuAD": (squad, 384, 12),
    }
    print(
        "task   model  steps  mean length  padded     max  bucket"
        "  Trainer  dynamic   ours faster"
    )
    for name, (task, length, size) in tasks.items():
        examples = task.data.read("train")[: 2000 if name == "SQuAD" else None]
        with tempfile.TemporaryDirectory() as scratch:
            path = os.path.join(scratch, "train.tf_record")
            record_files.write_records(path, task, examples, tokenizer, length)
            data = RecordFiles([path], task.schema(length))
            rows = [
                row
                for features in task.featurize(examples, tokenizer, length)
                for row in unpadded(features, length)
            ]
            steps = len(rows) // size
            steps = min(steps, int(max_steps) or steps)
            mean = np.mean([len(row["input_ids"]) for row in rows])
            padded, longest, bucket = (
                our_seconds(task, config, data, size, steps, *settings)
                for settings in (
                    ("max", False),
                    ("max", not task.head.reads_padding),
                    ("bucket", False),
                )
            )
            line = f"{name:6} {model:5} {steps:6} {mean:12.1f} {padded:7.1f} "
            line += f"{longest:7.1f} {bucket:7.1f}"
            if python:
                rows_file = os.path.join(scratch, "rows.json")
                save_rows(rows_file, rows)
                settings = (str(size), str(steps), str(NUM_WARM), str(length))
                trainer, dynamic = (
                    trainer_seconds(
                        python, rows_file, config, *settings, pad_to
                    )
                    for pad_to in ("max", "longest")
                )
                line += f"  {trainer:7.1f} {dynamic:8.1f} "
                line += f"{dynamic / bucket:13.2f}"
        print(line, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
