"""Leaves out padding in layers that compute each token on its own."""

from typing import Any, NamedTuple

from keras import ops

# Numbers of rows, each at most 4.5% larger than the one before. There are few,
# because XLA compiles gelu for each.
_SIZES = [round(64 * 2 ** (number / 16)) for number in range(16 * 18)]


class Unpadding(NamedTuple):
    """Which positions of a batch [B, S] are kept, as N rows.

    These are all tokens, the first position of each sequence, and as much
    padding as makes N one of a few sizes.

    The gradients of both methods are gathered, not scattered, which is faster.
    """

    positions: Any  # int32 [N], the place of each row, from 0 to B S - 1
    rows: Any  # int32 [B, S], the row of each position; 0 for removed ones
    is_kept: Any  # int32 [B, S]

    @classmethod
    def of(cls, input_mask: Any) -> "Unpadding":
        """Returns an `Unpadding` for a mask [B, S], 0 for padding."""
        is_token = ops.cast(ops.not_equal(input_mask, 0), "int32")
        is_first = ops.equal(ops.arange(ops.shape(is_token)[1]), 0)
        is_token = ops.maximum(is_token, ops.cast(is_first, "int32"))
        shape, flat = ops.shape(is_token), ops.reshape(is_token, (-1,))
        num_positions = ops.shape(flat)[0]
        sizes = ops.convert_to_tensor(_SIZES, "int32")
        index = ops.searchsorted(sizes, ops.reshape(ops.sum(flat), (1,)))
        size = ops.minimum(ops.take(sizes, index[0]), num_positions)
        # Tokens, then padding, each in the order of the batch.
        order = ops.arange(num_positions, dtype="int32") - flat * num_positions
        positions = ops.cast(ops.argsort(order)[:size], "int32")

        def scatter(values: Any) -> Any:
            indices = ops.expand_dims(positions, 1)
            return ops.reshape(
                ops.scatter(indices, values, (num_positions,)), shape
            )

        rows = scatter(ops.arange(ops.shape(positions)[0], dtype="int32"))
        return cls(positions, rows, scatter(ops.ones_like(positions)))

    def remove(self, x: Any) -> Any:
        """Maps [B, S, H] to [N, H]."""

        @ops.custom_gradient
        def remove(x: Any) -> Any:
            def gradient(upstream: Any) -> Any:
                is_kept = ops.expand_dims(self.is_kept, -1)
                gathered = ops.take(upstream, self.rows, axis=0)
                return gathered * ops.cast(is_kept, upstream.dtype)

            return self._gather(x), gradient

        return remove(x)

    def restore(self, x: Any) -> Any:
        """Maps [N, H] to [B, S, H], with arbitrary vectors where removed."""

        @ops.custom_gradient
        def restore(x: Any) -> Any:
            return ops.take(x, self.rows, axis=0), self._gather

        return restore(x)

    def _gather(self, x: Any) -> Any:
        rows = ops.reshape(x, (-1, x.shape[-1]))
        return ops.take(rows, self.positions, axis=0)
