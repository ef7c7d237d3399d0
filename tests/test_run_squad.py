"""The command as its user runs it: trains, predicts, complains."""

import json
import math

import numpy as np
import pytest

import run_squad
from official_bert.checkpoints import run_directory
from official_bert.errors import InputError
from official_bert.inference.predictor import Predictor
from official_bert.options import RunSquad

WORDS = [
    *("who", "what", "lives", "here", "there", "in", "the", "house"),
    *("anna", "bob", "carl", "dora"),
]
CONFIG = {
    "vocab_size": 30,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "max_position_embeddings": 40,
    "type_vocab_size": 2,
}


def article(number, seed):
    """Returns passages with one name among words, which is the answer."""
    random = np.random.RandomState(seed)
    paragraphs = []
    for index in range(number):
        words = [WORDS[i] for i in random.randint(3, 8, random.randint(4, 20))]
        place = random.randint(len(words) + 1)
        name = WORDS[8 + random.randint(4)]
        words.insert(place, name.title())
        start = len(" ".join([*words[:place], ""]))
        paragraphs.append(
            {
                "context": "  ".join([" ".join(words), "the"]),
                "qas": [
                    {
                        "id": f"{seed}-{index}",
                        "question": "Who lives here?",
                        "answers": [
                            {"text": name.title(), "answer_start": start}
                        ],
                    }
                ],
            }
        )
    return {"title": "houses", "paragraphs": paragraphs}


@pytest.fixture
def folder(tmp_path):
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    (tmp_path / "vocab.txt").write_text("\n".join([*special, *WORDS, "?"]))
    (tmp_path / "bert_config.json").write_text(json.dumps(CONFIG))
    for name, number in (("train", 300), ("dev", 40)):
        content = {"version": "1.1", "data": [article(number, number)]}
        (tmp_path / f"{name}.json").write_text(json.dumps(content))
    return tmp_path


def run(folder, output="out", **changes):
    run_squad.main(
        RunSquad(
            **{
                "bert_config_file": str(folder / "bert_config.json"),
                "vocab_file": str(folder / "vocab.txt"),
                "train_file": str(folder / "train.json"),
                "predict_file": str(folder / "dev.json"),
                "output_dir": str(folder / output),
                "max_seq_length": 24,
                "max_query_length": 8,
                "doc_stride": 6,
                "train_batch_size": 16,
                "learning_rate": 3e-3,
                "num_train_epochs": 12.0,
                **changes,
            }
        )
    )
    return folder / output


def read_json(path):
    return json.loads(path.read_text())


def test_learns_to_find_names(folder):
    output = run(folder, do_train=True, do_predict=True, pad_to="bucket")
    results = read_json(output / "predict_results.json")
    assert results["exact_match"] > 80
    assert results["total"] == 40
    predictions = read_json(output / "predictions.json")
    assert len(predictions) == 40
    # With its capital, though the model reads lower case.
    assert {p.split()[0] for p in predictions.values()} & {"Anna", "Bob"}
    assert set(read_json(output / "nbest_predictions.json")) == set(predictions)
    assert not (output / "null_odds.json").exists()
    assert read_json(output / "task.json")["kind"] == "squad"
    # Short batches give the same answers, but for what padding let in.
    before = predictions
    run(folder, do_predict=True, eval_pad_to="bucket")
    assert read_json(output / "predictions.json") == before


def test_an_epoch_is_a_step_for_so_many_questions(folder):
    """Not windows, of which there are more; and rounded down: as in 2018."""
    output = run(folder, do_train=True, num_train_epochs=0.5)
    assert run_directory.latest(str(output)) == str(output / "model.ckpt-9")


