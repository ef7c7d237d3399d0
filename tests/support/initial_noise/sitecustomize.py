"""Changes the initial weights of every training a little, in this process.

Python imports this module when it starts, if `PYTHONPATH` has its directory.
The training that starts from weights w starts from w (1 + 1e-6 n) instead, with
standard normal n of the seed `INITIAL_NOISE`. The same training has the same n
every time. Resumed runs and loaded models are not changed.
"""

import functools
import os

import keras
import numpy as np

from official_bert.training import loop


def _add_noise(weights):
    random = np.random.default_rng(int(os.environ["INITIAL_NOISE"]))
    for weight in weights:
        noise = 1 + 1e-6 * random.standard_normal(weight.shape)
        weight.assign(np.float32(weight.numpy() * noise))


def _train(train, trainer, batches, start, *others):
    if start.step == 0:
        _add_noise(trainer.weights.values())
    train(trainer, batches, start, *others)


def _fit(fit, model, *arguments, **named):
    _add_noise(model.trainable_variables)
    return fit(model, *arguments, **named)


loop.train = functools.partial(_train, loop.train)
keras.Model.fit = functools.partialmethod(_fit, keras.Model.fit)
