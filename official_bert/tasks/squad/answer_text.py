"""From pieces back to the text that they were made of."""

from typing import NamedTuple

from official_bert.tokenization.normalize import normalize


class OriginalText(NamedTuple):
    """Part of a paragraph, ready for predictions to be found in it.

    Attributes:
        text: Its words, with one space between them.
        tokenized: The same as the pieces have it.
        places: Where in `text` each character of `tokenized` is that is no
            space. Empty if tokenizing added or removed characters, as it does
            with Hangul.
    """

    text: str
    tokenized: str
    places: list[int]

    @classmethod
    def from_text(cls, text: str, do_lower_case: bool) -> "OriginalText":
        """Tokenizes a text.

        Args:
            text: The words of the paragraph.
            do_lower_case: Whether the pieces are lower case without accents.
        """
        tokenized = " ".join(normalize(text, do_lower_case).split())
        places = [i for i, char in enumerate(text) if char != " "]
        if len(places) != _num_letters(tokenized):
            places = []
        return cls(text, tokenized, places)


def join_tokens(tokens: list[str]) -> str:
    """Returns the words of WordPiece tokens, with one space between them."""
    text = " ".join(tokens).replace(" ##", "").replace("##", "")
    return " ".join(text.split())


def get_final_text(pred_text: str, original: OriginalText) -> str:
    """Finds the part of the original text that a prediction stands for.

    A prediction is made of pieces, which are lower case and have punctuation
    apart. What is wanted is written as the paragraph has it, but without what
    the prediction leaves out of the words that it begins and ends in::

        pred_text   steve smith
        original    Steve Smith's
        result      Steve Smith

    The original is tokenized in the same way to find the prediction in it. Then
    both have the same characters but for spaces, by which places are counted.

    Args:
        pred_text: The words of the predicted pieces.
        original: The words of the paragraph that these are part of.

    Returns:
        Part of the original text; all of it if the prediction is not in it, or
        if it has no `places`.
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
