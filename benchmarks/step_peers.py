"""The steps of `step.py` in other projects.

`step.py` runs this program with a Python that has the peer. The program prints
the seconds of each round as JSON.

  python step_peers.py PEER PRECISION CONFIG BATCH KIND ROUNDS

BATCH is an .npz file with the features of a pre-training batch. All peers clip
by a global norm of 1 and use their own Adam with decoupled weight decay.
"""

import functools
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np

Batch = dict[str, np.ndarray]
RATE = 1e-4
WEIGHT_DECAY = 0.01


def transformers_model(
    config: dict[str, Any], batch: Batch, kind: str
) -> tuple[Any, dict[str, Any]]:
    """Returns a model of transformers, and its inputs as tensors."""
    import torch
    import transformers

    heads = {
        "pretraining": transformers.BertForPreTraining,
        "classifier": transformers.BertForSequenceClassification,
        "prediction": transformers.BertForSequenceClassification,
        "forward": transformers.BertModel,
    }
    torch.manual_seed(0)
    model = heads[kind](transformers.BertConfig(**config))
    inputs = {
        "input_ids": batch["input_ids"],
        "attention_mask": batch["input_mask"],
        "token_type_ids": batch["segment_ids"],
    }
    if kind == "pretraining":
        labels = np.full_like(batch["input_ids"], -100)
        np.put_along_axis(
            labels, batch["masked_lm_positions"], batch["masked_lm_ids"], 1
        )
        inputs["labels"] = labels
        inputs["next_sentence_label"] = batch["next_sentence_labels"][:, 0]
    elif kind == "classifier":
        inputs["labels"] = batch["next_sentence_labels"][:, 0]
    return model, {
        name: torch.tensor(value).long() for name, value in inputs.items()
    }


def transformers_step(
    config: dict[str, Any], batch: Batch, kind: str, precision: str
) -> Callable[[], Any]:
    """Hugging Face transformers on torch; bfloat16 with autocast."""
    import torch

    model, tensors = transformers_model(config, batch, kind)
    autocast = functools.partial(
        torch.autocast, "cpu", torch.bfloat16, precision == "bfloat16"
    )
    if kind in ("prediction", "forward"):
        model.eval()
        output = "logits" if kind == "prediction" else "pooler_output"

        def forward() -> float:
            with torch.inference_mode(), autocast():
                return float(model(**tensors)[output][0, 0])

        return forward
    model.train()
    optimizer = torch.optim.AdamW(
        model.parameters(), RATE, weight_decay=WEIGHT_DECAY
    )

    def step() -> float:
        optimizer.zero_grad()
        with autocast():
            loss = model(**tensors).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return float(loss)

    return step


def openvino_step(
    config: dict[str, Any], batch: Batch, kind: str, precision: str
) -> Callable[[], Any]:
    """The model of transformers, converted for OpenVINO."""
    import openvino

    model, tensors = transformers_model(config, batch, kind)
    network = openvino.convert_model(model.eval(), example_input=tensors)
    request = openvino.compile_model(
        network,
        "CPU",
        {
            "INFERENCE_PRECISION_HINT": {"float32": "f32", "bfloat16": "bf16"}[
                precision
            ],
            "PERFORMANCE_HINT": "LATENCY",
        },
    ).create_infer_request()
    inputs = {name: tensor.numpy() for name, tensor in tensors.items()}
    return lambda: request.infer(inputs)


