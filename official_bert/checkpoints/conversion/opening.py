"""Opens the weights of a model in any format, as those of a TF1 checkpoint."""

from official_bert import files
from official_bert.checkpoints.conversion import (
    huggingface,
    keras_hub,
    model_garden,
    tf1_directory,
)
from official_bert.checkpoints.conversion.model import Arrays


def open_arrays(path: str) -> Arrays:
    """Opens a checkpoint prefix, a Hugging Face directory or KerasHub preset.

    Raises `InputError` if it is damaged, or not a BERT model.
    """
    names = files.list_directory(path)
    if any(name.startswith("model.safetensors") for name in names):
        arrays, description = huggingface.read(path)
    elif "model.weights.h5" in names:
        arrays, description = keras_hub.read(path)
    else:
        arrays = tf1_directory.open_prefix(path)
        if model_garden.GRAPH not in arrays.shapes:
            return arrays
        arrays, description = tf1_directory.read(path)
    return arrays.to_tf1(description.config)
