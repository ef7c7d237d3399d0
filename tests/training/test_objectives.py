"""Pre-training losses and accuracies against formulas in float64."""

import numpy as np
import pytest
import tensorflow as tf

from official_bert.modeling.pretraining_model import PretrainingOutput
from official_bert.training import evaluate
from official_bert.training.objectives import PretrainingObjective

RANDOM = np.random.RandomState(0)
MASKED_LM_LOGITS = RANDOM.standard_normal((3, 4, 7)).astype(np.float32)
NEXT_SENTENCE_LOGITS = RANDOM.standard_normal((3, 2)).astype(np.float32)
IDS = RANDOM.randint(0, 7, (3, 4)).astype(np.int32)
LABELS = np.array([[0], [1], [1]], np.int32)


def model(batch, training):
    return PretrainingOutput(
        tf.constant(MASKED_LM_LOGITS), tf.constant(NEXT_SENTENCE_LOGITS)
    )


def batch_with(weights):
    return {
        "masked_lm_ids": tf.constant(IDS),
        "masked_lm_weights": tf.constant(weights, tf.float32),
        "next_sentence_labels": tf.constant(LABELS),
    }


def metrics(objective, weights):
    """Returns the mean losses of training and the metrics of evaluation."""
    batch = batch_with(weights)
    sums = objective.loss_sums(model, batch, training=True)
    losses = objective.mean_losses(sums, objective.loss_weights(batch))
    losses = {name: float(loss) for name, loss in losses.items()}
    return losses, evaluate.pretraining_metrics(
        model,
        objective,
        tf.data.Dataset.from_tensors(batch),
        tf.distribute.get_strategy(),
        num_batches=1,
    )


def negative_log_probabilities(logits, labels):
    logits = logits.astype(np.float64)
    chosen = np.take_along_axis(logits, labels[..., None], -1)[..., 0]
    return np.log(np.exp(logits).sum(-1)) - chosen


@pytest.mark.parametrize(
    "weights",
    [
        np.ones((3, 4)),
        np.zeros((3, 4)),
        RANDOM.rand(3, 4),
        np.array([[1, 1, 0, 0], [1, 0, 0, 0], [1, 1, 1, 1]]),
    ],
    ids=["all", "none", "fractions", "padded"],
)
def test_losses_and_accuracies_equal_their_formulas(weights):
    losses = negative_log_probabilities(MASKED_LM_LOGITS, IDS)
    is_correct = MASKED_LM_LOGITS.argmax(-1) == IDS
    next_sentence_loss = negative_log_probabilities(
        NEXT_SENTENCE_LOGITS, LABELS[:, 0]
    ).mean()
    masked_lm_loss = (losses * weights).sum() / (weights.sum() + 1e-5)

    trained, evaluated = metrics(PretrainingObjective(), weights)

    expected = {
        "masked_lm_loss": masked_lm_loss,
        "next_sentence_loss": next_sentence_loss,
    }
    assert trained == pytest.approx(expected, rel=1e-6)
    divisor = weights.sum() or 1.0
    assert evaluated == pytest.approx(
        {
            "loss": masked_lm_loss + next_sentence_loss,
            "masked_lm_loss": (losses * weights).sum() / divisor,
            "masked_lm_accuracy": (is_correct * weights).sum() / divisor,
            "next_sentence_loss": next_sentence_loss,
            "next_sentence_accuracy": np.mean(
                NEXT_SENTENCE_LOGITS.argmax(-1) == LABELS[:, 0]
            ),
        },
        rel=1e-6,
    )


def test_other_tasks_have_the_same_numbers_under_other_names():
    weights = RANDOM.rand(3, 4)

    def all_metrics(**tasks):
        losses, evaluated = metrics(PretrainingObjective(**tasks), weights)
        return {f"mean {k}": v for k, v in losses.items()} | evaluated

    default = all_metrics()
    renamed = all_metrics(token_task="lm", pair_task="sentence_order")
    alone = all_metrics(pair_task=None)

    assert len(default) == 7
    assert renamed == {
        name.replace("masked_lm", "lm").replace(
            "next_sentence", "sentence_order"
        ): value
        for name, value in default.items()
    }
    masked_lm = {k: v for k, v in default.items() if "masked_lm" in k}
    loss = default["mean masked_lm_loss"]
    assert alone == masked_lm | {"loss": pytest.approx(loss, rel=1e-6)}
