"""How much each word contributes to an answer.

Both methods replace the tokens of words by [MASK], but keep [CLS] and [SEP]:

* occlusion: the score of a word is the output minus the output without it.
* integrated_gradients (Sundararajan et al., 2017, "Axiomatic Attribution for
  Deep Networks"): the gradient of the output with respect to the embeddings,
  averaged over the straight line from the text without any word to the text,
  times the difference of the embeddings. The scores of all words add up to the
  output minus the output without any word.
"""

import dataclasses
import itertools
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from absl import logging

from official_bert.errors import InputError
from official_bert.inference import keras_engine
from official_bert.inference.engines import Engine
from official_bert.inference.masked_lm import MASK
from official_bert.inputs import padding
from official_bert.inputs.schemas import TEXT_INPUTS
from official_bert.options.predict import EXPLANATIONS
from official_bert.tasks.task import Features, FinetunedModel, Output, Task
from official_bert.tokenization import Tokenizer

# The number of gradients is doubled until the sum of the scores is exact up to
# this share of it, or up to rounding.
_TOLERANCE, _ROUNDING = 0.02, 1e-4
_FIRST_STEPS, _MAX_STEPS = 16, 512

Batch = dict[str, np.ndarray]


@dataclasses.dataclass(frozen=True)
class Explainer:
    """Explains outputs of a model.

    `gradients` is from `keras_engine.make_gradients`; None for occlusion.
    """

    tokenizer: Tokenizer
    max_seq_length: int
    batch_size: int
    engine: Engine
    gradients: Engine | None

    def __call__(
        self, features: Features, outputs: Iterable[Output]
    ) -> list[list[dict[str, Any]]]:
        """Returns the explained features of each example, as JSON types."""
        explained: list[list[dict[str, Any]]] = [[] for _ in features.examples]
        in_order = sorted(outputs, key=lambda output: output.feature)
        for index, group in itertools.groupby(in_order, lambda o: o.feature):
            own = list(group)
            length = padding.padded_length(
                features.lengths[index], self.max_seq_length, "bucket"
            )
            batch = features.batch([index], length, 1)
            if (choice := own[0].choice) is not None:
                for name in TEXT_INPUTS:
                    batch[name] = batch[name][:, [choice]]
            explained[own[0].example].append(self._explain(batch, own))
        return explained

    def _explain(self, batch: Batch, outputs: Sequence[Output]) -> Any:
        """Returns the words of a feature, and their scores for its outputs."""
        words, positions = self._find_words(batch)
        masked = positions
        if self.gradients:
            masked = [list(itertools.chain.from_iterable(positions))]
        rows = {n: v.repeat(1 + len(masked), 0) for n, v in batch.items()}
        for ids, own in zip(rows["input_ids"][1:], masked, strict=True):
            ids.reshape(-1)[own] = self.tokenizer.vocab[MASK]
        logits = self._run(self.engine, rows).astype(np.float64)
        explained = []
        for output in outputs:
            weights = output.weights(logits.shape[1:])
            products = np.tensordot(logits, weights, weights.ndim)
            value, *others = (products + output.offset).tolist()
            shown: dict[str, Any] = {"output": output.name, "value": value}
            if output.position is not None:
                shown["word"] = next(
                    n for n, p in enumerate(positions) if output.position in p
                )
            scores = [value - other for other in others]
            if self.gradients:
                shown["baseline"] = others[0]
                tokens, shown["steps"] = self._integrate(rows, weights, *scores)
                scores = [float(tokens[own].sum()) for own in positions]
            shown["scores"] = [round(score, 6) for score in scores]
            explained.append(shown)
        return {"words": words, "outputs": explained}

    def _find_words(self, batch: Batch) -> tuple[list[str], list[list[int]]]:
        """Returns words, and the positions of their tokens to replace."""
        is_token = batch["input_mask"] > 0
        ids = batch["input_ids"][is_token].tolist()
        ends = np.flatnonzero(np.diff(batch["segment_ids"][is_token]))
        kept = {0, *ends.tolist(), len(ids) - 1}  # [CLS] and each [SEP].
        words, positions = list[str](), list[list[int]]()
        tokens = self.tokenizer.convert_ids_to_tokens(ids)
        for position, token in enumerate(tokens):
            if token.startswith("##") and position - 1 not in kept:
                words[-1] += token.removeprefix("##")
                positions[-1].append(position)
            else:
                words.append(token)
                positions.append([] if position in kept else [position])
        return words, positions

    def _integrate(
        self, rows: Batch, weights: np.ndarray, fall: float
    ) -> tuple[np.ndarray, int]:
        """Returns the scores of tokens, float64 [S], and the number of steps.

        `rows` are the text and the baseline. The scores add up to `fall`, by
        Gauss-Legendre quadrature.
        """
        assert self.gradients
        steps = _FIRST_STEPS
        while True:
            nodes, shares = np.polynomial.legendre.leggauss(steps)
            points = {n: v[:1].repeat(steps, 0) for n, v in rows.items()}
            points |= {
                "baseline_ids": rows["input_ids"][1:].repeat(steps, 0),
                "fractions": ((1 + nodes) / 2).astype(np.float32),
                "logit_weights": np.stack([weights] * steps, dtype=np.float32),
            }
            scores = shares / 2 @ self._run(self.gradients, points)
            error = abs(scores.sum() - fall)
            if error <= max(_TOLERANCE * abs(fall), _ROUNDING):
                return scores, steps
            if steps == _MAX_STEPS:
                logging.warning(
                    f"The scores of an answer add up to {scores.sum():.3f}, "
                    f"not {fall:.3f}, even with {steps} gradients. Use "
                    "--explain=occlusion for this text"
                )
                return scores, steps
            steps *= 2

    def _run(self, engine: Engine, rows: Batch) -> np.ndarray:
        """Returns the first output of an engine for all rows."""
        batches = (
            {n: v[i : i + self.batch_size] for n, v in rows.items()}
            for i in range(0, len(rows["input_ids"]), self.batch_size)
        )
        return np.concatenate([engine(batch)[0] for batch in batches])


def make(
    method: str, finetuned: FinetunedModel, engine: Engine, batch_size: int
) -> Explainer:
    """Returns an explainer; raises `InputError` if a model has none.

    `engine` computes the model's logits.
    """
    if method not in EXPLANATIONS:
        names = " or ".join(EXPLANATIONS)
        raise InputError(f"`explain` must be {names}. Received: {method!r}.")
    if type(finetuned.task).outputs is Task.outputs:
        raise InputError(
            f"--explain does not support a model for {finetuned.task.kind}. "
            "Omit the flag."
        )
    tokenizer, gradients = finetuned.tokenizer, None
    if MASK not in tokenizer.vocab:
        raise InputError(
            f"--explain replaces words by {MASK}, which the vocabulary of this "
            "model lacks. Omit the flag."
        )
    if method == "integrated_gradients":
        bert = getattr(finetuned.model, "bert", None)
        is_fixed = finetuned.task.pooling_head.freezes_bert
        if is_fixed or not hasattr(bert, "embeddings"):
            raise InputError(
                f"--explain={method} needs gradients. A TF Hub module, a model "
                "for OpenVINO, and a model with --feature_layers have none. "
                "Use --explain=occlusion."
            )
        gradients = keras_engine.make_gradients(finetuned.model)
    length = finetuned.max_seq_length
    return Explainer(tokenizer, length, batch_size, engine, gradients)
