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
import tf_keras

from official_bert.training import loop


def _add_noise(weights):
    random = np.random.default_rng(int(os.environ["INITIAL_NOISE"]))
    for weight in weights:
        noise = 1 + 1e-6 * random.standard_normal(weight.shape)
        weight.assign(np.float32(weight.numpy() * noise))


def _train(train, trainer, batches, start, *others):
    if start.step == 0:
        _add_noise(trainer.trained)
    train(trainer, batches, start, *others)


def _fit(model, fit, *arguments, **named):
    _add_noise(model.trainable_variables)
    return fit(model, *arguments, **named)


loop.train = functools.partial(_train, loop.train)
for library in (keras, tf_keras):
    fit = functools.partialmethod(_fit, library.Model.fit)
    library.Model.fit = fit
