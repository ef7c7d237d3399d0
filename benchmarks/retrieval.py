r"""Search in SQuAD: the paragraph of each question, among all paragraphs.

  python -m benchmarks.retrieval pairs SQUAD/train-v1.1.json pairs.csv
  python run_classifier.py --train_file=pairs.csv --text_column=query \
    --text_b_column=document --group_column=query --output_dir=RUN_DIR ...
  python -m benchmarks.retrieval measure SQUAD/dev-v1.1.json \
    --embedder=MODEL --reranker=RUN_DIR

`pairs` writes the training data of a reranker: each question with its paragraph
and some of the paragraphs that BM25 ranks first. With `--embedder`, it writes
the training data of an embedder: a row for each question, with the same
paragraphs. `--words=N` cuts the question's own paragraph to N words around the
answer. `--questions=0` means all questions.

`measure` prints a table; `--max_seq_length` sets the length of the embedder.
With `--words=N`, the score of a paragraph is the highest score of its windows
of N words, three quarters of which are in the next window. The reranker orders
the best 50 paragraphs of BM25 by a weighted sum of both scores; choose the
weight by a table of the training set. Both commands need `pip install bm25s`;
the reranker also needs `openvino`.
"""

import argparse
import csv
import json
import random
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import bm25s
import numpy as np
import numpy.typing as npt

from official_bert import Embedder
from official_bert.inference.predictor import Predictor
from official_bert.metrics.ranking import ranking

_CANDIDATES = 50  # Paragraphs of BM25 that a reranker orders.
_WEIGHTS = (0.1, 0.2, 0.3, 0.5, 1.0, np.inf)  # Of the reranker.
_HARDEST = 20  # Of these paragraphs of BM25, some become negatives.
_METRICS = ("recall@1", "recall@10", "mrr@10", "ndcg@10")

Scores = npt.NDArray[np.float32]


class Question(NamedTuple):
    """A question of SQuAD."""

    text: str
    paragraph: int  # The index of its paragraph.
    answer_start: int  # In the paragraph.


