"""One training step: a batch, its losses, their gradients, an update."""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from official_bert.hub import HubBert
from official_bert.modeling.layers import StepContext
from official_bert.optimization.adam import AdamWeightDecay
from official_bert.training.objectives import (
    Batch,
    EmbeddingObjective,
    Objective,
    PretrainingObjective,
    Scalars,
)
from official_bert.training.precision import LossScale, runs_on_cpu

_fold_in = tf.random.experimental.stateless_fold_in


@functools.cache
def _compile_with_xla(function: Callable[..., Any]) -> Any:
    return tf.function(function, autograph=False, jit_compile=True)


@dataclasses.dataclass(eq=False)
class TrainingStep:
    """Updates the weights of a model once per batch.

    Each step, replica and micro-batch has its own dropout masks, which depend
    on `seed`. A replica processes `num_micro_batches` parts of its share of the
    batch, one after the other. This takes less memory and more time, and gives
    the same update. With `recomputes_layers`, the backward pass recomputes the
    activations of each Transformer layer. With `compiles_gradients`, XLA
    compiles the part before the sum over replicas. With `removes_padding`, most
    layers skip padding, on which the loss must not depend.
    """

    model: Any
    objective: Objective
    optimizer: AdamWeightDecay
    seed: int
    _: dataclasses.KW_ONLY
    num_micro_batches: int = 1
    loss_scale: LossScale | None = None
    recomputes_layers: bool = False
    compiles_gradients: bool = False
    removes_padding: bool = False

    def run(self, batch: Batch) -> Scalars:
        """Updates the weights. Runs on every replica, with its share.

        Args:
            batch: {name: Tensor [B, ...]}.

        Returns:
            `loss` and its parts, for the whole batch and before the update,
            `gradient_norm` before clipping and `learning_rate`; equal on all
            replicas. With float16 also the `loss_scale` used in this step.
        """
        replica = tf.distribute.get_replica_context().replica_id_in_sync_group
        seed_of_step = step_seed(self.seed, self.optimizer.step, replica)
        # -1, because the dropout of micro-batches uses the numbers from 0.
        batch = self.objective.with_labels(batch, _fold_in(seed_of_step, -1))
        loss_weights = sum_over_replicas(self.objective.loss_weights(batch))
        scale = self.loss_scale.value.read_value() if self.loss_scale else None
        first_sums, objective = None, self.objective
        if isinstance(objective, EmbeddingObjective) and self._is_divided:
            vectors = self.vectors(batch, seed_of_step)
            first_sums, of_vectors = objective.vector_gradients(vectors, batch)
            batch = {**batch, "vector_gradients": of_vectors}
        compute_gradients: Callable[..., Any] = self.gradients
        if self.compiles_gradients:
            compute_gradients = tf.function(
                compute_gradients, jit_compile=True, autograph=False
            )
        losses, gradients = compute_gradients(
            batch, loss_weights, seed_of_step, scale
        )
        if first_sums:  # The second pass gives gradients, but no losses.
            losses = objective.mean_losses(first_sums, loss_weights)
        # Summed before the optimizer clips them.
        gradients = sum_over_replicas(gradients)
        if self.loss_scale:
            gradients = [gradient / scale for gradient in gradients]
        norm, rate = self.optimizer.apply(
            gradients, skips_non_finite=self.loss_scale is not None
        )
        scalars: Scalars = sum_over_replicas(losses)
        scalars |= {"gradient_norm": norm, "learning_rate": rate}
        if self.loss_scale:
            scalars["loss_scale"] = scale
            self.loss_scale.update(tf.math.is_finite(norm))
        return scalars

    def gradients(
        self,
        batch: Batch,
        loss_weights: Scalars,
        dropout_seed: Any,
        scale: Any = None,
    ) -> tuple[Scalars, list[Any]]:
        """Sums losses and gradients over the micro-batches of one replica.

        `loss_weights` are the weights of the whole batch, `dropout_seed` is
        int32 [2], and `scale` is a factor of the loss; None: 1. Returns {loss:
        this replica's share}, with their sum `loss`, and a dense float32
        gradient for each weight, multiplied by `scale`.
        """
        weights = self.optimizer.weights

        def process_part(part: Batch, seed: Any) -> tuple[Scalars, list[Any]]:
            with tf.GradientTape() as tape:
                sums = self.objective.loss_sums(
                    self.model, part, training=self._context(seed)
                )
                losses = self.objective.mean_losses(sums, loss_weights)
                loss = tf.add_n(list(losses.values()))
                scaled = loss if scale is None else loss * scale
            gradients = tape.gradient(scaled, weights)
            dense = map(self._dense_gradient, weights, gradients)
            return {"loss": loss, **losses}, [*dense]

        if self.num_micro_batches == 1:
            return process_part(batch, dropout_seed)

        def add(total: Any, numbered_part: Any) -> Any:
            number, part = numbered_part
            seed = _fold_in(dropout_seed, number)
            return tf.nest.map_structure(
                tf.add, total, process_part(part, seed)
            )

        zeros = (
            dict.fromkeys(["loss", *loss_weights], tf.constant(0.0)),
            [tf.zeros(weight.shape) for weight in weights],
        )
        # Micro-batches in parallel would need the memory of the whole batch.
        return tf.foldl(
            add,
            self._numbered_parts(batch),
            initializer=zeros,
            parallel_iterations=1,
        )

    def _dense_gradient(self, weight: Any, gradient: Any) -> Any:
        """Returns a gradient as a Tensor.

        Sparse gradients, of TF Hub modules, can have several rows for one
        token, and Adam must square their sum. The loss may not depend on some
        weights of modules, such as those that only the signature `mlm` reads:
        their gradient is 0. In other models, this raises `ValueError`.
        """
        if gradient is not None:
            return tf.convert_to_tensor(gradient)
        if isinstance(getattr(self.model, "bert", None), HubBert):
            return tf.zeros(weight.shape)
        raise ValueError(f"The loss does not depend on {weight.path}.")

    def _numbered_parts(self, batch: Batch) -> tuple[Any, Batch]:
        """Returns the numbers of the micro-batches, and these, stacked."""
        number = self.num_micro_batches
        parts = {k: tf.stack(tf.split(v, number)) for k, v in batch.items()}
        return tf.range(number), parts

    @property
    def _is_divided(self) -> bool:
        """Whether there are several replicas or micro-batches."""
        context = tf.distribute.get_replica_context()
        parts: int = self.num_micro_batches * context.num_replicas_in_sync
        return parts > 1

    def vectors(self, batch: Batch, dropout_seed: Any) -> Any:
        """Returns the outputs of the model, the first pass of GradCache.

        The dropout masks are the same as in `gradients`, the second pass.
        """

        def encode(numbered_part: Any) -> Any:
            number, part = numbered_part
            seed = _fold_in(dropout_seed, number)
            return self.model(part, training=self._context(seed))

        if self.num_micro_batches == 1:
            return self.model(batch, training=self._context(dropout_seed))
        vectors = tf.map_fn(
            encode,
            self._numbered_parts(batch),
            fn_output_signature=tf.float32,
            parallel_iterations=1,
        )
        return tf.reshape(vectors, (-1, *vectors.shape[2:]))

    def _context(self, dropout_seed: Any) -> StepContext:
        return StepContext(
            functools.partial(random_bits, dropout_seed),
            _compile_with_xla if runs_on_cpu() else None,
            recompute_in_backward if self.recomputes_layers else None,
            self.removes_padding,
        )


