r"""Fine-tunes BERT on a task, evaluates it, and predicts the test set.

Your own data:

  python run_classifier.py --model=bert_tiny_demo --output_dir=out \
    --train_file=reviews.csv --text_column=review --label_column=opinion

A benchmark, with the flags of the 2018 release:

  python run_classifier.py --model=uncased_L-12_H-768_A-12 \
    --task_name=MRPC --data_dir=$GLUE_DIR/MRPC --do_train --do_eval \
    --max_seq_length=128 --train_batch_size=32 --learning_rate=2e-5 \
    --num_train_epochs=3.0 --output_dir=/tmp/mrpc_output/

If --output_dir has a checkpoint, training resumes from it. Without
--do_train, omitted flags have the values they had in training.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from official_bert.io.rows import Row
from official_bert.options import RunClassifier, cli

if TYPE_CHECKING:
    from official_bert.tasks.task import Task


def main(options: RunClassifier) -> str:
    """Trains, evaluates, predicts and exports, as requested by the flags.

    Returns the directory of the model; of the best one with --sweep.
    """
    options, rows = complete_options(options)
    task, directory = None, options.output_dir
    if options.used_splits:
        task, directory = run(options, rows)
    if options.do_export:
        with cli.quiet_imports():
            from official_bert.export import serving
            from official_bert.inference import trained_models

        finetuned = trained_models.load_finetuned(options.output_dir)
        serving.export(finetuned, options, task)
    return directory


def complete_options(
    options: RunClassifier,
) -> tuple[RunClassifier, Sequence[Row]]:
    """Returns complete options, and the rows that were read for that.

    Values of omitted flags come from the model, the earlier run in
    --output_dir, and the user's own texts. Raises `InputError` if options
    cannot be used.
    """
    from official_bert.tasks import detection, long_texts

    options, rows = detection.detect_omitted(options.resolve())
    return long_texts.fit_max_seq_length(options, rows), rows


def run(options: RunClassifier, rows: Sequence[Row]) -> tuple["Task", str]:
    """Fine-tunes once or, with --sweep, with all combinations of values.

    With --folds, a model for each fold is fine-tuned before. The data is read
    first, so that its errors do not wait for TensorFlow. Returns the task, with
    its data, and the directory of the (best) model.
    """
    from official_bert import tasks

    task = tasks.get(options, rows)
    # The runs of a sweep may have other data.
    examples = None if options.sweep else task.data.read_early(options)
    with cli.quiet_imports():
        from official_bert.inference import teacher
        from official_bert.training import finetuning_run, folds, sweep

    if options.teacher and options.do_train:
        task = teacher.with_teacher(task, options)
    options.download_weights()  # TF Hub modules contain theirs.
    if options.sweep:
        return task, sweep.run(task, options)
    if options.folds:
        task = folds.run(task, options)
    finetuning_run.finetune(task, options, examples)
    return task, options.output_dir
