"""tf.data pipelines over record files."""

import functools
import math
from typing import Any

import tensorflow as tf

from official_bert.inputs import padding, records
from official_bert.inputs.records import RecordFiles
from official_bert.inputs.schemas import Schema
from official_bert.io import files

_SHUFFLE_BUFFER = 10_000  # Serialized records of about a kilobyte each.
_FILES_AT_ONCE = 4

# As in the original: the file is already shuffled.
_FINETUNING_SHUFFLE_BUFFER = 100

# Number of batches whose examples are sorted by length together: large enough
# that few batches mix lengths.
_BATCHES_PER_POOL = 100

# By default, tf.data converts functions with AutoGraph, which takes up to a
# second. Functions without control flow do not need it.
without_autograph = tf.autograph.experimental.do_not_convert


def training_batches(
    data: RecordFiles, batch_size: int, *, seed: int, start: int = 0
) -> tf.data.Dataset:
    """Returns endless shuffled batches {name: Tensor [B, length]}.

    The order of the files is shuffled too. `batch_size` is B, over all
    replicas; `seed` is combined with TensorFlow's global seed; `start` is the
    number of examples to skip because an earlier run used them.
    """

    @without_autograph
    def epoch(number: Any) -> tf.data.Dataset:
        epoch_seed = number + seed
        shuffled = _names(data).shuffle(len(data.names), seed=epoch_seed)
        serialized = shuffled.interleave(
            tf.data.TFRecordDataset,
            cycle_length=_FILES_AT_ONCE,
            num_parallel_calls=_FILES_AT_ONCE,
            deterministic=True,
        )
        return serialized.shuffle(_SHUFFLE_BUFFER, seed=epoch_seed)

    # Whole epochs are skipped without reading, other examples without parsing.
    first_epoch = 0
    if start and (epoch_size := data.num_records()):
        first_epoch, start = divmod(start, epoch_size)
    endless = tf.data.Dataset.counter(first_epoch).flat_map(epoch)
    return _prefetched(_parsed(endless.skip(start), data.schema, batch_size))


def _names(data: RecordFiles) -> tf.data.Dataset:
    """Returns a dataset of (file name, compression type)."""
    types = ["GZIP" if files.is_gzip(name) else "" for name in data.names]
    return tf.data.Dataset.from_tensor_slices((list(data.names), types))


def evaluation_batches(
    data: RecordFiles, batch_size: int, num_batches: int
) -> tf.data.Dataset:
    """Returns full batches in the order of the files.

    As in the original, examples are repeated from the start if necessary.
    """
    serialized = _names(data).flat_map(tf.data.TFRecordDataset).repeat()
    batches = _parsed(serialized, data.schema, batch_size)
    return _prefetched(batches.take(num_batches))


def finetuning_batches(
    data: RecordFiles,
    batch_size: int,
    *,
    seed: int,
    num_examples: int,
    pad_to: str = "max",
    trims: bool = False,
    start: int = 0,
) -> tf.data.Dataset:
    """Returns the batches of a run, {name: Tensor [B, length]}.

    Args:
        data: Uncompressed TFRecord files; repeated for several epochs.
        batch_size: B, over all replicas.
        seed: Seed of the order, combined with TensorFlow's global seed.
        num_examples: Number of examples from the first step to the last. With
            `bucket`, the last batches depend on this number, so a run that is
            extended later differs from a run that had the larger number from
            the start.
        pad_to: `max` keeps the length of the records. `bucket` groups examples
            of similar length and cuts each batch to the next of a few lengths;
            batches come in random order. Both use the same examples.
        trims: Whether `max` also cuts each batch to the next of these lengths.
        start: Number of examples to skip because an earlier run used them. With
            `bucket`, if that run had another batch size, part of its last pool
            of examples is repeated.
    """
    schema = data.schema

    @without_autograph
    def trimmed(batch: dict[str, Any]) -> dict[str, Any]:
        length = tf.reduce_max(_padded_lengths(schema, batch))
        return {
            name: value[..., :length] if schema[name].is_sequence else value
            for name, value in batch.items()
        }

    serialized = tf.data.TFRecordDataset(list(data.names)).repeat()
    serialized = serialized.shuffle(_FINETUNING_SHUFFLE_BUFFER, seed=seed)
    if pad_to == "max":
        remaining = serialized.take(num_examples).skip(start)
        batches = _parsed(remaining, schema, batch_size)
        return _prefetched(batches.map(trimmed) if trims else batches)
    num_batches = math.ceil(num_examples / batch_size)
    serialized = serialized.take(num_batches * batch_size)
    # A pool is at most an epoch, so that few batches contain an example twice.
    num_records = data.num_records() or _BATCHES_PER_POOL * batch_size
    batches_per_pool = max(1, min(_BATCHES_PER_POOL, num_records // batch_size))
    first_pool, first_batch = divmod(start // batch_size, batches_per_pool)
    pools = serialized.batch(batch_size * batches_per_pool).enumerate()

    @without_autograph
    def by_length(number: Any, pool: Any) -> tf.data.Dataset:
        return _batches_by_length(schema, pool, batch_size, (seed, number))

    batches = pools.skip(first_pool).flat_map(by_length)
    return _prefetched(batches.skip(first_batch).map(trimmed))


def _batches_by_length(
    schema: Schema, serialized: Any, batch_size: int, seed: Any
) -> tf.data.Dataset:
    """Groups a pool of examples into batches of similar length, shuffled.

    If the examples of a bucket do not fill their last batch, longer ones do.
    """
    features = records.parse(schema, serialized)
    order = tf.argsort(_padded_lengths(schema, features), stable=True)
    order = tf.reshape(order, (-1, batch_size))
    order = tf.random.experimental.stateless_shuffle(order, seed)
    batches = {name: tf.gather(features[name], order) for name in features}
    return tf.data.Dataset.from_tensor_slices(batches)


def _padded_lengths(schema: Schema, features: dict[str, Any]) -> Any:
    """Returns the bucket of each example, or of the longest of its choices."""
    lengths = tf.reduce_sum(features["input_mask"], -1)
    if lengths.shape.rank == 2:
        lengths = tf.reduce_max(lengths, -1)
    buckets = tf.constant(padding.buckets(schema["input_ids"].length))
    return tf.gather(buckets, tf.searchsorted(buckets, lengths))


def _parsed(
    serialized: tf.data.Dataset, schema: Schema, batch_size: int
) -> tf.data.Dataset:
    parse = without_autograph(functools.partial(records.parse, schema))
    # Batched first: parsing many examples at once is several times faster.
    batches = serialized.batch(batch_size, drop_remainder=True)
    return batches.map(parse, num_parallel_calls=tf.data.AUTOTUNE)


def _prefetched(batches: tf.data.Dataset) -> tf.data.Dataset:
    options = tf.data.Options()
    # The strategy distributes each batch; TensorFlow must not split the files.
    options.experimental_distribute.auto_shard_policy = (
        tf.data.experimental.AutoShardPolicy.OFF
    )
    # The autotuning thread sometimes does not notice the end of a run. It then
    # delays the exit by as long as the run took, up to a minute.
    options.autotune.enabled = False
    return batches.prefetch(tf.data.AUTOTUNE).with_options(options)
