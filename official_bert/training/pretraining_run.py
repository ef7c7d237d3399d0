"""Pre-training with a masked LM or LM loss, and a sentence pair loss."""

import collections
import dataclasses
import functools
import math
import os
import re
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import tensorflow as tf
from absl import logging

from official_bert.inputs import datasets, record_tokenizer
from official_bert.inputs.records import RecordFiles
from official_bert.io import files, progress
from official_bert.modeling.pretraining_model import PretrainingModel
from official_bert.optimization.schedules import LinearWarmupDecay
from official_bert.options import RunPretraining
from official_bert.runs import file_names
from official_bert.sources import tokenizer_files
from official_bert.sources.heads import OF_PAIRS
from official_bert.tokenization import load_vocab
from official_bert.training import (
    checkpointing,
    distribution,
    loop,
    precision,
    pretraining_records,
    reporting,
    resuming,
    step,
)
from official_bert.training.checkpointing import StartingPoint
from official_bert.training.fit import (
    TrainingData,
    TrainingRun,
    fit,
    run_context,
)
from official_bert.training.objectives import PretrainingObjective

# {value of --nsp: name of the loss}.
_PAIR_LOSSES = {"next": "next_sentence", "sop": "sentence_order", "none": None}

# A model has learned more than frequencies if its loss is this factor lower.
_LEARNED = 0.98

# Small models learn more than frequencies sooner from sequences of this length.
_SHORT = 32


@dataclasses.dataclass(frozen=True)
class PretrainingRun(TrainingRun):
    """One run of `run_pretraining.py`."""

    options: RunPretraining
    strategy: tf.distribute.Strategy
    model: PretrainingModel
    data: RecordFiles
    eval_data: RecordFiles  # Without --eval_file, the same as `data`.
    resumed: str | None

    keeps_best = False

    @property
    def main_metric(self) -> str:
        """The accuracy of the masked LM or LM."""
        return f"{self.objective(self.data).token_task}_accuracy"

    def objective(self, data: RecordFiles) -> PretrainingObjective:
        """Returns the objective for records, masked or unmasked."""
        pair_task = _PAIR_LOSSES[self.options.nsp]
        if self.model.config.is_left_to_right:
            return PretrainingObjective("lm", pair_task)
        return PretrainingObjective("masked_lm", pair_task, data.masking)

    @property
    def _eval_batches(self) -> tf.data.Dataset:
        """The batches of `eval_data`, with labels."""
        options = self.options
        objective = self.objective(self.eval_data)
        batches = datasets.evaluation_batches(
            self.eval_data, options.eval_batch_size, options.max_eval_steps
        )
        batches = pretraining_records.with_checked_ids(
            batches, self.model.config.vocab_size
        )
        # Whole batches, so that the masks do not depend on the replicas.
        return batches.enumerate().map(
            datasets.without_autograph(
                lambda number, batch: objective.with_labels(batch, [0, number])
            )
        )

    @functools.cached_property
    def _evaluation(self) -> tuple[Any, Any]:
        """The batches of `eval_data`, and the compiled evaluation step."""
        strategy, model = self.strategy, self.model
        objective = self.objective(self.eval_data)
        on_replica = functools.partial(step.evaluation_step, model, objective)
        run_step = tf.function(
            lambda batch: strategy.run(on_replica, (batch,)), autograph=False
        )
        batches = distribution.shard_batches(self._eval_batches, strategy)
        return batches, run_step

    def frequency_loss(self) -> float:
        """Returns the loss of predicting tokens by their frequency alone.

        It is the entropy of the labels, with Miller and Madow's correction for
        the rare tokens that a sample lacks.
        """
        counts = np.zeros(self.model.config.vocab_size)
        for batch in self._eval_batches.as_numpy_iterator():
            labels, weights = batch["masked_lm_ids"], batch["masked_lm_weights"]
            counts += np.bincount(labels.ravel(), weights.ravel(), len(counts))
        shares = counts[counts > 0] / max(counts.sum(), 1.0)
        correction = max(len(shares) - 1, 0) / max(2 * counts.sum(), 1.0)
        return float(correction - shares @ np.log(shares))

    def measure(self, global_step: int) -> dict[str, Any]:
        """Evaluates the weights after a step, and writes TensorBoard events.

        Returns the accuracies and losses that the original implementation
        reports, and the perplexity of left-to-right models.
        """
        batches, run_step = self._evaluation
        results: dict[str, Any] = {"global_step": global_step}
        results |= mean_metrics(
            distribution.first_replica(self.strategy, run_step(batch))
            for batch in progress.bar(
                batches,
                description="Evaluating",
                total=self.options.max_eval_steps,
                unit="batch",
            )
        )
        chance = math.log(self.model.config.vocab_size)
        if results.get("masked_lm_loss", 0.0) > 1.1 * chance:
            logging.warning(
                "masked_lm_loss is worse than that of random guesses "
                f"({chance:.2f}). Check that the records were created with the "
                "model's vocabulary"
            )
        if self.model.config.is_left_to_right:
            results["lm_perplexity"] = np.exp(results["lm_loss"])
        reporting.write_summary(self.options, results)
        return results

    def load_initial(self) -> None:
        """Loads `init_checkpoint`, if it is set."""
        checkpointing.load_initial(self.model, self.options)

    def training_data(self) -> TrainingData:
        """Returns the records of `--input_file`."""
        return TrainingData(self.data)

    def make_trainer(self, data: TrainingData) -> loop.Trainer:
        """Returns the trainer of the weights that a loss depends on.

        Weight decay would shrink the others. These stay in the checkpoints, so
        that any BERT model can load them.
        """
        objective = self.objective(data.records)
        weights = [
            weight
            for weight in self.model.trainable_variables
            if objective.pair_task or not re.search(OF_PAIRS, weight.path)
        ]
        return loop.Trainer(
            self.model,
            objective,
            weights,
            _make_schedule(self.options),
            self.options,
            self.strategy,
        )

    def batches(
        self, data: TrainingData, start: StartingPoint, num_steps: int
    ) -> tf.data.Dataset:
        """Returns endless batches from the starting point."""
        batches = datasets.training_batches(
            data.records,
            self.options.train_batch_size,
            seed=start.seed,
            start=start.examples_seen,
        )
        return pretraining_records.with_checked_ids(
            batches, self.model.config.vocab_size
        )

    def data_files(self) -> dict[str, list[str]]:
        """Returns the files whose fingerprints are in the run's record."""
        return {"training data": [*self.data.names]}

    def model_texts(self) -> dict[str, str]:
        """Returns {name: text} of the files that describe the model."""
        texts = {file_names.CONFIG: self.model.config.to_json_string()}
        settings = record_tokenizer.read_settings(self.data.names)
        if settings and (vocab := self.options.model_files.vocab):
            config = tokenizer_files.config_text(vocab, settings)
            texts[tokenizer_files.CONFIG] = config
        return texts


