"""Fine-tuning: any task, trained, evaluated and predicted."""

import json
import os
from collections.abc import Sequence
from typing import Any, NamedTuple

import keras
import tensorflow as tf
from absl import logging

from official_bert import files, json_files
from official_bert.checkpoints import loading
from official_bert.config import BertConfig
from official_bert.errors import InputError
from official_bert.inputs import datasets
from official_bert.inputs.records import RecordFiles
from official_bert.optimization import layers
from official_bert.optimization.adam import AdamWeightDecay
from official_bert.optimization.schedules import LinearWarmupDecay
from official_bert.options import Finetuning
from official_bert.tasks import featurized
from official_bert.tasks.forward import Forward
from official_bert.tasks.task import Task
from official_bert.tokenization import (
    BatchTokenizer,
    validate_case_matches_checkpoint,
)
from official_bert.training import distribution, loop, measuring, starting
from official_bert.training.best import Best
from official_bert.training.objectives import (
    Batch,
    FinetuningObjective,
    Scalars,
)
from official_bert.training.step import train_step

_TASK_FILE = "task.json"

# What a pre-trained checkpoint has beyond BERT, and what it lacks.
_PRETRAINING_HEADS = "^cls/(predictions|seq_relationship)/"
_TASK_HEADS = "^(cls/squad/)?output_(weights|bias)$"


class Run(NamedTuple):
    """What the parts of a run share.

    Attributes:
        data: {split: its examples}.
    """

    task: Task
    options: Finetuning
    config: BertConfig
    tokenizer: BatchTokenizer
    strategy: tf.distribute.Strategy
    model: Any
    data: dict[str, Sequence[Any]]


def run(task: Task, options: Finetuning) -> None:
    """Trains, evaluates and predicts, as `options` say.

    Raises:
        InputError: Data, vocabulary, checkpoint and options do not fit.
    """
    parts = _prepare(task, options)
    if options.do_train:
        train(parts)
    if not (options.do_eval or options.do_predict):
        return
    step = starting.load_for_evaluation(
        parts.model, options, may_skip=_PRETRAINING_HEADS
    )
    if options.do_eval:
        forward = _forward(parts, options.eval_batch_size)
        results = _evaluate(parts, forward, in_the_end=True)
        measuring.write_results(
            options.output_dir,
            {"global_step": step, **results},
            task.main_metric,
        )
    if options.do_predict:
        _predict(parts)


def _prepare(task: Task, options: Finetuning) -> Run:
    """Reads all data and makes the model, in the order of their cost."""
    config = BertConfig.from_json_file(options.bert_config_file)
    validate_case_matches_checkpoint(
        options.do_lower_case, options.init_checkpoint
    )
    tokenizer = BatchTokenizer(options.vocab_file, options.do_lower_case)
    config.require_vocabulary(len(tokenizer.vocab), options.vocab_file)
    starting.require_same_model(options, config)
    _require_same_task(task, options)
    data = {
        split: task.examples(split)
        for mode in _modes(options)
        for split in task.splits(mode)
    }
    for split, examples in data.items():
        logging.info("%s: %d examples", split, len(examples))
    files.make_directory(options.output_dir)
    strategy = distribution.get_strategy(options.distribution_strategy)
    for flag in ("train_batch_size", "eval_batch_size", "predict_batch_size"):
        distribution.require_divisible(getattr(options, flag), strategy, flag)
    keras.utils.set_random_seed(options.seed)
    with strategy.scope():
        model = task.build_model(config)
    return Run(task, options, config, tokenizer, strategy, model, data)


def _require_same_task(task: Task, options: Finetuning) -> None:
    """Compares with what was trained here; weights alone would not tell."""
    path = os.path.join(options.output_dir, _TASK_FILE)
    if not files.exists(path):
        return
    trained, wanted = json_files.read_object(path), task.to_json()
    for name in ("kind", "task_type", "labels"):
        before, now = trained.get(name), wanted.get(name)
        if before != now:
            raise InputError(
                f"{path}: the model there was trained for another task, whose "
                f"`{name}` is {before!r}. Received: {now!r}. Use another "
                "--output_dir for another task."
            )


