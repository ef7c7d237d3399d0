"""Vectors of texts, for similarity and search."""

import itertools
import os
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from absl import logging

from official_bert.config import BertConfig
from official_bert.errors import InputError, require_count
from official_bert.inference import engines
from official_bert.inference.engines import Engine
from official_bert.inference.feature_extraction import text_rows
from official_bert.inputs import text_inputs
from official_bert.io import progress
from official_bert.options.model_source import EngineOptions
from official_bert.sources import pretrained
from official_bert.sources.embedding_settings import EmbeddingSettings
from official_bert.tasks.long_texts import warn_of_truncation
from official_bert.tasks.sentence_vectors import (
    SentencePooling,
    as_vectors,
    nearest,
    similarity,
)
from official_bert.tokenization import Tokenizer
from official_bert.tokenization.vocab import warn_if_unknown_ids

Vectors = npt.NDArray[np.float32]

# Texts of a chunk are tokenized together, and sorted by length.
_CHUNK = 4096


class SearchResult(NamedTuple):
    """The nearest vectors of each query, most similar first."""

    indices: npt.NDArray[np.int64]  # [N, k], of the vectors in the corpus.
    scores: Vectors  # [N, k], see `Embedder.similarity`.


class Embedder(engines.EngineUser):
    """Turns texts into vectors. Similar texts have similar vectors.

    ```
    name = "sentence-transformers/all-MiniLM-L6-v2"
    embedder = Embedder.from_pretrained(name)
    vectors = embedder(["The cat sleeps.", "Rates rose again."])
    embedder.search(["A kitten naps."], vectors, k=1).indices  # [[0]]
    ```

    Args:
        engine: Computes vectors of tokens, [B, S, H], or vectors of texts,
            [B, D], if the settings have `in_model`.
        tokenizer: The tokenizer of the model.
        settings: How tokens become a vector.
        config: The config of the model.

    Attributes:
        max_seq_length: Longer texts are truncated to this number of tokens. It
            may be changed, up to the number of positions of the model.
    """

    def __new__(cls, *args: Any, **_: Any) -> "Embedder":
        """Requires an engine, in place of the name of a model."""
        if args and isinstance(args[0], str | os.PathLike):
            raise TypeError(
                f"`engine` must be a function. Received: {args[0]!r}. For a "
                "model by name, use `from_pretrained(name)`."
            )
        return super().__new__(cls)

    def __init__(
        self,
        engine: Engine,
        tokenizer: Tokenizer,
        settings: EmbeddingSettings,
        config: BertConfig,
    ) -> None:
        self.tokenizer = tokenizer
        self.settings = settings
        self.max_seq_length = settings.length(config.max_position_embeddings)
        self._engine, self._config = engine, config
        # About truncated texts, and about unknown words.
        self._has_warned = self._has_warned_of_unknown = False
        self._pool = SentencePooling(settings, config.hidden_size)

    @classmethod
    def from_pretrained(
        cls,
        model: str | os.PathLike[str],
        *,
        engine: str = "auto",
        precision: str = "auto",
    ) -> "Embedder":
        """Loads a model of sentence-transformers, a run, or any other BERT.

        A run of `--task_type=embedding` may be exported for OpenVINO. Without
        the files of sentence-transformers, the vector of a text is the mean
        over its tokens, with a warning.

        Args:
            model: A name or a directory, like `--model`.
            engine: "tensorflow", "openvino" or "auto", like `--engine` of
                `extract_features.py`.
            precision: "float32", "bfloat16" or "auto", like `--precision`.

        Raises:
            InputError: A file is missing, damaged or not supported.
        """
        from official_bert.inference import engine_choice

        model_files = pretrained.find(model)
        settings = model_files.embedding
        if settings is None:
            settings = EmbeddingSettings()
            logging.warning(
                f"{model} has no modules.json of sentence-transformers with a "
                "Pooling: the vector of a text is the mean over its tokens. "
                "For search, use a model that was trained for it."
            )
        pretrained.download_weights(model, model_files.init_checkpoint)
        config = model_files.config
        token_engine, tokenizer = engine_choice.load_embedder(
            model_files,
            settings,
            [config.num_hidden_layers - 1],
            EngineOptions(engine=engine, precision=precision),
        )
        return cls(token_engine, tokenizer, settings, config)

    @property
    def size(self) -> int:
        """D, the number of dimensions of the vectors."""
        return self._pool.size

    def __call__(
        self,
        texts: Sequence[str],
        *,
        batch_size: int = 32,
        prompt_name: str | None = None,
    ) -> Vectors:
        """Returns the vectors of N texts, float32 [N, D].

        Args:
            texts: The texts, in any order of lengths.
            batch_size: Sequences per step.
            prompt_name: The name of a prompt of the model, which is written
                before each text; "": none. Default: the model's default, if it
                has one.

        Raises:
            InputError: `texts` is a single text or contains something else, or
                the model has no such prompt.
        """
        length = self.max_seq_length
        require_count("batch_size", batch_size)
        text_inputs.require_length(length)
        self._config.require_length(length)
        pairs = text_inputs.as_pairs(texts)
        rows = text_rows(
            pairs, self.tokenizer, length, self.settings, prompt_name
        )
        vectors = np.empty((len(pairs), self.size), np.float32)
        start = num_truncated = 0
        with progress.bar(
            description="Embedding",
            total=len(pairs),
            unit=" texts",
            disable=len(pairs) <= _CHUNK,
        ) as bar:
            while chunk := list(itertools.islice(rows, _CHUNK)):
                features, are_truncated = zip(*chunk, strict=True)
                if not self._has_warned_of_unknown:
                    self._has_warned_of_unknown = warn_if_unknown_ids(
                        [row["input_ids"] for row in features],
                        self.tokenizer.vocab["[UNK]"],
                        "the tokens",
                    )
                vectors[start : start + len(chunk)] = engines.run_rows(
                    self._engine, features, batch_size, self._finish
                )
                start += len(chunk)
                num_truncated += sum(are_truncated)
                bar.update(len(chunk))
        if num_truncated and not self._has_warned:
            self._has_warned = True
            warn_of_truncation(f"{num_truncated} of {len(pairs)}", length, "")
        return vectors

    def _finish(self, outputs: Sequence[np.ndarray], batch: Any) -> np.ndarray:
        [vectors] = engines.require_finite(outputs)
        return self._pool(vectors, batch["input_mask"])

    def similarity(self, a: np.ndarray, b: np.ndarray) -> Vectors:
        """Returns the similarities [N, M] of vectors [N, D] and [M, D].

        The model's settings determine the kind: cosine by default, a dot
        product, or a negative distance. A single vector [D] is the same as
        [1, D]. Raises `InputError` for other arrays, NaN and infinity.
        """
        a = as_vectors("a", a)
        b = as_vectors("b", b, a.shape[1])
        return similarity(a, b, self.settings.similarity)

    def search(
        self,
        queries: Sequence[str],
        corpus_vectors: np.ndarray,
        k: int = 10,
        *,
        prompt_name: str | None = None,
    ) -> SearchResult:
        """Finds the `k` most similar vectors of a corpus for each query.

        The search is exact.

        Args:
            queries: N texts.
            corpus_vectors: float [M, D], computed with this embedder.
            k: The number of results for each query. If M is smaller, there are
                M results.
            prompt_name: As in calls of the embedder. Default: "query", if the
                model has this prompt.

        Raises:
            InputError: The queries are not texts, the vectors do not have the
                shape [M, D] with M > 0, or `k` is not positive.
        """
        if getattr(queries, "dtype", None) in (np.float16, np.float32, float):
            raise InputError(
                "`queries` must be texts, which `search` turns into vectors. "
                "For vectors, use `similarity`."
            )
        if prompt_name is None and "query" in self.settings.prompts:
            prompt_name = "query"
        corpus = as_vectors("corpus_vectors", corpus_vectors, self.size)
        require_count("len(corpus_vectors)", len(corpus))
        require_count("k", k)
        vectors = self(queries, prompt_name=prompt_name)
        kind = self.settings.similarity
        return SearchResult(*nearest(vectors, corpus, k, kind))
