import numpy as np
import pytest
import tensorflow as tf
from scipy import special

from official_bert.modeling.losses import Distillation
from official_bert.modeling.pretraining_model import PretrainingOutput
from official_bert.sources.heads import Head
from official_bert.training import objectives, pretraining_run, step
from official_bert.training.objectives import (
    EmbeddingObjective,
    FinetuningObjective,
    PretrainingObjective,
)

RANDOM = np.random.RandomState(0)
MASKED_LM_LOGITS = RANDOM.standard_normal((3, 4, 7)).astype(np.float32)
NEXT_SENTENCE_LOGITS = RANDOM.standard_normal((3, 2)).astype(np.float32)
IDS = RANDOM.randint(0, 7, (3, 4)).astype(np.int32)
LABELS = np.array([[0], [1], [1]], np.int32)


def model(batch, training):
    logits = MASKED_LM_LOGITS, NEXT_SENTENCE_LOGITS
    return PretrainingOutput(*map(tf.constant, logits))


def metrics(weights):
    """Returns the mean losses of training and the metrics of evaluation."""
    objective = PretrainingObjective()
    batch = {
        "masked_lm_ids": tf.constant(IDS),
        "masked_lm_weights": tf.constant(weights, tf.float32),
        "next_sentence_labels": tf.constant(LABELS),
    }
    sums = objective.loss_sums(model, batch, training=True)
    losses = objective.mean_losses(sums, objective.loss_weights(batch))
    losses = {name: float(loss) for name, loss in losses.items()}
    sums = step.evaluation_step(model, objective, batch)
    return losses, pretraining_run.mean_metrics([sums])


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


@pytest.mark.parametrize("jit_compile", [False, True])
def test_every_token_but_the_last_is_labeled_with_the_next_token(jit_compile):
    batch = {  # The last row holds two packed texts.
        "input_ids": [
            [2, 4, 11, 99, 3, 0, 0],
            [2, 10, 11, 12, 13, 14, 4],
            [2, 10, 3, 2, 4, 3, 0],
        ],
        "input_mask": [[1] * 5 + [0] * 2, [1] * 7, [1, 1, 1, 2, 2, 2, 0]],
        "masked_lm_positions": [[1, 3, 0], [6, 0, 0], [4, 0, 0]],
        "masked_lm_ids": [[10, 12, 0], [3, 0, 0], [11, 0, 0]],
        "masked_lm_weights": [[1.0, 1.0, 0.0], [1.0, 0, 0], [1.0, 0, 0]],
        "next_sentence_labels": [[1], [0], [1]],
    }
    function = tf.function(
        objectives.to_next_tokens, jit_compile=jit_compile, autograph=False
    )
    found = function({name: tf.constant(v) for name, v in batch.items()})
    text = [
        [2, 10, 11, 12, 3, 0, 0],
        [2, 10, 11, 12, 13, 14, 3],
        [2, 10, 3, 2, 11, 3, 0],
    ]
    weights = [[1] * 4 + [0] * 2, [1] * 6, [1, 1, 0, 1, 1, 0]]
    expected = batch | {
        "input_ids": text,
        "masked_lm_positions": [[0, 1, 2, 3, 4, 5]] * 3,
        "masked_lm_ids": np.array(text)[:, 1:],
        "masked_lm_weights": weights,
    }
    for name, values in expected.items():
        np.testing.assert_array_equal(found[name], values)
        is_float = name == "masked_lm_weights"
        assert found[name].dtype == (tf.float32 if is_float else tf.int32)


def smoothed_losses(kind, logits, labels, smoothing):
    """Returns the losses of smoothed targets, computed in float64."""
    if kind == "regression":
        return (logits[:, 0] - labels[:, 0]) ** 2
    if kind == "multilabel":
        targets = labels * (1 - smoothing) + smoothing / 2
        log_odds = special.log_expit(logits), special.log_expit(-logits)
        return -targets * log_odds[0] - (1 - targets) * log_odds[1]
    labels = labels if kind == "tags" else labels[:, 0]
    is_class = np.isfinite(logits)
    targets = np.eye(3)[labels] * (1 - smoothing)
    targets += smoothing * is_class / is_class.sum(-1, keepdims=True)
    log_shares = np.where(is_class, special.log_softmax(logits, -1), 0)
    return -(targets * log_shares).sum(-1)


def weighted_mean(objective, features, logits, num_parts):
    """Returns the loss of a batch that is divided into equal parts."""
    sums, divisors = [], []
    for part in np.split(np.arange(len(logits)), num_parts):
        batch = {
            name: tf.constant(
                values[part],
                tf.float32 if values.dtype == np.float32 else tf.int32,
            )
            for name, values in features.items()
        }
        of_part = tf.constant(logits[part], tf.float32)
        found = objective.loss_sums(lambda *_, **__: of_part, batch, True)  # noqa: B023
        sums.append(found["loss"])
        divisors.append(objective.loss_weights(batch)["loss"])
    return objective.mean_losses(
        {"loss": tf.add_n(sums)}, {"loss": tf.add_n(divisors)}
    )["loss"]


def log_shares(logits, temperature):
    return special.log_softmax(logits / temperature, -1)


def taught_losses(kind, logits, answers, temperature):
    """Returns the losses of a teacher's answers, computed in float64."""
    if kind == "regression":
        return (logits[:, 0] - answers[:, 0]) ** 2
    if kind == "multilabel":
        log_odds = special.log_expit(logits), special.log_expit(-logits)
        return -answers * log_odds[0] - (1 - answers) * log_odds[1]
    with np.errstate(divide="ignore"):
        teacher = np.exp(log_shares(np.log(answers), temperature))
    student = np.exp(log_shares(logits, temperature))
    return temperature**2 * special.rel_entr(teacher, student).sum(-1)


