"""Fine-tuning: trains, evaluates and predicts any task."""

import dataclasses
import os
from collections.abc import Sequence
from typing import Any, NamedTuple

import tensorflow as tf
from absl import logging

from official_bert import files, json_files, task_file
from official_bert.checkpoints import run_directory
from official_bert.errors import InputError
from official_bert.hub.hub_encoder import HubBert
from official_bert.inputs import datasets
from official_bert.inputs.records import RecordFiles
from official_bert.optimization import layerwise
from official_bert.optimization.schedules import LinearWarmupDecay
from official_bert.options import FinetuningOptions, RunClassifierWithTfhub
from official_bert.tasks import record_files
from official_bert.tasks.forward import Forward
from official_bert.tasks.task import Task
from official_bert.tokenization import (
    BatchTokenizer,
    validate_case_matches_checkpoint,
)
from official_bert.training import (
    checkpointing,
    distribution,
    evaluate,
    loop,
    precision,
    reporting,
    step,
)
from official_bert.training.objectives import FinetuningObjective

# Weights that a pre-trained checkpoint has beside BERT's, and those it lacks.
_PRETRAINING_HEADS = "^cls/(predictions|seq_relationship)/"
_TASK_HEADS = "^(cls/squad/)?output_(weights|bias)$|^(bilstm|features)/"

# By the modes of `Task.splits`.
_BATCH_SIZE_FLAGS = {
    "train": "train_batch_size",
    "dev": "eval_batch_size",
    "test": "predict_batch_size",
}


class Run(NamedTuple):
    """One run of a fine-tuning command.

    Attributes:
        options: For a TF Hub module they name the module's own vocabulary.
        directory: Where this process writes: `output_dir` on the chief.
        hub_module: Handle of the TF Hub module that is fine-tuned, unless it
            was exported by this project.
    """

    task: Task
    options: FinetuningOptions
    tokenizer: BatchTokenizer
    strategy: tf.distribute.Strategy
    model: Any
    data: dict[str, Sequence[Any]]
    directory: str
    hub_module: str

    def forward(self, batch_size: int) -> Forward:
        """Returns the model, ready to evaluate or predict."""
        return Forward(
            self.task,
            self.model,
            max_seq_length=self.options.max_seq_length,
            batch_size=batch_size,
            pad_to=self.options.eval_pad_to,
            strategy=self.strategy,
        )


def run(task: Task, options: FinetuningOptions) -> None:
    """Trains, evaluates and predicts, whichever the options ask for.

    Raises:
        InputError: Data, vocabulary, checkpoint and options do not fit
            together.
    """
    with (
        checkpointing.output_dir_lock(options),
        distribution.reporting_lost_hosts(options),
    ):
        _run(prepare(task, options))
        reporting.write_plots(options)


def _run(run: Run) -> None:
    options = run.options
    if options.do_train:
        train(run)
        # Other hosts must not look for the last checkpoint before it is there.
        distribution.wait_for_all_hosts(run.strategy)
    if not (options.do_eval or options.do_predict):
        return
    global_step = checkpointing.load_for_evaluation(
        run.model, options, may_skip=_PRETRAINING_HEADS
    )
    if not options.do_train:
        _write_run_files(run)
    if options.do_eval:
        _evaluate(run, global_step)
    if options.do_predict:
        evaluate.predict(
            run.forward(options.predict_batch_size),
            run.tokenizer,
            run.data,
            run.directory,
        )