@pytest.mark.parametrize("how", ["max", "bucket"])
def test_a_predictor_answers_as_do_predict(folder, how):
    output = run(
        folder,
        do_train=True,
        do_predict=True,
        eval_pad_to=how,
        num_train_epochs=0.5,
        n_best_size=4,
    )
    told = RunSquad.defaults_from_earlier_run({"output_dir": str(output)})
    assert (told["doc_stride"], told["eval_pad_to"]) == (6, how)
    assert told["vocab_file"] == str(output / "vocab.txt")
    assert not {"do_train", "output_dir", "use_tpu", "plots"} & told.keys()
    paragraphs = read_json(folder / "dev.json")["data"][0]["paragraphs"]
    items = [(p["qas"][0]["question"], p["context"]) for p in paragraphs]
    found = Predictor.from_dir(str(output), batch_size=3)(items)
    alone = Predictor.from_dir(str(output))(items[:1])
    assert texts(alone[0]) == texts(found[0])
    best = read_json(output / "nbest_predictions.json")
    answers = read_json(output / "predictions.json")
    for paragraph, answer in zip(paragraphs, found, strict=True):
        name = paragraph["qas"][0]["id"]
        assert answer["answer"] == answers[name]
        assert texts(answer) == [c["text"] for c in best[name]]
        assert [c["probability"] for c in answer["n_best"]] == pytest.approx(
            [c["probability"] for c in best[name]], abs=1e-5
        )


def texts(answer):
    return [candidate["text"] for candidate in answer["n_best"]]


def test_what_cannot_be_evaluated_is_told_before_training(folder):
    content = read_json(folder / "dev.json")
    question = content["data"][0]["paragraphs"][2]["qas"][0]
    del question["answers"]
    (folder / "dev.json").write_text(json.dumps(content))
    message = rf"dev.json: data.*{question['id']}.*have `answers`"
    for wanted in (
        {"do_eval": True},
        {"do_train": True, "eval_every": 1},
        {"do_train": True, "do_eval": True, "do_predict": True},
    ):
        with pytest.raises(InputError, match=message):
            run(folder, **wanted)
    assert not (folder / "out" / "train.tf_record").exists()
    output = run(folder, do_train=True, num_train_epochs=0.1, do_predict=True)
    assert len(read_json(output / "predictions.json")) == 40
    assert not (output / "predict_results.json").exists()


@pytest.mark.parametrize("version", [1, 2])
def test_recorded_command_lines_give_the_recorded_files(
    version, golden, tmp_path
):
    folder = golden / "e2e"
    commands = read_json(folder / "commands.json")
    command = dict(
        flag.removeprefix("--").split("=")
        for flag in commands[f"run_squad_v{version}"][1:]
    )
    options = {
        name: int(value) if value.isdecimal() else value
        for name, value in command.items()
    }
    for name in (
        "bert_config_file",
        "init_checkpoint",
        "predict_file",
        "vocab_file",
    ):
        options[name] = str(folder / command[name])
    run_squad.main(
        RunSquad(
            **options
            | {
                "output_dir": str(tmp_path),
                "do_predict": True,
                "version_2_with_negative": version == 2,
                "null_score_diff_threshold": float(
                    command["null_score_diff_threshold"]
                ),
            }
        )
    )
    expected = folder / "expected"
    start = f"run_squad_v{version}_"
    name = "predictions.json"
    assert (tmp_path / name).read_text() == (
        expected / (start + name)
    ).read_text()
    for name in ["nbest_predictions.json", "null_odds.json"][:version]:
        assert_close(
            read_json(tmp_path / name), read_json(expected / (start + name))
        )


def assert_close(ours, theirs):
    """Equal, but for the last of a float's digits."""
    assert type(ours) is type(theirs)
    if isinstance(ours, float):
        assert math.isclose(ours, theirs, rel_tol=1e-5, abs_tol=1e-5)
    elif isinstance(ours, dict):
        assert list(ours) == list(theirs)
        assert_close(list(ours.values()), list(theirs.values()))
    elif isinstance(ours, list):
        assert len(ours) == len(theirs)
        for one, other in zip(ours, theirs, strict=True):
            assert_close(one, other)
    else:
        assert ours == theirs


def test_impossible_options_are_refused(folder):
    with pytest.raises(InputError, match="needs --predict_file"):
        run(folder, do_predict=True, predict_file=None)
    with pytest.raises(InputError, match="needs --train_file"):
        run(folder, do_train=True, train_file=None)
    with pytest.raises(InputError, match="greater than --max_query_length"):
        run(folder, do_predict=True, max_query_length=21)
    with pytest.raises(InputError, match="At least one of"):
        run(folder)
    (folder / "dev.json").write_text('{"data": [\n}')
    with pytest.raises(InputError, match=r"dev.json:2: must be valid JSON"):
        run(folder, do_predict=True)
    assert not (folder / "out").exists()