WEIGHTS = (0.5, 1.0, 7.0)


@pytest.mark.parametrize(
    ("kind", "class_weights", "smoothing"),
    [
        ("classification", (), 0.0),
        ("classification", WEIGHTS, 0.0),
        ("classification", (), 0.25),
        ("classification", WEIGHTS, 0.25),
        ("multilabel", WEIGHTS, 0.0),
        ("multilabel", (), 0.25),
        ("multilabel", WEIGHTS, 0.25),
        ("regression", (), 0.0),
        ("choices", (), 0.0),
        ("choices", (), 0.25),
        ("tags", (), 0.0),
        ("tags", (), 0.25),
    ],
)
@pytest.mark.parametrize("distillation", [None, Distillation(0.3, 2.5)])
@pytest.mark.parametrize(("num_parts", "has_weights"), [(1, False), (4, True)])
def test_training_loss_is_a_weighted_mean_over_the_whole_batch(
    kind, class_weights, smoothing, distillation, num_parts, has_weights
):
    random = np.random.default_rng(0)
    shape = (32, 5, 3) if kind == "tags" else (32, 3)
    size = shape[1] if kind in ("multilabel", "tags") else 1
    logits = random.normal(size=shape) * (3 if distillation else 1)
    labels = random.integers(0, 2 if kind == "multilabel" else 3, (32, size))
    has_label = random.integers(0, 2, (32, 1)) if distillation else np.ones(1)
    labels *= has_label > 0
    weights = np.arange(32) < 29
    features = {"label_ids": labels, "is_real_example": weights[:, None]}
    if kind == "tags":
        weights = features["label_mask"] = random.integers(0, 2, (32, 5))
    elif has_weights:
        numbers = random.integers(0, 5, (32, 1)) / 4
        features["example_weights"] = numbers.astype(np.float32)
        weights = weights * numbers[:, 0]
    answers, all_logits = random.normal(size=shape) * 3, logits.copy()
    if kind == "choices":  # Some have two choices, and the others three.
        features["input_mask"] = np.ones((32, 3, 4), int)
        is_missing = (np.arange(32) % 2 == 0) & (labels[:, 0] < 2)
        features["input_mask"][is_missing, 2] = 0
        all_logits[is_missing, 2] = answers[is_missing, 2] = -np.inf
    losses = smoothed_losses(kind, all_logits, labels, smoothing)
    per_label = kind == "multilabel" and not class_weights
    losses = losses.mean(-1) if per_label else losses
    if distillation:
        if kind == "multilabel":
            answers = special.expit(answers)
        elif kind != "regression":
            answers = special.softmax(answers, -1)
        soft = taught_losses(kind, all_logits, answers, 2.5)
        soft = soft.mean(-1) if per_label else soft
        is_taught = has_label if losses.ndim == 2 else has_label[:, 0]
        losses = 0.3 * soft + 0.7 * is_taught * losses
        if kind == "tags":  # Other tokens have no answer.
            answers = (answers * weights[..., None]).swapaxes(1, 2)
        features["has_label"] = has_label
        features["teacher_answers"] = answers.astype(np.float32)
    if kind == "multilabel" and class_weights:  # One loss per label.
        weights = weights[:, None] * np.where(labels, class_weights, 1.0)
    elif class_weights:
        factors = np.take(class_weights, labels[:, 0])
        weights = weights * np.where(has_label.ravel() > 0, factors, 1.0)
    objective = FinetuningObjective(
        Head("sequence_classification", 3, kind),
        *(class_weights, smoothing, distillation),
    )
    found = weighted_mean(objective, features, logits, num_parts)
    expected = (losses * weights).sum() / weights.sum()
    rtol = 1e-5 if distillation else 1e-6
    np.testing.assert_allclose(found, expected, rtol=rtol)


def test_losses_of_truncated_vectors_are_added():
    vectors = np.random.default_rng(0).normal(size=(4, 2, 6))
    labels = np.array([[0.0], [0.3], [0.7], [1.0]], np.float32)
    expected = np.zeros(4)
    for size in (2, 5, 6):
        a, b = vectors[:, 0, :size], vectors[:, 1, :size]
        norms = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
        expected += ((a * b).sum(1) / norms - labels[:, 0]) ** 2
    head = Head("encoder", 0, "cosine", matryoshka=(2, 5))
    found = EmbeddingObjective(head).losses(
        tf.constant(vectors, tf.float32), {"label_ids": tf.constant(labels)}
    )
    np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.parametrize("num_parts", [1, 2])
def test_loss_of_a_student_of_spans_equals_its_formula(num_parts):
    random = np.random.default_rng(0)
    logits = random.normal(size=(32, 5, 2)) * 3
    answers = random.normal(size=logits.shape) * 3
    answers[:, 3:] = -np.inf  # Padding, which the student must not choose.
    answers = special.softmax(answers, 1).swapaxes(1, 2)
    has_label = random.integers(0, 2, (32, 1))
    places = random.integers(0, 3, (32, 2))
    features = {
        "input_ids": np.ones((32, 5), int),
        "has_label": has_label,
        "start_positions": places[:, :1],
        "end_positions": places[:, 1:],
        "teacher_answers": answers.astype(np.float32),
    }
    by_end = logits.swapaxes(1, 2)
    hard = negative_log_probabilities(by_end, places).mean(-1)
    soft = taught_losses("spans", by_end, answers, 2.5).mean(-1)
    losses = 0.3 * soft + 0.7 * has_label[:, 0] * hard
    objective = FinetuningObjective(
        Head("token_classification", 3, "spans"),
        distillation=Distillation(0.3, 2.5),
    )
    found = weighted_mean(objective, features, logits, num_parts)
    np.testing.assert_allclose(found, losses.mean(), rtol=1e-5)
