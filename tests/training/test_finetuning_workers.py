"""A task on two hosts: the numbers of one, and the files of one."""

import json
import shutil

import numpy as np
import pytest
from support import hosts, tiny


@pytest.mark.slow
def test_two_workers_fine_tune_like_one(tmp_path):
    """Evaluating on the way, and predicting rows that do not fill a batch."""
    random = np.random.RandomState(0)
    for name, number in (("train", 48), ("dev", 21), ("test", 13)):
        lines = ["text\tlabel"]
        for _ in range(number):
            words = random.choice(tiny.WORDS, random.randint(1, 9)).tolist()
            lines.append(f"{' '.join(words)}\t{int('good' in words)}")
        (tmp_path / f"{name}.tsv").write_text("\n".join(lines) + "\n")
    changes = {
        "task_name": "tsv",
        "task_type": "classification",
        "text_a_column": "text",
        "label_column": "label",
        "num_train_epochs": 4.0,
        # Dropout's masks differ from host to host.
        "learning_rate": 1e-9,
        "eval_every": 5,
        "pad_to": "bucket",
    }
    alone, _ = tiny.run(tmp_path, **changes)
    alone = shutil.move(alone, tmp_path / "alone")
    given = {
        key: value
        for key, value in vars(tiny.options(tmp_path, **changes)).items()
        if value is not None
    }
    codes, told = hosts.wait(hosts.start("run_classifier.py", [given, given]))
    assert codes == [0, 0], told
    together = tmp_path / "out"

    def files(folder):
        names = {path.name for path in folder.rglob("*")}
        return {n for n in names if not n.startswith("events.")}

    assert files(together) == files(alone)
    found = [
        np.loadtxt(folder / "test_results.tsv") for folder in (alone, together)
    ]
    np.testing.assert_allclose(found[1], found[0], atol=1e-6)
    before, after = (
        json.loads((folder / "eval_results.json").read_text())
        for folder in (alone, together)
    )
    assert after["eval_loss"] == pytest.approx(before["eval_loss"], abs=1e-6)
