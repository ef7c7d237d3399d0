r"""Converts a model between TF1, Hugging Face, KerasHub and Model Garden.

  python convert_checkpoint.py --to=huggingface \
    --input=uncased_L-12_H-768_A-12/bert_model.ckpt --output=bert_hf

  python convert_checkpoint.py --to=tf1 --input=bert_hf --output=bert_tf1

  python convert_checkpoint.py --to=keras_hub --skip=^cls/seq_relationship/ \
    --input=uncased_L-12_H-768_A-12/bert_model.ckpt --output=bert_keras_hub

  python convert_checkpoint.py --to=tf1 --strip_optimizer \
    --input=/tmp/pretraining_output --output=/tmp/pretrained

Every weight must have a counterpart. The output is read back and compared bit
for bit.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from official_bert import cli
from official_bert.errors import InputError, listed
from official_bert.options import ConvertCheckpoint

if TYPE_CHECKING:
    from official_bert.checkpoints.conversion.model import Model


def main(options: ConvertCheckpoint) -> None:
    """Converts a model, or strips the optimizer, and prints a report."""
    # Imported here: TensorFlow takes seconds, errors in flags should not.
    from official_bert.checkpoints.conversion import converter

    if options.strip_optimizer:
        print(converter.strip_optimizer(options))
        return
    model = converter.open_model(options)
    if options.to == "tf1" and model.description.task is None:
        description = dataclasses.replace(
            model.description, task=make_task(model)
        )
        model = dataclasses.replace(model, description=description)
    print(converter.convert(model, options))


def make_task(model: Model) -> dict[str, Any] | None:
    """Returns the content of `task.json` for a model of another format.

    What other formats do not store has its default. There is no task for
    multiple choice, because other formats do not store the number of choices.
    """
    from official_bert.tasks.squad.squad_task import SquadTask
    from official_bert.tasks.tagging import TaggingTask
    from official_bert.tasks.text import TextTask

    description, labels = model.description, model.labels
    head = model.head.name
    length = description.config.max_position_embeddings
    if head == "question_answering":
        # The defaults 128 and 64, unless the model has few positions.
        task = SquadTask(
            doc_stride=min(128, length // 4),
            max_query_length=min(64, length // 4),
        ).to_json()
    elif head == "token_classification":
        task = TaggingTask(labels=labels).to_json()
    elif head == "sequence_classification":
        kind = "regression" if len(labels) == 1 else "classification"
        if description.problem_type == "regression" and len(labels) > 1:
            raise InputError(
                f"{model.arrays.where}: a regression model must have one "
                f"label. Received: {listed(labels)}. To convert only the "
                "encoder, add --skip='^classifier'."
            )
        if description.problem_type == "multi_label_classification":
            kind = "multilabel"
        labels = () if kind == "regression" else labels
        task = TextTask(task_type=kind, labels=labels).to_json()
    else:
        return None
    return {
        **task,
        "max_seq_length": length,
        "do_lower_case": description.do_lower_case is not False,
    }


if __name__ == "__main__":
    cli.run(main, ConvertCheckpoint)
