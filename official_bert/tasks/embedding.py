"""Sentence embeddings, trained on pairs, scored pairs or single texts."""

import dataclasses
import itertools
import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, Any, NamedTuple

import numpy as np

from official_bert.inputs import text_inputs
from official_bert.inputs.schemas import Feature, Schema, text_schema
from official_bert.io.json_files import Size
from official_bert.metrics import ranking, regression
from official_bert.runs import file_names
from official_bert.sources import embedding_settings
from official_bert.sources.heads import Head
from official_bert.tasks import task
from official_bert.tasks.predict_inputs import parse_text
from official_bert.tasks.sentence_vectors import nearest, normalize
from official_bert.tasks.text import key_of
from official_bert.tokenization import Tokenizer

_SCORE_METRICS = ("spearmanr", "pearson")
_MAIN_METRICS = {True: "spearmanr", False: "ndcg@10"}  # {has_scores: name}


def metric_names(sizes: Iterable[int], *, has_scores: bool) -> tuple[str, ...]:
    """Returns the names of the metrics of pairs with or without scores.

    `sizes` are those of truncated vectors.
    """
    names = _SCORE_METRICS if has_scores else ranking.METRICS
    main = _MAIN_METRICS[has_scores]
    return (*names, *(f"{main}_{size}" for size in sizes))


class EmbeddingExample(NamedTuple):
    """A text, a similar one, and texts that are not similar.

    Without pairs, both texts are the same: only their dropout masks differ
    (SimCSE, Gao et al., 2021). For prediction, there is a single text.
    """

    guid: str  # The example's name, such as "dev-12".
    texts: tuple[str, ...]  # Missing ones are empty.
    label: float | None = None  # The similarity of the first two texts.
    has_query: bool = True  # Otherwise, all texts are passages to search.


Examples = Sequence[EmbeddingExample]


