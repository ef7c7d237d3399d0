"""Small TFRecord files for tests."""

import numpy as np

from official_bert.inputs import tfrecords


def serialize(examples):
    """Returns the serialized `tf.train.Example`s of {name: values} dicts.

    Lists with a float in any example become float32, all others int64.
    """
    examples = list(examples)
    arrays = {
        name: np.array([example[name] for example in examples])
        for name in examples[0]
    }
    return list(
        tfrecords.encode_examples(
            {
                name: a.astype(np.float32 if a.dtype.kind == "f" else np.int64)
                for name, a in arrays.items()
            }
        )
    )


def write(path, examples, compress=False):
    """Writes {name: values} dicts to a TFRecord file; returns its name."""
    data = tfrecords.join(serialize(examples), compress)
    with open(path, "wb") as file:
        file.write(data)
    return str(path)
