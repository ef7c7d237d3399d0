"""From predicted tokens to the text of the context that they stand for."""

from typing import NamedTuple

from official_bert.tokenization.normalize import normalize


class OriginalText(NamedTuple):
    """Words of a context, aligned with their tokenized form.

    Attributes:
        text: The words, separated by one space.
        tokenized: The normalized text, with spaces between tokens.
        places: The offset in `text` of each character of `tokenized` other than
            spaces. Empty if normalizing added or removed characters, as in
            Hangul.
    """

    text: str
    tokenized: str
    places: list[int]

    @classmethod
    def from_text(cls, text: str, do_lower_case: bool) -> "OriginalText":
        """Normalizes words as the tokenizer does."""
        tokenized = " ".join(normalize(text, do_lower_case).split())
        places = [i for i, char in enumerate(text) if char != " "]
        if len(places) != _num_letters(tokenized):
            places = []
        return cls(text, tokenized, places)


def join_tokens(tokens: list[str]) -> str:
    """Returns the words of WordPiece tokens, separated by one space."""
    text = " ".join(tokens).replace(" ##", "").replace("##", "")
    return " ".join(text.split())


def get_final_text(pred_text: str, original: OriginalText) -> str:
    """Returns the part of the original text that a prediction stands for.

    Predicted tokens are normalized, and punctuation is separated. The result
    has the form of the context, without the parts of its first and last word
    that were not predicted::

        pred_text   steve smith
        original    Steve Smith's
        result      Steve Smith

    Args:
        pred_text: The words of the predicted tokens.
        original: The words of the context that contain them.

    Returns:
        A part of the original text; all of it if the prediction is not found in
        it, or if `places` is empty.
    """
    text, tokenized, places = original
    if not places or not pred_text or pred_text != pred_text.strip(" "):
        return text
    start = tokenized.find(pred_text)
    if start < 0:
        return text
    end = start + len(pred_text) - 1
    first = places[_num_letters(tokenized[:start])]
    last = places[_num_letters(tokenized[:end])]
    return text[first : last + 1]


def _num_letters(text: str) -> int:
    return len(text) - text.count(" ")
