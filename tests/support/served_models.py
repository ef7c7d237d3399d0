"""Models of every kind with random weights, and questions to them."""

from typing import Any, NamedTuple

import numpy as np

from official_bert.config import BertConfig
from official_bert.inference.predictor import Predictor
from official_bert.inference.trained_models import FinetunedModel
from official_bert.modeling.pooling_head import PoolingHead
from official_bert.tasks.choice import ChoiceTask
from official_bert.tasks.documents import LongDocuments
from official_bert.tasks.squad.squad_decoding import DecodingOptions
from official_bert.tasks.squad.squad_task import SquadTask
from official_bert.tasks.tagging import TaggingTask
from official_bert.tasks.text import TextTask
from official_bert.tokenization import BatchTokenizer
from support import recorded, tiny

_LETTERS = "abcdefghijklmnopqrstuvwxyz"
TOKENS = [
    *("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"),
    *(*_LETTERS, *(f"##{letter}" for letter in _LETTERS)),
    *("the", "smith", "steve", "cou", "##te", "ca", "北", "京", "5", "$"),
    *(".", ",", "'", "(", ")", "-", "!", "?", "1895", "##19", "straße"),
]
# Words whose answers `predict.py` cuts out as a served model does.
PLAIN_WORDS = [
    *("the", "Steve", "Smith's", "(1895-1895).", "Ça", "coûte", "5$,"),
    *("北京", "É!", "o'-'o", "a-a", "Straße", "smith" * 39),
]
ODD_WORDS = [
    "한국",
    "A-a",
    "x\u00a0y",
    "\u200b",
    "##te",
    "[SEP]",
    "ΑΣ",
    "\U0001f600",
]
MAX_SEQ_LENGTH = 24


def texts(number, seed, longest=30, words=(*PLAIN_WORDS, *ODD_WORDS)):
    """Returns random texts: empty ones, and some that are too long."""
    random = np.random.RandomState(seed)
    spaces = [" ", " ", "  ", "\t", "\u202f", "\n"]
    found = ["", " \t "]
    while len(found) < number:
        chosen = random.choice(words, random.randint(1, longest))
        found.append("".join(w + random.choice(spaces) for w in chosen))
    return found


def load(task: Any, directory: Any) -> FinetunedModel:
    """Returns a model with random weights, as if it had been fine-tuned."""
    path = directory / "vocab.txt"
    path.write_text("\n".join(TOKENS) + "\n", encoding="utf-8")
    config = BertConfig.from_dict({**tiny.CONFIG, "vocab_size": len(TOKENS)})
    model = task.build_model(config)
    recorded.set_weights(model.trainable_variables, 7)
    tokenizer = BatchTokenizer(str(path))
    return FinetunedModel(task, model, tokenizer, str(path), MAX_SEQ_LENGTH)


def predict(
    finetuned: FinetunedModel, items: list[Any]
) -> list[dict[str, Any]]:
    """Returns the answers of `predict.py`, one item after the other."""
    predictor = Predictor(
        finetuned.task,
        finetuned.model,
        finetuned.tokenizer,
        max_seq_length=finetuned.max_seq_length,
    )
    return [predictor([item])[0] for item in items]


class Case(NamedTuple):
    """A task, inputs of `serving_default`, and the same for `predict.py`."""

    task: Any
    inputs: dict[str, list[Any]]
    items: list[Any]


A, B = texts(12, 1), [*texts(11, 2, longest=8)[::-1], "the Smith's"]
# No two choices of the same tokens: their scores are equal but for rounding.
CHOICES = [[b, a, f"{b} the {a}"] for a, b in zip(A, B, strict=True)]


def _text(task_type, labels, *long_documents):
    task = TextTask(
        task_type=task_type,
        labels=labels,
        long_documents=LongDocuments(*long_documents),
    )
    pairs = [list(pair) for pair in zip(A, B, strict=True)]
    return Case(task, {"text_a": A, "text_b": B}, pairs)


