"""What a fine-tuning run is made of, and what it leaves about itself."""

import dataclasses
import os
from collections.abc import Sequence
from typing import Any, NamedTuple

import tensorflow as tf
from absl import logging

from official_bert import files, json_files, task_file
from official_bert.checkpoints import numbered
from official_bert.config import BertConfig
from official_bert.errors import InputError
from official_bert.hub.hub_encoder import HubBert
from official_bert.options import FinetuningOptions, RunClassifierWithTfhub
from official_bert.tasks.task import Task
from official_bert.tokenization import (
    BatchTokenizer,
    validate_case_matches_checkpoint,
)
from official_bert.training import (
    computing,
    distribution,
    output_folder,
    starting,
)


class Run(NamedTuple):
    """What the parts of a run share.

    Attributes:
        data: {split: its examples}.
        folder: Where this process writes: the output folder, if it is the one
            of several hosts that may.
        hub_module: The handle of the TF Hub module that is trained, if it
            is not one of our BERTs.
    """

    task: Task
    options: FinetuningOptions
    config: BertConfig
    tokenizer: BatchTokenizer
    strategy: tf.distribute.Strategy
    model: Any
    data: dict[str, Sequence[Any]]
    folder: str
    hub_module: str = ""


def prepare(task: Task, options: FinetuningOptions) -> Run:
    """Reads all data and makes the model, in the order of their cost."""
    config = options.model_config()
    validate_case_matches_checkpoint(
        options.do_lower_case, options.init_checkpoint
    )
    tokenizer = BatchTokenizer(options.vocab_file, options.do_lower_case)
    config.require_vocabulary(tokenizer.vocab, options.vocab_file)
    starting.require_same_model(options, config)
    _require_same_task(task, options)
    _require_same_pieces(options)
    _require_evaluations(options)
    strategy = _devices(options)
    data = _begin(task, options)
    with computing.scope(options, strategy):
        model = task.build_model(config)
    computing.set_recomputing(model, options)
    folder = distribution.own_folder(strategy, options.output_dir)
    return Run(task, options, config, tokenizer, strategy, model, data, folder)


def prepare_module(task: Task, options: RunClassifierWithTfhub) -> Run:
    """Does the same with a TF Hub module, which knows its vocabulary."""
    _require_same_task(task, options)
    _require_evaluations(options)
    strategy = _devices(options)
    with computing.scope(options, strategy):
        bert = HubBert(options.bert_hub_module_handle)
    config = bert.config
    config.require_length(options.max_seq_length)
    options.require_layers(config.num_hidden_layers)
    if not bert.is_ours:
        _require_all_layers(options)
    vocab_file, do_lower_case = bert.encoder.text_info
    options = dataclasses.replace(
        options,
        vocab_file=vocab_file,
        do_lower_case=do_lower_case,
        init_checkpoint=None,
    )
    tokenizer = BatchTokenizer(vocab_file, do_lower_case)
    config.require_vocabulary(tokenizer.vocab, vocab_file)
    _require_same_pieces(options)
    data = _begin(task, options)
    with computing.scope(options, strategy):
        model = task.build_model(config, bert)
    folder = distribution.own_folder(strategy, options.output_dir)
    handle = "" if bert.is_ours else options.bert_hub_module_handle
    if os.path.isdir(handle):
        handle = os.path.abspath(handle)  # To be found from anywhere.
    return Run(
        task, options, config, tokenizer, strategy, model, data, folder, handle
    )


def _require_all_layers(options: RunClassifierWithTfhub) -> None:
    """Refuses what must know which weight belongs to which layer."""
    if options.freeze or options.layerwise_lr_decay != 1.0:
        raise InputError(
            "--freeze and --layerwise_lr_decay need a module whose weights "
            "have the names of 2018, as export_tfhub.py writes them. Received: "
            f"{options.bert_hub_module_handle!r}. Leave them out."
        )


def _begin(task: Task, options: FinetuningOptions) -> dict[str, Sequence[Any]]:
    """Returns the data, with a folder and a seed set."""
    data = {
        split: task.examples(split)
        for mode in _modes(options)
        for split in task.splits(mode)
    }
    for split, examples in data.items():
        logging.info("%s: %d examples", split, len(examples))
    files.make_directory(options.output_dir)
    starting.set_seed(options.seed)
    return data


def _devices(options: FinetuningOptions) -> tf.distribute.Strategy:
    """Returns the devices, between which batches can be divided."""
    strategy = distribution.choose(options)
    batches = {
        "train": ("train_batch_size", options.gradient_accumulation_steps),
        "dev": ("eval_batch_size", 1),
        "test": ("predict_batch_size", 1),
    }
    for mode in _modes(options):
        flag, parts = batches[mode]
        distribution.require_divisible(
            getattr(options, flag), strategy, flag, parts
        )
    return strategy


def _require_same_task(task: Task, options: FinetuningOptions) -> None:
    """Compares with what was trained here; weights alone would not tell."""
    names = ["kind", "task_type", "labels", "top"]
    if options.do_train:
        names.append("metric")  # Evaluations on the way are compared.
    wanted = task.to_json()
    _require_as_trained(options, {name: wanted.get(name) for name in names})


def _require_same_pieces(options: FinetuningOptions) -> None:
    """Compares how texts are cut, once that is known."""
    starting.require_same_vocabulary(options.output_dir, options.vocab_file)
    _require_as_trained(options, {"do_lower_case": options.do_lower_case})


def _require_as_trained(
    options: FinetuningOptions, wanted: dict[str, Any]
) -> None:
    """Compares parts of a `task.json` with that in the output folder."""
    folder = options.output_dir
    if not task_file.is_in(folder):
        return
    trained = task_file.read(folder)
    for name, now in wanted.items():
        before = trained.get(name)
        if before != now:
            raise InputError(
                f"{task_file.path_in(folder)}: the model there was trained for "
                f"another task, whose `{name}` is {before!r}. Received: "
                f"{now!r}. Use another --output_dir for another task."
            )


def _require_evaluations(options: FinetuningOptions) -> None:
    """Refuses to train what would not be used: a best model was kept before."""
    best = os.path.join(options.output_dir, files.BEST_DIRECTORY)
    if options.do_train and not options.eval_every and numbered.latest(best):
        raise InputError(
            "--eval_every must be given to go on where an earlier run had it: "
            f"the best model, which it kept in {best!r}, is used in the end. "
            "Received: --eval_every=0. Give it again, choose another "
            "--output_dir, or remove that folder to use the last model."
        )


def _modes(options: FinetuningOptions) -> list[str]:
    wanted = {
        "train": options.do_train,
        "dev": options.do_eval or (options.do_train and options.eval_every),
        "test": options.do_predict,
    }
    return [mode for mode, is_wanted in wanted.items() if is_wanted]


def leave_notes(run: Run) -> None:
    """Leaves the options, and all that is needed to use what is trained."""
    output_folder.leave_notes(run.folder, run.options, _model_files(run))


def _model_files(run: Run) -> dict[str, str]:
    """Returns {name: text} of what says how a model is made and used."""
    options = run.options
    task = task_file.describe(
        run.task.to_json(), options.max_seq_length, options.do_lower_case
    )
    if run.hub_module:
        task["hub_module"] = run.hub_module
    texts = {
        task_file.NAME: json_files.to_text(task),
        "vocab.txt": files.read_text(options.vocab_file),
    }
    if not run.hub_module:
        texts["bert_config.json"] = run.config.to_json_string()
    return texts
