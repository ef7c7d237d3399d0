import csv
import json
import shutil

import numpy as np
import pytest
from support import SPECIAL, command_lines, squad_files, tiny
from support.conversions import change_json
from support.run_outputs import read_json

from official_bert.commands import run_squad
from official_bert.errors import InputError
from official_bert.inference import line_prediction
from official_bert.inference.predictor import Predictor
from official_bert.options import Predict, RunSquad
from official_bert.runs import checkpoints

pytestmark = pytest.mark.slow

WORDS = [
    *("who", "what", "lives", "here", "there", "in", "the", "house"),
    *("anna", "bob", "carl", "dora"),
]
VOCAB = [*SPECIAL, *WORDS, "?"]


def paragraphs(number, seed):
    """Yields random words with one name in each paragraph, the answer."""
    rng = np.random.RandomState(seed)
    for index in range(number):
        words = [WORDS[i] for i in rng.randint(3, 8, rng.randint(4, 20))]
        place = rng.randint(len(words) + 1)
        name = WORDS[8 + rng.randint(4)].title()
        words.insert(place, name)
        start = len(" ".join([*words[:place], ""]))
        context = " ".join(words) + "  the"
        yield context, (f"{seed}-{index}", "Who lives here?", name, start)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run_squad")
    config = {**tiny.CONFIG, "vocab_size": len(VOCAB)}
    tiny.write_model_files(folder, config, VOCAB)
    for name, number in (("train", 300), ("dev", 40)):
        path = folder / f"{name}.json"
        squad_files.write(path, *paragraphs(number, seed=number))
    return folder


def run(folder, output="out", **changes):
    flags = {
        **command_lines.files_of_run(folder, output),
        "train_file": str(folder / "train.json"),
        "predict_file": str(folder / "dev.json"),
        "max_seq_length": 24,
        "max_query_length": 8,
        "doc_stride": 6,
        "train_batch_size": 16,
        "learning_rate": 3e-3,
        "num_train_epochs": 12.0,
        "n_best_size": 4,
    }
    run_squad.main(RunSquad(**flags | changes))
    return folder / output


@pytest.fixture(scope="module")
def trained(folder):
    return run(folder, do_train=True, do_predict=True, pad_to="bucket")


@pytest.mark.trains
def test_training_learns_to_find_names(trained):
    results = read_json(trained / "predict_results.json")
    assert results["exact_match"] > 80
    assert results["total"] == 40
    predictions = read_json(trained / "predictions.json")
    # Predictions have the casing of the context, although the model is uncased.
    assert {p.split()[0] for p in predictions.values()} & {"Anna", "Bob"}
    assert not (trained / "null_odds.json").exists()
    assert read_json(trained / "task.json")["kind"] == "squad"
    # As in the original, an epoch has as many features as questions, although
    # there are more windows.
    expected = str(trained / f"model.ckpt-{300 * 12 // 16}")
    assert checkpoints.latest(str(trained)) == expected


def test_resuming_with_other_questions_is_an_error(folder, trained):
    changes = {"doc_stride": 5, "train_file": str(folder / "dev.json")}
    message = r"(?s)--doc_stride: 6, now 5.*train\.json: .*, now dev\.json: "
    with pytest.raises(InputError, match=message):
        run(folder, do_train=True, **changes)


def test_flags_of_training_are_defaults_of_later_runs(trained):
    given = RunSquad(output_dir=str(trained), do_predict=True)
    assert given.doc_stride == 128
    options = given.resolve()
    assert (options.doc_stride, options.eval_pad_to) == (6, "max")
    assert options.vocab_file == str(trained / "vocab.txt")
    assert not options.do_train


def values(n_best, key):
    return [candidate[key] for candidate in n_best]


