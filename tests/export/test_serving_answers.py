"""What is served is what `predict.py` answers, for every kind of task."""

import pytest
import tensorflow as tf
from support import served_models

from official_bert.export.serving import exporting
from official_bert.export.serving.signatures import RowSignatures
from official_bert.tasks import record_files
from official_bert.tasks.forward import Forward

# Of the others, the graphs take long to make.
FAST = {"truncate_tail"}


@pytest.mark.parametrize(
    "name",
    [
        name if name in FAST else pytest.param(name, marks=pytest.mark.slow)
        for name in served_models.CASES
    ],
)
def test_texts_are_answered_as_predicted(name, tmp_path):
    case = served_models.CASES[name]
    trained = served_models.load(case.task, tmp_path)
    kind = exporting.make_kind(exporting.make_served(trained))
    function = exporting.traced(kind.text_signatures()["serving_default"])

    found = function(**{n: tf.constant(v) for n, v in case.inputs.items()})

    served_models.check(
        case, as_lists(found), served_models.expected(trained, case.items)
    )
    nothing = function(
        **{n: tf.constant(v)[:0] for n, v in case.inputs.items()}
    )
    assert [len(values) for values in nothing.values()] == [0] * len(found)


@pytest.mark.slow
def test_what_is_no_utf_8_is_as_if_not_there(tmp_path):
    """Places of answers too are those of the rest."""
    trained = served_models.load(served_models.CASES["squad"].task, tmp_path)
    kind = exporting.make_kind(exporting.make_served(trained))
    function = exporting.traced(kind.text_signatures()["serving_default"])
    spoilt = b"na\xefve \xa0 x the end of it"
    found = function(
        question=tf.constant(["what ?"] * 2),
        context=tf.constant([spoilt, spoilt.decode(errors="ignore")]),
    )
    one, other = found["answer"].numpy()
    assert one == other


def as_lists(found):
    """Returns outputs as they leave a server."""
    return {name: texts_of(v.numpy().tolist()) for name, v in found.items()}


def texts_of(value):
    if isinstance(value, list):
        return [texts_of(part) for part in value]
    return value.decode("utf-8") if isinstance(value, bytes) else value


@pytest.mark.parametrize("name", ["truncate_tail", "choice", "squad"])
def test_records_of_fine_tuning_are_answered_as_ids_are(name, tmp_path):
    case = served_models.CASES[name]
    trained = served_models.load(case.task, tmp_path)
    found = exporting.make_served(trained, export_text=False)
    rows = RowSignatures(exporting.make_kind(found), found)
    examples = [
        trained.task.parse(item, "item") for item in case.items if any(item)
    ]
    length = trained.max_seq_length
    [features] = trained.task.featurize(
        examples, trained.tokenizer, length, is_training=False
    )
    records = list(record_files.encode_features(features, length))

    answers = rows.of_examples(tf.constant(records))

    logits = Forward(
        trained.task,
        trained.model,
        max_seq_length=trained.max_seq_length,
        batch_size=4,
        pad_to="max",
    ).run(features)
    expected = rows.kind.outputs(tf.stack(logits.logits))
    assert answers.keys() == expected.keys()
    for output, values in expected.items():
        if values.dtype == tf.float32:
            tf.debugging.assert_near(answers[output], values, atol=2e-6)
        else:
            tf.debugging.assert_equal(answers[output], values)
