"""The attention of a text, as arrays and as a web page."""

import base64
from typing import NamedTuple

import numpy as np

from official_bert import pages
from official_bert.errors import InputError
from official_bert.inference.trained_models import LoadedBert
from official_bert.io import files
from official_bert.options import VisualizeAttention

# A page with more is too large for a browser. The limit for BERT-Base is a text
# of 341 tokens and a page of 45 MB.
_MAX_PROBABILITIES = 1 << 24


class Attention(NamedTuple):
    """The attention of a text or a pair: S tokens, with [CLS] and [SEP].

    The probabilities are float32 [L, A, S, S]; [l, a, f, t] is the attention
    from token f to token t.
    """

    tokens: list[str]
    segment_ids: list[int]
    probabilities: np.ndarray


def compute(
    model: LoadedBert,
    text_a: str,
    text_b: str | None = None,
    max_seq_length: int = 512,
) -> Attention:
    """Returns the attention of all heads of all layers.

    Raises `InputError` if a text has no tokens, or too many for the model or
    for a page.
    """
    ids_a, ids_b = model.tokenizer.tokenize_lines_to_ids((text_a, text_b or ""))
    if not ids_a:
        raise InputError(f"--text_a={text_a!r} has no tokens. Add words.")
    if text_b and not ids_b:
        raise InputError(f"--text_b={text_b!r} has no tokens. Add words.")
    num_tokens = len(ids_a) + len(ids_b) + (3 if ids_b else 2)
    where = "--text_a and --text_b" if text_b else "--text_a"
    model.require_length(num_tokens, max_seq_length, where)
    config = model.bert.config
    num_heads = config.num_hidden_layers * config.num_attention_heads
    max_tokens = int((_MAX_PROBABILITIES / num_heads) ** 0.5)
    if num_tokens > max_tokens:
        raise InputError(
            f"{where}: {num_tokens} tokens exceed the {max_tokens} that a page "
            f"can show for a model with {num_heads} heads. Shorten the text."
        )
    features, output = model.run(ids_a, ids_b, return_attention=True)
    tokens = model.tokenizer.convert_ids_to_tokens(features["input_ids"])
    layers = [np.asarray(layer)[0] for layer in output.attention_probs]
    probabilities = np.stack(layers).astype(np.float32)
    return Attention(tokens, features["segment_ids"], probabilities)


def write(options: VisualizeAttention, model: LoadedBert) -> None:
    """Computes the attention of the texts and writes the page."""
    assert options.text_a
    attention = compute(
        model, options.text_a, options.text_b, options.max_seq_length
    )
    num_layers, num_heads, num_tokens, _ = attention.probabilities.shape
    # On the page, 65535 stands for 1.0.
    integers = np.rint(attention.probabilities.astype(np.float64) * 65535)
    page = pages.render(
        "attention.html",
        title="Attention",
        subtitle=f"{options.model or model.source}: {num_layers} layers of "
        f"{num_heads} heads on {num_tokens} tokens",
        text_a=options.text_a,
        text_b=options.text_b,
        tokens=attention.tokens,
        segments=attention.segment_ids,
        num_layers=num_layers,
        num_heads=num_heads,
        weights=base64.b64encode(integers.astype("<u2").tobytes()).decode(),
    )
    files.write_text(options.output_file, page)
