"""The signature `ids` as a TensorFlow Lite (LiteRT) model."""

import warnings
from typing import Any

import numpy as np
import tensorflow as tf

from official_bert import files
from official_bert.errors import InputError
from official_bert.export.serving.signatures import TaskSignatures, Tensors


def write(signatures: TaskSignatures, module: Any, path: str) -> float:
    """Converts a model and compares the result with the original.

    The inputs are those of `ids`, of any batch size and length. The output is
    `logits`; probabilities and labels are left to the caller.

    Args:
        signatures: Of the model.
        module: The holder of its weights.
        path: The file to write.

    Returns:
        The largest difference between logits of both.

    Raises:
        InputError: The model cannot be converted.
    """

    @tf.function(autograph=False)
    def run(input_ids: Any, input_mask: Any, segment_ids: Any) -> Tensors:
        logits = signatures.logits(input_ids, input_mask, segment_ids)
        return {"logits": logits}

    function = run.get_concrete_function(**signatures.ids_inputs())
    converter = tf.lite.TFLiteConverter.from_concrete_functions(
        [function], module
    )
    try:
        content = converter.convert()
    except Exception as error:  # The converter's own class is not public.
        raise InputError(
            "--export_tflite: TensorFlow Lite cannot convert this model "
            f"({str(error).splitlines()[0]}). Models with a BiLSTM are not "
            "supported. Export without --export_tflite."
        ) from error
    with files.writing(path) as file:
        file.write(content)
    return _difference(signatures, content)


def _difference(signatures: TaskSignatures, content: bytes) -> float:
    choices = [signatures.num_choices] if signatures.num_choices > 1 else []
    shape = (2, *choices, min(signatures.max_seq_length, 64))
    is_first_half = np.arange(shape[-1]) < shape[-1] // 2
    mask = np.ones(shape, np.int32)
    mask[0] = is_first_half
    random = np.random.RandomState(0)
    vocab_size, _ = signatures.model.bert.embeddings.word_embeddings.shape
    batch = {
        "input_ids": random.randint(0, vocab_size, shape, np.int32),
        "input_mask": mask,
        "segment_ids": mask * ~is_first_half,
    }
    expected = signatures.logits(
        **{name: tf.constant(values) for name, values in batch.items()}
    )
    with warnings.catch_warnings():
        # The interpreter announces its move to another package.
        warnings.simplefilter("ignore")
        interpreter = tf.lite.Interpreter(model_content=content)
    found = interpreter.get_signature_runner()(**batch)["logits"]
    return float(np.abs(found - expected.numpy()).max())
