"""Small TFRecord files for tests."""

import numpy as np

from official_bert.inputs import tfrecords


def serialize(examples):
    """Returns the serialized `tf.train.Example`s of {name: values} dicts.

    Lists with a float in any example become float32, all others int64.
    """
    examples = list(examples)
    columns = {}
    for name in examples[0]:
        array = np.array([example[name] for example in examples])
        dtype = np.float32 if array.dtype.kind == "f" else np.int64
        columns[name] = array.astype(dtype)
    return list(tfrecords.encode_examples(columns))


def write(path, examples, compress=False):
    """Writes {name: values} dicts to a TFRecord file; returns its name."""
    data = tfrecords.join(serialize(examples), compress)
    with open(path, "wb") as file:
        file.write(data)
    return str(path)
