"""The user's own texts for sentence embeddings; see `own_data`.

Tables have pairs of similar texts, pairs with scores, or single texts.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from official_bert.errors import InputError
from official_bert.io import files, tables
from official_bert.io.rows import Row
from official_bert.options import RunClassifier
from official_bert.options.embedding import parse_sizes
from official_bert.sources.embedding_settings import EmbeddingSettings
from official_bert.tasks import embedding_columns, text_checks
from official_bert.tasks.embedding import (
    EmbeddingExample,
    EmbeddingTask,
    Examples,
    metric_names,
)
from official_bert.tasks.embedding_columns import EmbeddingColumns
from official_bert.tasks.own_texts import OwnTexts
from official_bert.tasks.text import key_of


def make(options: RunClassifier, rows: Sequence[Row] = ()) -> EmbeddingTask:
    """Returns the task of the user's own pairs or texts.

    `rows` are those of the first file in use, if it was read already.
    """
    data = OwnPairs((), options=options, first_rows=rows)
    columns = {s: data.columns(s) for s in options.used_splits if s != "corpus"}
    evaluated = [split for split in ("dev", "test") if split in columns]
    for split in evaluated:
        if columns[split].match is None:
            raise InputError(
                f"{data.path('train' if options.holds_out else split)}: single "
                "texts cannot be evaluated. As --dev_file and --test_file, "
                "give pairs of texts; to only train, add --dev_share=0."
            )
    loss, scores = "ranking", [0.0, 1.0]
    if options.symmetric_loss:
        loss = "symmetric_ranking"
    if options.do_train:
        data = data.with_training_file()
        if options.teacher:
            loss = "teacher"
        elif columns["train"].match is None:
            _require_dropout(options)
        elif column := columns["train"].score:
            message = "is for pairs without scores. Omit it."
            options.require_unset(["symmetric_loss"], message)
            loss = options.score_loss
            scores = [example.label for example in data.training]
            _require_different(scores, column, data.path("train"))
    settings = _settings(options)
    sizes = parse_sizes(options.matryoshka)
    if sizes and options.bert_config_file:
        hidden_size = options.model_files.config.hidden_size
        size = settings["embedding_size"] or hidden_size
        if max(sizes) >= size:
            message = f"must be below the size of the vectors, {size}."
            raise options.error("matryoshka", message)
    has_scores = bool(evaluated and columns[evaluated[0]].score)
    _check_search(options, columns, sizes, has_scores=has_scores)
    if options.do_train:
        _require_others(options, loss, data.training)
    return EmbeddingTask(
        **settings,
        matryoshka=sizes,
        num_texts=max(2, *(len(found.texts) for found in columns.values())),
        loss=loss,
        temperature=options.temperature,
        score_range=(min(scores), max(scores)),
        has_scores=has_scores,
        best_metric=options.best_metric,
        data=data,
    )


def _require_different(scores: Sequence[Any], column: str, path: str) -> None:
    """Raises `InputError` if scores can neither be learned nor predicted."""
    if len({*scores}) == 1:
        raise InputError(
            f"{path}: column {column!r} must have different scores. Without "
            "scores, remove it."
        )


def _require_others(
    options: RunClassifier, loss: str, training: Examples
) -> None:
    """Raises `InputError` if there are no other pairs to compare with."""
    if loss in ("teacher", "cosine"):
        return
    if loss != "cosent" and any(any(e.texts[2:]) for e in training):
        return  # There are negatives.
    if options.train_batch_size == 1:
        message = "compares no pair with another one. Use larger batches."
        raise options.error("train_batch_size", message)
    firsts, matches = ({key_of(e.texts[n]) for e in training} for n in (0, 1))
    if loss != "cosent" and min(len(firsts), len(matches)) == 1:
        raise InputError(
            f"{options.train_file}: must have different texts and different "
            "matches, because they are compared with each other. Received: the "
            "same text or match in all rows."
        )


def _check_search(
    options: RunClassifier,
    columns: Mapping[str, EmbeddingColumns],
    sizes: Sequence[int],
    *,
    has_scores: bool,
) -> None:
    """Raises `InputError` if flags of the search do not fit the columns."""
    names = metric_names(sizes, has_scores=has_scores)
    if options.best_metric and options.best_metric not in names:
        message = f"must be a metric of this evaluation: {', '.join(names)}."
        raise options.error("best_metric", message)
    scored = {split for split, found in columns.items() if found.score}
    if options.corpus_file and scored & {"dev", "test"}:
        message = "is for evaluations of pairs without scores. Omit it."
        raise options.error("corpus_file", message)
    if options.mine_negatives:
        found = columns["train"]
        if found.score or not found.match:
            message = "needs pairs without scores in --train_file. Omit it."
            raise options.error("mine_negatives", message)


def _require_dropout(options: RunClassifier) -> None:
    if not options.bert_config_file:
        return  # A TF Hub module has its own.
    config = options.model_files.config
    if not (config.hidden_dropout_prob or config.attention_probs_dropout_prob):
        raise InputError(
            f"{options.bert_config_file}: single texts can be trained on only "
            "with dropout. Copy the file, set `hidden_dropout_prob` to 0.1, "
            "and pass the copy as --bert_config_file."
        )


def _settings(options: RunClassifier) -> dict[str, Any]:
    """Returns the fields of the task that are settings of the model.

    Flags replace the settings of the model. Raises `InputError` if the model
    has settings that cannot be trained.
    """
    settings = EmbeddingSettings(normalize=True)
    if trained := options.trained_task:
        settings = EmbeddingSettings.of_task(trained)
    elif options.init_checkpoint:
        found = options.model_files.embedding or settings
        if found.can_be_trained:
            settings = found
        elif options.pooling == "auto":
            raise InputError(
                f"{options.init_checkpoint}: only mean or cls pooling can be "
                "trained, with at most one dense layer with Tanh, and without "
                "a default prompt and other settings. To train only the BERT "
                "of the model, add --pooling=mean or --pooling=cls."
            )
    [pooling] = settings.pooling
    size = sum(layer.out_features for layer in settings.dense)  # Of one or none
    return {
        "pooling": pooling if options.pooling == "auto" else options.pooling,
        "embedding_size": (
            size if options.embedding_size is None else options.embedding_size
        ),
        "normalize": settings.normalize,
        "prompts": {**settings.prompts},
        "similarity": settings.similarity,
    }


@dataclasses.dataclass(frozen=True)
class OwnPairs(OwnTexts):
    """Pairs of similar texts, pairs with scores, or single texts."""

    input_ending = ""  # `predict.py` reads no tables of texts to embed.

    def columns(self, split: str) -> EmbeddingColumns:
        """Reads the file of a split, and returns its columns."""
        if split == "dev" and self.options.holds_out:
            split = "train"
        rows = [*self.rows(split)]
        found = embedding_columns.find(self.options, rows)
        if split == "dev" and found.score:
            numbers = [row.number(found.score) for row in rows]
            _require_different(numbers, found.score, self.path(split))
        return found

    def read(self, split: str) -> Sequence[Any]:
        if split == "corpus":
            rows = tables.read(self.paths(split), tables.LINES)
            return [row.text("text") for row in rows]
        options, examples = self.options, self.read_part(split)
        if examples is None:
            examples = self.examples([*self.rows(split)], split)
            text_checks.warn_of_training_texts(self, split, examples)
        mines = split == "train" and not (options.do_train or options.dev_file)
        if mines and files.exists(self.path("dev")):
            # For --mine_negatives. The training held out some of the pairs.
            held_out = {example.texts[0] for example in self.read("dev")}
            examples = [e for e in examples if e.texts[0] not in held_out]
        if not (options.teacher and split in ("train", "unlabeled")):
            return examples
        texts = {text: e.guid for e in examples for text in e.texts if text}
        return [EmbeddingExample(guid, (text,)) for text, guid in texts.items()]

    def _example_maker(self, rows: Sequence[Row], split: str) -> Any:
        columns = embedding_columns.find(self.options, rows)
        score = "" if split == "unlabeled" else columns.score

        def make_example(row: Row) -> EmbeddingExample:
            pair = columns.text, columns.match or columns.text
            texts = [row.text(column).strip() for column in pair]
            if "" in texts:
                must = "not be empty: fill it in, or remove the row"
                raise row.error(pair[texts.index("")], must, "")
            for column in columns.negatives:
                # Objects may have different numbers of negatives.
                if row.cells.get(column) is not None:
                    texts.append(row.text(column).strip())
            label = row.number(score) if score else None
            return EmbeddingExample(self.guid(row, split), (*texts,), label)

        return make_example

    def held_out_together(self, example: Any) -> Any:
        return key_of(example.texts[0])
