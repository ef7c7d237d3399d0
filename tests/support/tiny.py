"""A model that learns in seconds: runs with it, and run directories."""

import json
import shlex

import numpy as np

from official_bert.commands import run_classifier
from official_bert.config import BertConfig
from official_bert.modeling.finetuning_models import build_model
from official_bert.modeling.pretraining_model import PretrainingModel
from official_bert.options import RunClassifier
from official_bert.runs import checkpoints
from official_bert.sources import task_file
from official_bert.tasks.classification import ClassificationTask
from official_bert.tokenization import Tokenizer
from official_bert.training import loop
from support import SPECIAL, command_lines, recorded, write_vocab

WORDS = [
    *("good", "bad", "cat", "dog", "red", "blue", "sun", "rain"),
    *("what", "is", "it", "?"),
]
VOCAB = [*SPECIAL, *WORDS]
CONFIG = {
    "vocab_size": len(VOCAB),
    "hidden_size": 32,
    "num_hidden_layers": 1,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "max_position_embeddings": 64,
    "type_vocab_size": 2,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
    "initializer_range": 0.1,
}
# Too small to learn.
SMALL = {**CONFIG, "hidden_size": 8, "intermediate_size": 8}


def texts(number, seed, longest):
    """Returns random texts of 1 to `longest` words."""
    random = np.random.RandomState(seed)
    lengths = random.randint(1, longest + 1, number)
    return [" ".join(random.choice(WORDS, length)) for length in lengths]


def write_model_files(folder, config, vocab=VOCAB):
    """Writes `bert_config.json` and `vocab.txt`."""
    (folder / "bert_config.json").write_text(json.dumps(config))
    write_vocab(folder, vocab)


def options(folder, config=CONFIG, vocab=VOCAB, **changes):
    """Writes the model's files beside the data in `folder`; returns options."""
    write_model_files(folder, config, vocab)
    return RunClassifier(
        **{
            **command_lines.files_of_run(folder, "out"),
            "data_dir": str(folder),
            "max_seq_length": 16,
            "train_batch_size": 16,
            "learning_rate": 2e-3,
            "num_train_epochs": 8.0,
            "do_train": True,
            "do_eval": True,
            "do_predict": True,
            **changes,
        }
    )


def parse(folder, *flags):
    """Writes the model's files; returns the options of a command line."""
    write_model_files(folder, CONFIG)
    line = shlex.join([*command_lines.flags_of_run(folder, "out"), *flags])
    return command_lines.parse(RunClassifier, line)


def run(folder, **changes):
    """Runs the command; returns the output directory and eval_results.json."""
    run_classifier.main(options(folder, **changes))
    results = (folder / "out" / "eval_results.json").read_text()
    return folder / "out", json.loads(results)


def count_steps(patch):
    """Lets training count its steps, without compiling or running them."""

    def run(runner, batches, num_steps):
        runner._step.optimizer.step.assign_add(num_steps)
        names = ("loss", "gradient_norm", "learning_rate")
        return [dict.fromkeys(names, 1.0)] * num_steps

    patch.setattr(loop.StepRunner, "run", run)


def predictions(output):
    """Returns [id, prediction] of each line below the header."""
    text = (output / "test_predictions.tsv").read_text()
    header, *rows = [line.split("\t") for line in text.splitlines()]
    assert header == ["id", "prediction"]
    return rows


def save(folder, model, config, seed, **others):
    """Writes a run directory with random weights, as if it had been trained.

    `others` are arrays beside the weights.
    """
    folder.mkdir(exist_ok=True)
    write_model_files(folder, config)
    recorded.assign(model, seed)
    arrays = {w.path: w.numpy() for w in model.trainable_variables}
    arrays |= {"global_step": np.int64(3), **others}
    checkpoints.save(str(folder), 3, arrays, None, keep=1)


def tokenizer(folder, *more, never_split=()):
    """Writes the vocabulary and `more` tokens, and returns its tokenizer."""
    vocab_file = write_vocab(folder, [*VOCAB, *more])
    return Tokenizer(vocab_file, never_split=never_split)


def save_finetuned(directory, task, config=SMALL):
    """Writes a run directory with random weights; returns its path."""
    model = build_model(task.head, BertConfig.from_dict(config))
    save(directory, model, config, 5)
    described = task_file.describe(task.to_json(), 16, do_lower_case=True)
    (directory / "task.json").write_text(json.dumps(described))
    return str(directory)


def save_pretrained(folder, config, seed, **others):
    """Writes the run directory of a pre-trained model with random weights."""
    model = PretrainingModel(BertConfig.from_dict(config))
    save(folder, model, config, seed, **others)


def save_both(folder):
    """Writes the run directories `tuned` and `pretrained`; returns `folder`."""
    task = ClassificationTask(labels=("no", "yes"))
    save_finetuned(folder / "tuned", task)
    save_pretrained(folder / "pretrained", SMALL, 5)
    return folder
