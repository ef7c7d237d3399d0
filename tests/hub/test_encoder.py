"""A module in a Keras layer learns: all of it, by every optimizer."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from support import hub_modules, recorded

from official_bert.errors import InputError
from official_bert.hub import HubEncoder
from official_bert.hub.hub_encoder import HubBert
from official_bert.optimization.adam import AdamWeightDecay
from official_bert.optimization.schedules import LinearWarmupDecay
from official_bert.tasks.text import TextTask
from official_bert.tokenization import load_vocab
from official_bert.training import distribution
from official_bert.training.objectives import FinetuningObjective
from official_bert.training.step import train_step

IDS = [[2, 5, 7, 3], [2, 6, 3, 0], [2, 7, 7, 3], [2, 6, 6, 3]]
MASK = [[1, 1, 1, 1], [1, 1, 1, 0], [1, 1, 1, 1], [1, 1, 1, 1]]


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hub")
    hub_modules.write_files(folder)
    return hub_modules.export(folder)[0]


def model_on(encoder):
    given = {
        name: keras.Input([None], dtype="int32", name=name)
        for name in hub_modules.INPUTS
    }
    pooled = encoder(given)["pooled_output"]
    return keras.Model(given, keras.layers.Dense(1)(pooled))


def values(weights):
    return {weight.path: weight.numpy() for weight in weights}


def test_weights_are_the_modules_own(path):
    encoder = HubEncoder(path)
    assert [w.path + ":0" for w in encoder.trainable_variables] == [
        v.name for v in encoder.module.trainable_variables
    ]
    encoder.weights[0].assign(tf.ones_like(encoder.weights[0]))
    assert encoder.module.variables[0].numpy().min() == 1.0
    assert encoder.text_info.do_lower_case
    with open(encoder.text_info.vocab_file) as file:
        assert file.read().split() == hub_modules.VOCAB


@pytest.mark.slow
@pytest.mark.parametrize(("optimizer", "rate"), [("sgd", 0.01), ("adam", 1e-3)])
def test_keras_trains_all_of_it(path, optimizer, rate):
    encoder = HubEncoder(path)
    model = model_on(encoder)
    before = values(encoder.weights)
    inputs = hub_modules.inputs(IDS, MASK, [[0, 0, 1, 1]] * 4)
    model.compile(keras.optimizers.get(optimizer), "mse")
    model.optimizer.learning_rate = rate
    targets = np.array([1.0, -1.0, 1.0, 0.0])
    loss = model.evaluate(inputs, targets, verbose=0)
    model.fit(inputs, targets, epochs=20, verbose=0)
    assert model.evaluate(inputs, targets, verbose=0) < 0.7 * loss
    still = {
        n
        for n, a in values(encoder.weights).items()
        if np.array_equal(a, before[n])
    }
    # A constant added to all keys changes no softmax: its gradient is 0, but
    # for rounding.
    assert all(name.endswith("self/key/bias") for name in still)
    # What has learned is the module itself.
    np.testing.assert_array_equal(
        encoder.module(inputs)["pooled_output"],
        encoder(inputs)["pooled_output"],
    )


@pytest.mark.slow
def test_our_optimizer_trains_it_as_the_original_was_trained(tmp_path):
    """Thirty recorded steps: loss, gradients' norm, learning rate."""
    extract = np.load(recorded.EXTRACT / "finetuning.npz")
    arrays = recorded.part(extract, "classifier/")
    config = recorded.TRAINING_CONFIG
    hub_modules.write_files(tmp_path, config, seed=101)
    path, _ = hub_modules.export(tmp_path, config)
    task = TextTask(task_type="classification", labels=("a", "b", "c"))
    model = task.build_model(config, HubBert(path))
    model.dropout.rate = 0.0
    recorded.set_weights([model.output_weights, model.output_bias], 101)
    heads = recorded.part(arrays, "extra_init/")
    for weight in model.trainable_variables:
        if weight.path in heads:
            weight.assign(heads[weight.path])
    schedule = LinearWarmupDecay(1e-3, num_train_steps=30, num_warmup_steps=3)
    optimizer = AdamWeightDecay(model.learning_variables, schedule)
    objective = FinetuningObjective(task)
    step = tf.function(
        lambda batch: train_step(model, objective, optimizer, batch, seed=0)
    )
    batches = recorded.finetuning_batches(arrays)
    steps = [step(batches[number % 6]) for number in range(30)]
    # Twice the recorded noise, because both sides may be off by it.
    for ours, theirs, tolerance in [
        ("loss", "loss", 2.8e-5),
        ("gradient_norm", "global_norm", 3e-4),
        ("learning_rate", "lr", 1e-10),
    ]:
        np.testing.assert_allclose(
            [float(scalars[ours]) for scalars in steps],
            arrays[f"curve/{theirs}"],
            rtol=0,
            atol=tolerance,
            err_msg=ours,
        )


