r"""Creates TFRecord files with masked instances for pre-training.

  python create_pretraining_data.py \
    --input_file=sample_text.txt \
    --output_file=tf_examples.tfrecord \
    --model=uncased_L-12_H-768_A-12

The input has one sentence per line and blank lines between documents. With
--split_sentences, it is prose.
"""

from official_bert.options import CreatePretrainingData


def main(options: CreatePretrainingData) -> None:
    """Creates the instances and writes them."""
    options = options.resolve()
    # Imported here, so that errors in flags do not wait for NumPy. This command
    # does not need TensorFlow.
    from official_bert.pretraining_data import generator

    generator.run(options)