def onnx_runtime_step(
    config: dict[str, Any], batch: Batch, kind: str, precision: str
) -> Callable[[], Any]:
    """The model of transformers in ONNX Runtime; int8 is dynamic."""
    import onnxruntime
    import torch
    from onnxruntime import quantization

    model, tensors = transformers_model(config, batch, kind)

    class WithoutKeywords(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model.eval()

        def forward(self, *values: Any) -> Any:
            inputs = dict(zip(tensors, values, strict=True))
            return self.model(**inputs, return_dict=False)

    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.onnx")
        torch.onnx.export(
            WithoutKeywords(),
            tuple(tensors.values()),
            path,
            input_names=list(tensors),
            dynamo=False,
        )
        if precision == "int8":
            quantized = os.path.join(folder, "int8.onnx")
            quantization.quantize_dynamic(path, quantized)
            path = quantized
        session = onnxruntime.InferenceSession(path)
    inputs = {name: tensor.numpy() for name, tensor in tensors.items()}
    return lambda: session.run(None, inputs)


def kerashub_step(
    config: dict[str, Any], batch: Batch, kind: str, precision: str
) -> Callable[[], Any]:
    """KerasHub's backbone and masked LM head, with Keras' own training."""
    import keras
    import keras_hub

    keras.utils.set_random_seed(0)
    backbone = keras_hub.models.BertBackbone(
        vocabulary_size=config["vocab_size"],
        num_layers=config["num_hidden_layers"],
        num_heads=config["num_attention_heads"],
        hidden_dim=config["hidden_size"],
        intermediate_dim=config["intermediate_size"],
        dropout=config["hidden_dropout_prob"],
        max_sequence_length=config["max_position_embeddings"],
    )
    inputs = {
        "token_ids": batch["input_ids"],
        "padding_mask": batch["input_mask"],
        "segment_ids": batch["segment_ids"],
    }
    pooled = backbone.output["pooled_output"]
    outputs = {"next_sentence": keras.layers.Dense(2)(pooled)}
    labels = {"next_sentence": batch["next_sentence_labels"][:, 0]}
    model_inputs = dict(backbone.input)
    if kind == "forward":
        model = keras.Model(backbone.input, pooled)
        return lambda: model.predict_on_batch(inputs)
    if kind == "pretraining":
        positions = keras.Input(
            batch["masked_lm_positions"].shape[1:], dtype="int32"
        )
        outputs["masked_lm"] = keras_hub.layers.MaskedLMHead(
            token_embedding=backbone.token_embedding,
            intermediate_activation="gelu",
        )(backbone.output["sequence_output"], positions)
        model_inputs["positions"] = positions
        inputs["positions"] = batch["masked_lm_positions"]
        labels["masked_lm"] = batch["masked_lm_ids"]
    model = keras.Model(model_inputs, outputs)
    if kind == "prediction":
        return lambda: model.predict_on_batch(inputs)
    model.compile(
        optimizer=keras.optimizers.AdamW(
            RATE, weight_decay=WEIGHT_DECAY, global_clipnorm=1.0
        ),
        loss={
            name: keras.losses.SparseCategoricalCrossentropy(from_logits=True)
            for name in outputs
        },
        jit_compile=False,
    )
    return lambda: model.train_on_batch(inputs, labels)


def model_garden_step(
    config: dict[str, Any], batch: Batch, kind: str, precision: str
) -> Callable[[], Any]:
    """TensorFlow Model Garden's encoder, pre-trainer and optimizer."""
    import tensorflow as tf
    from official.modeling import activations
    from official.nlp import modeling, optimization

    tf.random.set_seed(0)
    encoder = modeling.networks.BertEncoderV2(
        vocab_size=config["vocab_size"],
        hidden_size=config["hidden_size"],
        num_layers=config["num_hidden_layers"],
        num_attention_heads=config["num_attention_heads"],
        inner_dim=config["intermediate_size"],
        inner_activation=activations.gelu,
        max_sequence_length=config["max_position_embeddings"],
        type_vocab_size=config["type_vocab_size"],
    )
    inputs = {
        "input_word_ids": tf.constant(batch["input_ids"]),
        "input_mask": tf.constant(batch["input_mask"]),
        "input_type_ids": tf.constant(batch["segment_ids"]),
    }
    if kind == "forward":
        forward = tf.function(lambda: encoder(inputs)["pooled_output"])
        return lambda: forward().numpy()
    head = modeling.layers.ClassificationHead(
        config["hidden_size"], 2, dropout_rate=0.1, name="next_sentence"
    )
    if kind == "pretraining":
        inputs["masked_lm_positions"] = tf.constant(
            batch["masked_lm_positions"]
        )
        model = modeling.models.BertPretrainerV2(
            encoder,
            classification_heads=[head],
            mlm_activation=activations.gelu,
        )
    else:
        model = modeling.models.BertClassifier(encoder, num_classes=2)
    if kind == "prediction":
        predict = tf.function(lambda: model(inputs, training=False))
        return lambda: predict().numpy()
    optimizer = optimization.create_optimizer(RATE, 1000, 10)
    next_sentence = tf.constant(batch["next_sentence_labels"][:, 0])
    masked_lm = tf.constant(batch["masked_lm_ids"])

    def cross_entropy(labels: Any, logits: Any) -> Any:
        return tf.reduce_mean(
            tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
        )

    @tf.function
    def step() -> Any:
        with tf.GradientTape() as tape:
            output = model(inputs, training=True)
            if kind == "pretraining":
                loss = cross_entropy(masked_lm, output["mlm_logits"])
                loss += cross_entropy(next_sentence, output["next_sentence"])
            else:
                loss = cross_entropy(next_sentence, output)
        gradients = tape.gradient(loss, model.trainable_variables)
        # The optimizer clips by global norm itself.
        pairs = zip(gradients, model.trainable_variables, strict=True)
        optimizer.apply_gradients(pairs)
        return loss

    return lambda: step().numpy()


PEERS = {
    "transformers": transformers_step,
    "OpenVINO": openvino_step,
    "ONNX Runtime": onnx_runtime_step,
    "KerasHub": kerashub_step,
    "Model Garden": model_garden_step,
}


def seconds(step: Callable[[], Any], rounds: int) -> list[float]:
    """Returns the seconds of each round, after two rounds of warm-up.

    Short steps get more rounds, which take two seconds in all: for a step of
    20 ms, the best of only five rounds differs between processes by half.
    """
    step()
    step()
    times: list[float] = []
    while len(times) < rounds or sum(times) < 2.0:
        start = time.perf_counter()
        step()
        times.append(time.perf_counter() - start)
    return times


def main(
    peer: str,
    precision: str,
    config_file: str,
    batch_file: str,
    kind: str,
    rounds: str,
) -> None:
    with open(config_file, encoding="utf-8") as file:
        config = json.load(file)
    with np.load(batch_file) as arrays:
        batch = dict(arrays)
    step = PEERS[peer](config, batch, kind, precision)
    print(json.dumps(seconds(step, int(rounds))))


if __name__ == "__main__":
    main(*sys.argv[1:])
