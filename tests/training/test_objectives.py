"""Pre-training losses and accuracies against formulas in float64."""

import numpy as np
import pytest
import tensorflow as tf
from scipy import special

from official_bert.modeling.pretraining_model import PretrainingOutput
from official_bert.training import pretrain, step
from official_bert.training.objectives import PretrainingObjective

RANDOM = np.random.RandomState(0)
MASKED_LM_LOGITS = RANDOM.standard_normal((3, 4, 7)).astype(np.float32)
NEXT_SENTENCE_LOGITS = RANDOM.standard_normal((3, 2)).astype(np.float32)
IDS = RANDOM.randint(0, 7, (3, 4)).astype(np.int32)
LABELS = np.array([[0], [1], [1]], np.int32)
KINDS = ("loss", "accuracy")


def model(batch, training):
    return PretrainingOutput(
        tf.constant(MASKED_LM_LOGITS), tf.constant(NEXT_SENTENCE_LOGITS)
    )


def metrics(weights, **tasks):
    """Returns the mean losses of training and the metrics of evaluation."""
    objective = PretrainingObjective(**tasks)
    batch = {
        "masked_lm_ids": tf.constant(IDS),
        "masked_lm_weights": tf.constant(weights, tf.float32),
        "next_sentence_labels": tf.constant(LABELS),
    }
    sums = objective.loss_sums(model, batch, training=True)
    losses = objective.mean_losses(sums, objective.loss_weights(batch))
    losses = {name: float(loss) for name, loss in losses.items()}
    sums = step.evaluation_step(model, objective, batch)
    return losses, pretrain.mean_metrics([sums])


def negative_log_probabilities(logits, labels):
    found = special.log_softmax(logits.astype(np.float64), -1)
    return -np.take_along_axis(found, labels[..., None], -1)[..., 0]


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
    pair_losses = negative_log_probabilities(NEXT_SENTENCE_LOGITS, LABELS[:, 0])
    trained, evaluated = metrics(weights)
    expected = {
        "masked_lm_loss": (losses * weights).sum() / (weights.sum() + 1e-5),
        "next_sentence_loss": pair_losses.mean(),
    }
    assert trained == pytest.approx(expected, rel=1e-6)
    divisor = weights.sum() or 1.0
    is_pair_correct = NEXT_SENTENCE_LOGITS.argmax(-1) == LABELS[:, 0]
    assert evaluated == pytest.approx(
        {
            "loss": sum(expected.values()),
            "masked_lm_loss": (losses * weights).sum() / divisor,
            "masked_lm_accuracy": (is_correct * weights).sum() / divisor,
            "next_sentence_loss": pair_losses.mean(),
            "next_sentence_accuracy": is_pair_correct.mean(),
        },
        rel=1e-6,
    )


def test_other_tasks_have_the_same_numbers_under_other_names():
    weights = RANDOM.rand(3, 4)
    losses, evaluated = metrics(weights)
    tasks = {"token_task": "lm", "pair_task": "sentence_order"}
    renamed = metrics(weights, **tasks)
    lm_only = metrics(weights, pair_task=None)

    new_names = {
        "loss": "loss",
        **{f"masked_lm_{kind}": f"lm_{kind}" for kind in KINDS},
        **{f"next_sentence_{kind}": f"sentence_order_{kind}" for kind in KINDS},
    }
    assert renamed == tuple(
        {new_names[name]: value for name, value in numbers.items()}
        for numbers in (losses, evaluated)
    )
    loss = losses.pop("masked_lm_loss")
    assert lm_only[0] == {"masked_lm_loss": loss}
    masked_lm = {n: v for n, v in evaluated.items() if "masked_lm" in n}
    assert lm_only[1] == masked_lm | {"loss": pytest.approx(loss, rel=1e-6)}
