"""Static, dynamic and packed records, from text to a trained model."""

import json
import shutil

import numpy as np
import pytest
from support import (
    SPECIAL,
    conversions,
    pretraining_records,
    pretraining_runs,
    recorded,
    write_vocab,
)
from support.run_outputs import weights

from official_bert.errors import InputError
from official_bert.options import RunPretraining
from official_bert.sources import tokenizer_files
from official_bert.tokenization.settings import TokenizerSettings
from official_bert.training import objectives, pretraining_run

SIZES = {"max_seq_length": 64, "max_predictions_per_seq": 12}
WORDS = ["the", "cat", "##s", "sat", "on", "mat", ".", "it", "was", "warm"]
CONFIG = pretraining_runs.CONFIG | {"max_position_embeddings": 64}
DOCUMENT = "the cats sat on the mats .\nit was warm .\nthe mats sat .\n\n"
PLAIN_STATIC = {"masking": "static", "num_workers": 0}
RECORDS = {
    "static": {"masking": "static"},
    "dynamic": {},
    "words": {"do_whole_word_mask": True, "max_ngram": 3},
    "plain_words": {"do_whole_word_mask": True, "num_workers": 0},
    "packed": {"pack_sequences": True},
    # By the generator of the original implementation.
    "plain_static": PLAIN_STATIC,
    "packed_static": {**PLAIN_STATIC, "pack_sequences": True},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A directory with a config, and the same instances in several forms."""
    folder = tmp_path_factory.mktemp("dynamic")
    pretraining_records.write_inputs(folder, DOCUMENT * 6, WORDS)
    (folder / "bert_config.json").write_text(json.dumps(CONFIG))
    for name, changes in RECORDS.items():
        changes = {"masking": "dynamic", "num_workers": 1, **SIZES, **changes}
        pretraining_records.make(folder, folder / name, **changes)
    return folder


def parse(folder, name):
    packed = 16 if name.startswith("packed") else None
    is_dynamic = "static" not in name
    return pretraining_records.parse(folder / name, 64, 12, packed, is_dynamic)


def run(folder, tmp_path, records, output="out", **changes):
    names = [str(folder / name) for name in records.split()]
    settings = {"pack_sequences": records.startswith("packed"), **SIZES}
    settings |= {"input_file": ",".join(names), **changes}
    return pretraining_runs.run(folder, str(tmp_path / output), **settings)


def test_unmasked_records_hold_the_instances_of_masked_ones(folder):
    static, dynamic = parse(folder, "static"), parse(folder, "dynamic")
    unmasked = objectives.to_next_tokens(static)["input_ids"].numpy()
    np.testing.assert_array_equal(dynamic["input_ids"], unmasked)
    for name in ("input_mask", "segment_ids", "next_sentence_labels"):
        np.testing.assert_array_equal(dynamic[name], static[name])
    counts = static["masked_lm_weights"].sum(1)
    np.testing.assert_array_equal(dynamic["num_to_predict"][:, 0], counts)


@pytest.mark.parametrize("name", ["dynamic", "words", "plain_words"])
def test_word_starts_are_positions_of_tokens_that_may_be_masked(folder, name):
    found = parse(folder, name)
    assert not np.any(found["input_ids"] == 4)  # [MASK]
    for row, ids in enumerate(found["input_ids"]):
        for place, token in enumerate(ids):
            start = found["word_starts"][row, place]
            if token < 5:  # [PAD], [CLS] or [SEP].
                assert start == 0
            elif "words" in name and token == 7 and place > 1:
                assert 0 < start < place  # "##s"
            else:
                assert start == place


def instances(found):
    """Yields the row of each instance, its number in it, and its positions."""
    for row, numbers in enumerate(found["input_mask"]):
        for number in range(1, numbers.max() + 1):
            yield row, number, numbers == number


def unmasked_instances(found):
    for row, number, here in instances(found):
        starts = found["word_starts"][row, here]
        starts = np.where(starts > 0, starts - np.argmax(here), 0)
        count = found["num_to_predict"][row, number - 1]
        ids = found["input_ids"][row, here]
        yield ids.tolist(), starts.tolist(), int(count)


def masked_instances(found):
    for row, _, here in instances(found):
        places = found["masked_lm_positions"][row]
        is_mine = (found["masked_lm_weights"][row] > 0) & here[places]
        labels = found["masked_lm_ids"][row, is_mine]
        ids, places = found["input_ids"][row, here], places[is_mine]
        yield [x.tolist() for x in (ids, places - np.argmax(here), labels)]


@pytest.mark.parametrize(
    ("name", "plain_name", "read"),
    [
        ("packed", "dynamic", unmasked_instances),
        ("packed_static", "plain_static", masked_instances),
    ],
)
def test_fewer_packed_rows_hold_all_instances(folder, name, plain_name, read):
    packed, plain = parse(folder, name), parse(folder, plain_name)
    assert sorted(read(packed)) == sorted(read(plain))
    num_plain = len(plain["input_ids"])
    assert len(packed["input_ids"]) < num_plain / 2
    assert packed["next_sentence_weights"].sum() == num_plain


@pytest.fixture
def without_dropout(tmp_path):
    """The config file of a model without dropout."""
    path = tmp_path / "bert_config.json"
    path.write_text(json.dumps(CONFIG | pretraining_runs.NO_DROPOUT))
    return str(path)


@pytest.mark.slow
def test_micro_batches_have_the_masks_of_the_whole_batch(
    folder, tmp_path, without_dropout
):
    settings = {"bert_config_file": without_dropout, "do_train": True}
    settings["num_train_steps"] = 2
    parts = {"output": "parts", "gradient_accumulation_steps": 4}
    whole, parts = (
        weights(run(folder, tmp_path, "words", **settings, **changes))
        for changes in ({"output": "whole"}, parts)
    )
    recorded.assert_all_close(parts, whole, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("records", ["static", "dynamic"])
def test_masks_change_at_every_step(folder, tmp_path, without_dropout, records):
    output = run(
        folder,
        tmp_path,
        records,
        bert_config_file=without_dropout,
        do_train=True,
        learning_rate=0.0,
        num_train_steps=20,
        train_batch_size=len(parse(folder, records)["input_ids"]),
    )
    events = pretraining_runs.event_values(output)
    losses = [events[step, "masked_lm_loss"] for step in (10, 20)]
    is_equal = losses[0] == pytest.approx(losses[1], rel=1e-6)
    assert is_equal == (records == "static")


@pytest.mark.slow
@pytest.mark.usefixtures("without_learning")
def test_evaluation_has_the_same_masks_every_time(folder, tmp_path):
    def results(**changes):
        settings = {"do_eval": True, "eval_batch_size": 8, **changes}
        output = run(folder, tmp_path, "words", **settings)
        return pretraining_runs.results(output)

    first = pytest.approx(results(do_train=True), rel=1e-6)
    assert results(seed=7) == first
    assert results(distribution_strategy="mirrored") == first


@pytest.mark.slow
def test_packed_records_train_both_tasks(folder, tmp_path):
    flags = {"distribution_strategy": "mirrored", "iterations_per_loop": 2}
    output = run(
        folder, tmp_path, "packed", do_train=True, do_eval=True, **flags
    )
    found = pretraining_runs.results(output)
    assert {"masked_lm_loss", "next_sentence_accuracy"} <= set(found)
    assert found["global_step"] == 6


@pytest.mark.slow
@pytest.mark.usefixtures("without_learning")
def test_left_to_right_models_read_unmasked_records(folder, tmp_path):
    settings = {"left_to_right": True, "do_eval": True}
    output = run(folder, tmp_path, "static", do_train=True, **settings)
    expected = pretraining_runs.results(output)
    output = run(folder, tmp_path, "dynamic", **settings)
    found = pretraining_runs.results(output)
    assert found == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(
    ("records", "changes", "message"),
    [
        ("dynamic", {"max_predictions_per_seq": 8}, "=8 must be 12"),
        ("dynamic", {"max_seq_length": 32}, "--max_seq_length=64"),
        ("dynamic", {"pack_sequences": True}, "--pack_sequences"),
        ("packed", {"pack_sequences": False}, "--pack_sequences"),
        ("packed", {"max_sequences_per_row": 8}, "--max_sequences_per_row=16"),
        ("plain_static", {"pack_sequences": True}, "--pack_sequences"),
        ("packed_static", {"pack_sequences": False}, "--pack_sequences"),
        ("packed_static", {"max_seq_length": 32}, "--max_seq_length=64"),
        ("static dynamic", {}, r"dynamic: record 1 .*Received.*mask_id=4"),
        ("dynamic static", {}, "static: record 1 .*Received: static"),
        ("dynamic words", {}, "words: record 1 .*max_ngram=3"),
        ("dynamic", {"bert_config_file": "small"}, r"15 tok.* small \(14 tok"),
    ],
)
def test_records_that_do_not_fit_the_flags_are_an_error(
    folder, tmp_path, monkeypatch, records, changes, message
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small").write_text(json.dumps(CONFIG | {"vocab_size": 14}))
    with pytest.raises(InputError, match=message):
        run(folder, tmp_path, records, do_train=True, **changes)
    assert not list(tmp_path.glob("*/model.ckpt*"))


@pytest.fixture
def records(folder, tmp_path):
    """Records with their config, vocabulary and description."""
    for name in ("static", "static.tokenizer.json", "bert_config.json"):
        shutil.copy(folder / name, tmp_path)
    shutil.copy(folder / "vocab.txt", tmp_path)
    return tmp_path


def prepare(records, **changes):
    """Checks a run on the records, and builds its model."""
    files = {"input_file": f"{records}/static*", "vocab_file": None}
    changes = {"do_train": True, **SIZES, **files, **changes}
    flags = pretraining_runs.flags(records, **changes)
    return pretraining_run.prepare(RunPretraining(**flags).resolve())


def write_other_vocab(folder):
    folder.mkdir(exist_ok=True)
    return write_vocab(folder, [*SPECIAL, *reversed(WORDS)])


def test_records_of_the_models_vocabulary_are_accepted(records, caplog):
    text = (records / "vocab.txt").read_text()
    (records / "crlf.txt").write_bytes(text.replace("\n", "\r\n").encode())
    for vocab_file in (None, records / "vocab.txt", records / "crlf.txt"):
        run = prepare(records, vocab_file=vocab_file and str(vocab_file))
        assert run.data.names == [f"{records}/static"]
    assert "[UNK]" not in caplog.text


def test_records_of_another_vocabulary_are_an_error_that_names_both(records):
    other = write_other_vocab(records / "other")
    message = (
        rf"static .*/vocab\.txt \(15 tokens,.* True\), .* has {other} \(15"
    )
    with pytest.raises(InputError, match=message):
        prepare(records, vocab_file=other)
    # The vocabulary beside the weights.
    (records / "other" / "model.ckpt.index").touch()
    with pytest.raises(InputError, match=message):
        prepare(records, init_checkpoint=f"{records}/other/model.ckpt")
    # That of the run to evaluate.
    write_other_vocab(records / "out")
    with pytest.raises(InputError, match=r"has .*out/vocab\.txt"):
        prepare(records, do_train=False, do_eval=True)
    # The vocabulary of a cased model.
    (records / "tokenizer_config.json").write_text('{"do_lower_case": false}')
    with pytest.raises(InputError, match=r"has .* do_lower_case False"):
        prepare(records, vocab_file=f"{records}/vocab.txt")
    # Only the size is known.
    conversions.change_json(records / "bert_config.json", vocab_size=400)
    with pytest.raises(InputError, match=r"has .*_config\.json \(400 tokens\)"):
        prepare(records)


@pytest.mark.parametrize("change", ["vocabulary", "casing"])
def test_records_of_several_tokenizers_are_an_error(records, change):
    (records / "other").mkdir()
    inputs = pretraining_records.write_inputs(records, DOCUMENT, WORDS[::-1])
    flags = {"do_lower_case": change != "casing"}
    if change == "casing":
        inputs = pretraining_records.write_inputs(records, DOCUMENT, WORDS)
    path = records / "other" / "a"
    pretraining_records.make(inputs, path, **SIZES, **flags)
    for name in ("input_file", "eval_file"):
        both = {"input_file": f"{records}/static", name: f"{records}/static,"}
        both[name] += str(path)
        with pytest.raises(
            InputError, match=r"static, created.*other/a, creat"
        ):
            prepare(records, **both)


def test_records_of_another_pair_task_are_an_error(records):
    prepare(records, nsp="none")
    with pytest.raises(
        InputError,
        match=r"^--nsp=sop must be none or next, as .*static have next\.",
    ):
        prepare(records, nsp="sop")
    inputs = pretraining_records.write_inputs(records, DOCUMENT, WORDS)
    pretraining_records.make(inputs, records / "a", nsp="sop", **SIZES)
    both = f"{records}/static,{records}/a"
    with pytest.raises(InputError, match=r"^--nsp=next must .*/a have sop\."):
        prepare(records, input_file=both)
    pretraining_records.make(inputs, records / "a", nsp="none", **SIZES)
    with pytest.raises(InputError, match=r"^--nsp=next must be none, as "):
        prepare(records, input_file=both)


def test_records_without_a_description_are_accepted(records):
    other = write_other_vocab(records / "other")
    with (records / "static").open("ab") as file:  # By another program.
        file.write((records / "static").read_bytes())
    prepare(records, vocab_file=other)
    (records / "static.tokenizer.json").unlink()
    prepare(records, vocab_file=other)


def test_model_has_the_tokenizer_of_its_records(records):
    inputs = pretraining_records.write_inputs(records, DOCUMENT, WORDS)
    flags = {"strip_accents": "false", "never_split": "cat"}
    pretraining_records.make(inputs, records / "static", **SIZES, **flags)
    run = prepare(records, vocab_file=f"{records}/vocab.txt")
    for name, text in run.model_texts().items():
        (records / name).write_text(text)
    expected = TokenizerSettings(do_lower_case=True, strip_accents=False)
    found = tokenizer_files.read(str(records))
    assert found == expected.keeping(["cat"])


def test_records_with_many_unknown_words_are_a_warning(records, caplog):
    inputs = pretraining_records.write_inputs(records, DOCUMENT, WORDS[1:])
    pretraining_records.make(inputs, records / "static", **SIZES)
    caplog.clear()
    prepare(records)
    # "the", 3 of 18 tokens.
    assert "static: 16.7% of the tokens are [UNK]" in caplog.text
