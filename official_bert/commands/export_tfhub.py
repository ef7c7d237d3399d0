r"""Exports BERT as TF Hub modules, which others can load and fine-tune.

  python export_tfhub.py \
    --model=uncased_L-12_H-768_A-12 \
    --export_path=/tmp/hub/encoder --preprocessor_path=/tmp/hub/preprocessor

  python export_tfhub.py --model_dir=/tmp/pretraining_output \
    --export_path=/tmp/hub/encoder

The modules are SavedModels with the interface of published ones: see "Common
SavedModel APIs for text tasks" in TensorFlow's documentation.
"""

from official_bert.io import files
from official_bert.options import ExportTfhub, cli


def main(options: ExportTfhub) -> None:
    """Exports the encoder, the preprocessor, or both."""
    options = options.resolve()
    if options.export_path:
        export_encoder(options, options.export_path)
    if options.preprocessor_path:
        export_preprocessor(options, options.preprocessor_path)


def export_encoder(options: ExportTfhub, path: str) -> None:
    """Exports the encoder, and prints its sizes and how to load it."""
    with cli.quiet_imports():
        from official_bert.export import tfhub_encoder

    options.download_weights()
    written = tfhub_encoder.export(options.model_files, path)
    head = "with" if written.has_masked_lm else "without"
    print(
        f"Wrote the encoder to {path}: {written.num_weights:,} weights, "
        f"{head} the masked LM head, {files.directory_size(path) / 1e6:,.1f} MB"
    )
    if written.left_out:
        print(f"Left out: {', '.join(written.left_out)}")
    print(f'  encoder = hub.KerasLayer("{path}", trainable=True)  # tf_keras')
    print(f'  encoder = official_bert.hub.HubEncoder("{path}")    # Keras 3')


def export_preprocessor(options: ExportTfhub, path: str) -> None:
    """Exports the preprocessor, and prints how to load it."""
    with cli.quiet_imports():
        from official_bert.export import tfhub_preprocessor

    tfhub_preprocessor.export(
        path, options.model_files.tokenizer, seq_length=options.max_seq_length
    )
    print(
        f"Wrote the preprocessor to {path}: {options.max_seq_length} tokens "
        f"per sequence, {files.directory_size(path) / 1e6:,.1f} MB"
    )
    print("  import tensorflow_text  # Registers the module's operations.")
    print(f'  preprocess = hub.KerasLayer("{path}")  # tf_keras')
    print(f'  preprocess = tf.saved_model.load("{path}")')
