r"""Converts a model between TF1, Hugging Face, KerasHub and Model Garden.

  python convert_checkpoint.py --to=huggingface \
    --input=uncased_L-12_H-768_A-12/bert_model.ckpt --output=bert_hf

  python convert_checkpoint.py --to=tf1 --input=bert_hf --output=bert_tf1

  python convert_checkpoint.py --to=keras_hub --skip=^cls/seq_relationship/ \
    --input=uncased_L-12_H-768_A-12/bert_model.ckpt --output=bert_keras_hub

  python convert_checkpoint.py --to=tf1 --strip_optimizer \
    --input=/tmp/pretraining_output --output=/tmp/pretrained

Every weight must have a counterpart. The output is read back and compared bit
for bit. With --to=openvino or onnx, outputs of the model are compared instead.
"""

from official_bert.options import ConvertCheckpoint, cli
from official_bert.options.convert_checkpoint import EXPORTS


def main(options: ConvertCheckpoint) -> None:
    """Converts a model, or strips the optimizer, and prints a report."""
    options = options.resolve()
    with cli.quiet_imports():
        from official_bert.inference.trained_models import task_of_model
        from official_bert.sources import converter

    if options.strip_optimizer:
        print(converter.strip_optimizer(options))
        return
    model = converter.open_model(options)
    is_named = options.to == "tf1" or options.to in EXPORTS
    if is_named and model.description.task is None:
        model = model.with_task(task_of_model(model))
    if options.to in EXPORTS:
        from official_bert.export import engine_models

        print(engine_models.convert(model, options.output, options.to))
        return
    print(converter.convert(model, options))