@dataclasses.dataclass(frozen=True, kw_only=True)
class EmbeddingTask(task.Task):
    """Vectors of texts, whose cosine is the similarity of the texts.

    Attributes:
        pooling: How the vectors of tokens become one vector.
        embedding_size: D, the size of a dense layer on it; 0: there is none,
            and D is H.
        normalize: Whether vectors have length 1.
        prompts: {name: text} of the model; not used in training.
        similarity: The similarity of vectors in later searches.
        num_texts: C, the largest number of texts of an example.
        loss: A key of `modeling.losses.EMBEDDING_LOSSES`.
        matryoshka: Sizes of truncated vectors that are trained and evaluated.
        temperature: The divisor of cosines in the loss.
        score_range: The smallest and the largest score of the training data,
            which become 0 and 1.
        has_scores: Whether evaluated pairs have scores. Otherwise, the match
            of each text is searched among all texts.
        best_metric: The main metric; "": Spearman's correlation or nDCG.
    """

    pooling: Annotated[str, embedding_settings.TRAINED_POOLINGS] = "mean"
    embedding_size: Size = 0
    normalize: bool = True
    prompts: dict[str, str] = dataclasses.field(default_factory=dict)
    similarity: Annotated[str, embedding_settings.SIMILARITIES] = "cosine"
    num_texts: int = 1
    loss: str = "ranking"
    matryoshka: tuple[int, ...] = ()
    temperature: float = 0.05
    score_range: tuple[float, float] = (0.0, 1.0)
    has_scores: bool = False
    best_metric: str = ""

    kind = "embedding"
    head_kind = "encoder"
    serving = "embedding"
    finds_special_tokens = True
    input_ending = "txt"
    truncates = True
    not_saved = (
        *task.Task.not_saved,
        "num_texts",
        "loss",
        "matryoshka",
        "temperature",
        "score_range",
        "has_scores",
        "best_metric",
    )

    @property
    def main_metric(self) -> str:
        return self.best_metric or _MAIN_METRICS[self.has_scores]

    @property
    def head(self) -> Head:
        """The pooling, and a dense layer if there is one."""
        return Head(
            self.head_kind,
            0,
            self.loss,
            pooling=self.pooling,
            embedding_size=self.embedding_size,
            normalize=self.normalize,
            matryoshka=self.matryoshka,
            temperature=self.temperature,
        )

    def schema(self, max_seq_length: int) -> Schema:
        """Returns the features of C texts: tokens, hashes and the score."""
        return {
            **text_schema(max_seq_length, self.num_texts),
            "text_ids": Feature(self.num_texts),
            "label_ids": Feature(1, is_float=True),
        }

    def feature_rows(
        self, examples: Examples, tokenizer: Tokenizer, max_seq_length: int
    ) -> Iterator[task.ExampleFeature]:
        """Yields one feature per example, with a sequence per text."""
        texts = (text for example in examples for text in example.texts)
        singles = itertools.chain.from_iterable((text, "") for text in texts)
        rows = text_inputs.pair_features(tokenizer, singles, max_seq_length)
        low, high = self.score_range
        for number, example in enumerate(examples):
            own = itertools.islice(rows, len(example.texts))
            sequences = [features for features, _ in own]
            row: dict[str, Any] = sequences[0]
            if self.num_texts > 1:
                row = {k: [s[k] for s in sequences] for k in row}
            hashes = [_hash(text) for text in example.texts]
            score = ((example.label or 0.0) - low) / (high - low)
            labels = {"text_ids": hashes, "label_ids": [score]}
            yield task.ExampleFeature(number, row | labels)

    def answers(
        self, features: task.RowFeatures, logits: task.Logits
    ) -> list[Any]:
        """Returns the vectors of each example's texts, [C, D]."""
        return [
            vectors.reshape(self.num_texts, -1)[: len(example.texts)]
            for example, vectors in zip(features.examples, logits, strict=True)
        ]

    def metrics(self, examples: Examples, answers: Any) -> dict[str, Any]:
        """Returns the metrics, and the main one of truncated vectors."""
        found = self._metrics(examples, answers)
        name = _MAIN_METRICS["spearmanr" in found]
        for size in self.matryoshka:
            short = [vectors[:, :size] for vectors in answers]
            found[f"{name}_{size}"] = self._metrics(examples, short)[name]
        return found

    def _metrics(self, examples: Examples, answers: Any) -> dict[str, Any]:
        answers = [normalize(vectors) for vectors in answers]
        scores = [e.label for e in examples if e.label is not None]
        if not scores:
            return _search(examples, answers)
        found = regression.pearson_and_spearman(scores, _cosines(answers))
        del found["mean_squared_error"]  # Scores may have any range.
        return found

    def passages(self, texts: Iterable[str]) -> list[EmbeddingExample]:
        """Returns examples of different texts without queries.

        Texts of similar length are in one example, so that there is little
        padding.
        """
        ordered = sorted(dict.fromkeys(filter(None, texts)), key=len)
        starts = range(0, len(ordered), self.num_texts)
        parts = (ordered[start : start + self.num_texts] for start in starts)
        return [EmbeddingExample("", (*p,), has_query=False) for p in parts]

    def with_negatives(
        self,
        pairs: Examples,
        corpus: Iterable[str],
        passages: Examples,
        answers: Any,
        number: int,
    ) -> Iterator[Sequence[str]]:
        """Yields a header, and each pair with the nearest wrong texts.

        Wrong texts are matches and negatives of all pairs, and texts of the
        corpus, that differ from the query and its matches. `passages` are
        examples of all texts, and `answers` are their vectors.
        """
        found = {
            key_of(text): (text, vector)
            for example, vectors in zip(passages, answers, strict=True)
            for text, vector in zip(example.texts, vectors, strict=True)
        }
        right: dict[str, set[str]] = {}  # {query: itself and its matches}
        keys = dict.fromkeys(map(key_of, corpus))
        for pair in pairs:
            query, match, *negatives = map(key_of, pair.texts)
            right.setdefault(query, {query}).add(match)
            keys |= dict.fromkeys(filter(None, (match, *negatives)))
        documents = [*keys]
        indices, _ = nearest(
            np.stack([found[query][1] for query in right]),
            np.stack([found[document][1] for document in documents]),
            number + max(map(len, right.values())),
        )
        wrong = {}
        for (query, own), row in zip(right.items(), indices, strict=True):
            others = [documents[i] for i in row if documents[i] not in own]
            texts = [found[key][0] for key in others[:number]]
            wrong[query] = texts + [""] * (number - len(texts))
        names = [f"negative_{index + 1}" for index in range(number)]
        yield ["query", "positive", *names]
        for pair in pairs:
            yield [*pair.texts[:2], *wrong[key_of(pair.texts[0])]]

    def prediction_files(
        self, split: str, examples: Examples, answers: Any
    ) -> dict[str, str]:
        """Returns files with the cosine of each pair, one also with its id."""
        cosines = _cosines([normalize(vectors) for vectors in answers])
        lines = "".join(f"{cosine}\n" for cosine in cosines)
        table = self.data.predictions_file(split, examples, cosines)
        return {file_names.scores(split): lines} | table

    def parse(self, value: Any, where: str) -> EmbeddingExample:
        """Makes an example from a text, or from an object with `text`."""
        return EmbeddingExample(where, (parse_text(value, where),))

    def answer_to_json(self, example: Any, answer: Any) -> dict[str, Any]:
        """Returns the vector of the text."""
        return {"vector": answer[0].tolist()}


def _hash(text: str) -> int:
    """Returns a positive int32, the same for equal texts; 0 for none."""
    return zlib.crc32(key_of(text).encode()) % (2**31 - 1) + 1 if text else 0


def _cosines(answers: Sequence[np.ndarray]) -> list[float]:
    """Returns the cosines of the first two texts, from normalized vectors."""
    return [float(vectors[0] @ vectors[1]) for vectors in answers]


def _search(examples: Examples, answers: Any) -> dict[str, Any]:
    """Returns the metrics of a search of each match among all candidates.

    Candidates are the matches, and either the passages to search or, if there
    are none, the negatives. Equal first texts are one query, with several
    matches.
    """
    queries: dict[str, np.ndarray] = {}
    documents: dict[str, np.ndarray] = {}
    matches: dict[str, dict[str, None]] = {}
    searched = slice(1, None if examples[-1].has_query else 2)
    for example, vectors in zip(examples, answers, strict=True):
        texts = [key_of(text) for text in example.texts]
        if example.has_query:
            queries[texts[0]] = vectors[0]
            matches.setdefault(texts[0], {})[texts[1]] = None
            texts, vectors = texts[searched], vectors[searched]
        documents |= {t: v for t, v in zip(texts, vectors, strict=True) if t}
    index = {text: number for number, text in enumerate(documents)}
    ranks = ranking.ranks(
        np.stack([*queries.values()]),
        np.stack([*documents.values()]),
        [[index[text] for text in own] for own in matches.values()],
    )
    return ranking.ranking([*ranks]) | {"documents": len(documents)}
