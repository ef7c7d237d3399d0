"""Pre-training losses and accuracies against formulas in float64."""

import numpy as np
import pytest
import tensorflow as tf

from official_bert.modeling.pretraining_model import PretrainingOutput
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
    objective = PretrainingObjective()
    batch = {
        "masked_lm_ids": tf.constant(IDS),
        "masked_lm_weights": tf.constant(weights, tf.float32),
        "next_sentence_labels": tf.constant(LABELS),
    }
    losses = negative_log_probabilities(MASKED_LM_LOGITS, IDS)
    is_correct = MASKED_LM_LOGITS.argmax(-1) == IDS

    sums = objective.loss_sums(model, batch, training=True)
    means = objective.mean_losses(sums, objective.loss_weights(batch))
    evaluated = objective.evaluation_sums(model, batch)

    np.testing.assert_allclose(
        means["masked_lm_loss"],
        (losses * weights).sum() / (weights.sum() + 1e-5),
        rtol=1e-6,
    )
    np.testing.assert_allclose(
        means["next_sentence_loss"],
        negative_log_probabilities(NEXT_SENTENCE_LOGITS, LABELS[:, 0]).mean(),
        rtol=1e-6,
    )
    np.testing.assert_allclose(
        evaluated["masked_lm_accuracy"], (is_correct * weights).sum(), rtol=1e-6
    )
    assert evaluated["next_sentence_accuracy"] == np.sum(
        NEXT_SENTENCE_LOGITS.argmax(-1) == LABELS[:, 0]
    )


def test_other_tasks_have_the_same_numbers_under_other_names():
    batch = {
        "masked_lm_ids": tf.constant(IDS),
        "masked_lm_weights": tf.constant(RANDOM.rand(3, 4), tf.float32),
        "next_sentence_labels": tf.constant(LABELS),
    }

    def numbers(objective):
        weights = objective.loss_weights(batch)
        sums = objective.loss_sums(model, batch, training=True)
        return {
            **objective.evaluation_sums(model, batch),
            **{f"{k} weight": v for k, v in weights.items()},
            **{
                f"{k} mean": v
                for k, v in objective.mean_losses(sums, weights).items()
            },
        }

    default = numbers(PretrainingObjective())
    ordered = numbers(PretrainingObjective("lm", "sentence_order"))
    alone = numbers(PretrainingObjective(pair_task=None))

    assert len(default) == 8
    assert ordered == {
        name.replace("masked_lm", "lm").replace(
            "next_sentence", "sentence_order"
        ): value
        for name, value in default.items()
    }
    assert alone == {
        name: value
        for name, value in default.items()
        if name.startswith("masked_lm")
    }
