"""Fine-tuning: trains, evaluates and predicts any task."""

import dataclasses
import functools
import os
from collections.abc import Sequence
from typing import Any

import tensorflow as tf
from absl import logging

from official_bert.errors import InputError, listed
from official_bert.hub import HubBert
from official_bert.inference.forward import Forward
from official_bert.inputs import datasets
from official_bert.inputs.records import RecordFiles
from official_bert.io import files, json_files
from official_bert.modeling.finetuning_models import build_model
from official_bert.modeling.losses import EMBEDDING_LOSSES, Distillation
from official_bert.optimization import layerwise
from official_bert.optimization.schedules import LinearWarmupDecay
from official_bert.options import FinetuningOptions, RunClassifierWithTfhub
from official_bert.runs import file_names
from official_bert.runs.directory import RunDirectory
from official_bert.sources import checkpoint_paths, task_file
from official_bert.sources.heads import TASK_HEAD
from official_bert.tasks import data_summary, record_files
from official_bert.tasks.data_set import shuffle_examples
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
from official_bert.training.checkpointing import StartingPoint
from official_bert.training.fit import (
    TrainingData,
    TrainingRun,
    fit,
    run_context,
)
from official_bert.training.objectives import (
    EmbeddingObjective,
    FinetuningObjective,
)

# Weights that only fine-tuning has, and the pooler, which masked-LM models of
# transformers lack.
_TASK_WEIGHTS = f"{TASK_HEAD}|^bert/pooler/"

# Fewer training steps give a warning: most models then learn nothing.
_FEW_STEPS = 30


@dataclasses.dataclass(frozen=True)
class FinetuningRun(TrainingRun):
    """One run of a fine-tuning command."""

    task: Task
    options: FinetuningOptions  # With the vocabulary of a TF Hub module.
    tokenizer: Tokenizer
    strategy: tf.distribute.Strategy
    model: Any
    examples: dict[str, Sequence[Any]]  # {split: its examples}
    directory: str  # For the files of this host; `output_dir` on the chief.
    resumed: str | None

    keeps_best = True

    @property
    def main_metric(self) -> str:
        """The metric that decides which evaluation is the best."""
        return self.task.main_metric

    @functools.cached_property
    def forwards(self) -> dict[str, Forward]:
        """{"dev" or "test": the model}, each compiled when it is first used."""
        options = self.options
        forward = functools.partial(
            Forward,
            self.task.head,
            self.model,
            max_seq_length=options.max_seq_length,
            pad_to=options.eval_pad_to,
            strategy=self.strategy,
        )
        return {
            "dev": forward(batch_size=options.eval_batch_size),
            "test": forward(batch_size=options.predict_batch_size),
        }

    def measure(self, step: int) -> dict[str, Any]:
        """Returns the metrics after a step, and writes TensorBoard events.

        Only the first development set is evaluated.
        """
        metrics = evaluate.evaluate(self, "dev", is_final=False)
        results = {"global_step": step, **metrics}
        summary = reporting.original_results(results, self.main_metric)
        reporting.write_summary(self.options, summary)
        return results

    def load_initial(self) -> None:
        """Loads `init_checkpoint`, but not the output layer of other labels."""
        options, checkpoint = self.options, self.options.init_checkpoint
        if self.task.data.uses_initializer_range:
            self.model.use_initializer_range()
        if checkpoint:
            checkpointing.load_initial(
                self.model,
                options,
                may_initialize=_TASK_WEIGHTS,
                left_out=[
                    *output_layer.weights_to_initialize(
                        self.task, options.model_files
                    ),
                    *layerwise.top_weights(
                        self.model.trainable_variables,
                        options.reinit_layers,
                        self.model.config.num_hidden_layers,
                    ),
                ],
            )
            _warn_of_untrained_positions(checkpoint, options.max_seq_length)
        elif not isinstance(self.model.bert, HubBert):
            logging.warning(
                "No pre-trained weights are given: the model starts from "
                "random weights. Add --init_checkpoint or --model"
            )

    def training_data(self) -> TrainingData:
        """Writes `train.tf_record` unless it is up to date."""
        path = os.path.join(self.directory, file_names.records("train"))
        task, examples = self.task, self.examples["train"]
        if unlabeled := self.examples.get("unlabeled"):
            examples = shuffle_examples([*examples, *unlabeled])
        length = self.options.max_seq_length
        metadata = record_files.write_records(
            path, task, examples, self.tokenizer, length
        )
        if not metadata["num_records"]:
            raise InputError(
                "The training data must have at least one example with text. "
                f"Received: {len(examples)} examples without text."
            )
        data_summary.log(task, self.examples, metadata, length)
        has_all = task.epoch_has_all_features
        num_examples = metadata["num_records"] if has_all else len(examples)
        return TrainingData(
            RecordFiles([path], task.training_schema(length)), num_examples
        )

    def make_trainer(self, data: TrainingData) -> loop.Trainer:
        """Returns the trainer of all weights that are not frozen."""
        options, model = self.options, self.model
        weights = layerwise.unfrozen(model.learning_variables, options.freeze)
        num_extra = resuming.num_extra_examples(options, self.resumed)
        head = self.task.head
        is_embedding = head.loss in EMBEDDING_LOSSES
        objective = EmbeddingObjective if is_embedding else FinetuningObjective
        smoothing, distillation = options.label_smoothing, None
        if self.task.teacher:
            distillation = Distillation(
                options.distill_alpha, options.distill_temperature
            )
        return loop.Trainer(
            model,
            objective(head, self._class_weights(), smoothing, distillation),
            weights,
            _make_schedule(data.num_examples, options, num_extra),
            options,
            self.strategy,
            layerwise.rate_scales(
                [weight.path for weight in weights],
                options.layerwise_lr_decay,
                model.config.num_hidden_layers,
            ),
            removes_padding=self._removes_padding,
        )

    @property
    def _removes_padding(self) -> bool:
        """Whether training skips padding.

        XLA and TPUs need static shapes. Batches of similar lengths have little
        padding, except in pairs and groups of texts for sentence embeddings.
        """
        options, head = self.options, self.task.head
        if options.jit_compile or head.reads_padding:
            return False
        has_padding = options.pad_to == "max" or head.loss in EMBEDDING_LOSSES
        return has_padding and precision.runs_on_cpu()

    def _class_weights(self) -> tuple[float, ...]:
        weights = self.task.class_weights(self.examples["train"])
        if weights:
            labels = self.task.labels  # type: ignore[attr-defined]
            pairs = zip(labels, weights, strict=True)
            shown = [f"{label}={weight:.4g}" for label, weight in pairs]
            logging.info(f"Class weights: {listed(shown)}")
        return weights

    def batches(
        self, data: TrainingData, start: StartingPoint, num_steps: int
    ) -> tf.data.Dataset:
        """Returns the batches from the starting point to the last step."""
        batch_size = self.options.train_batch_size
        return datasets.finetuning_batches(
            data.records,
            batch_size,
            seed=start.seed,
            num_examples=start.examples_seen_at(num_steps, batch_size),
            pad_to=self.options.pad_to,
            trims=self._removes_padding,
            start=start.examples_seen,
        )

    def data_files(self) -> dict[str, list[str]]:
        """Returns the files whose fingerprints are in the run's record."""
        return data_files(self.task, self.options, self.options.do_eval)

    def model_texts(self) -> dict[str, str]:
        """Returns {name: text} of the files that describe the model."""
        options, bert, texts = self.options, self.model.bert, {}
        task = _describe(self.task, options)
        if isinstance(bert, HubBert) and not bert.is_ours:
            handle = bert.encoder.handle
            # Later commands may run in another directory.
            is_local = os.path.isdir(handle)
            task["hub_module"] = os.path.abspath(handle) if is_local else handle
        else:
            texts[file_names.CONFIG] = self.model.config.to_json_string()
        texts[file_names.TASK] = json_files.to_text(task)
        return texts | self.task.data.held_out_files()


