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
    from official_bert.inference import attention, bert_alone, contexts

    loaded = bert_alone.load(options)
    if options.word:
        assert options.input_file
        found = contexts.compare(loaded, options.word, options.input_file)
        contexts.write_page(options.output_file, found, source=loaded.source)
        return
    assert options.text_a
    attention.write_page(
        options.output_file,
        attention.attend(loaded, options.text_a, options.text_b),
        text_a=options.text_a,
        text_b=options.text_b,
        source=loaded.source,
    )


if __name__ == "__main__":
    cli.run(main, VisualizeAttention)
