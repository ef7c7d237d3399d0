"""Computes the vector of a text from the vectors of its tokens."""

from collections.abc import Callable
from typing import Any

import numpy as np

from official_bert.errors import InputError, quoted
from official_bert.sources.embedding_settings import Dense, EmbeddingSettings
from official_bert.tasks import probabilities

# The number of similarities in memory in a search.
_BLOCK = 2**24

_Pooling = Callable[[np.ndarray, np.ndarray], np.ndarray]


def _sum(vectors: np.ndarray, weights: np.ndarray) -> np.ndarray:
    return (weights[:, np.newaxis] @ vectors)[:, 0]


def _mean(vectors: np.ndarray, weights: np.ndarray) -> np.ndarray:
    return _sum(vectors, weights) / weights.sum(1, keepdims=True)


# {name in sentence-transformers: returns [B, H] for the vectors [B, S, H] and
# the mask of the tokens, float32 [B, S]}. Every text has tokens.
POOLINGS: dict[str, _Pooling] = {
    "cls": lambda vectors, _: vectors[:, 0],
    "max": lambda vectors, mask: np.where(
        mask[..., np.newaxis] > 0, vectors, -np.inf
    ).max(1),
    "mean": _mean,
    "mean_sqrt_len_tokens": lambda vectors, mask: (
        _sum(vectors, mask) / np.sqrt(mask.sum(1, keepdims=True))
    ),
    "weightedmean": lambda vectors, mask: _mean(vectors, mask.cumsum(1) * mask),
    "lasttoken": lambda vectors, mask: vectors[
        np.arange(len(mask)), mask.sum(1).astype(int) - 1
    ],
}

_ACTIVATIONS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "Identity": lambda x: x,
    "Tanh": np.tanh,
    "ReLU": lambda x: np.maximum(x, 0),
    "Sigmoid": probabilities.sigmoid,
}


class SentencePooling:
    """Turns vectors of tokens into vectors of texts, by the model's settings.

    If the model itself computes vectors of texts, they are returned. Raises
    `InputError` if a dense layer does not fit the hidden size.
    """

    def __init__(self, settings: EmbeddingSettings, hidden_size: int) -> None:
        self._settings = settings
        self._layers = []
        size = len(settings.pooling) * hidden_size
        for layer in settings.dense:
            if not settings.in_model:
                self._layers.append(load_dense(layer, size))
            size = layer.out_features
        self.size = min(size, settings.truncate_dim or size)

    def __call__(self, vectors: np.ndarray, mask: np.ndarray) -> np.ndarray:
        """Returns float32 [B, D] for float32 [B, S, H] and int32 [B, S]."""
        if self._settings.in_model:
            return vectors
        weights = mask.astype(np.float32)
        pooled = np.concatenate(
            [POOLINGS[n](vectors, weights) for n in self._settings.pooling], 1
        )
        for kernel, bias, activation in self._layers:
            pooled = activation(pooled @ kernel + bias)
        if self._settings.normalize:
            pooled = normalize(pooled)
        return pooled[:, : self.size].astype(np.float32)


def load_dense(
    layer: Dense, size: int
) -> tuple[np.ndarray, np.ndarray, Callable[[np.ndarray], np.ndarray]]:
    """Returns the kernel [size, D], the bias [D] or [1], and the activation.

    Raises `InputError` if the layer is not for vectors of this size.
    """
    arrays = dense_arrays(layer)
    expected = (layer.out_features, size)
    kernel = arrays.get("linear.weight", np.zeros(0))
    if kernel.shape != expected:
        raise InputError(
            f"The `linear.weight` of a Dense module must have the shape "
            f"{list(expected)}. Received: {list(kernel.shape)}."
        )
    bias = arrays.get("linear.bias", np.zeros(1, np.float32))
    return kernel.T, bias, _ACTIVATIONS[layer.activation]


