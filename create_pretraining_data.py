r"""Turns text into masked TFRecords for pre-training.

  python create_pretraining_data.py \
    --input_file=sample_text.txt \
    --output_file=tf_examples.tfrecord \
    --vocab_file=$BERT_BASE_DIR/vocab.txt

The text has one sentence a line, and a blank line between documents.
"""

from official_bert import cli
from official_bert.options import CreatePretrainingData


def main(options: CreatePretrainingData) -> None:
    """Writes masked instances of the text as TFRecords."""
    # NumPy takes its time to import; errors in flags should not. TensorFlow,
    # which takes seconds, is not needed at all.
    from official_bert.pretraining_data import generator

    generator.run(options)


if __name__ == "__main__":
    cli.run(main, CreatePretrainingData)
