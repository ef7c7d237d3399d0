"""Examples, features and predictions equal those of the original."""

import functools
import gzip
import hashlib
import json
import re

import numpy as np
import pytest
from support import ROOT, recorded, recorded_texts

from official_bert.inputs import tfrecords
from official_bert.tasks import record_files
from official_bert.tasks.squad import decoding, examples
from official_bert.tasks.squad.features import find_owners
from official_bert.tasks.squad.task import SquadTask
from official_bert.tokenization import BasicTokenizer

# The path of the fixture `golden`, which parameters cannot use.
RECORDED = ROOT.parent / "shared" / "golden" / "squad"
SETTINGS = sorted(p.parent for p in RECORDED.glob("features/*/config.json"))
PREDICTED = sorted(p.parent for p in RECORDED.glob("**/params.json"))
# The others are slow together.
FAST = ("xquad_ar_train_multi_cased_s384_d128", "squad1_pred_uncased_s384_d128")


def parametrize(folders):
    params = []
    for folder in folders:
        name = "-".join(folder.relative_to(RECORDED / "features").parts)
        marks = () if name.startswith(FAST) else pytest.mark.slow
        params.append(pytest.param(folder, id=name, marks=marks))
    return pytest.mark.parametrize("folder", params)


@functools.cache
def load(folder, tokenizers, chunk):
    """Returns the recorded configuration and our features.

    `chunk` is `examples.CHUNK`, on which they depend.
    """
    config = json.loads((folder / "config.json").read_text())
    questions = examples.read_examples(
        str(RECORDED / "data" / config["input"]),
        is_training=config["is_training"],
        version_2_with_negative=config["version_2_with_negative"],
    )
    names = ("doc_stride", "max_query_length")
    task = SquadTask(**{name: config[name] for name in names})
    tokenizer = tokenizers(config["vocab"], config["do_lower_case"])
    [features] = task.featurize(questions, tokenizer, config["max_seq_length"])
    return config, features


def as_recorded(example):
    """Returns an example under the original's names."""
    answer = example.answer or (None, None, None, False)
    text, start, end, is_impossible = answer
    return {
        "qas_id": example.qas_id,
        "question_text": example.question_text,
        "doc_tokens": example.paragraph.words,
        "orig_answer_text": text,
        "start_position": start,
        "end_position": end,
        "is_impossible": is_impossible,
    }


def test_all_recordings_are_found(golden):
    assert len(SETTINGS) == 28
    assert len(PREDICTED) == 20


@parametrize(SETTINGS)
def test_features_and_records_equal_the_original(
    folder, released_tokenizer, tmp_path
):
    config, features = load(folder, released_tokenizer, examples.CHUNK)
    expected = list(recorded_texts.lines(folder / "examples.jsonl.gz"))
    assert expected == [*map(as_recorded, features.examples)]
    windows = features.windows
    expected = list(recorded_texts.lines(folder / "features.jsonl.gz"))
    assert len(features.lengths) == len(expected) == config["n_features"]
    for window, record in enumerate(expected):
        example = windows.example[window]
        assert example == record["example_index"]
        assert features.offsets[window] == record["map_first"]
        start, length = windows.start[window], windows.length[window]
        mine = np.flatnonzero(windows.example == example)
        owners = find_owners(windows.start[mine], windows.length[mine])
        is_owner = owners[start : start + length] == record["doc_span_index"]
        found = "".join(map(str, is_owner.astype(int)))
        assert found == record["is_max_context"]
        words = features.paragraphs[example].words
        words = words[start : start + length].tolist()
        assert words == record["token_to_orig"]
        for name, labels in features.labels.items():
            name = name.replace("positions", "position")
            assert labels[window] == record[name]
    digest = hashlib.sha256()
    path = tmp_path / "a.tf_record"
    with open(path, "wb") as file:
        record_files.write_features(file, features, config["max_seq_length"])
    for record in tfrecords.read(str(path)):
        values = json.dumps(recorded.decode(record), sort_keys=True)
        digest.update(values.encode())
    assert digest.hexdigest() == config["tfrecord_parsed_sha256"]


@pytest.fixture
def original_spaces(monkeypatch):
    """Answers end where those of the original end, at `SPACES` only."""

    def change():
        monkeypatch.setattr(examples, "CHUNK", examples.WORD)
        is_space = examples.SPACES.__contains__
        monkeypatch.setattr(decoding, "is_skipped", is_space)
        decoding._normalize.cache_clear()

    yield change
    decoding._normalize.cache_clear()


def is_like_the_original(text):
    """Whether the tokenizer splits only at `SPACES`, and removes nothing."""
    return not any(
        map(decoding.is_skipped, re.sub(r"[ \t\r\n\u202f]", "", text))
    )


def read_answers(folder):
    packed = (folder / "nbest_predictions.json.gz").read_bytes()
    written = {p.name: p.read_bytes() for p in folder.glob("*.json")}
    del written["params.json"]
    return written | {"nbest_predictions.json": gzip.decompress(packed)}


@parametrize(PREDICTED)
def test_predictions_equal_the_original(
    folder, released_tokenizer, tmp_path, original_spaces
):
    expected = read_answers(folder)
    kept = decode(folder, released_tokenizer)
    n_best = json.loads(expected["nbest_predictions.json"])
    num_equal = 0
    for example, answer in kept:
        if is_like_the_original(example.paragraph.text):
            assert answer.n_best == n_best[example.qas_id]
            num_equal += 1
    assert num_equal > 0
    original_spaces()
    columns = zip(*decode(folder, released_tokenizer), strict=True)
    texts = SquadTask().prediction_files("test", *columns)
    assert {n: t.encode() for n, t in texts.items() if t} == expected


def decode(folder, tokenizers):
    """Returns examples and answers, without those that crash the original."""
    params = json.loads((folder / "params.json").read_text())
    _, features = load(folder.parent, tokenizers, examples.CHUNK)
    logits = np.load(folder / "logits.npz")
    options = [params[x] for x in decoding.DecodingOptions._fields]
    answers = decoding.decode(
        features,
        np.stack([logits["start_logits"], logits["end_logits"]], axis=-1),
        decoding.DecodingOptions(*options),
    )
    # The original crashes on these questions.
    crashes = params["left_out_no_features"]
    crashes += params["left_out_original_crashes"]
    kept = []
    for example, answer in zip(features.examples, answers, strict=True):
        if example.qas_id in crashes:
            odds = decoding.NO_CANDIDATE_ODDS
            assert (answer.text, answer.null_odds) == ("", odds)
        else:
            kept.append((example, answer))
    return kept


def test_final_texts_equal_the_original(golden, original_spaces):
    records = [*recorded_texts.lines(golden / "squad" / "final_text.jsonl.gz")]
    assert len(records) == 8400
    differing = [r for r in records if final_text(*r[:3]) != r[3]]
    assert not any(is_like_the_original(text) for _, text, *_ in differing)
    original_spaces()
    for *arguments, expected in records:
        assert final_text(*arguments) == expected, arguments


def final_text(pred_text, text, do_lower_case):
    tokenizer = BasicTokenizer(do_lower_case)
    return text[slice(*decoding.find_tokens(pred_text, text, tokenizer))]
