"""The part of `padding.py` that runs Hugging Face's Trainer.

`padding.py` runs this program with a Python that has torch, transformers and
accelerate. It trains on the rows of `padding.save_rows` and prints the seconds
of the steps after the warm-up.
"""

import json
import sys
import tempfile
import time
from typing import Any

import torch
import transformers


class Timer(transformers.TrainerCallback):
    """Starts the clock after the warm-up."""

    def __init__(self, num_warm: int) -> None:
        self.num_warm = num_warm
        self.start = 0.0

    def on_step_end(
        self, args: Any, state: Any, control: Any, **kwargs: Any
    ) -> None:
        """Starts the clock."""
        if state.global_step == self.num_warm:
            self.start = time.perf_counter()


def collate(rows: list[dict[str, Any]], length: int) -> dict[str, Any]:
    """Pads rows to a length; 0: the length of the longest row."""
    length = length or max(len(row["input_ids"]) for row in rows)
    batch = {}
    for name in rows[0]:
        values = [row[name] for row in rows]
        if isinstance(values[0], list):
            pad = -100 if name == "labels" else 0
            values = [ids + [pad] * (length - len(ids)) for ids in values]
        batch[name] = torch.tensor(values)
    return batch


def main(
    path: str,
    config_json: str,
    batch_size: str,
    num_steps: str,
    num_warm: str,
    length: str,
    pad_to: str,
) -> None:
    with open(path, encoding="utf-8") as file:
        rows = json.load(file)
    config = transformers.BertConfig(**json.loads(config_json))
    is_squad = "start_positions" in rows[0]
    head = "QuestionAnswering" if is_squad else "SequenceClassification"
    model = getattr(transformers, f"BertFor{head}")(config)
    timer = Timer(int(num_warm))
    with tempfile.TemporaryDirectory() as scratch:
        trainer = transformers.Trainer(
            model=model,
            args=transformers.TrainingArguments(
                output_dir=scratch,
                per_device_train_batch_size=int(batch_size),
                max_steps=int(num_steps),
                save_strategy="no",
                report_to=[],
                use_cpu=True,
                disable_tqdm=True,
            ),
            train_dataset=rows,
            data_collator=lambda batch: collate(
                batch, int(length) if pad_to == "max" else 0
            ),
            callbacks=[timer],
        )
        trainer.train()
    print(time.perf_counter() - timer.start)


if __name__ == "__main__":
    main(*sys.argv[1:])
