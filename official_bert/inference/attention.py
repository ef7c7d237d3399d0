"""Who attends to whom: the attention of a text as arrays, and as a page."""

import base64
from typing import NamedTuple

import numpy as np

from official_bert import files, pages
from official_bert.errors import InputError
from official_bert.inference.bert_alone import BertAlone
from official_bert.inputs import text_inputs

# Of a page: BERT-Base with 341 pieces, 45 megabytes.
_MOST_NUMBERS = 1 << 24
# What 1.0 is on a page, where numbers take two bytes.
_STEPS = 65535


class Attention(NamedTuple):
    """What one text or pair attends to.

    Attributes:
        tokens: S pieces, with [CLS] and [SEP].
        segment_ids: Of each, 0 or 1.
        probabilities: float32 [L, A, S, S]; [l, a, f, t] is which share of its
            attention piece f gives to piece t, so that rows sum to 1.
    """

    tokens: list[str]
    segment_ids: list[int]
    probabilities: np.ndarray


def attend(
    model: BertAlone, text_a: str, text_b: str | None = None
) -> Attention:
    """Returns the attention of all heads of all layers.

    Raises:
        InputError: The text is too long for the model or for a page.
    """
    tokenize = model.tokenizer.tokenize
    tokens_a, tokens_b = tokenize(text_a), tokenize(text_b or "")
    for name, text, found in (
        ("text_a", text_a, tokens_a),
        ("text_b", text_b, tokens_b),
    ):
        if text and not found:
            raise InputError(
                f"--{name}: must have a word. Received: {text!r}, of which the "
                "tokenizer leaves nothing."
            )
    tokens = text_inputs.add_special_tokens(tokens_a, tokens_b)
    where = "--text_a and --text_b" if text_b else "--text_a"
    model.require_length(len(tokens), where)
    _require_room(model, len(tokens), where)
    segment_ids = text_inputs.make_segment_ids(len(tokens), len(tokens_a))
    output = model.read(tokens, segment_ids, return_attention=True)
    layers = [np.asarray(layer)[0] for layer in output.attention_probs]
    return Attention(tokens, segment_ids, np.stack(layers).astype(np.float32))


def _require_room(model: BertAlone, num_pieces: int, where: str) -> None:
    config = model.bert.config
    heads = config.num_hidden_layers * config.num_attention_heads
    longest = int((_MOST_NUMBERS / heads) ** 0.5)
    if num_pieces > longest:
        raise InputError(
            f"{where}: a page of this model's {heads} heads must have at most "
            f"{longest} pieces, or browsers would choke. Received: "
            f"{num_pieces}. Shorten the text."
        )


def pack(probabilities: np.ndarray) -> str:
    """Returns probabilities as base64 of little-endian 16-bit numbers.

    They are rounded to multiples of 1/65535.
    """
    steps = np.rint(np.asarray(probabilities, np.float64) * _STEPS)
    return base64.b64encode(steps.astype("<u2").tobytes()).decode("ascii")


def write_page(
    path: str,
    attention: Attention,
    *,
    text_a: str,
    text_b: str | None,
    source: str,
) -> None:
    """Writes a page that shows all heads.

    Args:
        path: Of the page.
        attention: What it shows.
        text_a: As it was given.
        text_b: The second of a pair.
        source: Which model it is.
    """
    num_layers, num_heads, num_pieces, _ = attention.probabilities.shape
    page = pages.render(
        "attention.html",
        title="Attention",
        subtitle=f"{source}: {num_layers} layers of {num_heads} heads on "
        f"{num_pieces} pieces",
        text_a=text_a,
        text_b=text_b,
        tokens=attention.tokens,
        segments=attention.segment_ids,
        num_layers=num_layers,
        num_heads=num_heads,
        weights=pack(attention.probabilities),
    )
    files.write_text(path, page)
