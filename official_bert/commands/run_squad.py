r"""Fine-tunes BERT to answer questions about passages: SQuAD 1.1 and 2.0.

  python run_squad.py \
    --model=uncased_L-12_H-768_A-12 \
    --do_train --train_file=$SQUAD_DIR/train-v1.1.json \
    --do_predict --predict_file=$SQUAD_DIR/dev-v1.1.json \
    --train_batch_size=12 --learning_rate=3e-5 --num_train_epochs=2.0 \
    --max_seq_length=384 --doc_stride=128 --output_dir=/tmp/squad_base/

If --output_dir has a checkpoint, training resumes from it. Without
--do_train, omitted flags have the values they had in training.
"""

from official_bert.options import RunSquad, cli


def main(options: RunSquad) -> None:
    """Trains, evaluates, predicts and exports, as requested by the flags."""
    options = options.resolve()
    from official_bert.tasks.squad import task as squad_task

    task, examples = None, None
    if options.used_splits:
        task = squad_task.make(options)
        examples = task.data.read_early(options)
    with cli.quiet_imports():
        from official_bert.export import serving
        from official_bert.inference import teacher, trained_models
        from official_bert.training import finetuning_run

    if task:
        options.download_weights()
        if options.teacher and options.do_train:
            task = teacher.with_teacher(task, options)
        finetuning_run.finetune(task, options, examples)
    if options.do_export:
        trained = trained_models.load_finetuned(options.output_dir)
        exported = squad_task.with_decoding_options(trained.task, options)
        serving.export(trained._replace(task=exported), options, task)
