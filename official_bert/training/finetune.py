"""Fine-tuning: trains, evaluates and predicts any task."""

import dataclasses
import math
import os

import tensorflow as tf
from absl import logging

from official_bert import plots
from official_bert.errors import InputError
from official_bert.hub import HubBert
from official_bert.inputs import datasets
from official_bert.inputs.records import RecordFiles
from official_bert.io import files, json_files
from official_bert.modeling.finetuning_models import build_model
from official_bert.optimization import layerwise
from official_bert.optimization.schedules import LinearWarmupDecay
from official_bert.options import (
    FinetuningOptions,
    RunClassifier,
    RunClassifierWithTfhub,
)
from official_bert.runs import file_names
from official_bert.runs.directory import RunDirectory
from official_bert.sources import checkpoint_paths, task_file
from official_bert.sources.heads import TASK_HEAD
from official_bert.tasks import record_files
from official_bert.tasks.task import Task
from official_bert.tokenization import Tokenizer
from official_bert.training import (
    checkpointing,
    distribution,
    evaluate,
    loop,
    output_layer,
    precision,
    reporting,
    resuming,
)
from official_bert.training.evaluate import FinetuningRun
from official_bert.training.objectives import FinetuningObjective

# Weights that only fine-tuning has, and the pooler, which masked-LM models of
# transformers lack.
_TASK_WEIGHTS = f"{TASK_HEAD}|^bert/pooler/"

# Fewer training steps give a warning: most models then learn nothing.
_FEW_STEPS = 30


def run(task: Task, options: FinetuningOptions) -> None:
    """Trains, evaluates and predicts, as set by the options."""
    with (
        checkpointing.output_dir_lock(options),
        distribution.reporting_lost_hosts(options),
    ):
        prepared = prepare(task, options)
        if options.do_train:
            train(prepared)
            # The chief may still be writing the last checkpoint.
            distribution.wait_for_all_hosts(prepared.strategy)
        if options.do_eval or options.do_predict:
            _evaluate_and_predict(prepared)
        if options.plots and options.is_chief:
            plots.write(options.output_dir)


def _evaluate_and_predict(run: FinetuningRun) -> None:
    """Evaluates and predicts with the weights of `load_for_evaluation`."""
    options = run.options
    global_step = checkpointing.load_for_evaluation(run.model, options)
    if not options.do_train:
        reporting.write_eval_options(options)
        reporting.log_data(run.task, run.examples, {}, options.max_seq_length)
    if options.do_eval:
        evaluate.write_results(run, global_step)
    if options.do_predict:
        evaluate.predict(run)


def prepare(task: Task, options: FinetuningOptions) -> FinetuningRun:
    """Checks options and files, reads the data and builds the model."""
    bert = None
    if isinstance(options, RunClassifierWithTfhub):
        strategy = distribution.choose_strategy(options)
        bert, options = _load_module(options, strategy)
        config = bert.config
    else:
        config = options.model_config()
    tokenizer = Tokenizer(options.vocab_file, options.do_lower_case)
    config.require_vocabulary(tokenizer.vocab, options.vocab_file)
    resuming.require_eval_every_if_best(options)
    if not resuming.replaces_earlier_run(options):
        resuming.require_same_model(options, None if bert else config)
        resuming.require_same_task(task, options)
    if options.do_train:
        resuming.require_resumable(options, data_files(task, options))
    if bert is None:  # After the checks, which need no devices or other hosts.
        strategy = distribution.choose_strategy(options)
    examples = {}
    for mode in options.used_splits:  # MNLI has two development sets.
        for split in task.data.splits(mode):
            examples[split] = task.data.read(split)
    files.make_directory(options.output_dir)
    checkpointing.set_seed(options.seed)
    with strategy.scope(), precision.policy(options.mixed_precision):
        model = build_model(task.head, config, bert)
    directory = distribution.writable_directory(options)
    return FinetuningRun(
        task, options, tokenizer, strategy, model, examples, directory
    )


