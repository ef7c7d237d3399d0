"""A task reads, answers and evaluates where TensorFlow and Keras are blocked.

`test_architecture.py` shows that no module of a task imports them.
"""

from support import tiny
from support.processes import run_python

SCRIPT = """
import sys

sys.modules["tensorflow"] = sys.modules["keras"] = None

from official_bert import tasks
from official_bert.inference.predictor import Predictor
from official_bert.inference import engines
from official_bert.tasks import record_files
from official_bert.tasks.task import FinetunedModel
from official_bert.tokenization import Tokenizer

task = tasks.from_json(
    {"kind": "text", "task_type": "classification", "labels": ["no", "yes"]}
)
tokenizer = Tokenizer("vocab.txt")
examples = [task.parse(text, "")._replace(label="yes") for text in "ab"]
written = record_files.write_records("out", task, examples, tokenizer, 8)
assert written["num_records"] == 2
[features] = task.featurize(examples, tokenizer, 8)

def engine(batch):
    return [[[0.0, 1.0]] * len(batch["input_ids"])]

outputs = engines.run(engine, features, max_seq_length=8, batch_size=2)
answers = task.answers(features, [logits for [logits] in outputs])
assert task.metrics(examples, answers)["accuracy"] == 1.0
finetuned = FinetunedModel(task, None, tokenizer, 8)
found = Predictor(finetuned, engine=engine)(["good", "bad"])
assert [answer["label"] for answer in found] == ["yes", "yes"]
"""


def test_task_answers_and_evaluates(tmp_path):
    tiny.tokenizer(tmp_path)
    run_python("-c", SCRIPT, cwd=tmp_path)
