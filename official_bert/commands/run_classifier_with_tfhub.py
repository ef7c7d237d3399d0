r"""Fine-tunes a TF Hub module of BERT on a task, evaluates it, and predicts.

  python run_classifier_with_tfhub.py \
    --bert_hub_module_handle=/tmp/hub/encoder \
    --task_name=MRPC --data_dir=$GLUE_DIR/MRPC \
    --do_train --do_eval \
    --max_seq_length=128 --train_batch_size=32 --learning_rate=2e-5 \
    --num_train_epochs=3.0 --output_dir=/tmp/mrpc_output/

The module contains the vocabulary, the casing and the weights. Otherwise this
command works like `run_classifier.py`.
"""

from official_bert.commands import run_classifier
from official_bert.options import RunClassifierWithTfhub


def main(options: RunClassifierWithTfhub) -> None:
    """Trains, evaluates and predicts, as requested by the flags."""
    run_classifier.run(*run_classifier.complete_options(options))
