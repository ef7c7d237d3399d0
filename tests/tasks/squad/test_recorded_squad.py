"""Examples, features and answers are those of the 2018 release itself."""

import gzip
import hashlib
import json
import pathlib

import numpy as np
import pytest
import tensorflow as tf
from support import recorded

from official_bert.tasks import record_files
from official_bert.tasks.squad import squad_decoding
from official_bert.tasks.squad.answer_text import OriginalText, get_final_text
from official_bert.tasks.squad.squad_examples import read_examples
from official_bert.tasks.squad.squad_features import find_owners, make_features
from official_bert.tasks.squad.squad_task import SquadTask

# Where the fixture `golden` is; the tests' parameters are needed before it.
ROOT = pathlib.Path(__file__).resolve().parents[3]
RECORDED = ROOT.parent / "shared" / "golden" / "squad"
SETTINGS = sorted(
    path.parent for path in RECORDED.glob("features/*/config.json")
)
PREDICTED = sorted(path.parent for path in RECORDED.glob("**/params.json"))
# The others are slow together.
SMALL = (
    "xquad_ar_train_multi_cased_s384_d128",
    "squad1_pred_uncased_s384_d128",
)


def name_of(folder):
    return "-".join(folder.relative_to(RECORDED / "features").parts)


def parametrize(folders):
    return pytest.mark.parametrize(
        "folder",
        [
            pytest.param(
                folder,
                id=name_of(folder),
                marks=()
                if name_of(folder).startswith(SMALL)
                else pytest.mark.slow,
            )
            for folder in folders
        ],
    )


def lines_of(path):
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def load(folder):
    config = json.loads((folder / "config.json").read_text())
    names = ("max_seq_length", "doc_stride", "max_query_length")
    options = {name: config[name] for name in names}
    return config, options


def read(config, version_2=None):
    if version_2 is None:
        version_2 = config["version_2_with_negative"]
    return read_examples(
        str(RECORDED / "data" / config["input"]),
        is_training=config["is_training"],
        version_2_with_negative=version_2,
    )


def test_something_was_recorded(golden):
    assert len(SETTINGS) == 28
    assert len(PREDICTED) == 20


@parametrize(SETTINGS)
def test_examples(folder):
    config, _ = load(folder)
    expected = lines_of(folder / "examples.jsonl.gz")
    found = [
        {name: getattr(example, name) for name in expected[0]}
        for example in read(config)
    ]
    assert found == expected


@parametrize(SETTINGS)
def test_windows(folder, released_tokenizer):
    config, options = load(folder)
    tokenizer = released_tokenizer(config["vocab"], config["do_lower_case"])
    examples = read(config)
    features = make_features(
        examples, tokenizer, **options, is_training=config["is_training"]
    )
    windows = features.windows
    expected = lines_of(folder / "features.jsonl.gz")
    assert len(features.lengths) == len(expected)
    for row, record in enumerate(expected):
        assert windows.example[row] == record["example_index"]
        assert features.offsets[row] == record["map_first"]
        start, length = windows.start[row], windows.length[row]
        mine = np.flatnonzero(windows.example == windows.example[row])
        owner = find_owners(windows.start[mine], windows.length[mine])
        number = record["doc_span_index"]
        is_max = (owner[start : start + length] == number).astype(int)
        assert "".join(map(str, is_max)) == record["is_max_context"]
        paragraph = features.paragraph[windows.example[row]]
        begin = features.paragraphs.splits[paragraph] + start
        words = features.words[begin : begin + length]
        assert words.tolist() == record["token_to_orig"]
        for name, column in features.labels.items():
            recorded_name = name.replace("positions", "position")
            assert column[row] == record[recorded_name]


@parametrize(SETTINGS)
def test_records(folder, released_tokenizer, tmp_path):
    config, options = load(folder)
    path = str(tmp_path / "records")
    length = options.pop("max_seq_length")
    number = record_files.write_records(
        path,
        SquadTask(**options),
        read(config),
        released_tokenizer(config["vocab"], config["do_lower_case"]),
        length,
        is_training=config["is_training"],
    )
    assert number == config["n_features"]
    digest = hashlib.sha256()
    for record in tf.data.TFRecordDataset(path).as_numpy_iterator():
        values = json.dumps(recorded.decode(record), sort_keys=True)
        digest.update(values.encode())
    assert digest.hexdigest() == config["tfrecord_parsed_sha256"]


@parametrize(PREDICTED)
def test_predictions(folder, released_tokenizer, tmp_path):
    config, options = load(folder.parent)
    params = json.loads((folder / "params.json").read_text())
    version_2 = params["version_2_with_negative"]
    tokenizer = released_tokenizer(config["vocab"], params["do_lower_case"])
    examples = read(config, version_2)
    logits = np.load(folder / "logits.npz")
    predictions = squad_decoding.predict(
        make_features(examples, tokenizer, **options),
        logits["start_logits"],
        logits["end_logits"],
        squad_decoding.DecodingOptions(
            n_best_size=params["n_best_size"],
            max_answer_length=params["max_answer_length"],
            version_2_with_negative=version_2,
            null_score_diff_threshold=params["null_score_diff_threshold"],
        ),
    )
    # With these the 2018 release crashes.
    names = {*params["left_out_no_features"]}
    names |= {*params["left_out_original_crashes"]}
    for name in names:
        assert predictions.answers[name] == ""
        assert predictions.null_odds[name] == squad_decoding.NO_CANDIDATE_ODDS
        for results in predictions:
            del results[name]

    squad_decoding.write_predictions(str(tmp_path), predictions)

    written = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    n_best = gzip.decompress(
        (folder / "nbest_predictions.json.gz").read_bytes()
    )
    assert written == {
        "nbest_predictions.json": n_best,
        **{
            path.name: pathlib.Path(path).read_bytes()
            for path in folder.glob("*.json")
            if path.name != "params.json"
        },
    }


def test_final_texts(golden):
    records = lines_of(golden / "squad" / "final_text.jsonl.gz")
    wrong = [
        (pred_text, *arguments, expected)
        for pred_text, *arguments, expected in records
        if get_final_text(pred_text, OriginalText.from_text(*arguments))
        != expected
    ]
    assert not wrong
    assert len(records) == 8400
