"""From pieces back to the text that they were made of."""

from official_bert.tokenization.normalize import normalize


def join_pieces(pieces: list[str]) -> str:
    """Returns the words of word pieces, with one space between them."""
    text = " ".join(pieces).replace(" ##", "").replace("##", "")
    return " ".join(text.split())


def get_final_text(pred_text: str, orig_text: str, do_lower_case: bool) -> str:
    """Finds the part of the original text that a prediction stands for.

    A prediction is made of pieces, which are lower case and have punctuation
    apart. What is wanted is written as the paragraph has it, but without what
    the prediction leaves out of the words that it begins and ends in::

        pred_text   steve smith
        orig_text   Steve Smith's
        result      Steve Smith

    The original is tokenized in the same way to find the prediction in it. Then
    both have the same characters but for spaces, by which places are counted.

    Args:
        pred_text: The words of the predicted pieces.
        orig_text: The words of the paragraph that these are part of.
        do_lower_case: Whether the pieces are lower case without accents.

    Returns:
        Part of `orig_text`; all of it if the prediction is not in it, or if
        tokenizing added or removed characters, as it does with Hangul.
    """
    tok_text = " ".join(normalize(orig_text, do_lower_case).split())
    start = tok_text.find(pred_text)
    if start < 0 or not pred_text or pred_text != pred_text.strip(" "):
        return orig_text
    end = start + len(pred_text) - 1
    places = [i for i, char in enumerate(orig_text) if char != " "]
    if len(places) != _num_letters(tok_text):
        return orig_text
    first = places[_num_letters(tok_text[:start])]
    last = places[_num_letters(tok_text[:end])]
    return orig_text[first : last + 1]


def _num_letters(text: str) -> int:
    return len(text) - text.count(" ")
