"""Fine-tuning: any task, trained, evaluated and predicted."""

import functools
import os

from official_bert.checkpoints import loading
from official_bert.errors import InputError
from official_bert.inputs import datasets
from official_bert.inputs.records import RecordFiles
from official_bert.optimization import layers
from official_bert.optimization.adam import AdamWeightDecay
from official_bert.optimization.schedules import LinearWarmupDecay
from official_bert.options import FinetuningOptions, RunClassifierWithTfhub
from official_bert.tasks import featurized
from official_bert.tasks.task import Task
from official_bert.training import (
    computing,
    distribution,
    loop,
    measuring,
    output_folder,
    reporting,
    starting,
)
from official_bert.training.evaluations import Evaluations
from official_bert.training.objectives import FinetuningObjective
from official_bert.training.plan import Plan
from official_bert.training.preparing import (
    Run,
    leave_notes,
    prepare,
    prepare_module,
)
from official_bert.training.step import train_step

# What a pre-trained checkpoint has beyond BERT, and what it lacks.
_PRETRAINING_HEADS = "^cls/(predictions|seq_relationship)/"
_TASK_HEADS = "^(cls/squad/)?output_(weights|bias)$|^(bilstm|features)/"


def run(task: Task, options: FinetuningOptions) -> None:
    """Trains, evaluates and predicts, as `options` say.

    Raises:
        InputError: Data, vocabulary, checkpoint and options do not fit.
    """
    with output_folder.held(options):
        _run(task, options)


def _run(task: Task, options: FinetuningOptions) -> None:
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
        leave_notes(parts)
    if options.do_eval:
        _evaluate(parts, step)
    if options.do_predict:
        measuring.predict(parts)


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
    leave_notes(run)
    plan = Plan.make(
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
    evaluations = Evaluations(
        run, plan, {**weights, "global_step": optimizer.step}
    )
    # An earlier run may have ended after a checkpoint and before measuring it.
    if plan.first_step and evaluations.is_over(plan.first_step):
        return
    loop.train(step, batches, state, plan, run.strategy, evaluations.is_over)


def _schedule(num_rows: int, options: FinetuningOptions) -> LinearWarmupDecay:
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


def _evaluate(run: Run, step: int) -> None:
    """Measures the model, and writes what was found.

    Args:
        run: With the examples `dev`.
        step: How long the model was trained.
    """
    forward = measuring.make_forward(run, run.options.eval_batch_size)
    found = measuring.evaluate(run, forward, in_the_end=True)
    results = {"global_step": step, **found}
    path = os.path.join(run.folder, "eval_results.json")
    reporting.write_json(path, results)
    lines = reporting.lines_of_2018(results, run.task.main_metric)
    reporting.write_lines(run.folder, lines)