def _load_module(
    options: RunClassifierWithTfhub, strategy: tf.distribute.Strategy
) -> tuple[HubBert, RunClassifierWithTfhub]:
    """Loads a TF Hub module; returns it, and options with its vocabulary.

    Raises `InputError` if the options do not fit the module.
    """
    with strategy.scope():
        bert = HubBert(options.bert_hub_module_handle)
    bert.config.require_length(options.max_seq_length)
    options.require_layers(bert.config.num_hidden_layers)
    selects_layers = options.freeze or options.layerwise_lr_decay != 1.0
    if selects_layers and not bert.is_ours:
        raise InputError(
            "--freeze and --layerwise_lr_decay require a module whose weights "
            f"have the original names, as export_tfhub.py writes it. Received: "
            f"{options.bert_hub_module_handle!r}. Remove these flags."
        )
    text_info = bert.encoder.text_info._asdict()
    options = dataclasses.replace(options, **text_info, init_checkpoint=None)
    return bert, options


def data_files(task: Task, options: FinetuningOptions) -> dict[str, list[str]]:
    """Returns the files that must not change when a run resumes."""
    paths = {"training data": [task.data.path("train")]}
    holds_out = isinstance(options, RunClassifier) and options.holds_out
    if options.eval_every and not holds_out:
        paths["evaluation data"] = [task.data.path("dev")]
    return paths


def _model_files(run: FinetuningRun) -> dict[str, str]:
    """Returns {name: text} of the files that describe the model."""
    options, bert, texts = run.options, run.model.bert, {}
    task = task_file.describe(
        run.task.to_json(), options.max_seq_length, options.do_lower_case
    )
    if isinstance(bert, HubBert) and not bert.is_ours:
        handle = bert.encoder.handle
        # Later commands may run in another directory.
        is_local = os.path.isdir(handle)
        task["hub_module"] = os.path.abspath(handle) if is_local else handle
    else:
        texts[file_names.CONFIG] = run.model.config.to_json_string()
    return {**texts, file_names.TASK: json_files.to_text(task)}


def train(run: FinetuningRun) -> None:
    """Trains from the run's newest checkpoint, or from `init_checkpoint`."""
    options = run.options
    if not (options.init_checkpoint or isinstance(run.model.bert, HubBert)):
        logging.warning(
            "No pre-trained weights are given: the model starts from random "
            "weights. Add --init_checkpoint or --model"
        )
    # Loads the weights first, because writing records may take much longer.
    checkpoint = options.init_checkpoint
    if checkpoint and not checkpointing.checkpoint_to_resume(options):
        checkpointing.load_initial(
            run.model,
            options,
            may_initialize=_TASK_WEIGHTS,
            left_out=output_layer.weights_to_initialize(run.task, checkpoint),
        )
        _warn_of_untrained_positions(options)
    data, num_examples = _write_training_records(run)
    schedule = _make_schedule(num_examples, options)
    _warn_of_few_evaluations(options, schedule.num_train_steps)
    weights = layerwise.unfrozen(run.model.learning_variables, options.freeze)
    trainer = loop.Trainer(
        run.model,
        FinetuningObjective(run.task.head),
        weights,
        schedule,
        options,
        run.strategy,
        layerwise.rate_scales(
            [weight.path for weight in weights],
            options.layerwise_lr_decay,
            run.model.config.num_hidden_layers,
        ),
    )
    start = checkpointing.resume(trainer.state, options, run.strategy)
    num_steps, batch_size = schedule.num_train_steps, options.train_batch_size
    resuming.remove_earlier_run(options)
    evaluations = None
    if options.eval_every:
        evaluations = evaluate.Evaluations(
            options,
            start.step,
            num_steps,
            run.measure,
            run.task.main_metric,
            {**trainer.weights, "global_step": trainer.optimizer.step},
            options.early_stopping,
        )
    if resuming.complete_earlier_run(
        options, start.step, num_steps, evaluations
    ):
        return
    resuming.write_run_files(
        options, start.seed, data_files(run.task, options), _model_files(run)
    )
    run.task.data.write_held_out(run.directory)
    batches = datasets.finetuning_batches(
        data,
        batch_size,
        seed=start.seed,
        num_examples=start.examples_seen_at(num_steps, batch_size),
        pad_to=options.pad_to,
        start=start.examples_seen,
    )
    loop.train(trainer, batches, start, evaluations)


