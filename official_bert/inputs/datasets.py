"""tf.data pipelines over record files."""

import math
from typing import Any

import tensorflow as tf

from official_bert.inputs import padding, records, schemas
from official_bert.inputs.records import RecordFiles

_SHUFFLE_BUFFER = 10_000  # Serialized records of about a kilobyte each.
_FILES_AT_ONCE = 4

# The 2018 release shuffles the examples of a task so little. Its SQuAD examples
# are in random order before.
_FINETUNING_SHUFFLE_BUFFER = 100

# Batches whose examples are dealt out by length at a time: enough that few
# batches are of mixed lengths.
_POOL = 100


def training_batches(
    data: RecordFiles,
    batch_size: int,
    *,
    seed: int,
    start: int = 0,
) -> tf.data.Dataset:
    """Returns endless shuffled batches, the same for the same seeds.

    TensorFlow mixes its global seed, as `keras.utils.set_random_seed` sets it,
    into `seed`.

    Args:
        data: TFRecord files, whose order is shuffled as well.
        batch_size: B, over all replicas.
        seed: Of the order; every epoch has its own.
        start: How many records to leave out, because an earlier run saw them.

    Returns:
        A dataset of {name: Tensor [B, length]}.
    """

    def epoch(number: Any) -> tf.data.Dataset:
        epoch_seed = number + seed
        shuffled = _files(data).shuffle(len(data.names), seed=epoch_seed)
        serialized = shuffled.interleave(
            _records,
            cycle_length=_FILES_AT_ONCE,
            num_parallel_calls=_FILES_AT_ONCE,
            deterministic=True,
        )
        return serialized.shuffle(_SHUFFLE_BUFFER, seed=epoch_seed)

    # Whole epochs need not be read to be left out; the rest is not parsed.
    epoch_size = (data.num_records() if start else None) or start + 1
    first_epoch, start = divmod(start, epoch_size)
    endless = tf.data.Dataset.counter(first_epoch).flat_map(epoch)
    return _parsed(endless.skip(start), data.schema, batch_size)


def _files(data: RecordFiles) -> tf.data.Dataset:
    """Returns what `_records` takes, of each file."""
    ranges = [
        list(data.ranges_of(n)) if data.ranges else [] for n in data.names
    ]
    most = max(map(len, ranges))
    padded = [[*some, *[(0, 0)] * (most - len(some))] for some in ranges]
    return tf.data.Dataset.from_tensor_slices(
        (
            list(data.names),
            list(map(records.compression_of, data.names)),
            tf.constant(padded, tf.int64),
        )
    )


def _records(name: Any, compression: Any, ranges: Any) -> tf.data.Dataset:
    """Reads a file, or the ranges [N, 2] of it that are not damaged."""
    if not ranges.shape[0]:  # As it mostly is; half as fast again.
        return tf.data.TFRecordDataset(name, compression)
    return tf.data.Dataset.from_tensor_slices(ranges).flat_map(
        lambda part: (
            tf.data.TFRecordDataset(name, compression)
            .skip(part[0])
            .take(part[1])
        )
    )