def prepare(task: Task, options: FinetuningOptions) -> Run:
    """Checks everything, reads the data, builds the model; cheapest first."""
    _require_eval_every_if_best(options)
    bert, hub_module = None, ""
    if isinstance(options, RunClassifierWithTfhub):
        strategy = _choose_strategy(options)
        with strategy.scope(), precision.policy(options.mixed_precision):
            bert = HubBert(options.bert_hub_module_handle)
        config = bert.config
        hub_module = _check_module(bert, options)
        # A module knows its vocabulary.
        vocab_file, do_lower_case = bert.encoder.text_info
        options = dataclasses.replace(
            options,
            vocab_file=vocab_file,
            do_lower_case=do_lower_case,
            init_checkpoint=None,
        )
    else:
        config = options.model_config()
        validate_case_matches_checkpoint(
            options.do_lower_case, options.init_checkpoint
        )
        checkpointing.require_same_model(options, config)
    tokenizer = BatchTokenizer(options.vocab_file, options.do_lower_case)
    config.require_vocabulary(tokenizer.vocab, options.vocab_file)
    _require_same_task(task, options)
    if bert is None:
        strategy = _choose_strategy(options)
    data = _read_data(task, options)
    files.make_directory(options.output_dir)
    checkpointing.set_seed(options.seed)
    with strategy.scope(), precision.policy(options.mixed_precision):
        model = task.build_model(config, bert)
    if options.remat and bert is None:
        model.bert.encoder.recompute = step.recompute_in_backward
    directory = distribution.writable_directory(options, options.output_dir)
    return Run(
        task, options, tokenizer, strategy, model, data, directory, hub_module
    )


def _check_module(bert: HubBert, options: RunClassifierWithTfhub) -> str:
    """Checks the options that depend on a module; returns `Run.hub_module`."""
    handle = options.bert_hub_module_handle
    bert.config.require_length(options.max_seq_length)
    options.require_layers(bert.config.num_hidden_layers)
    if bert.is_ours:
        return ""
    if options.freeze or options.layerwise_lr_decay != 1.0:
        raise InputError(
            "--freeze and --layerwise_lr_decay require a module whose weights "
            f"have the original names, as export_tfhub.py writes it. Received: "
            f"{handle!r}. Remove these flags."
        )
    # Later commands may run in another directory.
    return os.path.abspath(handle) if os.path.isdir(handle) else handle


def _modes(options: FinetuningOptions) -> list[str]:
    """Returns the modes, of `Task.splits`, whose data the run needs."""
    is_needed = {
        "train": options.do_train,
        "dev": options.do_eval or (options.do_train and options.eval_every),
        "test": options.do_predict,
    }
    return [mode for mode, needed in is_needed.items() if needed]


def _choose_strategy(options: FinetuningOptions) -> tf.distribute.Strategy:
    """Returns the strategy, among whose replicas all batches divide evenly."""
    strategy = distribution.choose_strategy(options)
    for mode in _modes(options):
        flag = _BATCH_SIZE_FLAGS[mode]
        distribution.require_divisible(options, strategy, flag)
    return strategy


def _read_data(
    task: Task, options: FinetuningOptions
) -> dict[str, Sequence[Any]]:
    data = {
        split: task.examples(split)
        for mode in _modes(options)
        for split in task.splits(mode)
    }
    for split, examples in data.items():
        logging.info("%s: %d examples", split, len(examples))
    return data


def _require_same_task(task: Task, options: FinetuningOptions) -> None:
    """Raises if the model in the output directory is another task's.

    Its weights might fit all the same.
    """
    directory = options.output_dir
    checkpointing.require_same_vocabulary(directory, options.vocab_file)
    if not task_file.is_in(directory):
        return
    trained = task_file.read(directory)
    current = {**task.to_json(), "do_lower_case": options.do_lower_case}
    names = ["kind", "task_type", "labels", "top", "do_lower_case"]
    if options.do_train:
        names.append("metric")  # Evaluations during training compare it.
    for name in names:
        before, now = trained.get(name), current.get(name)
        if before != now:
            raise InputError(
                f"{task_file.path_in(directory)}: the model was trained with "
                f"`{name}` {before!r}. Received: {now!r}. Use another "
                "--output_dir for another task."
            )


def _require_eval_every_if_best(options: FinetuningOptions) -> None:
    """Raises if training would be useless: an old best model would be used."""
    best = os.path.join(options.output_dir, files.BEST_DIRECTORY)
    if (
        options.do_train
        and not options.eval_every
        and run_directory.latest(best)
    ):
        raise InputError(
            f"Resuming without --eval_every is an error if {best!r} holds a "
            "checkpoint, since that is the model used at the end. Set "
            "--eval_every, choose another --output_dir, or remove that "
            "directory to use the last model."
        )


