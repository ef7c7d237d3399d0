"""Loads trained models: encoders, masked LMs and fine-tuned models."""

import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from official_bert import tasks
from official_bert.errors import InputError
from official_bert.hub import HubBert
from official_bert.inference.masked_lm import MASK
from official_bert.inputs import text_inputs
from official_bert.modeling.encoder import Bert, BertOutput
from official_bert.modeling.finetuning_models import build_model
from official_bert.modeling.layers import to_be_loaded
from official_bert.modeling.pretraining_model import PretrainingModel
from official_bert.options.model_source import require_finetuned
from official_bert.sources import heads, loading, pretrained, task_file
from official_bert.sources.formats.huggingface import (
    weights as huggingface_weights,
)
from official_bert.sources.formats.tf1 import checkpoint as tf1
from official_bert.sources.pretrained import ModelFiles
from official_bert.sources.stored_model import Model, match
from official_bert.tasks.task import FinetunedModel, TransformersModel
from official_bert.tokenization import Tokenizer


def _load_weights(model: Any, model_files: ModelFiles, **patterns: str) -> str:
    """Assigns the weights of a model; returns their source.

    The source is the prefix of the checkpoint, or the directory of a model in
    another format. For `patterns` see `sources.loading.load`. Raises
    `InputError` if the files are damaged or do not fit each other.
    """
    variables = tf1.by_name(model.trainable_variables)
    checkpoint = model_files.init_checkpoint
    loaded = loading.load(
        variables, checkpoint, model_files=model_files, **patterns
    )
    return loaded.source


class LoadedBert(NamedTuple):
    """BERT without heads, its tokenizer, and the source of its weights."""

    bert: Bert
    tokenizer: Tokenizer
    source: str

    def run(
        self, ids_a: Sequence[int], ids_b: Sequence[int] = (), **options: bool
    ) -> tuple[dict[str, list[int]], BertOutput]:
        """Runs the model on a text or a pair; returns inputs and outputs.

        `options` are arguments of `Bert`.
        """
        features = text_inputs.text_features(ids_a, ids_b, self.tokenizer.vocab)
        batch = {name: tf.constant([ids]) for name, ids in features.items()}
        return features, self.bert(**batch, **options)

    def require_length(
        self, num_tokens: int, max_seq_length: int, where: str
    ) -> None:
        """Raises `InputError`, "WHERE: ...", if a text is too long."""
        if num_tokens <= max_seq_length:
            return
        positions = self.bert.config.max_position_embeddings
        advice = f"Shorten it; the model has {positions} positions."
        if num_tokens <= positions:
            advice = f"Pass --max_seq_length={num_tokens}, or shorten it."
        raise InputError(
            f"{where}: {num_tokens} tokens, with [CLS] and [SEP], exceed "
            f"--max_seq_length={max_seq_length}. {advice}"
        )


def load_encoder(
    model_files: ModelFiles, never_split: tuple[str, ...] = ()
) -> LoadedBert:
    """Loads BERT; ignores heads. The tokenizer keeps `never_split` whole.

    A missing pooler is not an error.
    """
    with to_be_loaded():
        bert = Bert(model_files.config)
        bert.build()
    tokenizer = model_files.tokenizer_for(bert.config, never_split)
    source = _load_weights(
        bert,
        model_files,
        may_initialize="^bert/pooler/",  # The pooler is not used.
        may_skip=tf1.NOT_BERT,
    )
    return LoadedBert(bert, tokenizer, source)


def load_masked_lm(
    model_files: ModelFiles,
) -> tuple[PretrainingModel, Tokenizer]:
    """Loads a pre-trained model, and a tokenizer that keeps [MASK] whole.

    Raises `InputError` if files are damaged, or there is no masked-LM head.
    """
    with to_be_loaded():
        model = PretrainingModel(model_files.config)
    tokenizer = model_files.tokenizer_for(model.config, (MASK,))
    _load_weights(
        model,
        model_files,
        # Not used; models that were trained on masked LM alone lack them.
        may_initialize=heads.OF_PAIRS,
        may_skip=tf1.OPTIMIZER_STATE,
    )
    return model, tokenizer


def load_finetuned(
    directory: str | None, model_files: ModelFiles | None = None
) -> FinetunedModel:
    """Loads the best checkpoint of a fine-tuning run, or the newest.

    `model_files` may name another checkpoint or, without a run directory, a
    fine-tuned model of transformers. Raises `InputError` if a file is missing
    or damaged.
    """
    # Taggers and SQuAD models of transformers may lack the pooler, which they
    # do not use.
    may_initialize = "" if directory else "^bert/pooler/"
    if directory:
        require_finetuned(directory)
        model_files = model_files or pretrained.run_files(directory)
    assert model_files
    description, directory = read_task(model_files, directory)
    task, max_seq_length = tasks.load(description, directory)
    # Models of transformers were trained on texts that may have these tokens.
    finds_special = task.finds_special_tokens or not task_file.is_in(directory)
    kept = model_files.special_tokens if finds_special else ()
    if "hub_module" in description:
        bert = HubBert(description["hub_module"])
        model = build_model(task.head, bert.config, bert)
    else:
        with to_be_loaded():
            model = build_model(task.head, model_files.config)
    positions = model.config.max_position_embeddings
    if max_seq_length > positions:
        raise InputError(
            f"{task_file.path_in(directory)}: `max_seq_length` must not exceed "
            f"the model's {positions} positions. Received: {max_seq_length}."
        )
    tokenizer = model_files.tokenizer_for(model.config, kept)
    _load_weights(
        model,
        model_files,
        may_initialize=may_initialize,
        may_skip=tf1.OPTIMIZER_STATE,
    )
    return FinetunedModel(task, model, tokenizer, max_seq_length)


def read_task(
    model_files: ModelFiles, run_directory: str | None
) -> tuple[dict[str, Any], str]:
    """Returns the content of `task.json`, and the directory of the model.

    Without a run directory, this is the directory of a model of transformers,
    whose weights complete what `ModelFiles.task` knows. Raises `InputError` if
    a file is damaged, or the model is not fine-tuned.
    """
    if run_directory:
        return task_file.read(run_directory), run_directory
    directory = model_files.init_checkpoint
    description = dataclasses.replace(
        huggingface_weights.describe(model_files.source, model_files.config),
        settings=model_files.settings,
    )
    task = description.task
    if task is None:
        model = match(huggingface_weights.open_arrays(directory), description)
        task = task_of_model(model)
        if task is None:
            raise InputError(
                f"{directory}: must be fine-tuned to classify texts or tokens, "
                f"or to answer questions. Received: the head {model.head.name}."
            )
    return task, directory


def task_of_model(model: Model) -> dict[str, Any] | None:
    """Returns the content of `task.json` for a model of another format.

    Values that other formats do not store have their defaults. Multiple choice
    has no task, because other formats do not store the number of choices.
    """
    description, labels = model.description, model.labels
    if model.head.task is None:
        return None
    length = description.config.max_position_embeddings
    length = min(length, description.max_seq_length or length)
    task = tasks.KINDS[model.head.task].of_transformers(
        TransformersModel(
            model.arrays.where, labels, description.problem_type, length
        )
    )
    is_uncased = description.settings.is_uncased
    return task_file.describe(task.to_json(), length, is_uncased)