def read(path: str, num_questions: int) -> tuple[list[Question], list[str]]:
    """Returns evenly spaced questions, and all paragraphs."""
    with open(path, encoding="utf-8") as file:
        articles = json.load(file)["data"]
    paragraphs = [p for article in articles for p in article["paragraphs"]]
    questions = [
        Question(
            question["question"].strip(),
            number,
            question["answers"][0]["answer_start"],
        )
        for number, paragraph in enumerate(paragraphs)
        for question in paragraph["qas"]
    ]
    step = max(1, len(questions) // (num_questions or len(questions)))
    return questions[::step], [p["context"] for p in paragraphs]


def words_around(text: str, start: int, number: int) -> str:
    """Returns a number of words of a text, around a position; 0: all."""
    before, after = text[:start].split(), text[start:].split()
    words = before + after
    last_first = len(words) - number
    first = max(0, min(len(before) - number // 2, last_first))
    return " ".join(words[first : first + number]) if number else text


def windows(text: str, number: int) -> list[str]:
    """Returns parts of a number of words, three quarters in common; 0: all."""
    words, step = text.split(), max(1, number // 4)
    if not number or len(words) <= number:
        return [text]
    starts = range(0, len(words) - number + step, step)
    return [" ".join(words[start : start + number]) for start in starts]


def embed(
    model: Embedder,
    questions: Sequence[str],
    paragraphs: Sequence[str],
    num_words: int,
) -> Scores:
    """Returns the similarity of each question to each paragraph's windows."""
    parts = [windows(paragraph, num_words) for paragraph in paragraphs]
    starts = np.cumsum([0, *map(len, parts[:-1])])
    vectors = model([text for texts in parts for text in texts])
    scores = model.similarity(model(questions), vectors)
    return np.maximum.reduceat(scores, starts, axis=1)


def bm25(
    questions: Sequence[str], paragraphs: Sequence[str]
) -> Iterator[Scores]:
    """Yields the scores of all paragraphs for each question."""
    index = bm25s.BM25()
    options = {"stopwords": "en", "show_progress": False}
    index.index(bm25s.tokenize(paragraphs, **options), show_progress=False)
    tokens = bm25s.tokenize(questions, return_ids=False, **options)
    for words in tokens:
        known = [word for word in words if word in index.vocab_dict]
        no_scores = np.zeros(len(paragraphs), np.float32)
        yield index.get_scores(known) if known else no_scores


def write_pairs(
    path: str,
    output: str,
    num_questions: int,
    num_negatives: int,
    num_words: int,
    *,
    is_for_embedder: bool,
) -> None:
    questions, paragraphs = read(path, num_questions)
    choice = random.Random(12345)
    found: Iterable[Scores] = [np.zeros(0, np.float32)] * len(questions)
    if num_negatives:
        found = bm25([question.text for question in questions], paragraphs)
    with open(output, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        header = ["query", "document", "label"]
        if is_for_embedder:
            names = [f"negative_{n + 1}" for n in range(num_negatives)]
            header = ["query", "positive", *names]
        writer.writerow(header)
        for (text, own, start), scores in zip(questions, found, strict=True):
            hardest = np.argsort(-scores, kind="stable")[:_HARDEST].tolist()
            others = [index for index in hardest if index != own]
            negatives = choice.sample(others, num_negatives)
            texts = [
                words_around(paragraphs[own], start, num_words),
                *(paragraphs[index] for index in negatives),
            ]
            rows: list[list[Any]] = [[text, *texts]]
            if not is_for_embedder:
                rows = [[text, t, int(not n)] for n, t in enumerate(texts)]
            writer.writerows(rows)


def rerank(
    predictor: Predictor,
    questions: Sequence[str],
    paragraphs: Sequence[str],
    first: Scores,
) -> dict[float, Scores]:
    """Returns {weight: BM25's scores plus the weighted scores of the reranker}.

    Both are standardized over the paragraphs of a question. With an infinite
    weight, only the scores of the reranker count.
    """
    combined = {
        weight: np.full(first.shape, -np.inf, np.float32) for weight in _WEIGHTS
    }
    for row, question in enumerate(questions):
        indices = np.argsort(-first[row], kind="stable")[:_CANDIDATES]
        found = predictor.rank(question, [paragraphs[i] for i in indices])
        order = indices[[result["index"] for result in found]]
        scores = np.array([result["score"] for result in found])
        # The log-odds of probabilities, which are near 0 and 1.
        scores = np.clip(scores, 1e-6, 1 - 1e-6)
        odds, own = (
            (part - part.mean()) / (part.std() or 1)
            for part in (np.log(scores / (1 - scores)), first[row, order])
        )
        for weight, found_scores in combined.items():
            is_alone = np.isinf(weight)
            total = odds if is_alone else own + weight * odds
            found_scores[row, order] = total
    return combined


def measure(
    path: str,
    num_questions: int,
    embedder: str,
    max_seq_length: int,
    num_words: int,
    reranker: str,
) -> None:
    found_questions, paragraphs = read(path, num_questions)
    questions = [question.text for question in found_questions]
    numbers = [question.paragraph for question in found_questions]
    print(f"{len(questions):,} questions, {len(paragraphs):,} paragraphs\n")
    print(f"{'':24}{'seconds':>10}" + "".join(f"{m:>11}" for m in _METRICS))

    def print_row(name: str, scores: Scores, seconds: float) -> None:
        own = scores[np.arange(len(numbers)), numbers][:, None]
        ranks = 1 + (scores > own).sum(axis=1)
        ranks = np.where(np.isinf(own[:, 0]), len(paragraphs), ranks)
        found = ranking([*ranks[:, None]])
        cells = "".join(f"{100 * found[m]:11.1f}" for m in _METRICS)
        print(f"{name:24}{seconds:10.1f}{cells}", flush=True)

    first, seconds = _timed(lambda: np.stack([*bm25(questions, paragraphs)]))
    print_row("BM25", first, seconds)
    if embedder:
        model = Embedder.from_pretrained(embedder)
        model.max_seq_length = max_seq_length or model.max_seq_length
        scores, seconds = _timed(
            lambda: embed(model, questions, paragraphs, num_words)
        )
        print_row("embedder", scores, seconds)
    if reranker:
        predictor = Predictor.from_dir(reranker, engine="openvino")
        combined, seconds = _timed(
            lambda: rerank(predictor, questions, paragraphs, first)
        )
        for weight, scores in combined.items():
            name = f"BM25 + {weight} reranker"
            if np.isinf(weight):
                name = "reranker alone"
            print_row(name, scores, seconds)


def _timed(function: Callable[[], Any]) -> tuple[Any, float]:
    start = time.perf_counter()
    return function(), time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser()
    commands = parser.add_subparsers(dest="command", required=True)
    pairs, table = map(commands.add_parser, ("pairs", "measure"))
    pairs.add_argument("squad")
    pairs.add_argument("output")
    pairs.add_argument("--questions", type=int, default=6000)
    pairs.add_argument("--negatives", type=int, default=3)
    pairs.add_argument("--words", type=int, default=0)
    pairs.add_argument("--embedder", action="store_true")
    table.add_argument("squad")
    table.add_argument("--questions", type=int, default=1000)
    table.add_argument("--embedder", default="")
    table.add_argument("--max_seq_length", type=int, default=0)
    table.add_argument("--words", type=int, default=0)
    table.add_argument("--reranker", default="")
    args = parser.parse_args()
    if args.command == "pairs":
        write_pairs(
            args.squad,
            args.output,
            args.questions,
            args.negatives,
            args.words,
            is_for_embedder=args.embedder,
        )
    else:
        measure(
            args.squad,
            args.questions,
            args.embedder,
            args.max_seq_length,
            args.words,
            args.reranker,
        )


if __name__ == "__main__":
    main()