def test_frozen_it_stays_and_drops_nothing(path):
    encoder = HubEncoder(path, trainable=False)
    inputs = hub_modules.inputs(IDS)
    assert encoder.trainable_variables == []
    assert len(encoder.weights) == len(encoder.module.variables)
    one, other = (
        encoder(inputs, training=True)["pooled_output"] for _ in range(2)
    )
    np.testing.assert_array_equal(one, other)
    encoder.trainable = True
    assert encoder.trainable_variables
    one, other = (
        encoder(inputs, training=True)["pooled_output"] for _ in range(2)
    )
    assert np.abs(one - other).max() > 0.01


# Of Keras itself, with today's numpy.
@pytest.mark.filterwarnings("ignore:__array__ implementation")
def test_keras_saves_and_loads_what_it_learned(path, tmp_path):
    encoder = HubEncoder(path)
    model = model_on(encoder)
    for weight in encoder.weights:
        weight.assign(weight + 0.1)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    inputs = hub_modules.inputs(IDS)
    np.testing.assert_allclose(loaded(inputs), model(inputs), atol=1e-6)


@pytest.mark.slow
def test_every_replica_has_the_same_weights(path):
    strategy = distribution.get_strategy("mirrored")
    with strategy.scope():
        model = model_on(HubEncoder(path, name="encoder"))
        model.compile("sgd", "mse")
    alone = model_on(HubEncoder(path))
    alone.set_weights(model.get_weights())
    inputs = hub_modules.inputs(IDS, MASK)
    np.testing.assert_allclose(
        model.predict(inputs, verbose=0), alone(inputs), atol=1e-5
    )
    before = values(model.trainable_variables)
    model.fit(inputs, np.arange(4.0), batch_size=4, verbose=0)
    after = values(model.trainable_variables)
    moved = [n for n in before if not np.array_equal(before[n], after[n])]
    assert len(moved) > 30


def test_anothers_module_learns_too(tmp_path):
    path = hub_modules.write_another(tmp_path, hub_modules.VOCAB)
    encoder = HubEncoder(path)
    assert [w.path for w in encoder.weights] == [
        "table/w",
        "dense/w",
        "dense/w_1",
    ]
    before = values(encoder.weights)
    model = model_on(encoder)
    model.compile("sgd", "mse")
    model.fit(hub_modules.inputs(IDS), np.arange(4.0), verbose=0)
    after = values(encoder.weights)
    # The bias is not in what is pooled.
    assert [n for n in before if not np.array_equal(before[n], after[n])] == [
        "table/w",
        "dense/w",
    ]


def test_a_vocabulary_may_have_a_piece_twice(tmp_path):
    vocab = [*hub_modules.VOCAB, hub_modules.VOCAB[-1]]
    path = hub_modules.write_another(tmp_path, vocab)
    bert = HubBert(path)
    found = load_vocab(bert.encoder.text_info.vocab_file)
    bert.config.require_vocabulary(found, "vocab.txt")
    assert bert.config.vocab_size == len(vocab)


def test_a_module_of_2018_learns_too(tmp_path):
    path = hub_modules.write_old(tmp_path, hub_modules.VOCAB)
    encoder = HubEncoder(path)
    info = encoder.text_info
    assert info.do_lower_case
    with open(info.vocab_file) as file:
        assert file.read().split() == hub_modules.VOCAB
    [table] = encoder.trainable_variables
    assert table.path == "bert/table"
    outputs = encoder(hub_modules.inputs(IDS, MASK))
    np.testing.assert_allclose(
        outputs["sequence_output"][0], table.numpy()[IDS[0]], atol=1e-6
    )
    before = table.numpy()
    model = model_on(encoder)
    model.compile("sgd", "mse")
    model.fit(hub_modules.inputs(IDS), np.arange(4.0), verbose=0)
    assert not np.array_equal(before, table.numpy())


def test_what_is_no_text_encoder_is_refused(tmp_path):
    with pytest.raises(InputError, match="must be a TF Hub module"):
        HubEncoder(str(tmp_path))
    with pytest.raises(InputError, match=r"no-such.*there is no such folder"):
        HubEncoder(str(tmp_path / "no-such"))
    with pytest.raises(InputError, match=r"can be reached.*nothing://a"):
        HubEncoder("nothing://a")
    module = tf.train.Checkpoint(v=tf.Variable(1.0))
    tf.saved_model.save(module, str(tmp_path / "a"))
    with pytest.raises(InputError, match="must be a text encoder"):
        HubEncoder(str(tmp_path / "a"))
    module = tf.train.Checkpoint()
    module.__call__ = tf.function(
        lambda x: x, input_signature=[tf.TensorSpec([], tf.int32)]
    )
    tf.saved_model.save(module, str(tmp_path / "b"))
    with pytest.raises(InputError, match="must have variables to train"):
        HubEncoder(str(tmp_path / "b"))
