r"""Takes a model from one format of weights to another.

  python convert_checkpoint.py --to=huggingface \
    --input=uncased_L-12_H-768_A-12/bert_model.ckpt --output=bert_hf

  python convert_checkpoint.py --to=tf1 --input=bert_hf --output=bert_tf1

  python convert_checkpoint.py --to=keras_hub --skip=^cls/seq_relationship/ \
    --input=uncased_L-12_H-768_A-12/bert_model.ckpt --output=bert_keras_hub

  python convert_checkpoint.py --to=tf1 --strip_optimizer \
    --input=/tmp/pretraining_output --output=/tmp/pretrained

Every weight must have a counterpart; what was written is read back and
compared, bit for bit.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from official_bert import cli
from official_bert.errors import InputError
from official_bert.options import ConvertCheckpoint

if TYPE_CHECKING:
    from official_bert.checkpoints.conversion.model import Model


def main(options: ConvertCheckpoint) -> None:
    """Converts, and says what became of what."""
    # TensorFlow takes seconds to import; errors in flags should not.
    from official_bert.checkpoints import conversion

    if options.strip_optimizer:
        print(conversion.strip(options))
        return
    model = conversion.read(options)
    if options.to == "tf1" and model.described.task is None:
        described = dataclasses.replace(model.described, task=task_of(model))
        model = dataclasses.replace(model, described=described)
    print(conversion.convert(model, options))


def task_of(model: Model) -> dict[str, Any] | None:
    """Returns a `task.json` for `predict.py`, of what is known of a model.

    It has this program's defaults where other formats say nothing. A multiple
    choice's number of choices is in no other format: there is none for it.
    """
    from official_bert.tasks.squad.squad_task import SquadTask
    from official_bert.tasks.tagging import TaggingTask
    from official_bert.tasks.text import TextTask

    described, head, labels = model.described, model.head.name, model.labels
    length = described.config.max_position_embeddings
    if head == "question_answering":
        # 128 and 64 as by default, unless the model reads little.
        task = SquadTask(
            doc_stride=min(128, length // 4),
            max_query_length=min(64, length // 4),
        ).to_json()
    elif head == "token_classification":
        task = TaggingTask(labels=labels).to_json()
    elif head == "sequence_classification":
        kind = "regression" if len(labels) == 1 else "classification"
        if described.problem_type == "regression" and len(labels) > 1:
            raise InputError(
                f"{model.arrays.where}: a regression must have one number. "
                f"Received: {len(labels)}, {', '.join(labels)}. To convert the "
                "encoder alone, give --skip='^classifier'."
            )
        if described.problem_type == "multi_label_classification":
            kind = "multilabel"
        labels = () if kind == "regression" else labels
        task = TextTask(task_type=kind, labels=labels).to_json()
    else:
        return None
    return {
        **task,
        "max_seq_length": length,
        "do_lower_case": described.do_lower_case is not False,
    }


if __name__ == "__main__":
    cli.run(main, ConvertCheckpoint)
