"""One step: a batch to gradients to moved weights."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import tensorflow as tf

from official_bert.modeling import activations, dropout
from official_bert.optimization.adam import AdamWeightDecay
from official_bert.training.objectives import Batch, Objective, Scalars
from official_bert.training.precision import LossScale


class Computation(NamedTuple):
    """How a step is computed; what it computes stays the same but for rounding.

    Attributes:
        num_micro_batches: In how many parts, one after the other, each replica
            goes through its part of a batch: less memory for more time.
        loss_scale: Of float16.
        jit_gradients: Whether XLA compiles a replica's part of the step, up to
            the sum over replicas.
    """

    num_micro_batches: int = 1
    loss_scale: LossScale | None = None
    jit_gradients: bool = False

    def state(self) -> dict[str, tf.Variable]:
        """Returns {name in a checkpoint: variable} of what it keeps."""
        return self.loss_scale.state() if self.loss_scale else {}


def train_step(
    model: Any,
    objective: Objective,
    optimizer: AdamWeightDecay,
    batch: Batch,
    seed: int,
    computation: Computation | None = None,
) -> Scalars:
    """Moves the weights once. Runs on every replica, with its part of a batch.

    Args:
        model: What is trained.
        objective: What for.
        optimizer: It clips and updates.
        batch: {name: Tensor [B, ...]}.
        seed: Of the run; steps, replicas and micro-batches have dropout masks
            of their own.
        computation: How, if not all at once in float32.

    Returns:
        `loss` and its parts, of the whole batch and before the update, the
        gradients' norm and the learning rate: equal on all replicas. In float16
        also `loss_scale`, as it was in this step.
    """
    how = computation or Computation()
    replica = tf.distribute.get_replica_context()
    # Of all replicas and micro-batches, before the first gradient.
    weights = all_sum(objective.weights(batch))
    mask_seed = dropout_seed(
        seed, optimizer.step, replica.replica_id_in_sync_group
    )
    scale = how.loss_scale.value.read_value() if how.loss_scale else None
    find = tf.function(accumulated, jit_compile=True, autograph=False)
    losses, gradients = (find if how.jit_gradients else accumulated)(
        model, objective, optimizer, batch, weights, mask_seed, scale, how
    )
    gradients = all_sum(gradients)
    if how.loss_scale:
        gradients = [gradient / scale for gradient in gradients]
    norm, rate = optimizer.apply(
        gradients, skips_non_finite=how.loss_scale is not None
    )
    scalars = {
        **all_sum(losses),
        "gradient_norm": norm,
        "learning_rate": rate,
    }
    if how.loss_scale:
        scalars["loss_scale"] = scale
        how.loss_scale.adapt(tf.math.is_finite(norm))
    return scalars


def accumulated(
    model: Any,
    objective: Objective,
    optimizer: AdamWeightDecay,
    batch: Batch,
    weights: Scalars,
    mask_seed: Any,
    scale: Any,
    how: Computation,
) -> tuple[Scalars, list[Any]]:
    """Sums losses and gradients over the micro-batches of one replica.

    Args:
        model: What is trained.
        objective: What for.
        optimizer: Of the weights to find gradients for.
        batch: The replica's part.
        weights: Of the whole batch.
        mask_seed: Of dropout's masks, int32 [2].
        scale: What the loss is multiplied by; None for 1.
        how: In how many parts.

    Returns:
        {loss: its share of the whole batch's}, `loss` among them, and a dense
        float32 gradient for each weight, multiplied by `scale`.
    """
    if how.num_micro_batches == 1:
        return _gradients(
            model, objective, optimizer, batch, weights, mask_seed, scale
        )

    def add(total: Any, part: Any) -> Any:
        number, micro_batch = part
        own_seed = tf.random.experimental.stateless_fold_in(mask_seed, number)
        found = _gradients(
            model, objective, optimizer, micro_batch, weights, own_seed, scale
        )
        return tf.nest.map_structure(tf.add, total, found)

    parts = {
        name: tf.stack(tf.split(value, how.num_micro_batches))
        for name, value in batch.items()
    }
    nothing = (
        dict.fromkeys(["loss", *weights], tf.constant(0.0)),
        [tf.zeros(weight.shape) for weight in optimizer.weights],
    )
    # One at a time: several at once would need the memory of all.
    return tf.foldl(  # type: ignore[no-any-return]
        add,
        (tf.range(how.num_micro_batches), parts),
        initializer=nothing,
        parallel_iterations=1,
    )


def _gradients(
    model: Any,
    objective: Objective,
    optimizer: AdamWeightDecay,
    batch: Batch,
    weights: Scalars,
    mask_seed: Any,
    scale: Any,
) -> tuple[Scalars, list[Any]]:
    """Returns what `accumulated` does, of one micro-batch."""
    # The tape is asked inside: what is recomputed must draw the same masks.
    with (
        dropout.drawing(functools.partial(random_bits, mask_seed)),
        activations.compiling(_compiled if _only_cpus() else None),
    ):
        with tf.GradientTape() as tape:
            sums = objective.sums(model, batch, training=True)
            losses = objective.means(sums, weights)
            loss = tf.add_n(list(losses.values()))
            scaled = loss if scale is None else loss * scale
        gradients = tape.gradient(scaled, optimizer.weights)
    return (
        {"loss": loss, **losses},
        [tf.convert_to_tensor(gradient) for gradient in gradients],
    )


@functools.cache
def _compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns the function as one pass of XLA over its arguments."""
    compiled: Callable[..., Any] = tf.function(
        function, autograph=False, jit_compile=True
    )
    return compiled


def _only_cpus() -> bool:
    return {d.device_type for d in tf.config.list_logical_devices()} == {"CPU"}


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


def random_bits(seed: Any, site: int, shape: Any) -> Any:
    """Returns a uint16 Tensor of a shape, the same for the same seed and site.

    Args:
        seed: int32 [2].
        site: Who asks for it.
        shape: Numbers, or scalar Tensors.
    """
    size = tf.reduce_prod(shape)
    # The generator's time is per word of 32 bits.
    words = tf.random.stateless_uniform(
        [(size + 1) // 2],
        tf.bitwise.bitwise_xor(seed, [0, site]),
        minval=None,
        maxval=None,
        dtype=tf.uint32,
    )
    bits = tf.reshape(tf.bitcast(words, tf.uint16), [-1])
    return tf.reshape(bits[:size], shape)