def finetuning_batches(
    data: RecordFiles,
    batch_size: int,
    *,
    seed: int,
    num_examples: int,
    pad_to: str = "max",
    start: int = 0,
) -> tf.data.Dataset:
    """Returns a run's batches, shuffled as in the 2018 release.

    Args:
        data: TFRecord files, of as many epochs as are needed.
        batch_size: B, over all replicas.
        seed: Of the order, beside TensorFlow's global seed.
        num_examples: How many the run sees from its first step to its last.
            With `bucket` a run that goes on to more has other last ones than if
            it had gone for them at first.
        pad_to: `max` for the records as they are. `bucket` for batches of
            similar length, cut to the next of a few lengths; which length comes
            next is random. The same examples come in both ways.
        start: How many of them to leave out, because an earlier run saw them.
            With `bucket`, if that had another batch size, a part of what it saw
            last comes again.

    Returns:
        A dataset of {name: Tensor [B, length]}.
    """
    serialized = (
        tf.data.TFRecordDataset(list(data.names))
        .repeat()
        .shuffle(_FINETUNING_SHUFFLE_BUFFER, seed=seed)
    )
    if pad_to == "max":
        rest = serialized.take(num_examples).skip(start)
        return _parsed(rest, data.schema, batch_size)
    num_batches = math.ceil(num_examples / batch_size)
    serialized = serialized.take(num_batches * batch_size)
    # No more than an epoch, so that hardly a batch has an example twice.
    epoch = (data.num_records() or batch_size * _POOL) // batch_size
    pool_size = max(1, min(_POOL, epoch))
    pool, batch = divmod(start // batch_size, pool_size)
    pools = serialized.batch(batch_size * pool_size).enumerate().skip(pool)
    batches = pools.flat_map(
        lambda number, records: _by_length(
            data.schema, records, batch_size, (seed, number)
        )
    )
    return _for_training(
        batches.skip(batch).map(lambda batch: _cut(data.schema, batch))
    )


def _by_length(
    schema: schemas.Schema, serialized: Any, batch_size: int, seed: Any
) -> tf.data.Dataset:
    """Deals out records in batches of about one length, in random order.

    What is left of a length, less than a batch, joins the next longer ones.
    """
    rows = records.parse(schema, serialized)
    order = tf.argsort(_padded(schema, _lengths(rows)), stable=True)
    order = tf.reshape(order, (-1, batch_size))
    order = tf.random.experimental.stateless_shuffle(order, seed)
    return tf.data.Dataset.from_tensor_slices(order).map(
        lambda numbers: {
            name: tf.gather(values, numbers) for name, values in rows.items()
        }
    )


def _lengths(rows: dict[str, Any]) -> Any:
    """Returns how long each row is, or the longest sequence in it."""
    lengths = tf.reduce_sum(rows["input_mask"], -1)
    return lengths if lengths.shape.rank == 1 else tf.reduce_max(lengths, -1)


def _padded(schema: schemas.Schema, lengths: Any) -> Any:
    """Returns the lengths [N] to which sequences of lengths [N] are padded."""
    buckets = tf.constant(padding.buckets(schema["input_ids"].length))
    return tf.gather(buckets, tf.searchsorted(buckets, lengths))


def _cut(schema: schemas.Schema, batch: dict[str, Any]) -> dict[str, Any]:
    """Cuts the sequences of a batch to the length that its longest needs."""
    length = tf.reduce_max(_padded(schema, _lengths(batch)))
    return {
        name: value[..., :length] if schema[name].is_sequence else value
        for name, value in batch.items()
    }


def evaluation_batches(
    data: RecordFiles, batch_size: int, num_batches: int
) -> tf.data.Dataset:
    """Returns a fixed number of full batches in the order of the files.

    Shorter files are read again from the start, as in the 2018 release.
    """
    serialized = _files(data).flat_map(_records).repeat()
    return _parsed(serialized, data.schema, batch_size).take(num_batches)


def _parsed(
    serialized: tf.data.Dataset, schema: schemas.Schema, batch_size: int
) -> tf.data.Dataset:
    """Batches first: parsing many examples at once is several times faster."""
    return _for_training(
        serialized.batch(batch_size, drop_remainder=True).map(
            lambda batch: records.parse(schema, batch),
            num_parallel_calls=tf.data.AUTOTUNE,
        )
    )


def _for_training(batches: tf.data.Dataset) -> tf.data.Dataset:
    """Reads ahead; leaves it to the strategy to deal out a batch."""
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = (
        tf.data.experimental.AutoShardPolicy.OFF
    )
    # Its thread misses, every few runs, that the run has ended, and keeps it
    # waiting for as long again as it took, up to a minute.
    options.autotune.enabled = False
    return batches.prefetch(tf.data.AUTOTUNE).with_options(options)
