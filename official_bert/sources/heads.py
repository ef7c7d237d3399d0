"""The heads of models: the layers above the encoder, and their weights.

A task names its head by a `Head`, from which `modeling` builds layers and
losses. Checkpoints and conversions tell heads apart by the rows of `KINDS`.
"""

import dataclasses
from typing import Annotated, Any, NamedTuple

from official_bert.io import json_files
from official_bert.io.json_files import Size

MASKED_LM = "cls/predictions/"
_NEXT_SENTENCE = "cls/seq_relationship/"
_SPANS = "cls/squad/"
# The output layer of a task; classifiers have no scope before the names.
OUTPUT_LAYER = ("output_weights", "output_bias")
_CLASSIFIER = "output_"

# All scopes of heads, the prefixes of the names of their weights.
SCOPES = (MASKED_LM, _NEXT_SENTENCE, _SPANS, _CLASSIFIER)

# Regular expression of the weights that masked LM does not depend on.
OF_PAIRS = f"^bert/pooler/|^{_NEXT_SENTENCE}"

# The dense layer of a model of sentence embeddings.
EMBEDDING_LAYER = "embedding_dense"

# The scopes of the weights of pooling heads.
POOLING_SCOPES = ("bilstm/", "features/")

# Regular expression of the weights of a task's head and its pooling head.
TASK_HEAD = (
    "^(cls/squad/)?output_(weights|bias)$"
    f"|^({'|'.join(POOLING_SCOPES)}|{EMBEDDING_LAYER}/)"
)


class HeadKind(NamedTuple):
    """A kind of head: a row of `KINDS`.

    Attributes:
        name: The value of --head.
        suffix: The end of the name of the transformers class with this head.
        scopes: The prefixes of the names of its weights.
        has_pooler: Whether it uses BERT's pooled output.
        task: `kind` in the task.json of a transformers model with this head.
            There is none for multiple choice, because transformers does not
            store the number of choices.
        dropout: The rate before the output layer of a task.
    """

    name: str
    suffix: str
    scopes: tuple[str, ...] = ()
    has_pooler: bool = False
    task: str | None = None
    dropout: float = 0.1

    @property
    def architecture(self) -> str:
        """The transformers class with this head."""
        return f"BertFor{self.suffix}" if self.scopes else "BertModel"

    @property
    def output_scope(self) -> str:
        """The prefix of `output_weights` and `output_bias`."""
        return _SPANS if _SPANS in self.scopes else ""

    def output_shapes(
        self, num_outputs: int, size: int
    ) -> dict[str, tuple[int, ...]]:
        """Returns {name: shape} of the output layer on vectors [size]."""
        shapes = ((num_outputs, size), (num_outputs,))
        names = (f"{self.output_scope}{name}" for name in OUTPUT_LAYER)
        return dict(zip(names, shapes, strict=True))


_SENTENCE, _TOKEN = "sequence_classification", "token_classification"
_QUESTION = "question_answering"

# {name: the kind of head}.
KINDS = {
    row[0]: HeadKind(*row)
    for row in (
        ("encoder", ""),
        ("pretraining", "PreTraining", (MASKED_LM, _NEXT_SENTENCE), True),
        ("masked_lm", "MaskedLM", (MASKED_LM,)),
        ("next_sentence", "NextSentencePrediction", (_NEXT_SENTENCE,), True),
        (_SENTENCE, "SequenceClassification", (_CLASSIFIER,), True, "text"),
        ("multiple_choice", "MultipleChoice", (_CLASSIFIER,), True),
        (_TOKEN, "TokenClassification", (_CLASSIFIER,), False, "tagging"),
        (_QUESTION, "QuestionAnswering", (_SPANS,), False, "squad", 0.0),
    )
}

# Heads whose weights have the same names in a TF1 checkpoint.
CLASSIFIERS = tuple(k.name for k in KINDS.values() if _CLASSIFIER in k.scopes)


def is_finetuned(name: str) -> bool:
    """Whether a weight of this name belongs to the output layer of a task."""
    return name.startswith((_CLASSIFIER, _SPANS))


FEATURE_LAYERS = (
    "none",
    "embeddings",
    "second_to_last",
    "last",
    "weighted_sum_last_4",
    "concat_last_4",
    "weighted_sum_all",
)


@dataclasses.dataclass(frozen=True)
class PoolingHead:
    """How BERT's outputs are turned into the input of the output layer.

    In `task.json`, it is the entry `top`, as in the first versions. The entry
    is missing for the default, which has no layers.

    Attributes:
        feature_layers: The layer outputs to use as features of a frozen BERT:
            embeddings, second_to_last, last, weighted_sum_last_4,
            concat_last_4 or weighted_sum_all. none: BERT is trained.
        bilstm_size: Units per direction of a two-layer BiLSTM on top; 0: none.
    """

    feature_layers: Annotated[str, FEATURE_LAYERS] = "none"
    bilstm_size: Size = 0

    @property
    def freezes_bert(self) -> bool:
        """Whether BERT's weights are not trained."""
        return self.feature_layers != "none"

    def to_json(self) -> dict[str, Any]:
        """Returns the entries of `task.json`: none for the default."""
        has_layers = self != NO_POOLING_HEAD
        return {POOLING_KEY: dataclasses.asdict(self)} if has_layers else {}

    @classmethod
    def from_json(cls, task: dict[str, Any]) -> "PoolingHead":
        """Returns the pooling head that a `task.json` describes."""
        return json_files.decode(task.get(POOLING_KEY, {}), cls, POOLING_KEY)


POOLING_KEY = "top"
NO_POOLING_HEAD = PoolingHead()


@dataclasses.dataclass(frozen=True)
class Head:
    """The head of a task's model.

    Attributes:
        kind: A key of `KINDS`.
        num_outputs: C, the number of outputs for each text, choice or token.
        loss: A key of `modeling.losses.LOSSES` or, for sentence embeddings, of
            `EMBEDDING_LOSSES`.
        pooling_head: The layers between BERT and the output layer.
        pooling: For sentence embeddings: mean or cls.
        embedding_size: For sentence embeddings: the size of a dense layer on
            the pooled vector; 0: there is none.
        normalize: For sentence embeddings: whether vectors have length 1.
        matryoshka: For sentence embeddings: sizes of truncated vectors, whose
            losses are added.
        temperature: For sentence embeddings: the divisor of cosines in losses.
    """

    kind: str
    num_outputs: int
    loss: str
    pooling_head: PoolingHead = NO_POOLING_HEAD
    pooling: str = "mean"
    embedding_size: int = 0
    normalize: bool = True
    matryoshka: tuple[int, ...] = ()
    temperature: float = 0.05

    @property
    def ids_shape(self) -> tuple[int, ...]:
        """[B, S], or [B, C, S] in multiple choice, where -1 is any size."""
        return (-1,) * (3 if self.kind == "multiple_choice" else 2)

    @property
    def logits_shape(self) -> tuple[int, ...]:
        """The shape of the logits; -1: any size, such as B."""
        if self.kind == "multiple_choice":
            return (-1, -1)
        sequence = (-1,) if self.kind in (_TOKEN, _QUESTION) else ()
        return (-1, *sequence, self.num_outputs or -1)

    @property
    def reads_padding(self) -> bool:
        """Whether the loss depends on padding, as it does in the original."""
        return self.kind == _QUESTION
