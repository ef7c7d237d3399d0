"""Strings, before anything is known about words."""


def convert_to_unicode(text: str | bytes) -> str:
    """Returns `text` as a string.

    Args:
        text: A string, or bytes in UTF-8, of which those that are not valid
            are left out.

    Raises:
        ValueError: `text` is neither.
    """
    if isinstance(text, str):
        return text
    if isinstance(text, bytes):
        return text.decode("utf-8", "ignore")
    raise ValueError(f"Unsupported string type: {type(text)}")


def printable_text(text: str | bytes) -> str:
    """Returns `text` in the form in which it can be printed or logged."""
    return convert_to_unicode(text)


def whitespace_tokenize(text: str) -> list[str]:
    """Returns the stretches of `text` between whitespace."""
    return text.split()