def pretrain(options: RunPretraining) -> None:
    """Trains, evaluates, or both."""
    with run_context(options):
        run = prepare(options)
        with pretraining_records.naming_damaged(
            (run.data, run.eval_data), run.model.config.vocab_size
        ):
            if options.do_train:
                global_step = fit(run)
            else:
                global_step = checkpointing.load_for_evaluation(
                    run.model, options
                )
            if options.do_eval:
                _write_results(run, run.measure(global_step))
    if options.do_train and options.is_chief:
        reporting.print_fine_tuning(options)


def prepare(options: RunPretraining) -> PretrainingRun:
    """Checks options and files, and builds the model."""
    config = options.model_config()
    if options.vocab_file:
        vocab = load_vocab(options.vocab_file)
        config.require_vocabulary(vocab, options.model_files.vocab_source)
    names = pretraining_records.expand(options.input_file)
    eval_names = pretraining_records.expand(options.eval_file)
    pretraining_records.check_descriptions(
        [*names, *eval_names], config, options
    )
    resumed = resuming.check(options, config, {"training data": names})
    strategy = distribution.choose_strategy(options)
    data = eval_data = pretraining_records.open_files(names, config, options)
    if options.do_train and options.do_eval and not options.eval_file:
        logging.warning(
            "The evaluation is on the training data. For held-out text, add "
            "--eval_file"
        )
    if options.eval_file:
        eval_data = pretraining_records.open_files(eval_names, config, options)
        if not (options.do_eval or options.eval_every):
            logging.warning("--eval_file needs --do_eval or --eval_every")
        if options.do_train and {*data.names} & {*eval_data.names}:
            logging.warning("--eval_file is also training data")
    files.make_directory(options.output_dir)
    checkpointing.set_seed(options.seed)
    policy = precision.policy(options.mixed_precision, options.matmul_precision)
    with strategy.scope(), policy:
        model = PretrainingModel(config)
    return PretrainingRun(options, strategy, model, data, eval_data, resumed)


def _write_results(run: PretrainingRun, results: dict[str, Any]) -> None:
    options, names = run.options, run.eval_data.names
    if not options.do_train:
        reporting.write_eval_options(options)
    if options.is_chief:
        path = options.run_directory.file(file_names.METRICS_TEXT)
        reporting.write_eval_results(path, results)
        data = f"{len(names)} files"
        if len(names) == 1:
            data = os.path.basename(names[0])
        global_step = results.pop("global_step")
        name = f"{run.objective(run.eval_data).token_task}_loss"
        loss, by_frequency = results[name], run.frequency_loss()
        reporting.print_metrics(
            f"Step {global_step}, {data}",
            results,
            {name: by_frequency},
            "each token is predicted with its frequency in the labels",
        )
        if loss > _LEARNED * by_frequency:
            advice = "Train for more steps"
            if options.max_seq_length > _SHORT:
                advice = (
                    f"Use shorter sequences first (--max_seq_length={_SHORT})"
                )
            logging.warning(
                f"{name} is {loss:.2f}. Predicting tokens by their frequency "
                f"gives {by_frequency:.2f}: the model has learned nothing else "
                f"yet. {advice}"
            )


def _make_schedule(options: RunPretraining) -> LinearWarmupDecay:
    num_steps, num_warmup = options.num_train_steps, options.num_warmup_steps
    if num_warmup >= num_steps:
        logging.warning(
            f"The warm-up of {num_warmup} steps is not shorter than the "
            f"training of {num_steps} steps. Set --num_warmup_steps="
            f"{num_steps // 10}"
        )
    return LinearWarmupDecay(
        options.learning_rate, num_steps, num_warmup, options.lr_schedule
    )


def mean_metrics(
    batches: Iterable[Mapping[str, tuple[Any, Any]]],
) -> dict[str, np.float32]:
    """Returns the mean of each metric; a batch has {metric: (sum, weight)}.

    Without masked tokens, the loss and accuracy of masked LM are 0, as in the
    original implementation.
    """
    # In float64, so that the order of batches does not matter.
    totals: dict[str, Any] = collections.defaultdict(lambda: np.zeros(2))
    for metrics in batches:
        for name, (value, weight) in metrics.items():
            totals[name] += float(value), float(weight)
    return {
        name: np.float32(total / (weight or 1.0))
        for name, (total, weight) in totals.items()
    }