def _warn_of_untrained_positions(options: FinetuningOptions) -> None:
    """Warns if pre-training from scratch had shorter sequences."""
    checkpoint = str(options.init_checkpoint)
    path = checkpoint_paths.beside(checkpoint, file_names.TRAIN_OPTIONS)
    if not path:
        return
    trained = RunDirectory(os.path.dirname(path)).read_options()
    length = trained.get("max_seq_length")
    is_from_scratch = "nsp" in trained and not trained.get("init_checkpoint")
    is_shorter = isinstance(length, int) and length < options.max_seq_length
    if is_from_scratch and is_shorter:
        logging.warning(
            "%s was trained on sequences of %d tokens: its embeddings of later "
            "positions are random. Use --max_seq_length=%d, or train it on "
            "longer sequences first",
            checkpoint,
            length,
            length,
        )


def _warn_of_few_evaluations(
    options: FinetuningOptions, num_steps: int
) -> None:
    if not options.eval_every:
        return
    num_evaluations = math.ceil(num_steps / options.eval_every)
    if num_evaluations == 1:
        logging.warning(
            "With --eval_every=%d and %d training steps, there is a single "
            "evaluation, at the end",
            options.eval_every,
            num_steps,
        )
    elif num_evaluations <= options.early_stopping + 1:
        logging.warning(
            "--early_stopping=%d has no effect: %d training steps have only %d "
            "evaluations. Lower --eval_every",
            options.early_stopping,
            num_steps,
            num_evaluations,
        )


def _write_training_records(run: FinetuningRun) -> tuple[RecordFiles, int]:
    """Writes `train.tf_record` unless it is up to date.

    Returns its records, and the number of examples in an epoch.
    """
    path = os.path.join(run.directory, file_names.records("train"))
    examples, max_seq_length = run.examples["train"], run.options.max_seq_length
    metadata = record_files.write_records(
        path, run.task, examples, run.tokenizer, max_seq_length
    )
    if not metadata["num_records"]:
        raise InputError(
            "The training data must have at least one example with text. "
            f"Received: {len(examples)} examples without text."
        )
    reporting.log_data(run.task, run.examples, metadata, max_seq_length)
    schema = run.task.schema(max_seq_length)
    has_all = run.task.epoch_has_all_features
    num_examples = metadata["num_records"] if has_all else len(examples)
    return RecordFiles([path], schema), num_examples


def _make_schedule(
    num_examples: int, options: FinetuningOptions
) -> LinearWarmupDecay:
    """Returns the learning rate over the steps of `--num_train_epochs`."""
    batch_size = options.train_batch_size
    num_batches = num_examples / batch_size * options.num_train_epochs
    num_train_steps = int(num_batches)  # As in the original.
    # Earlier steps with another batch size saw `num_extra` more examples.
    if num_extra := checkpointing.num_extra_examples(options):
        remaining = num_examples * options.num_train_epochs - num_extra
        num_train_steps = max(1, int(remaining / batch_size))
    if num_batches < 1:
        raise InputError(
            "Training must have at least one step. Received: "
            f"{num_examples:,} examples, "
            f"--train_batch_size={options.train_batch_size} and "
            f"--num_train_epochs={options.num_train_epochs}. Use other values, "
            "such as --train_batch_size=8 --num_train_epochs=20."
        )
    if num_train_steps < _FEW_STEPS:
        logging.warning(
            "The number of training steps is only %d. Add examples, or use "
            "other values, such as --train_batch_size=8 --num_train_epochs=20",
            num_train_steps,
        )
    num_warmup_steps = int(num_train_steps * options.warmup_proportion)
    return LinearWarmupDecay(
        options.learning_rate, num_train_steps, num_warmup_steps
    )
