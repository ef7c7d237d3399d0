"""Fine-tuning: any task, trained, evaluated and predicted."""

import functools
import os
from typing import Any

from absl import logging

from official_bert import files, plots
from official_bert.checkpoints import loading
from official_bert.errors import InputError
from official_bert.inputs import datasets
from official_bert.inputs.records import RecordFiles
from official_bert.optimization import layers
from official_bert.optimization.adam import AdamWeightDecay
from official_bert.optimization.schedules import LinearWarmupDecay
from official_bert.options import Finetuning, RunClassifierWithTfhub, cluster
from official_bert.tasks import featurized
from official_bert.tasks.forward import Forward
from official_bert.tasks.task import Task
from official_bert.training import (
    computing,
    distribution,
    locking,
    loop,
    measuring,
    starting,
)
from official_bert.training.best import Best
from official_bert.training.objectives import FinetuningObjective
from official_bert.training.preparing import (
    Run,
    describe,
    prepare,
    prepare_module,
)
from official_bert.training.step import train_step

# What a pre-trained checkpoint has beyond BERT, and what it lacks.
_PRETRAINING_HEADS = "^cls/(predictions|seq_relationship)/"
_TASK_HEADS = "^(cls/squad/)?output_(weights|bias)$|^(bilstm|features)/"


def run(task: Task, options: Finetuning) -> None:
    """Trains, evaluates and predicts, as `options` say.

    Raises:
        InputError: Data, vocabulary, checkpoint and options do not fit.
    """
    with (
        locking.only_run(options),
        distribution.noticing_dead_hosts(options),
    ):
        _run(task, options)
        if options.plots and cluster.is_chief(options.strategy_name):
            plots.write(options.output_dir)


def _run(task: Task, options: Finetuning) -> None:
    if isinstance(options, RunClassifierWithTfhub):
        parts = prepare_module(task, options)
    else:
        parts = prepare(task, options)
    options = parts.options
    if options.do_train:
        train(parts)
        # The last checkpoint must be there before any host looks for it.
        distribution.wait_for_all(parts.strategy)
    if not (options.do_eval or options.do_predict):
        return
    step = starting.load_for_evaluation(
        parts.model, options, may_skip=_PRETRAINING_HEADS
    )
    if not options.do_train:
        describe(parts)
    if options.do_eval:
        forward = _forward(parts, options.eval_batch_size)
        results = _evaluate(parts, forward, in_the_end=True)
        measuring.write_results(
            parts.folder,
            {"global_step": step, **results},
            task.main_metric,
        )
    if options.do_predict:
        _predict(parts)


def train(run: Run) -> None:
    """Trains from the output folder's last checkpoint, or from the start.

    Args:
        run: With the examples `train`, and `dev` where it evaluates on the way.
    """
    options = run.options
    # Before the records, which may take much longer to make.
    starting.load_initial(
        run.model,
        options,
        may_initialize=_TASK_HEADS,
        may_skip=_PRETRAINING_HEADS,
    )
    data, num_rows = _training_records(run)
    if not run.task.epoch_has_all_rows:
        num_rows = len(run.data["train"])
    schedule = _schedule(num_rows, options)
    with run.strategy.scope():
        optimizer = _optimizer(run, schedule)
    weights = loading.by_name(run.model.trainable_variables)
    computation = computing.make_computation(options, run.strategy)
    state = {**weights, **optimizer.state(), **computation.state()}
    resumed = starting.resume(state, options, run.strategy)
    describe(run)
    plan = loop.Plan.make(
        options,
        schedule.num_train_steps,
        int(optimizer.step.numpy()),
        resumed,
        run.strategy,
        options.eval_every,
    )
    batches = datasets.finetuning_batches(
        data,
        options.train_batch_size,
        seed=plan.seed,
        num_examples=plan.examples_seen(plan.num_steps),
        pad_to=options.pad_to,
        start=plan.first_example,
    )
    step = functools.partial(
        train_step,
        run.model,
        FinetuningObjective(run.task),
        optimizer,
        seed=plan.seed,
        computation=computation,
    )
    metric = run.task.main_metric
    best = Best(options.output_dir, metric, plan.first_step, plan.is_chief)
    forward = _forward(run, options.eval_batch_size)
    kept = {**weights, "global_step": optimizer.step}

    def is_over(number: int) -> bool:
        """Measures the model when it is due; says whether to stop early."""
        if plan.is_evaluated(number) and not best.has(number):
            results = _evaluate(run, forward, in_the_end=False)
            results = {"global_step": number, **results}
            best.add(results, kept)
            measuring.write_summary(run.folder, results, metric)
        stops = 0 < options.early_stopping <= best.evaluations_without_gain()
        if stops:
            logging.info("Stopped early, after step %d", number)
        return stops

    # An earlier run may have ended after a checkpoint and before measuring it.
    if plan.first_step and is_over(plan.first_step):
        return
    loop.train(step, batches, state, plan, run.strategy, is_over)


