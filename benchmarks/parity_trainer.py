"""The part of `finetuning_parity.py` that runs Hugging Face's Trainer.

`finetuning_parity.py` runs this program with a Python that has torch,
transformers and accelerate: MODEL, with the output layer of
FOLDER/output_layer.npz, is trained on FOLDER/train.json in this order, with the
arguments in FOLDER/settings.json. The logits of FOLDER/dev.json are written to
FOLDER/logits.npy.
"""

import json
import os
import sys
from typing import Any

import numpy as np
import torch
import transformers

from benchmarks.padding_trainer import collate


class Trainer(transformers.Trainer):
    """Has the learning rate `rates[step]` in each step."""

    rates: list[float]

    def create_scheduler(
        self, num_training_steps: int, optimizer: Any = None
    ) -> Any:
        """Returns the schedule of `rates`, for a learning rate of 1."""
        self.lr_scheduler = torch.optim.lr_scheduler.LambdaLR(
            optimizer or self.optimizer, self.rates.__getitem__
        )
        return self.lr_scheduler


def main(model: str, folder: str) -> None:
    def read(name: str) -> Any:
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            return json.load(file)

    rows, settings = read("train.json"), read("settings.json")
    suffix, num_labels = settings.pop("suffix"), settings.pop("num_labels")
    dropout, rates = settings.pop("dropout"), settings.pop("rates")
    transformers.set_seed(settings["seed"])
    model_class = getattr(transformers, f"BertFor{suffix}")
    trained = model_class.from_pretrained(
        model, num_labels=num_labels, classifier_dropout=dropout
    )
    is_squad = suffix == "QuestionAnswering"
    output_layer = trained.qa_outputs if is_squad else trained.classifier
    arrays = np.load(os.path.join(folder, "output_layer.npz"))
    output_layer.load_state_dict(
        {name: torch.tensor(array) for name, array in arrays.items()}
    )
    trainer = Trainer(
        model=trained,
        args=transformers.TrainingArguments(
            output_dir=os.path.join(folder, "trainer"),
            learning_rate=1.0,  # The schedule has absolute rates.
            num_train_epochs=1,  # The rows are those of all epochs.
            train_sampling_strategy="sequential",
            # As in BERT's optimizer.
            weight_decay=0.01,
            adam_epsilon=1e-6,
            max_grad_norm=1.0,
            save_strategy="no",
            report_to=[],
            use_cpu=True,
            disable_tqdm=True,
            **settings,
        ),
        train_dataset=rows,
        data_collator=lambda batch: collate(batch, 0),
    )
    trainer.rates = [*rates, 0.0]
    trainer.train()
    logits = trainer.predict(read("dev.json")).predictions
    if is_squad:  # Starts and ends.
        logits = np.stack(logits, axis=-1)
    np.save(os.path.join(folder, "logits.npy"), logits)


if __name__ == "__main__":
    main(*sys.argv[1:])