@pytest.mark.trains
@pytest.mark.parametrize("pad_to", ["max", "bucket"])
def test_predictor_answers_equal_do_predict(folder, trained, pad_to, capsys):
    before = read_json(trained / "predictions.json")
    run(folder, do_predict=True, eval_pad_to=pad_to)
    errors = capsys.readouterr().err
    assert "Tokenizing: 100%" in errors
    assert "Decoding: 100%" in errors
    answers = read_json(trained / "predictions.json")
    assert answers == before
    # As if the model was trained with this --eval_pad_to.
    change_json(trained / "task.json", pad_to=pad_to)
    paragraphs = read_json(folder / "dev.json")["data"][0]["paragraphs"]
    items = [(p["qas"][0]["question"], p["context"]) for p in paragraphs]
    found = Predictor.from_dir(str(trained), batch_size=3)(items)
    alone = Predictor.from_dir(str(trained))(items[:1])
    assert "ing: 100%" not in capsys.readouterr().err
    texts = values(alone[0]["n_best"], "text")
    assert texts == values(found[0]["n_best"], "text")
    n_best = read_json(trained / "nbest_predictions.json")
    for paragraph, answer in zip(paragraphs, found, strict=True):
        name = paragraph["qas"][0]["id"]
        assert answer["answer"] == answers[name]
        for key in ("text", "probability"):
            ours = values(answer["n_best"], key)
            assert ours == pytest.approx(values(n_best[name], key), abs=1e-5)


@pytest.mark.trains
def test_predict_can_change_the_threshold_and_show_fewer(trained, tmp_path):
    copy = shutil.copytree(trained, tmp_path / "copy")
    decoding = read_json(copy / "task.json")["decoding"]
    decoding["version_2_with_negative"] = True
    change_json(copy / "task.json", decoding=decoding)
    texts = []
    for flag in ("", "--null_score_diff_threshold=-1e9 --n_best_size=1"):
        options = command_lines.parse(Predict, f"--model_dir={copy} {flag}")
        [answer] = line_prediction.load(options)([["Who?", "Anna lives"]])
        texts.append((answer["answer"], answer["start"], answer["end"]))
    assert texts == [("Anna", 0, 4), ("", -1, -1)]
    [best] = answer["n_best"]
    assert (best["text"], best["start"], best["end"]) == ("Anna", 0, 4)


@pytest.mark.trains
def test_predict_writes_a_table_from_a_table(trained, tmp_path):
    text = "id,context,question\nx,Anna lives,Who?\ny,,Who?\n"
    (tmp_path / "a.csv").write_text(text)
    files = f"--input_file={tmp_path}/a.csv --output_file={tmp_path}/b.csv"
    line = f"--model_dir={trained} {files}"
    line_prediction.run(command_lines.parse(Predict, line))
    with open(tmp_path / "b.csv", encoding="utf-8") as file:
        first, second = csv.DictReader(file)
    assert (first["id"], first["context"]) == ("x", "Anna lives")
    names = ("answer", "start", "end")
    assert [first[f"predicted_{n}"] for n in names] == ["Anna", "0", "4"]
    assert [second[f"predicted_{n}"] for n in names] == ["", "-1", "-1"]
    assert second["predicted_probability"] == "0.0"


def test_files_without_answers_are_predicted_but_not_evaluated(folder, trained):
    content = read_json(folder / "dev.json")
    question = content["data"][0]["paragraphs"][2]["qas"][0]
    del question["answers"]
    path = folder / "test.json"
    path.write_text(json.dumps(content))
    message = rf"test.json: question .{question['id']}.*`answers`"
    for mode in (
        {"do_eval": True},
        {"do_train": True, "eval_every": 1},
        {"do_train": True, "do_eval": True, "do_predict": True},
    ):
        with pytest.raises(InputError, match=message):
            run(folder, "new", predict_file=str(path), **mode)
    assert not (folder / "new" / "train.tf_record").exists()
    run(folder, predict_file=str(path), do_predict=True)
    assert len(read_json(trained / "predictions.json")) == 40
    assert not (trained / "predict_results.json").exists()
