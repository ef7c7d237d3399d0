"""Shows on a web page how similar a word's vectors are in different contexts.

A word has one vector in the embedding table, but its vectors in the layers
depend on the sentence: the vectors of "apple", the fruit, and "Apple", the
company, differ more from layer to layer.
"""

from typing import NamedTuple

import numpy as np

from official_bert import pages
from official_bert.errors import InputError
from official_bert.inference.trained_models import LoadedBert
from official_bert.io import files, progress
from official_bert.options import VisualizeAttention
from official_bert.tasks.sentence_vectors import normalize

# More rows do not fit on a screen.
_MAX_CONTEXTS = 60


class Context(NamedTuple):
    """An occurrence of the word: tokens[first:last] of a sentence.

    `where` is FILE:LINE. The sentence is `before` + `word` + `after`; its
    tokens are without [CLS] and [SEP].
    """

    where: str
    before: str
    word: str
    after: str
    tokens: list[str]
    first: int
    last: int


def find(
    model: LoadedBert, word: str, input_file: str, max_seq_length: int = 512
) -> list[Context]:
    """Returns all occurrences of a word, or of several consecutive words.

    `input_file` has a sentence per line. Raises `InputError` if a sentence does
    not contain the word or is too long, or if there are too few or too many
    occurrences.
    """
    tokenizer = model.tokenizer
    word_tokens = tokenizer.tokenize(word)
    unknown = tokenizer.wordpiece_tokenizer.unk_token
    if not word_tokens or unknown in word_tokens:
        raise InputError(
            f"--word={word!r} is not in the vocabulary. Its tokens: "
            f"{word_tokens or 'none'}. Choose another word."
        )
    contexts = []
    for number, text in files.numbered_lines(input_file):
        if not text.strip():
            continue
        where = f"{input_file}:{number}"
        tokens, spans = tokenizer.tokenize_with_offsets(text)
        model.require_length(len(tokens) + 2, max_seq_length, where)
        occurrences = _find_word(tokens, word_tokens)
        if not occurrences:
            raise InputError(
                f"{where}: the sentence must contain the word {word!r}. "
                f"Received: {text!r}."
            )
        for first, last in occurrences:
            start, end = spans[first][0], spans[last - 1][1]
            texts = text[:start], text[start:end], text[end:]
            contexts.append(Context(where, *texts, tokens, first, last))
    if not 2 <= len(contexts) <= _MAX_CONTEXTS:
        raise InputError(
            f"{input_file}: must contain the word 2 to {_MAX_CONTEXTS} times. "
            f"Received: {len(contexts)}. Add or remove sentences."
        )
    return contexts


def _find_word(
    tokens: list[str], word_tokens: list[str]
) -> list[tuple[int, int]]:
    """Returns (first, last) where tokens[first:last] are a whole word."""
    occurrences = []
    for first in range(len(tokens) - len(word_tokens) + 1):
        last = first + len(word_tokens)
        continues = last < len(tokens) and tokens[last].startswith("##")
        if tokens[first:last] == word_tokens and not continues:
            occurrences.append((first, last))
    return occurrences


def compare(model: LoadedBert, contexts: list[Context]) -> np.ndarray:
    """Returns cosine similarities of the word in N contexts.

    The array is float32 [1 + L, N, N]: first for the embeddings, then for the
    outputs of each layer. A word's vector is the mean of its tokens' vectors.
    """
    bar = progress.bar(contexts, description="Reading", unit=" sentences")
    vectors = np.stack([_word_vectors(model, c) for c in bar], axis=1)
    units = normalize(vectors)
    products = units @ np.swapaxes(units, -1, -2)
    return np.clip(products, -1.0, 1.0).astype(np.float32)


def _word_vectors(model: LoadedBert, context: Context) -> np.ndarray:
    """Returns the word's vectors in all layers, float64 [1 + L, H]."""
    ids = model.tokenizer.convert_tokens_to_ids(context.tokens)
    _, output = model.run(ids)
    # [CLS] shifts the positions by one.
    word = slice(context.first + 1, context.last + 1)
    layers = (output.embedding_output, *output.encoder_outputs)
    return np.stack(
        [np.asarray(layer, np.float64)[0, word].mean(0) for layer in layers]
    )


def write(options: VisualizeAttention, model: LoadedBert) -> None:
    """Compares the vectors of `--word` and writes a heat map per layer."""
    assert options.word
    assert options.input_file
    contexts = find(
        model, options.word, options.input_file, options.max_seq_length
    )
    cosines = compare(model, contexts).astype(np.float64).round(4)
    page = pages.render(
        "contexts.html",
        title=f"“{options.word}” in {len(contexts)} contexts",
        subtitle=options.model or model.source,
        contexts=contexts,
        cosines=cosines.tolist(),
    )
    files.write_text(options.output_file, page)
