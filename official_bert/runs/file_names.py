"""The names of the files in a run directory, the --output_dir of training.

Most are those of the original implementation. The page "Output files" of the
documentation describes the files.
"""

import os
import re

# The model. The config and the vocabulary are also beside released checkpoints.
CONFIG, VOCAB, TASK = "bert_config.json", "vocab.txt", "task.json"
CHECKPOINT_LIST = "checkpoint"  # Lists checkpoints; the first is the newest.
INDEX = ".index"  # The suffix of the index of a checkpoint.
RELEASED_PREFIX = "bert_model.ckpt"  # The checkpoints that Google released.
RESUME_STATE = ".resume.json"  # The suffix of a file beside a checkpoint.
BEST = "best"  # Directory of the checkpoint with the best evaluation.

# A model for OpenVINO, the directory of those that were converted from the
# checkpoint beside it, and the fingerprints of that checkpoint, in each one.
OPENVINO, CONVERTED, SOURCE = "model.xml", "openvino", "SOURCE.txt"
ONNX = "model.onnx"

# The run.
LOCK = "run.lock"
TRAIN_OPTIONS, EVAL_OPTIONS = "train_options.json", "eval_options.json"
HELD_OUT = "dev.jsonl"  # Examples that were held out of the training data.
DEV_ERRORS = "dev_errors"  # Evaluated examples with wrong answers.
EVENTS = "eval"  # Directory of the TensorBoard events of evaluations.
EVAL_HISTORY = "eval_history.jsonl"

# Results. Some names have a variant at the end, such as a language, or the name
# of an evaluated file that is not that of the run.
EVAL_RESULTS, PREDICT_RESULTS = "eval_results", "predict_results"
METRICS, METRICS_TEXT = f"{EVAL_RESULTS}.json", f"{EVAL_RESULTS}.txt"
ANY_METRICS = re.compile(rf"{EVAL_RESULTS}(\w*)\.json")  # The group: variant.
ANSWERS = ("predictions.json", "nbest_predictions.json", "null_odds.json")
SWEEP_TABLE, SWEEP_RESULTS = "sweep.tsv", "sweep.json"
FOLDS_TABLE, OUT_OF_FOLD = "folds.tsv", "out_of_fold.jsonl"
SUSPECT_LABELS = "suspect_labels.tsv"
MINED = "mined_negatives.csv"

# The start of the name of a directory that is removed with a `Predictor`.
TEMPORARY = "official_bert_finetune_"

# Of `--folds` and `--mine_negatives`.
_TABLES = "|".join(
    map(re.escape, (FOLDS_TABLE, OUT_OF_FOLD, SUSPECT_LABELS, MINED))
)

# To be submitted to GLUE, and the same for XNLI.
_SUBMISSIONS = "AX|CoLA|MNLI-mm?|MRPC|QNLI|QQP|RTE|SST-2|STS-B|WNLI|XNLI-.+"

_RESULTS = (
    r"(eval|predict)_results\w*\.(txt|json)|(dev|test)_results\w*\.tsv"
    r"|(dev|test)\w*_predictions\.(tsv|txt)|(nbest_)?predictions\.json"
    rf"|null_odds\.json|dev_errors\w*\.csv|({_SUBMISSIONS})\.tsv|{_TABLES}"
)

# What --overwrite_output_dir removes: files that must not stay in the directory
# of another model. `TRAIN_OPTIONS`, which marks a run directory, stays until
# the next run replaces it.
OF_MODEL = re.compile(
    rf"{_RESULTS}|checkpoint|model\.ckpt-\d+\..+|events\.out\.tfevents\..+"
    r"|(task|bert_config|tokenizer_config|eval_options)\.json|vocab\.txt"
    r"|eval_history\.jsonl|(training_curves|confusion_matrix\w*)\.(png|html)"
)
# Results and predictions, which a command lists at its end.
RESULTS = re.compile(rf"{_RESULTS}|dev\.jsonl|task\.json")
# Temporary files that a killed run left. Only the holder of the lock writes
# them. Those of evaluations and exports, which may be running, do not match.
UNFINISHED = re.compile(
    r"(model\.ckpt-\d+|checkpoint|train\.tf_record|train_options\.json"
    r"|(bert_config|task|tokenizer_config)\.json|vocab\.txt"
    r"|(dev|eval_history)\.jsonl).*"
    r"\.tmp-[0-9a-f]{8}(\..+)?"
)
# A file of a checkpoint. If the checkpoint has no index, a killed run was
# writing or removing it.
CHECKPOINT_PART = re.compile(
    r"(model\.ckpt-\d+)\.(data-\d+-of-\d+|resume\.json)"
)


def checkpoint(step: int) -> str:
    """Returns the name of the checkpoint after a step, `model.ckpt-STEP`."""
    return f"model.ckpt-{step}"


def step_of(name: str) -> int:
    """Returns the step of a checkpoint's name; -1 for other names."""
    match = re.fullmatch(r"model\.ckpt-(\d+)", name)
    return int(match[1]) if match else -1


def variant(path: str) -> str:
    """Returns the end of the names of results for a file: `_test` for test.csv.

    The names of several files are joined. `OF_MODEL` and `RESULTS` recognize
    the results.
    """
    names = map(os.path.basename, path.split(","))
    stems = [re.sub(r"(?i)(\.\w+)?(\.gz)?$", "", name) for name in names]
    return "_" + re.sub(r"\W+", "_", "_".join(stems))[:100]


def records(split: str) -> str:
    """Returns the name of the TFRecord file of a split."""
    split = split.replace("dev", "eval", 1).replace("test", "predict", 1)
    return f"{split}.tf_record"


def scores(split: str) -> str:
    """Returns `test_results.tsv`, or `test_results_mismatched.tsv`."""
    return re.sub("dev|test", r"\g<0>_results", split, count=1) + ".tsv"


def predictions(split: str, ending: str) -> str:
    """Returns `test_predictions.tsv` or, for tagging, `.txt`."""
    return f"{split}_predictions.{ending}"
