r"""Pre-trains BERT with masked LM and next sentence prediction.

  python run_pretraining.py \
    --input_file=tf_examples.tfrecord \
    --output_dir=pretraining_output \
    --do_train --do_eval \
    --model=uncased_L-12_H-768_A-12 \
    --num_train_steps=20 --num_warmup_steps=10 --learning_rate=2e-5

If --output_dir has a checkpoint, training resumes from it.
"""

from official_bert.options import RunPretraining, cli


def main(options: RunPretraining) -> None:
    """Trains, evaluates, or both."""
    options = options.resolve()
    with cli.quiet_imports():
        from official_bert.training import pretraining_run

    options.download_weights()
    pretraining_run.pretrain(options)
