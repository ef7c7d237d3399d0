"""The part of `padding.py` that runs Hugging Face's Trainer.

`padding.py` runs it with a Python that has torch, transformers and accelerate.
It prints the seconds of the steps after the warm-up.
"""

import json
import sys
import tempfile
import time
from typing import Any

import numpy as np
import torch
import transformers


class Rows(torch.utils.data.Dataset):
    """The rows that `padding.save_rows` wrote."""

    def __init__(self, path: str) -> None:
        self.arrays = dict(np.load(path))
        self.ends = np.cumsum(self.arrays["lengths"])

    def __len__(self) -> int:
        return len(self.ends)

    def __getitem__(self, index: int) -> dict[str, Any]:
        end = self.ends[index]
        part = slice(end - self.arrays["lengths"][index], end)
        row = {
            "input_ids": self.arrays["input_ids"][part],
            "attention_mask": self.arrays["input_mask"][part],
            "token_type_ids": self.arrays["segment_ids"][part],
        }
        for theirs, ours in (
            ("labels", "label_ids"),
            ("start_positions", "start_positions"),
            ("end_positions", "end_positions"),
        ):
            if ours in self.arrays:
                row[theirs] = self.arrays[ours][index]
        return row


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
    """Pads rows to a length, or for 0 to that of the longest."""
    length = length or max(len(row["input_ids"]) for row in rows)
    batch = {}
    for name in rows[0]:
        values = [np.asarray(row[name]) for row in rows]
        if values[0].ndim:
            values = [np.pad(v, (0, length - len(v))) for v in values]
        batch[name] = torch.tensor(np.stack(values)).long()
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
    """Trains and prints the seconds."""
    rows = Rows(path)
    config = transformers.BertConfig(**json.loads(config_json))
    head = "QuestionAnswering" if "start_positions" in rows.arrays else ""
    head = head or "SequenceClassification"
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
