"""From text to words: cleaning, lower-casing, splitting off punctuation."""

import unicodedata

from official_bert.tokenization import characters
from official_bert.tokenization.never_split import NeverSplit
from official_bert.tokenization.text import (
    convert_to_unicode,
    whitespace_tokenize,
)


class BasicTokenizer:
    """Splits text into words and punctuation.

    ```
    "Ça coûte 5$, 北京!" -> ["ca", "coute", "5", "$", ",", "北", "京", "!"]
    ```

    Args:
        do_lower_case: Whether to lower-case words and to drop their accents.
        never_split: Tokens that stay as they are wherever they occur, such as
            "[MASK]", which otherwise becomes "[", "mask", "]".
    """

    def __init__(
        self, do_lower_case: bool = True, never_split: tuple[str, ...] = ()
    ):
        self.do_lower_case = do_lower_case
        self.never_split = NeverSplit(never_split)

    def tokenize(self, text: str | bytes) -> list[str]:
        """Returns the words of `text`."""
        words: list[str] = []
        for part, is_token in self.never_split.split(convert_to_unicode(text)):
            words.extend([part] if is_token else self._split_part(part))
        return words

    def _split_part(self, text: str) -> list[str]:
        words: list[str] = []
        # Chinese has no spaces between words, so models for any language see
        # its characters one by one.
        for word in whitespace_tokenize(_isolate_chinese(_clean(text))):
            if self.do_lower_case:
                word = _strip_accents(word.lower())
            words.extend(_split_punctuation(word))
        return words


def _clean(text: str) -> str:
    """Drops invisible characters and turns every whitespace into a space."""
    output = []
    for char in text:
        if characters.is_removed(char):
            continue
        output.append(" " if characters.is_whitespace(char) else char)
    return "".join(output)


def _isolate_chinese(text: str) -> str:
    """Puts spaces around Chinese characters."""
    output = []
    for char in text:
        output.append(f" {char} " if characters.is_chinese(char) else char)
    return "".join(output)


def _strip_accents(word: str) -> str:
    """Takes the accents off their letters.

    To find them, characters are decomposed, and stay so: a Hangul syllable
    becomes its two or three letters.
    """
    output = []
    for char in unicodedata.normalize("NFD", word):
        if not characters.is_nonspacing_mark(char):
            output.append(char)
    return "".join(output)


def _split_punctuation(word: str) -> list[str]:
    """Splits before and after every punctuation character.

    Returns:
        The parts; none if `word` is empty, as one of accents alone becomes.
    """
    output: list[str] = []
    is_new_part = True
    for char in word:
        is_punctuation = characters.is_punctuation(char)
        if is_punctuation or is_new_part:
            output.append(char)
        else:
            output[-1] += char
        is_new_part = is_punctuation
    return output
