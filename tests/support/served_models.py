"""Models of every kind with drawn weights, and what is asked of them."""

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
PIECES = [
    *("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"),
    *(*_LETTERS, *(f"##{letter}" for letter in _LETTERS)),
    *("the", "smith", "steve", "cou", "##te", "ca", "北", "京", "5", "$"),
    *(".", ",", "'", "(", ")", "-", "!", "?", "1895", "##19", "straße"),
]
WORDS = [
    *("the", "Steve", "Smith's", "(1895-1943).", "Ça", "coûte", "5$,"),
    *("北京", "É!", "한국", "o'-'o", "a-a", "A-a", "x\u00a0y", "\u200b"),
    *("##te", "[SEP]", "ΑΣ", "\U0001f600", "Straße", "smith" * 45),
]
MAX_SEQ_LENGTH = 24


def texts(number, seed, longest=30):
    """Returns texts, among them an empty one and some longer than is read."""
    random = np.random.RandomState(seed)
    spaces = [" ", " ", "  ", "\t", "\u202f", "\n", "\u3000"]
    found = ["", " \t "]
    while len(found) < number:
        length = random.randint(1, longest)
        words = random.choice(WORDS, length)
        found.append("".join(w + random.choice(spaces) for w in words))
    return found


def load(task: Any, folder: Any) -> FinetunedModel:
    """Returns a model with drawn weights, as if it had been trained."""
    path = folder / "vocab.txt"
    path.write_text("\n".join(PIECES) + "\n", encoding="utf-8")
    config = BertConfig.from_dict({**tiny.CONFIG, "vocab_size": len(PIECES)})
    model = task.build_model(config)
    recorded.set_weights(model.trainable_variables, 7)
    tokenizer = BatchTokenizer(str(path))
    return FinetunedModel(task, model, tokenizer, str(path), MAX_SEQ_LENGTH)


def expected(trained: FinetunedModel, items: list[Any]) -> list[dict[str, Any]]:
    """Returns what `predict.py` answers, one item after the other."""
    asked = Predictor(
        trained.task,
        trained.model,
        trained.tokenizer,
        max_seq_length=trained.max_seq_length,
    )
    return [asked([item])[0] for item in items]


class Case(NamedTuple):
    """A task, and the same asked in two ways: served and predicted."""

    task: Any
    inputs: dict[str, list[Any]]
    items: list[Any]


A, B = texts(12, 1), [*texts(11, 2, longest=8)[::-1], "the Smith's"]
# Without two of the same pieces: those have one score, but for rounding.
CHOICES = [[b, a, f"{b} the {a}"] for a, b in zip(A, B, strict=True)]
QUESTIONS = ["", *texts(11, 3, longest=6)]
CONTEXTS = texts(12, 4, longest=60)
PAIRS = [list(pair) for pair in zip(A, B, strict=True)]


def _text(mode, *how, **changes):
    task = TextTask(
        **{
            "task_type": "classification",
            "labels": ("no", "yes", "ja"),
            "long_documents": LongDocuments(mode, *how),
            **changes,
        }
    )
    return Case(task, {"text_a": A, "text_b": B}, PAIRS)


def _squad(*decoding, questions=QUESTIONS, contexts=CONTEXTS, pad_to="max"):
    task = SquadTask(
        doc_stride=5,
        max_query_length=7,
        decoding=DecodingOptions(*decoding),
        pad_to=pad_to,
    )
    items = zip(questions, contexts, strict=True)
    inputs = {"question": questions, "context": contexts}
    return Case(task, inputs, [list(item) for item in items])


CASES = {
    "truncate_tail": _text("truncate_tail"),
    "head_tail": _text("head_tail"),
    "windows": _text("windows", 0, "mean"),
    "windows_max": _text("windows", 3, "max"),
    "multilabel": _text("truncate_tail", task_type="multilabel"),
    "regression": _text("truncate_tail", task_type="regression", labels=()),
    "choice": Case(
        ChoiceTask(num_choices=3),
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
            labels=("O", "B-X"), pooling_head=PoolingHead("weighted_sum_all", 6)
        ),
        {"text": A},
        A,
    ),
    "squad": _squad(20, 30),
    "squad_short": _squad(3, 1),
    # Where padding is often among the best starts, and where it never is.
    **{
        f"squad_{pad_to}": _squad(
            *(5, 9),
            questions=["who?"] * 41,
            contexts=[*texts(40, 5, longest=2), " ".join(WORDS[:9])],
            pad_to=pad_to,
        )
        for pad_to in ("max", "bucket")
    },
    "squad_2": _squad(20, 30, True, 0.0),
    "squad_2_few": _squad(5, 4, True, -2.0),
}


def check(case: Case, found: dict[str, list[Any]], answers: list[Any]) -> None:
    """Compares what was served, as lists, with what was predicted."""
    assert answers
    for number, answer in enumerate(answers):
        row = {name: values[number] for name, values in found.items()}
        _CHECKS[type(case.task)](case.inputs, number, row, answer)


def _check_text(inputs, number, row, answer):
    if "score" in answer:
        np.testing.assert_allclose(row["score"], answer["score"], atol=2e-6)
        return
    assert row["classes"] == [*answer["probabilities"]]
    np.testing.assert_allclose(
        row["probabilities"], [*answer["probabilities"].values()], atol=2e-6
    )
    if "label" in answer:
        assert row["label"] == answer["label"]
    else:
        assert [label for label in row["labels"] if label] == answer["labels"]


def _check_choice(inputs, number, row, answer):
    assert row["choice"] == answer["choice"]
    assert row["text"] == answer["text"]
    np.testing.assert_allclose(
        row["probabilities"], answer["probabilities"], atol=2e-6
    )


def _check_tagging(inputs, number, row, answer):
    for name in ("tokens", "tags"):
        assert [value for value in row[name] if value] == answer[name]


def _check_squad(inputs, number, row, answer):
    best = [candidate["text"] for candidate in answer["n_best"]]
    assert row["answer"] == answer["answer"]
    assert row["n_best_answers"][: len(best)] == best
    assert set(row["n_best_answers"][len(best) :]) <= {""}
    np.testing.assert_allclose(
        row["n_best_probabilities"][: len(best)],
        [candidate["probability"] for candidate in answer["n_best"]],
        atol=1e-5,
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
        there = inputs["context"][number][row["start"] : row["end"]]
        spaces = str.maketrans(dict.fromkeys("\t\r\n\u202f", " "))
        words = filter(None, there.translate(spaces).split(" "))
        assert " ".join(words) == row["answer"]


_CHECKS = {
    TextTask: _check_text,
    ChoiceTask: _check_choice,
    TaggingTask: _check_tagging,
    SquadTask: _check_squad,
}
