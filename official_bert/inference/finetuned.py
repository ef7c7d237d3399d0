"""What fine-tuning left in its output folder, loaded."""

import os
from typing import Any, NamedTuple

from official_bert import task_file, tasks
from official_bert.checkpoints import loading, numbered
from official_bert.config import BertConfig
from official_bert.errors import InputError
from official_bert.hub.hub_encoder import HubBert
from official_bert.options.model_source import require_finetuned
from official_bert.tasks.task import Task
from official_bert.tokenization import BatchTokenizer


class Finetuned(NamedTuple):
    """A trained model, and what is needed to use it.

    Attributes:
        task: What it was trained for.
        model: As `task.build_model` makes it, with its weights.
        tokenizer: Of the model.
        vocab_file: The tokenizer's.
        max_seq_length: What it was trained with.
    """

    task: Task
    model: Any
    tokenizer: BatchTokenizer
    vocab_file: str
    max_seq_length: int


def load(output_dir: str) -> Finetuned:
    """Loads the best checkpoint of a folder, or the newest.

    Args:
        output_dir: Of `run_classifier.py` or its like.

    Raises:
        InputError: Something that is needed is missing or damaged.
    """
    require_finetuned(output_dir)
    described = task_file.read(output_dir)
    vocab_file = os.path.join(output_dir, "vocab.txt")
    bert = None
    if "hub_module" in described:
        bert = HubBert(described["hub_module"])
        config = bert.config
    else:
        config_file = os.path.join(output_dir, "bert_config.json")
        config = BertConfig.from_json_file(config_file)
    try:
        task = tasks.from_json(described)
        max_seq_length = int(described["max_seq_length"])
        do_lower_case = bool(described["do_lower_case"])
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"{task_file.path_in(output_dir)}: must be as fine-tuning wrote "
            "it. Received: one in which something is missing or wrong "
            f"({error})."
        ) from error
    tokenizer = BatchTokenizer(vocab_file, do_lower_case)
    config.require_vocabulary(tokenizer.vocab, vocab_file)
    model = task.build_model(config, bert)
    loading.load(
        loading.by_name(model.trainable_variables),
        numbered.require(output_dir),
        may_skip=loading.OPTIMIZER_STATE,
    )
    return Finetuned(task, model, tokenizer, vocab_file, max_seq_length)
