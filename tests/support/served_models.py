"""Models of every kind with random weights, and questions to them."""

from typing import Any, NamedTuple

import numpy as np

from official_bert.config import BertConfig
from official_bert.inference.predictor import Predictor
from official_bert.modeling.pooling_head import PoolingHead
from official_bert.tasks.choice import ChoiceTask
from official_bert.tasks.documents import LongDocuments
from official_bert.tasks.squad.squad_decoding import DecodingOptions
from official_bert.tasks.squad.squad_task import SquadTask
from official_bert.tasks.tagging import TaggingTask
from official_bert.tasks.task import FinetunedModel
from official_bert.tasks.text import TextTask
from official_bert.tokenization import Tokenizer
from support import SPECIAL, recorded, tiny, write_vocab

_LETTERS = "abcdefghijklmnopqrstuvwxyz"
TOKENS = [
    *SPECIAL,
    *(*_LETTERS, *(f"##{letter}" for letter in _LETTERS)),
    *("the", "smith", "steve", "cou", "##te", "ca", "北", "京", "5", "$"),
    *(".", ",", "'", "(", ")", "-", "!", "?", "1895", "##19", "straße"),
]
# Words whose answers `predict.py` cuts out as a served model does.
PLAIN_WORDS = [
    *("the", "Steve", "Smith's", "(1895-1895).", "Ça", "coûte", "5$,"),
    *("北京", "É!", "o'-'o", "a-a", "Straße", "smith" * 39),
]
ODD_WORDS = ["한국", "A-a", "x\u00a0y", "\u200b", "##te", "[SEP]", "ΑΣ", "😀"]
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


class Case(NamedTuple):
    """A task and inputs of `serving_default`."""

    task: Any
    inputs: dict[str, list[Any]]

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The inputs by item."""
        values = zip(*self.inputs.values(), strict=True)
        return [dict(zip(self.inputs, row, strict=True)) for row in values]

    @property
    def items(self) -> list[Any]:
        """The inputs as `predict.py` takes them."""
        if isinstance(self.task, ChoiceTask):
            return self.rows
        if isinstance(self.task, TaggingTask):
            return self.inputs["text"]
        return [[*row.values()] for row in self.rows]


A, B = texts(12, 1), [*texts(11, 2, longest=8)[::-1], "the Smith's"]
# Choices with the same tokens would have equal scores, except for rounding.
CHOICES = [[b, a, f"{b} the {a}"] for a, b in zip(A, B, strict=True)]


def _text(task_type, labels, *long_documents, **others):
    task = TextTask(
        task_type=task_type,
        labels=labels,
        long_documents=LongDocuments(*long_documents),
        **others,
    )
    return Case(task, {"text_a": A, "text_b": B})


def _tagging(*labels, **others):
    return Case(TaggingTask(labels=labels, **others), {"text": A})


def _squad(*decoding, is_short=False, pad_to="max"):
    task = SquadTask(
        doc_stride=5,
        max_query_length=7,
        decoding=DecodingOptions(*decoding),
        pad_to=pad_to,
    )
    questions = ["", *texts(11, 3, longest=6)]
    contexts = texts(12, 4, longest=60, words=PLAIN_WORDS)
    if is_short:
        contexts = texts(40, 5, longest=2, words=PLAIN_WORDS)
        contexts.append(" ".join(PLAIN_WORDS[:9]))
        questions = ["who?"] * 41
    return Case(task, {"question": questions, "context": contexts})


CASES = {
    "classification": _text("classification", ("no", "yes", "ja")),
    "multilabel": _text("multilabel", ("no", "yes"), "windows", 0, "mean"),
    "regression": _text(
        *("regression", (), "windows", 3, "max"),
        target_mean=7.0,
        target_deviation=2.5,
    ),
    "choice": Case(
        ChoiceTask(num_choices=3, long_documents=LongDocuments("head_tail")),
        {"context": A, "choices": CHOICES},
    ),
    "tagging": _tagging("O", "B-X", "I-X", "B-Y"),
    "bilstm": _tagging("O", pooling_head=PoolingHead("weighted_sum_all", 6)),
    "squad": _squad(20, 30),
    # Padding is often among the best starts, or never.
    "squad_max": _squad(5, 9, is_short=True),
    "squad_bucket": _squad(5, 9, is_short=True, pad_to="bucket"),
    "squad_2": _squad(20, 30, True, 0.0),
    "squad_2_few": _squad(5, 4, True, -2.0),
}
_TOLERANCES = {
    "probability": {"atol": 1e-5},
    "n_best_probabilities": {"atol": 1e-5},
    "null_odds": {"rtol": 1e-4, "atol": 1e-4},
}


def load(name: str, directory: Any) -> FinetunedModel:
    """Returns a model with random weights, as if it had been fine-tuned."""
    vocab_file = write_vocab(directory, TOKENS)
    config = BertConfig.from_dict({**tiny.CONFIG, "vocab_size": len(TOKENS)})
    task = CASES[name].task
    model = recorded.assign(task.build_model(config), 7)
    tokenizer = Tokenizer(vocab_file)
    return FinetunedModel(task, model, tokenizer, vocab_file, MAX_SEQ_LENGTH)


def predict(finetuned: FinetunedModel, items: list[Any]) -> list[Any]:
    """Returns the answers of `predict.py`, one item after the other."""
    predictor = Predictor(finetuned)
    return [predictor([item])[0] for item in items]


def check(
    case: Case, served: dict[str, list[Any]], finetuned: FinetunedModel
) -> None:
    """Compares the outputs of a served model, as lists, with predictions."""
    for number, answer in enumerate(predict(finetuned, case.items)):
        row = {name: values[number] for name, values in served.items()}
        expected = _as_served(answer)
        assert row.keys() - expected.keys() <= {"start", "end", "score"}
        for name, value in expected.items():
            found = row[name]
            if isinstance(value, list):
                assert {*found[len(value) :]} <= {"", 0.0}  # Padding.
                found = found[: len(value)]
            if np.array(value).dtype.kind == "f":
                tolerance = _TOLERANCES.get(name, {"atol": 2e-6})
                np.testing.assert_allclose(found, value, **tolerance)
            else:
                assert found == value
        if row.get("start", -1) >= 0:
            text = case.inputs["context"][number][row["start"] : row["end"]]
            assert " ".join(text.split()) == row["answer"]


def _as_served(answer):
    """Returns an answer of `predict.py` under the names of outputs."""
    others = ("entities", "offsets")
    answer = {name: answer[name] for name in answer if name not in others}
    if "n_best" in answer:
        best = answer.pop("n_best")
        answer["n_best_answers"] = [b["text"] for b in best]
        answer["n_best_probabilities"] = [b["probability"] for b in best]
    if isinstance(answer.get("probabilities"), dict):
        answer["classes"] = [*answer["probabilities"]]
        answer["probabilities"] = [*answer["probabilities"].values()]
    return answer