def _squad(*decoding, questions=None, contexts=None, pad_to="max"):
    task = SquadTask(
        doc_stride=5,
        max_query_length=7,
        decoding=DecodingOptions(*decoding),
        pad_to=pad_to,
    )
    contexts = contexts or texts(12, 4, longest=60, words=PLAIN_WORDS)
    questions = questions or ["", *texts(11, 3, longest=6)]
    items = [list(item) for item in zip(questions, contexts, strict=True)]
    return Case(task, {"question": questions, "context": contexts}, items)


_SHORT = {
    "questions": ["who?"] * 41,
    "contexts": [
        *texts(40, 5, longest=2, words=PLAIN_WORDS),
        " ".join(PLAIN_WORDS[:9]),
    ],
}
CASES = {
    "classification": _text("classification", ("no", "yes", "ja")),
    "multilabel": _text("multilabel", ("no", "yes"), "windows", 0, "mean"),
    "regression": _text("regression", (), "windows", 3, "max"),
    "choice": Case(
        ChoiceTask(num_choices=3, long_documents=LongDocuments("head_tail")),
        {"context": A, "choices": CHOICES},
        [
            {"context": context, "choices": choices}
            for context, choices in zip(A, CHOICES, strict=True)
        ],
    ),
    "tagging": Case(
        TaggingTask(labels=("O", "B-X", "I-X", "B-Y")), {"text": A}, A
    ),
    "bilstm": Case(
        TaggingTask(
            labels=("O", "B-X"),
            pooling_head=PoolingHead("weighted_sum_all", 6),
        ),
        {"text": A},
        A,
    ),
    "squad": _squad(20, 30),
    # Padding is often among the best starts, or never.
    "squad_max": _squad(5, 9, **_SHORT, pad_to="max"),
    "squad_bucket": _squad(5, 9, **_SHORT, pad_to="bucket"),
    "squad_2": _squad(20, 30, True, 0.0),
    "squad_2_few": _squad(5, 4, True, -2.0),
}


def check(case: Case, served: dict[str, list[Any]], answers: list[Any]) -> None:
    """Compares the outputs of a served model, as lists, with predictions."""
    assert answers
    for number, answer in enumerate(answers):
        row = {name: values[number] for name, values in served.items()}
        if isinstance(case.task, SquadTask):
            _check_squad(case.inputs["context"][number], row, answer)
        elif isinstance(case.task, TaggingTask):
            for name in ("tokens", "tags"):
                assert [value for value in row[name] if value] == answer[name]
        else:
            _check_text(row, answer)


def _check_text(row, answer):
    for name in answer.keys() & {"label", "choice", "text"}:
        assert row[name] == answer[name]
    if "labels" in answer:
        assert [label for label in row["labels"] if label] == answer["labels"]
    if "score" in answer:
        np.testing.assert_allclose(row["score"], answer["score"], atol=2e-6)
        return
    probabilities = answer["probabilities"]
    if isinstance(probabilities, dict):
        assert row["classes"] == [*probabilities]
        probabilities = [*probabilities.values()]
    np.testing.assert_allclose(row["probabilities"], probabilities, atol=2e-6)


def _check_squad(context, row, answer):
    best = [candidate["text"] for candidate in answer["n_best"]]
    assert row["answer"] == answer["answer"]
    assert row["n_best_answers"][: len(best)] == best
    assert set(row["n_best_answers"][len(best) :]) <= {""}
    probabilities = [c["probability"] for c in answer["n_best"]]
    np.testing.assert_allclose(
        row["n_best_probabilities"][: len(best)], probabilities, atol=1e-5
    )
    np.testing.assert_allclose(
        row["probability"], answer["probability"], atol=1e-5
    )
    assert ("null_odds" in row) == ("null_odds" in answer)
    if "null_odds" in answer:
        np.testing.assert_allclose(
            row["null_odds"], answer["null_odds"], rtol=1e-4, atol=1e-4
        )
    if row["start"] >= 0:
        text = context[row["start"] : row["end"]]
        assert " ".join(text.split()) == row["answer"]
