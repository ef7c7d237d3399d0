r"""Writes a web page with the attention of all heads of BERT.

  python visualize_attention.py \
    --model=uncased_L-12_H-768_A-12 \
    --text_a="The cat sat on the mat." --text_b="It was tired." \
    --output_file=attention.html

  python visualize_attention.py --model_dir=/tmp/mrpc_output \
    --text_a="He laughed." --text_b="He did laugh." --output_file=attention.html

Or a page with the similarities of a word's vectors in different sentences:

  python visualize_attention.py --model_dir=pretraining_output \
    --word=apple --input_file=sentences.txt --output_file=apple.html

Without a model, the command uses bert_tiny_demo. A page is one file, which a
browser shows without a network.
"""

from absl import logging

from official_bert.options import VisualizeAttention, cli


def main(options: VisualizeAttention) -> None:
    """Writes the page."""
    options = options.resolve()
    with cli.quiet_imports():
        from official_bert.inference import attention_page, context_page
        from official_bert.inference.trained_models import MASK, load_encoder

    options.download_weights()
    model = load_encoder(options.model_files, never_split=(MASK,))
    write = context_page.write if options.word else attention_page.write
    write(options, model)
    logging.info(f"Wrote {options.output_file}")