def finetune(
    task: Task,
    options: FinetuningOptions,
    examples: dict[str, Sequence[Any]] | None,
) -> None:
    """Trains, evaluates, predicts, and prints the next command.

    `examples` is {split: its examples} of the used splits. If None, they are
    read after the comparison with an earlier run.
    """
    with run_context(options):
        run = prepare(task, options, examples)
        if options.do_train:
            fit(run)
            # The chief may still be writing the last checkpoint.
            distribution.wait_for_all_hosts(run.strategy)
        if options.do_eval or options.do_predict or options.mine_negatives:
            _evaluate_and_predict(run)
    reporting.print_next_command(task, options)


def _evaluate_and_predict(run: FinetuningRun) -> None:
    """Evaluates and predicts with the weights of `load_for_evaluation`."""
    options = run.options
    global_step = checkpointing.load_for_evaluation(run.model, options)
    if options.init_checkpoint and not (options.do_train or global_step):
        output_layer.require_same_outputs(run.task, options.model_files)
    if not options.do_train:
        reporting.write_eval_options(options)
        data_summary.log(run.task, run.examples, {}, options.max_seq_length)
    if options.do_eval:
        evaluate.write_results(run, global_step)
    if options.do_predict:
        evaluate.predict(run)
    if options.mine_negatives:
        evaluate.mine_negatives(run, options.mine_negatives)


