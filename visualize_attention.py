r"""Draws what BERT looks at: a page with the attention of all its heads.

  python visualize_attention.py \
    --vocab_file=$BERT_BASE_DIR/vocab.txt \
    --bert_config_file=$BERT_BASE_DIR/bert_config.json \
    --init_checkpoint=$BERT_BASE_DIR/bert_model.ckpt \
    --text_a="The cat sat on the mat." --text_b="It was tired." \
    --output_file=attention.html

  python visualize_attention.py --model_dir=/tmp/mrpc_output \
    --text_a="He laughed." --text_b="He did laugh." --output_file=attention.html

Or how alike a word's vectors are in different sentences, one on each line:

  python visualize_attention.py --model_dir=pretraining_output \
    --word=apple --input_file=sentences.txt --output_file=apple.html

A page is a single file that needs no network; open it in a browser.
"""

from official_bert import cli
from official_bert.options import VisualizeAttention


def main(options: VisualizeAttention) -> None:
    """Writes the page that the options ask for."""
    # TensorFlow takes seconds to import; errors in flags should not.
    from official_bert.inference import attention_page, context_page
    from official_bert.inference.trained_models import (
        MASK,
        ModelFiles,
        load_encoder,
    )

    model = load_encoder(ModelFiles.of_options(options), never_split=(MASK,))
    max_length = options.max_seq_length
    if options.word:
        assert options.input_file
        comparison = context_page.compare(
            model, options.word, options.input_file, max_length
        )
        context_page.write(options.output_file, comparison, source=model.source)
        return
    assert options.text_a
    attention_page.write(
        options.output_file,
        attention_page.compute(
            model, options.text_a, options.text_b, max_length
        ),
        text_a=options.text_a,
        text_b=options.text_b,
        source=model.source,
    )


if __name__ == "__main__":
    cli.run(main, VisualizeAttention)
