"""BERT's vectors as features for another model: section 5.3 of the paper."""

import dataclasses
from typing import Any

import keras
from keras import ops

from official_bert.modeling.encoder import BertOutput


@dataclasses.dataclass(frozen=True)
class PoolingHead:
    """What stands between BERT and a task's linear layer.

    Attributes:
        feature_layers: Which of BERT's vectors are read: embeddings,
            second_to_last, last, weighted_sum_last_4, concat_last_4 or
            weighted_sum_all. BERT is then frozen. none: those that the task
            asks for, and BERT is trained.
        bilstm_size: N of a BiLSTM that reads them; 0 for none.
    """

    feature_layers: str = "none"
    bilstm_size: int = 0

    @property
    def freezes_bert(self) -> bool:
        """Whether BERT stays as it is."""
        return self.feature_layers != "none"

    def to_json(self) -> dict[str, Any]:
        """Returns what a `task.json` has of it: nothing, if nothing is so."""
        return (
            {} if self == NO_POOLING_HEAD else {"top": dataclasses.asdict(self)}
        )

    @classmethod
    def from_json(cls, task: dict[str, Any]) -> "PoolingHead":
        """Makes it of a `task.json`."""
        return cls(**task.get("top", {}))


NO_POOLING_HEAD = PoolingHead()


class FeatureMix(keras.layers.Layer):
    """Makes one vector for every piece of the outputs of BERT's layers.

    A weighted sum is that of ELMo (Peters et al., 2018, equation 1)::

        scale * sum_j softmax(layer_weights)_j layer_j

    whose weights are learned, at first all equal and the scale 1. The last four
    layers are all that there are, if there are fewer.

    Args:
        feature_layers: As in `PoolingHead`, but not none.

    Call arguments:
        output: Of BERT.

    Returns:
        float Tensor [B, S, H], or [B, S, 4 H] for concat_last_4.
    """

    def __init__(
        self, feature_layers: str, name: str = "features", **kwargs: Any
    ) -> None:
        super().__init__(name=name, **kwargs)
        self.feature_layers = feature_layers

    def build(self, num_hidden_layers: int) -> None:
        """Makes the weights, if there are any."""
        if not self.feature_layers.startswith("weighted_sum"):
            return
        is_all = self.feature_layers == "weighted_sum_all"
        num_summed = num_hidden_layers if is_all else min(4, num_hidden_layers)
        self.layer_weights = self.add_weight(
            name="layer_weights", shape=(num_summed,), initializer="zeros"
        )
        self.scale = self.add_weight(
            name="scale", shape=(1,), initializer="ones"
        )

    def call(self, output: BertOutput) -> Any:
        """See the class."""
        layers = output.encoder_outputs
        if self.feature_layers == "embeddings":
            return output.embedding_output
        if self.feature_layers == "last":
            return layers[-1]
        if self.feature_layers == "second_to_last":
            # Below the only layer there are the embeddings.
            return [output.embedding_output, *layers][-2]
        if self.feature_layers == "concat_last_4":
            return ops.concatenate(layers[-4:], axis=-1)
        # Not `ops.softmax`, which warns where there is one layer only.
        shares = ops.exp(self.layer_weights - ops.max(self.layer_weights))
        shares = shares / ops.sum(shares)
        layers = layers[-shares.shape[0] :]
        total = sum(shares[j] * layer for j, layer in enumerate(layers))
        return self.scale * total


def means(x: Any, input_mask: Any) -> Any:
    """Returns the mean of the vectors [B, S, D] where the mask is 1: [B, D]."""
    mask = ops.cast(ops.expand_dims(input_mask, -1), x.dtype)
    count = ops.maximum(ops.sum(mask, axis=1), 1)
    return ops.sum(x * mask, axis=1) / count