def prepare(
    task: Task,
    options: FinetuningOptions,
    examples: dict[str, Sequence[Any]] | None,
) -> FinetuningRun:
    """Checks options and files, and builds the model."""
    bert = None
    if isinstance(options, RunClassifierWithTfhub):
        bert, options = _load_module(options)
    config = bert.config if bert else options.model_config()
    model_files = options.model_files
    kept = model_files.special_tokens if task.finds_special_tokens else ()
    tokenizer = model_files.tokenizer_for(config, kept)
    resumed = resuming.check(
        options,
        None if bert else config,
        data_files(task, options) if options.do_train else {},
        _describe(task, options),
    )
    # After the checks, which need no devices or other hosts.
    strategy = distribution.choose_strategy(options)
    if examples is None:
        examples = task.data.read_all(options.used_splits)
    _require_best_metric(task, options, examples)
    files.make_directory(options.output_dir)
    checkpointing.set_seed(options.seed)
    policy = precision.policy(options.mixed_precision, options.matmul_precision)
    with strategy.scope(), policy:
        model = build_model(task.head, config, bert)
    directory = distribution.writable_directory(options)
    return FinetuningRun(
        task, options, tokenizer, strategy, model, examples, directory, resumed
    )


def _require_best_metric(
    task: Task, options: FinetuningOptions, examples: dict[str, Sequence[Any]]
) -> None:
    """Raises `InputError` if evaluations have no metric `--best_metric`."""
    if not (options.best_metric and "dev" in examples):
        return
    baseline = task.baseline(examples["dev"], examples["dev"])
    # Larger values of the metric must be better.
    names = reporting.numbers(baseline).keys() - {"hamming_loss"}
    if names and task.main_metric not in names:
        raise InputError(
            f"--best_metric={task.main_metric} must be a metric of this task "
            "and its evaluation data, where larger is better: one of "
            f"{', '.join(sorted(names))}."
        )


def _load_module(
    options: RunClassifierWithTfhub,
) -> tuple[HubBert, RunClassifierWithTfhub]:
    """Loads a TF Hub module; returns it, and options with its vocabulary.

    Raises `InputError` if the options do not fit the module.
    """
    with distribution.choose_strategy(options).scope():
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
    text_info = bert.encoder.text_info
    return bert, options.replace(
        vocab_file=text_info.vocab_file,
        do_lower_case=text_info.do_lower_case,
        init_checkpoint=None,
    )


def _describe(task: Task, options: FinetuningOptions) -> dict[str, Any]:
    """Returns the content of `task.json`, without a TF Hub module."""
    return task_file.describe(
        task.to_json(), options.max_seq_length, options.do_lower_case
    )


def data_files(
    task: Task, options: FinetuningOptions, is_evaluated: bool = False
) -> dict[str, list[str]]:
    """Returns the files that must not change when a run resumes.

    With `is_evaluated`, also those that its evaluation at the end depends on.
    """
    paths = {"training data": task.data.paths("train")}
    is_evaluated = is_evaluated or bool(options.eval_every)
    if is_evaluated and not options.holds_out:
        paths["evaluation data"] = task.data.paths("dev")
    if is_evaluated and options.corpus_file:
        paths["corpus"] = task.data.paths("corpus")
    if task.teacher:
        paths["teacher"] = task.teacher.files
    if "unlabeled" in options.used_splits:
        paths["unlabeled data"] = task.data.paths("unlabeled")
    return paths


def _warn_of_untrained_positions(checkpoint: str, max_seq_length: int) -> None:
    """Warns if pre-training from scratch had shorter sequences."""
    path = checkpoint_paths.beside(checkpoint, file_names.TRAIN_OPTIONS)
    if not path:
        return
    trained = RunDirectory(os.path.dirname(path)).record.options
    length = trained.get("max_seq_length")
    is_from_scratch = "nsp" in trained and not trained.get("init_checkpoint")
    is_shorter = isinstance(length, int) and length < max_seq_length
    if is_from_scratch and is_shorter:
        logging.warning(
            f"{checkpoint} was trained on sequences of {length} tokens: its "
            "embeddings of later positions are random. Use --max_seq_length="
            f"{length}, or train it on longer sequences first"
        )


def _make_schedule(
    num_examples: int, options: FinetuningOptions, num_extra: int
) -> LinearWarmupDecay:
    """Returns the learning rate over the steps of `--num_train_epochs`.

    Earlier steps with another batch size saw `num_extra` more examples.
    """
    batch_size = options.train_batch_size
    num_batches = num_examples / batch_size * options.num_train_epochs
    num_train_steps = int(num_batches)  # As in the original.
    if num_extra:
        remaining = num_examples * options.num_train_epochs - num_extra
        num_train_steps = max(1, int(remaining / batch_size))
    more_steps = options.more_steps
    or_values = f", or set {more_steps}" if more_steps else ""
    if num_batches < 1:
        raise InputError(
            "Training must have at least one step. Received: "
            f"{num_examples:,} examples, {options.flag('train_batch_size')} "
            f"and {options.flag('num_train_epochs')}. Add examples{or_values}."
        )
    if num_train_steps < _FEW_STEPS:
        logging.warning(
            f"The number of training steps is only {num_train_steps}. Add "
            f"examples{or_values}"
        )
    num_warmup_steps = int(num_train_steps * options.warmup_proportion)
    return LinearWarmupDecay(
        options.learning_rate,
        num_train_steps,
        num_warmup_steps,
        options.lr_schedule,
    )