def dense_arrays(layer: Dense) -> dict[str, np.ndarray]:
    """Returns the stored arrays of a layer, of any float type, as float32.

    Raises `InputError` if they are damaged.
    """
    # The server's image lacks this package.
    from safetensors import SafetensorError, deserialize

    try:
        tensors = deserialize(layer.weights)
    except SafetensorError as error:
        raise InputError(
            "The weights of a Dense module must be a complete safetensors "
            f"file: {error}. Copy or save it again."
        ) from error
    arrays = {}
    for name, stored in tensors:
        dtype = stored["dtype"].lower().replace("f", "float")  # F32, BF16
        if dtype == "bfloat16":
            import ml_dtypes  # noqa: F401 - Registers bfloat16 with NumPy.
        values = np.frombuffer(stored["data"], dtype).astype(np.float32)
        arrays[name] = values.reshape(stored["shape"])
    return arrays


def as_vectors(name: str, vectors: Any, size: int = 0) -> np.ndarray:
    """Returns an argument as float32 [M, D]; a single vector [D] is [1, D].

    Raises `InputError` for other things than finite numbers, or if D is not
    `size`; 0: any.
    """
    try:
        array = np.atleast_2d(np.asarray(vectors, np.float32))
    except (TypeError, ValueError):
        received = quoted(vectors)
    else:
        received = f"the shape {list(array.shape)}"
        if array.ndim == 2 and 0 < array.shape[1] == (size or array.shape[1]):
            if np.isfinite(array).all():
                return array
            received = "NaN or infinity"
    raise InputError(
        f"`{name}` must be an array [M, {size or 'D'}] of finite numbers, such "
        f"as np.stack(column). Received: {received}."
    )


def normalize(vectors: np.ndarray) -> np.ndarray:
    """Divides vectors by their Euclidean norms; a zero vector stays zero."""
    norms = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return vectors / np.maximum(norms, 1e-12)


def similarity(a: np.ndarray, b: np.ndarray, kind: str) -> np.ndarray:
    """Returns the similarities [N, M] of vectors [N, D] and [M, D].

    Distances are negative, so that larger values are always more similar.
    """
    if kind == "cosine":
        a, b = normalize(a), normalize(b)
    if kind in ("cosine", "dot"):
        return np.asarray(a @ b.T, np.float32)
    order = 2 if kind == "euclidean" else 1
    rows = [np.linalg.norm(b - row, order, axis=1) for row in a]
    return -np.reshape(rows, (len(a), len(b)))


def largest_components(vectors: np.ndarray, size: int) -> np.ndarray:
    """Returns the principal components [D, `size`] of vectors [N, D].

    Vectors are not centered, so `vectors @ components` has the dot products
    that are nearest to those of the vectors (Eckart and Young, 1936).
    """
    products = vectors.T.astype(np.float64) @ vectors
    components = np.linalg.eigh(products)[1][:, ::-1][:, :size]
    # Signs are arbitrary, but must be the same on all hosts.
    largest = np.abs(components).argmax(axis=0)
    signs = np.sign(components[largest, np.arange(size)])
    return np.asarray(components * signs, np.float32)


def nearest(
    queries: np.ndarray, corpus: np.ndarray, k: int, kind: str = "cosine"
) -> tuple[np.ndarray, np.ndarray]:
    """Returns the `k` most similar vectors of a corpus for each query.

    Returns their indices, int64 [N, k], most similar first, and similarities,
    float32 [N, k]; see `similarity`. Equal ones keep the order of the corpus.
    If the corpus [M, D] has fewer than `k` vectors, there are M results.
    """
    if kind == "cosine":  # Normalized once, not for every block.
        queries, corpus, kind = normalize(queries), normalize(corpus), "dot"
    num_found = min(k, len(corpus))
    indices = np.empty((len(queries), num_found), np.int64)
    scores = np.empty((len(queries), num_found), np.float32)
    rows_of_block = max(1, _BLOCK // len(corpus))
    for start in range(0, len(queries), rows_of_block):
        block = queries[start : start + rows_of_block]
        for row, values in enumerate(similarity(block, corpus, kind), start):
            best = probabilities.largest(values, num_found)
            indices[row], scores[row] = best, values[best]
    return indices, scores
