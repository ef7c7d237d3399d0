"""Creates `model_garden/`: Model Garden checkpoints and their outputs.

  MODEL_GARDEN_PYTHON tools/golden/make_model_garden.py

Run with a Python that has tf-models-official; made with 2.19.1. There are
BertEncoderV2 and the older BertEncoder, each alone and in a pretrainer.
"""

import os
import pathlib
import sys
from typing import Any

os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))


def main() -> None:
    import numpy as np
    import tensorflow as tf
    from official.modeling import tf_utils
    from official.nlp.modeling import layers, models, networks

    from tools.golden.transformers_process import INPUTS, SIZES

    directory = ROOT / "tests" / "golden" / "model_garden"
    directory.mkdir(exist_ok=True)
    gelu = tf_utils.get_activation("gelu")
    sizes = {
        "vocab_size": SIZES["vocab_size"],
        "hidden_size": SIZES["hidden_size"],
        "num_layers": SIZES["num_hidden_layers"],
        "num_attention_heads": SIZES["num_attention_heads"],
        "max_sequence_length": SIZES["max_position_embeddings"],
        "type_vocab_size": SIZES["type_vocab_size"],
        "inner_dim": SIZES["intermediate_size"],
    }
    ids = {name: np.array(value, np.int32) for name, value in INPUTS.items()}
    length = ids["input_ids"].shape[1]
    inputs = {
        "input_word_ids": ids["input_ids"],
        "input_mask": ids["attention_mask"],
        "input_type_ids": ids["token_type_ids"],
    }
    positions = np.tile(np.arange(length, dtype=np.int32), (2, 1))
    with_positions = {**inputs, "masked_lm_positions": positions}
    outputs = {}

    def save(name: str, saved_as: str, model: Any, call: Any) -> None:
        call()
        random = np.random.default_rng(len(name))
        for weight in model.variables:
            if weight.dtype.is_floating:
                weight.assign(random.normal(0.0, 0.4, weight.shape))
        prefix = str(directory / name)
        tf.train.Checkpoint(**{saved_as: model}).write(prefix)
        for key, value in call().items():
            if isinstance(value, tf.Tensor):
                outputs[f"{name}/{key}"] = value.numpy()

    encoder = networks.BertEncoderV2(**sizes)
    save("encoder_v2", "encoder", encoder, lambda: encoder(inputs))
    older = networks.BertEncoder(**sizes, dict_outputs=True)
    save("encoder_v1", "model", older, lambda: older(inputs))
    head = layers.ClassificationHead(
        inner_dim=sizes["hidden_size"], num_classes=2, name="next_sentence"
    )
    pretrainer = models.BertPretrainerV2(
        encoder_network=networks.BertEncoderV2(**sizes),
        mlm_activation=gelu,
        classification_heads=[head],
    )
    save(
        "pretrainer_v2", "model", pretrainer, lambda: pretrainer(with_positions)
    )
    first = models.BertPretrainer(
        network=networks.BertEncoder(**sizes),
        num_classes=2,
        num_token_predictions=length,
        activation=gelu,
        output="logits",
    )
    save("pretrainer_v1", "model", first, lambda: first(with_positions))
    np.savez_compressed(directory / "outputs.npz", **outputs)


if __name__ == "__main__":
    main()
