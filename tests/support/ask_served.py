"""A client that has a SavedModel and TensorFlow, but not this project.

Reads JSON lines from standard input, with `directory`, `signature` and, as
TensorFlow Serving's clients send them, `instances`; writes `predictions`. An
argument is a module to import first.
"""

import importlib
import json
import sys


class _Blocker:
    """Fails imports of this project, wherever it is installed."""

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("official_bert", "run_classifier"):
            raise ImportError(f"{name} must not be imported.")


sys.meta_path.insert(0, _Blocker())
try:
    import official_bert  # noqa: F401
except ImportError:
    pass
else:
    sys.exit("official_bert must not be importable.")

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
    if len(specs) == 1 and not isinstance(instances[0], dict):
        [only] = specs
        instances = [{only: value} for value in instances]
    outputs = function(
        **{
            name: tf.constant([item[name] for item in instances], spec.dtype)
            for name, spec in specs.items()
        }
    )
    columns = {}
    for name, values in outputs.items():
        # Otherwise TensorFlow Serving cannot answer in rows.
        assert values.shape[0] == len(instances), (name, values.shape)
        columns[name] = to_json(values.numpy().tolist())
    return [
        {name: column[number] for name, column in columns.items()}
        for number in range(len(instances))
    ]


for line in sys.stdin:
    try:
        predictions = {"predictions": ask(**json.loads(line))}
    except Exception as error:
        predictions = {"error": f"{type(error).__name__}: {error}"}
    print(json.dumps(predictions), flush=True)
