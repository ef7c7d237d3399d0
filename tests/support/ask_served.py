"""A client that has a SavedModel and TensorFlow, but not this project.

Reads JSON lines from standard input, with `directory`, `signature` and, as in
requests to TensorFlow Serving, `instances`. Writes the predictions. The
arguments are modules to import first.
"""

import importlib
import json
import sys

sys.modules["official_bert"] = None  # Fails imports.

import tensorflow as tf  # noqa: E402

for name in sys.argv[1:]:
    importlib.import_module(name)


def to_json(value):
    """Returns lists, numbers and texts."""
    if isinstance(value, list):
        return [to_json(part) for part in value]
    return value.decode("utf-8") if isinstance(value, bytes) else value


def ask(directory, signature, instances):
    """Answers a request for rows as TensorFlow Serving does."""
    function = tf.saved_model.load(directory).signatures[signature]
    specs = function.structured_input_signature[1]
    outputs = function(
        **{
            name: tf.constant([item[name] for item in instances], spec.dtype)
            for name, spec in specs.items()
        }
    )
    columns = [to_json(values.numpy().tolist()) for values in outputs.values()]
    # Fails unless every output has one value for each instance.
    rows = zip(instances, *columns, strict=True)
    return [dict(zip(outputs, row[1:], strict=True)) for row in rows]


for line in sys.stdin:
    print(json.dumps(ask(**json.loads(line))), flush=True)
