"""Packed rows, from text to a trained model."""

import json

import pytest
import tensorflow as tf
from support import recorded

import create_pretraining_data
import run_pretraining
from official_bert.errors import InputError
from official_bert.options import CreatePretrainingData, RunPretraining

TOKENS = "[PAD] [UNK] [CLS] [SEP] [MASK] the cat sat on mat . it was warm"
CONFIG = {
    "vocab_size": 14,
    "hidden_size": 8,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 16,
    "max_position_embeddings": 64,
    "type_vocab_size": 2,
}


@pytest.fixture
def folder(tmp_path):
    document = "the cat sat on the mat .\nit was warm .\nthe cat sat .\n\n"
    (tmp_path / "text.txt").write_text(document * 6)
    (tmp_path / "vocab.txt").write_text("\n".join(TOKENS.split()) + "\n")
    (tmp_path / "bert_config.json").write_text(json.dumps(CONFIG))
    return tmp_path


def make(folder, **changes):
    options = CreatePretrainingData(
        **{
            "input_file": str(folder / "text.txt"),
            "output_file": str(folder / "out.tfrecord"),
            "vocab_file": str(folder / "vocab.txt"),
            "max_seq_length": 64,
            "max_predictions_per_seq": 12,
            "pack_sequences": True,
            **changes,
        }
    )
    create_pretraining_data.main(options)
    return [
        recorded.decode(record)
        for record in tf.data.TFRecordDataset(
            options.output_files()
        ).as_numpy_iterator()
    ]


def run(folder, **changes):
    run_pretraining.main(
        RunPretraining(
            **{
                "bert_config_file": str(folder / "bert_config.json"),
                "input_file": str(folder / "out.tfrecord"),
                "output_dir": str(folder / "out"),
                "max_seq_length": 64,
                "max_predictions_per_seq": 12,
                "train_batch_size": 4,
                "num_train_steps": 3,
                "num_warmup_steps": 1,
                "max_eval_steps": 2,
                "do_train": True,
                "pack_sequences": True,
                **changes,
            }
        )
    )


def instances(row):
    """Yields token ids, masked positions and label of each instance."""
    for number, start in enumerate(row["next_sentence_positions"], 1):
        size = row["input_mask"].count(number)
        yield (
            row["input_ids"][start : start + size],
            [
                (position - start, label)
                for position, label, weight in zip(
                    row["masked_lm_positions"],
                    row["masked_lm_ids"],
                    row["masked_lm_weights"],
                    strict=True,
                )
                if weight and start <= position < start + size
            ],
            row["next_sentence_labels"][number - 1],
        )


@pytest.mark.parametrize("num_workers", [0, 1])
def test_packing_keeps_all_instances_in_fewer_rows(folder, num_workers):
    packed = make(folder, num_workers=num_workers)
    plain = make(folder, pack_sequences=False, num_workers=num_workers)
    assert len(packed) < len(plain) / 2
    assert make(folder, num_workers=num_workers) == packed
    unpacked = [p for row in packed for p in instances(row) if p[0]]
    expected = [
        next(instances({**row, "next_sentence_positions": [0]}))
        for row in plain
    ]
    assert sorted(unpacked) == sorted(expected)
    assert sum(sum(row["next_sentence_weights"]) for row in packed) == len(
        unpacked
    )


@pytest.mark.slow
def test_rows_do_not_depend_on_the_number_of_workers(folder):
    assert make(folder, num_workers=1) == make(folder, num_workers=2)


def test_packed_records_train_and_evaluate_both_tasks(folder):
    make(folder)
    run(folder, do_eval=True)
    results = (folder / "out" / "eval_results.txt").read_text()
    assert "next_sentence_accuracy" in results
    assert "masked_lm_loss" in results


@pytest.mark.parametrize(
    ("made", "read", "message"),
    [
        (True, {"pack_sequences": False}, "--pack_sequences"),
        (False, {}, "--pack_sequences"),
        (True, {"max_sequences_per_row": 8}, "--max_sequences_per_row=16"),
        (True, {"max_seq_length": 32}, "--max_seq_length=64"),
    ],
    ids=["packed, flag missing", "flag, not packed", "other K", "other length"],
)
def test_records_that_do_not_fit_the_flags_are_an_error(
    folder, made, read, message
):
    make(folder, pack_sequences=made)
    with pytest.raises(InputError, match=message):
        run(folder, **read)
    assert not list((folder / "out").glob("model.ckpt*"))


def test_too_few_predictions_per_row_are_an_error(folder):
    with pytest.raises(InputError, match=r"max_predictions_per_seq.*\b10\b"):
        make(folder, max_predictions_per_seq=9)
    make(folder, max_predictions_per_seq=10)
