"""One step: a batch to gradients to moved weights."""

from typing import Any

import tensorflow as tf

from official_bert.modeling import dropout
from official_bert.optimization.adam import AdamWeightDecay
from official_bert.training.objectives import Batch, Objective, Scalars


def train_step(
    model: Any,
    objective: Objective,
    optimizer: AdamWeightDecay,
    batch: Batch,
    seed: int,
) -> Scalars:
    """Moves the weights once. Runs on every replica, with its part of a batch.

    Args:
        model: What is trained.
        objective: What for.
        optimizer: It clips and updates.
        batch: {name: Tensor [B, ...]}.
        seed: Of the run; steps and replicas have dropout masks of their own.

    Returns:
        `loss` and its parts, of the whole batch and before the update, the
        gradients' norm and the learning rate: equal on all replicas.
    """
    replica = tf.distribute.get_replica_context()
    weights = all_sum(objective.weights(batch))
    masks = dropout_seed(seed, optimizer.step, replica.replica_id_in_sync_group)
    with dropout.seeded(masks), tf.GradientTape() as tape:
        sums = objective.sums(model, batch, training=True)
        losses = objective.means(sums, weights)
        loss = tf.add_n(list(losses.values()))
    gradients = [
        None if gradient is None else tf.convert_to_tensor(gradient)
        for gradient in tape.gradient(loss, optimizer.weights)
    ]
    # What a task's loss does not depend on has no gradient on any replica.
    present = iter(all_sum([g for g in gradients if g is not None]))
    gradients = [None if g is None else next(present) for g in gradients]
    norm, rate = optimizer.apply(gradients)
    return {
        **all_sum({"loss": loss, **losses}),
        "gradient_norm": norm,
        "learning_rate": rate,
    }


def all_sum(values: Any) -> Any:
    """Sums every tensor of a nested structure over all replicas."""
    replica = tf.distribute.get_replica_context()
    if replica.num_replicas_in_sync == 1:
        return values
    return replica.all_reduce(tf.distribute.ReduceOp.SUM, values)


def dropout_seed(seed: int, step: Any, replica_id: Any) -> Any:
    """Returns the int32 [2] seed of one step on one replica."""
    mixed = tf.constant([seed, 0], tf.int32)
    for number in (step, replica_id):
        mixed = tf.random.experimental.stateless_fold_in(
            mixed, tf.cast(number, tf.int32)
        )
    return mixed
