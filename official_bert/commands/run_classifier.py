r"""Fine-tunes BERT on a task, evaluates it, and predicts the test set.

Your own data:

  python run_classifier.py --model=bert_tiny_demo --learning_rate=3e-4 \
    --train_file=reviews.csv --text_column=review --label_column=opinion \
    --output_dir=out

A benchmark, with the flags of the 2018 release:

  python run_classifier.py --model=uncased_L-12_H-768_A-12 \
    --task_name=MRPC --data_dir=$GLUE_DIR/MRPC --do_train --do_eval \
    --max_seq_length=128 --train_batch_size=32 --learning_rate=2e-5 \
    --num_train_epochs=3.0 --output_dir=/tmp/mrpc_output/

If --output_dir has a checkpoint, training resumes from it. Without
--do_train, omitted flags have the values they had in training.
"""

from official_bert.options import RunClassifier, cli


def main(options: RunClassifier) -> None:
    """Trains, evaluates, predicts and exports, as requested by the flags."""
    from official_bert.tasks import detection

    # Errors in the data do not wait for the import of TensorFlow.
    options = detection.detect_omitted(options)
    with cli.quiet_imports():
        from official_bert.export import serving
        from official_bert.inference import trained_models
        from official_bert.training import sweep

    if options.used_splits:
        sweep.run_or_sweep(options)
    if options.do_export:
        serving.export(
            trained_models.load_finetuned(options.output_dir),
            options.serving_dir,
            export_text=options.export_text,
            export_tflite=options.export_tflite,
        )