def _schedule(num_rows: int, options: Finetuning) -> LinearWarmupDecay:
    """Returns the learning rate over as many steps as the epochs have."""
    num_train_steps = int(
        num_rows / options.train_batch_size * options.num_train_epochs
    )
    if num_train_steps < 1:
        raise InputError(
            "Training must have at least one step. Received: "
            f"{num_rows} examples, "
            f"--train_batch_size={options.train_batch_size} and "
            f"--num_train_epochs={options.num_train_epochs}. Lower the one or "
            "raise the other."
        )
    return LinearWarmupDecay(
        peak=options.learning_rate,
        num_train_steps=num_train_steps,
        num_warmup_steps=int(num_train_steps * options.warmup_proportion),
    )


def _optimizer(run: Run, schedule: LinearWarmupDecay) -> AdamWeightDecay:
    """Returns the optimizer of all weights that are not frozen."""
    num_layers = run.config.num_hidden_layers
    weights = layers.trained(run.model.learning_variables, run.options.freeze)
    scales = layers.rate_scales(
        [weight.path for weight in weights],
        run.options.layerwise_lr_decay,
        num_layers,
    )
    return computing.make_optimizer(run.options, weights, schedule, scales)


def _training_records(run: Run) -> tuple[RecordFiles, int]:
    """Writes `train.tf_record`, if it is not there; returns how many it has."""
    path = os.path.join(run.folder, "train.tf_record")
    max_seq_length = run.options.max_seq_length
    num_records = featurized.write_records(
        path, run.task, run.data["train"], run.tokenizer, max_seq_length
    )
    if not num_records:
        raise InputError(
            "The training data must have something to learn from. Received: "
            f"{len(run.data['train'])} examples without any text."
        )
    schema = run.task.schema(max_seq_length, is_training=True)
    return RecordFiles([path], schema), num_records


def _forward(run: Run, batch_size: int) -> Forward:
    return Forward(
        run.task,
        run.model,
        max_seq_length=run.options.max_seq_length,
        batch_size=batch_size,
        pad_to=run.options.eval_pad_to,
        strategy=run.strategy,
    )


def _evaluate(
    run: Run, forward: Forward, *, in_the_end: bool
) -> dict[str, Any]:
    """Measures the model.

    Args:
        run: With the examples to evaluate on.
        forward: The model.
        in_the_end: Whether to evaluate on all development sets rather than the
            first, and to write their records.

    Returns:
        The metrics of the first set, and those of others under their names.
    """
    first, *others = run.task.splits("dev")[: None if in_the_end else 1]
    found = {}
    for split in [first, *others]:
        name = split.replace("dev", "eval", 1) + ".tf_record"
        measured = measuring.measure(
            forward,
            run.tokenizer,
            run.data[split],
            "Evaluating",
            os.path.join(run.folder, name) if in_the_end else None,
        )
        found[split] = {
            **measuring.loss_results(measured, run.options.eval_batch_size),
            **run.task.metrics(run.data[split], measured.answers),
        }
    return {**found[first], **{split: found[split] for split in others}}


def _predict(run: Run) -> None:
    """Predicts all test sets, and writes what the task writes."""
    forward = _forward(run, run.options.predict_batch_size)
    for split in run.task.splits("test"):
        name = split.replace("test", "predict", 1) + ".tf_record"
        folder = run.folder
        measured = measuring.measure(
            forward,
            run.tokenizer,
            run.data[split],
            "Predicting",
            os.path.join(folder, name),
        )
        examples, answers = run.data[split], measured.answers
        run.task.write_predictions(folder, split, examples, answers)
        name = split.replace("test", "predict_results") + ".json"
        path = os.path.join(folder, name)
        if known := run.task.metrics(examples, answers):
            measuring.write_json(path, known)
        elif files.exists(path):  # Of an earlier run, on other data.
            files.remove(path)
