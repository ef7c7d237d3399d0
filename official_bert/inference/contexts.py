"""One word in several contexts: how alike the vectors are that BERT gives it.

A word has one vector in the table of embeddings, but others in every sentence
above it: "apple" the fruit and "apple" the company part from layer to layer.
"""

from typing import NamedTuple

import numpy as np

from official_bert import files, pages, progress
from official_bert.errors import InputError
from official_bert.inference.bert_alone import BertAlone
from official_bert.inputs import text_inputs

# More rows would not fit a screen.
_MOST_CONTEXTS = 60


class Context(NamedTuple):
    """A word where it stands.

    Attributes:
        where: FILE:LINE.
        text: The sentence.
        start: Of the word, in characters of the sentence.
        end: The same.
        pieces: Of the sentence, without [CLS] and [SEP].
        first: Of the word's pieces, in `pieces`.
        last: One after the word's.
    """

    where: str
    text: str
    start: int
    end: int
    pieces: list[str]
    first: int
    last: int


class Comparison(NamedTuple):
    """How alike the vectors of a word are.

    Attributes:
        word: As it was asked for.
        contexts: N of them.
        cosines: float32 [1 + L, N, N]: of the embeddings and of each layer's
            output, the cosine of the angle between any two vectors.
    """

    word: str
    contexts: list[Context]
    cosines: np.ndarray


def compare(model: BertAlone, word: str, input_file: str) -> Comparison:
    """Compares a word with itself.

    The vector of a word is the mean of its pieces'.

    Args:
        model: To ask.
        word: One, or a few that follow one another.
        input_file: A sentence on every line that is not blank. Where the word
            stands twice, both are compared.

    Raises:
        InputError: A sentence lacks the word, is too long, or there are too
            many or too few.
    """
    contexts = find(model, word, input_file)
    vectors = np.stack(
        [
            _vectors(model, context)
            for context in progress.bar(
                contexts, description="Reading", unit="sentence"
            )
        ],
        axis=1,
    )  # [1 + L, N, H]
    return Comparison(word, contexts, cosines(vectors))


def find(model: BertAlone, word: str, input_file: str) -> list[Context]:
    """Returns all places where a word stands in a file.

    Raises:
        InputError: See `compare`.
    """
    tokenizer = model.tokenizer
    wanted = tokenizer.tokenize(word)
    if not wanted or tokenizer.wordpiece_tokenizer.unk_token in wanted:
        raise InputError(
            "--word must be made of the vocabulary's pieces. Received: "
            f"{word!r}, of which there are {wanted or 'none'}."
        )
    contexts = []
    for number, text in files.numbered_lines(input_file):
        if not text.strip():
            continue
        where = f"{input_file}:{number}"
        found = _find_in(model, wanted, text, where)
        if not found:
            raise InputError(
                f"{where}: every sentence must have the word {word!r}. "
                f"Received: {text!r}. Spell it as there, or drop the line."
            )
        contexts += found
    if not 2 <= len(contexts) <= _MOST_CONTEXTS:
        raise InputError(
            f"{input_file}: the word must stand in 2 to {_MOST_CONTEXTS} "
            f"places. Received: {len(contexts)}. Add sentences, or drop some."
        )
    return contexts


def _find_in(
    model: BertAlone, wanted: list[str], text: str, where: str
) -> list[Context]:
    """Returns where whole words are made of the wanted pieces."""
    pieces, spans = model.tokenizer.tokenize_with_offsets(text)
    model.require_length(len(pieces) + 2, where)
    found = []
    for first in range(len(pieces) - len(wanted) + 1):
        last = first + len(wanted)
        goes_on = pieces[last : last + 1] and pieces[last].startswith("##")
        if pieces[first:last] == wanted and not goes_on:
            start, end = spans[first][0], spans[last - 1][1]
            found.append(Context(where, text, start, end, pieces, first, last))
    return found


def _vectors(model: BertAlone, context: Context) -> np.ndarray:
    """Returns a word's vectors, float64 [1 + L, H]."""
    tokens = text_inputs.add_special_tokens(context.pieces)
    output = model.read(tokens, [0] * len(tokens))
    return np.stack(
        [
            # After [CLS].
            np.asarray(layer, np.float64)[
                0, context.first + 1 : context.last + 1
            ].mean(axis=0)
            for layer in (output.embedding_output, *output.encoder_outputs)
        ]
    )


def cosines(vectors: np.ndarray) -> np.ndarray:
    """Returns the cosines of all pairs of vectors.

    Args:
        vectors: float [..., N, H].

    Returns:
        float32 [..., N, N].
    """
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    units = vectors / np.maximum(lengths, np.finfo(np.float64).tiny)
    products = units @ np.swapaxes(units, -1, -2)
    return np.clip(products, -1.0, 1.0).astype(np.float32)


def write_page(path: str, comparison: Comparison, *, source: str) -> None:
    """Writes a heat map of all cosines, one layer at a time.

    Args:
        path: Of the page.
        comparison: What it shows.
        source: Which model it is.
    """
    page = pages.render(
        "contexts.html",
        title=f"“{comparison.word}” in {len(comparison.contexts)} contexts",
        subtitle=source,
        contexts=[
            {
                "where": c.where,
                "before": c.text[: c.start],
                "word": c.text[c.start : c.end],
                "after": c.text[c.end :],
            }
            for c in comparison.contexts
        ],
        cosines=comparison.cosines.astype(np.float64).round(4).tolist(),
    )
    files.write_text(path, page)