def evaluation_step(
    model: Any, objective: PretrainingObjective, batch: Batch
) -> dict[str, tuple[Any, Any]]:
    """Returns {metric: (sum, weight)} of a batch, equal on all replicas.

    Runs on each replica, with its share. An accuracy has the weight of its
    loss; `loss`, the sum of the mean losses, has the weight 1.
    """
    sums = sum_over_replicas(objective.evaluation_sums(model, batch))
    weights = sum_over_replicas(objective.loss_weights(batch))
    losses = objective.mean_losses(sums, weights)
    metrics = {
        name: (value, weights[name.replace("_accuracy", "_loss")])
        for name, value in sums.items()
    }
    total = tf.add_n(list(losses.values()))
    return {**metrics, "loss": (total, tf.constant(1.0))}


def sum_over_replicas(values: Any) -> Any:
    """Sums each tensor of a nested structure over all replicas."""
    replica = tf.distribute.get_replica_context()
    if replica.num_replicas_in_sync == 1:
        return values
    return replica.all_reduce(tf.distribute.ReduceOp.SUM, values)


def step_seed(seed: int, step: Any, replica_id: Any) -> Any:
    """Returns the int32 [2] seed of one step on one replica."""
    mixed = tf.constant([seed, 0], tf.int32)
    for number in (step, replica_id):
        mixed = _fold_in(mixed, tf.cast(number, tf.int32))
    return mixed


def random_bits(seed: Any, site: int, x: Any) -> Any:
    """Returns uint16 random bits in the shape of `x`.

    They depend on an int32 [2] seed and a layer's number.
    """
    size = tf.size(x)
    # The generator draws 32-bit words, each of which gives two values.
    words = tf.random.stateless_uniform(
        [(size + 1) // 2],
        tf.bitwise.bitwise_xor(seed, [0, site]),
        minval=None,
        maxval=None,
        dtype=tf.uint32,
    )
    bits = tf.reshape(tf.bitcast(words, tf.uint16), [-1])
    return tf.reshape(bits[:size], tf.shape(x))


def recompute_in_backward(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps a function so that its gradient recomputes the activations.

    This is gradient checkpointing (Chen et al., 2016). The arguments of the
    function are float Tensors. With `tf.recompute_grad`, XLA would merge the
    two equal computations. Here they differ: the second one adds an incoming
    gradient times 0 to its first input, which XLA does not simplify.
    """

    @tf.custom_gradient
    def forward(*inputs: Any) -> Any:
        def backward(
            upstream: Any, variables: Sequence[Any] = ()
        ) -> tuple[Any, Any]:
            first = inputs[0] + 0.0 * tf.reshape(upstream, [-1])[0]
            delayed_inputs = [first, *map(tf.identity, inputs[1:])]
            with tf.GradientTape() as tape:
                tape.watch(delayed_inputs)
                output = function(*delayed_inputs)
            sources = (delayed_inputs, list(variables))
            zero = tf.UnconnectedGradients.ZERO
            return tape.gradient(output, sources, upstream, zero)

        return function(*inputs), backward

    return forward