def _write_run_files(run: Run) -> None:
    """Writes the options and the files needed to use the model."""
    options = run.options
    task = task_file.describe(
        run.task.to_json(), options.max_seq_length, options.do_lower_case
    )
    texts = {"vocab.txt": files.read_text(options.vocab_file)}
    if run.hub_module:
        task["hub_module"] = run.hub_module
    else:
        texts["bert_config.json"] = run.model.config.to_json_string()
    texts[task_file.NAME] = json_files.to_text(task)
    reporting.write_run_files(options, texts)


def train(run: Run) -> None:
    """Trains from the run's newest checkpoint, or from `init_checkpoint`."""
    options = run.options
    # Before the records, which may take much longer to write.
    checkpointing.load_initial(
        run.model,
        options,
        may_initialize=_TASK_HEADS,
        may_skip=_PRETRAINING_HEADS,
    )
    data, num_records = _training_records(run)
    num_rows = (
        num_records
        if run.task.epoch_has_all_features
        else len(run.data["train"])
    )
    schedule = _schedule(num_rows, options)
    trainer = _trainer(run, schedule)
    start = checkpointing.resume(trainer.state, options, run.strategy)
    _write_run_files(run)
    num_steps = schedule.num_train_steps
    batches = datasets.finetuning_batches(
        data,
        options.train_batch_size,
        seed=start.seed,
        num_examples=start.examples_seen_at(
            num_steps, options.train_batch_size
        ),
        pad_to=options.pad_to,
        start=start.examples_seen,
    )
    evaluations = None
    if options.eval_every:
        evaluations = evaluate.Evaluations(
            run.forward(options.eval_batch_size),
            run.tokenizer,
            run.data,
            options,
            run.directory,
            start.step,
            {**trainer.weights, "global_step": trainer.optimizer.step},
        )
    loop.train(trainer, batches, start, num_steps, evaluations)


def _schedule(num_rows: int, options: FinetuningOptions) -> LinearWarmupDecay:
    """Returns the learning rate over the steps of `--num_train_epochs`."""
    num_train_steps = int(
        num_rows / options.train_batch_size * options.num_train_epochs
    )
    if num_train_steps < 1:
        raise InputError(
            f"--train_batch_size={options.train_batch_size} and "
            f"--num_train_epochs={options.num_train_epochs} give no training "
            f"step with {num_rows} examples. Lower the first or raise the "
            "second."
        )
    return LinearWarmupDecay(
        peak=options.learning_rate,
        num_train_steps=num_train_steps,
        num_warmup_steps=int(num_train_steps * options.warmup_proportion),
    )


def _trainer(run: Run, schedule: LinearWarmupDecay) -> loop.Trainer:
    """Returns the trainer of all weights that are not frozen."""
    options = run.options
    weights = layerwise.unfrozen(run.model.learning_variables, options.freeze)
    rate_scales = layerwise.rate_scales(
        [weight.path for weight in weights],
        options.layerwise_lr_decay,
        run.model.config.num_hidden_layers,
    )
    return loop.Trainer(
        run.model,
        FinetuningObjective(run.task),
        weights,
        schedule,
        options,
        run.strategy,
        rate_scales,
    )


def _training_records(run: Run) -> tuple[RecordFiles, int]:
    """Writes `train.tf_record` unless it is up to date; counts its records."""
    path = os.path.join(run.directory, "train.tf_record")
    max_seq_length = run.options.max_seq_length
    num_records = record_files.write_records(
        path, run.task, run.data["train"], run.tokenizer, max_seq_length
    )
    if not num_records:
        raise InputError(
            "The training data must have at least one example with text. "
            f"Received: {len(run.data['train'])} examples without text."
        )
    schema = run.task.schema(max_seq_length, is_training=True)
    return RecordFiles([path], schema), num_records


def _evaluate(run: Run, global_step: int) -> None:
    """Evaluates on all development sets and writes the results."""
    metrics = evaluate.evaluate(
        run.forward(run.options.eval_batch_size),
        run.tokenizer,
        run.data,
        run.task.splits("dev"),
        record_dir=run.directory,
    )
    results = {"global_step": global_step, **metrics}
    path = os.path.join(run.directory, "eval_results.json")
    reporting.write_json_results(path, results)
    reporting.write_eval_results(
        run.directory,
        reporting.original_results(results, run.task.main_metric),
    )
