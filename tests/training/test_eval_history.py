import math
import types

import pytest
import tensorflow as tf

from official_bert.errors import InputError
from official_bert.runs import checkpoints
from official_bert.runs.directory import RunDirectory
from official_bert.training.eval_history import EvalHistory


def make_history(directory, measure=None):
    options = types.SimpleNamespace(
        eval_every=1,
        early_stopping=1,
        run_directory=RunDirectory(str(directory)),
        is_chief=True,
    )
    run = types.SimpleNamespace(
        options=options,
        measure=measure,
        main_metric="accuracy",
        keeps_best=True,
    )
    weights = {"a": tf.Variable(0.0), "global_step": tf.Variable(0)}
    return EvalHistory(run, first_step=0, num_steps=4, weights=weights)


@pytest.mark.parametrize(
    ("accuracies", "losses", "best"),
    [
        ([0.5, 1.0, 0.5], [0.1, 0.7, 0.1], 2),
        ([1.0, 1.0, 1.0], [0.7, 0.4, 0.5], 2),
        ([1.0, 1.0, 1.0], [0.7, 0.4, 0.1], 3),
        ([math.nan, 0.1, 0.0], [0.1, 0.7, 0.1], 2),
        ([0.1, 0.1, 0.0], [math.nan, 0.7, 0.1], 2),
    ],
)
def test_best_metric_is_saved_and_lower_loss_decides_between_equal_ones(
    tmp_path, accuracies, losses, best
):
    def measure(step):
        return {
            "global_step": step,
            "accuracy": accuracies[step - 1],
            "eval_loss": losses[step - 1],
        }

    history = make_history(tmp_path, measure)
    stops = []
    for step in (1, 2, 3):
        history.evaluate(step)
        stops.append(history.stops_early(step))
    assert stops == [False, False, best == 2]
    last_step = RunDirectory(str(tmp_path)).record.num_train_steps
    assert last_step == (3 if best == 2 else None)
    latest = checkpoints.latest(str(tmp_path / "best"))
    assert latest == str(tmp_path / "best" / f"model.ckpt-{best}")


@pytest.mark.parametrize("damaged", ["[", "15", '{"global_step": 15}'])
def test_damaged_history_is_an_error(tmp_path, damaged):
    line = '{"global_step": 5, "accuracy": 0.5}\n'
    (tmp_path / "eval_history.jsonl").write_text(line + damaged + "\n")
    message = r"eval_history\.jsonl:2: .* Remove the file to forget"
    with pytest.raises(InputError, match=message):
        make_history(tmp_path)