def _modes(options: Finetuning) -> list[str]:
    wanted = {
        "train": options.do_train,
        "dev": options.do_eval or (options.do_train and options.eval_every),
        "test": options.do_predict,
    }
    return [mode for mode, is_wanted in wanted.items() if is_wanted]


def train(run: Run) -> None:
    """Trains from the output folder's last checkpoint, or from the start.

    Args:
        run: With the examples `train`, and `dev` where it evaluates on the way.
    """
    options = run.options
    data, num_rows = _training_records(run)
    if not run.task.epoch_has_all_rows:
        num_rows = len(run.data["train"])
    schedule = _schedule(num_rows, options)
    with run.strategy.scope():
        optimizer = _optimizer(run, schedule)
    weights = loading.by_name(run.model.trainable_variables)
    state = {**weights, **optimizer.state()}
    resumed = starting.restore(
        run.model,
        state,
        options,
        may_initialize=_TASK_HEADS,
        may_skip=_PRETRAINING_HEADS,
    )
    keras.utils.set_random_seed(resumed.seed)
    _describe(run)
    plan = loop.Plan.make(
        options,
        schedule.num_train_steps,
        int(optimizer.step.numpy()),
        resumed,
        options.eval_every,
    )
    batches = datasets.finetuning_batches(
        data,
        options.train_batch_size,
        seed=plan.seed,
        pad_to=options.pad_to,
        start=plan.first_example,
    )
    objective = FinetuningObjective(run.task)

    def step(batch: Batch) -> Scalars:
        return train_step(run.model, objective, optimizer, batch, plan.seed)

    best = Best(options.output_dir, run.task.main_metric, plan.first_step)
    forward = _forward(run, options.eval_batch_size)
    kept = {**weights, "global_step": optimizer.step}
    for number in loop.train(step, batches, state, plan, run.strategy):
        if plan.is_evaluated(number):
            results = _evaluate(run, forward, in_the_end=False)
            best.add({"global_step": number, **results}, kept)
            if 0 < options.early_stopping <= best.evaluations_without_gain():
                logging.info("Stopped early, after step %d", number)
                break


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
    weights = layers.trained(
        run.model.learning_variables, run.options.freeze, num_layers
    )
    scales = layers.rate_scales(
        [weight.path for weight in weights],
        run.options.layerwise_lr_decay,
        num_layers,
    )
    return AdamWeightDecay(weights, schedule, rate_scales=scales)


def _training_records(run: Run) -> tuple[RecordFiles, int]:
    """Writes `train.tf_record`, if it is not there; returns how many it has."""
    path = os.path.join(run.options.output_dir, "train.tf_record")
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


def _describe(run: Run) -> None:
    """Leaves beside the checkpoints all that is needed to use them."""
    options = run.options
    task = {
        **run.task.to_json(),
        "max_seq_length": options.max_seq_length,
        "do_lower_case": options.do_lower_case,
    }
    texts = {
        _TASK_FILE: json.dumps(task, indent=2, ensure_ascii=False) + "\n",
        "bert_config.json": run.config.to_json_string(),
        "vocab.txt": files.read_text(options.vocab_file),
        "train_options.json": options.to_json("train"),
    }
    for name, text in texts.items():
        files.write_text(os.path.join(options.output_dir, name), text)


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
            os.path.join(run.options.output_dir, name) if in_the_end else None,
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
        folder = run.options.output_dir
        measured = measuring.measure(
            forward,
            run.tokenizer,
            run.data[split],
            "Predicting",
            os.path.join(folder, name),
        )
        examples, answers = run.data[split], measured.answers
        run.task.write_predictions(folder, split, examples, answers)
        if known := run.task.metrics(examples, answers):
            measuring.write_json(
                os.path.join(
                    folder, split.replace("test", "predict_results") + ".json"
                ),
                known,
            )
