"""The kinds of characters that tokenization tells apart.

Which characters are control characters, punctuation or accents is looked up in
Python's own Unicode tables, as in the 2018 release: another version of Python
may know more characters.
"""

import unicodedata

# The blocks that hold Chinese characters: CJK ideographs, their extensions A
# to E, and the compatibility ideographs. Kana and Hangul are not Chinese; the
# extensions from F on are left out because the 2018 release leaves them out.
_CHINESE_BLOCKS = (
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B820, 0x2CEAF),
    (0xF900, 0xFAFF),
    (0x2F800, 0x2FA1F),
)


def is_whitespace(char: str) -> bool:
    """Whether `char` is a space, a tab, a line end or another Unicode space."""
    return char in " \t\n\r" or unicodedata.category(char) == "Zs"


def is_control(char: str) -> bool:
    """Whether `char` is an invisible control or format character.

    Tab and the line ends are whitespace instead. Private-use, unassigned and
    surrogate code points are not control characters: models know some of them.
    """
    return char not in "\t\n\r" and unicodedata.category(char) in ("Cc", "Cf")


def is_removed(char: str) -> bool:
    """Whether `char` vanishes: control characters, and U+FFFD.

    U+FFFD, the replacement character, marks where text was damaged.
    """
    return char == "\ufffd" or is_control(char)


def is_punctuation(char: str) -> bool:
    """Whether `char` stands as a word of its own.

    Every visible ASCII character that is neither letter nor digit counts, also
    those that Unicode calls symbols, such as ``$``, ``^`` and `````. Outside
    ASCII only Unicode's punctuation does: not ``€`` or ``≤``.
    """
    if "!" <= char <= "~":
        return not char.isalnum()
    return unicodedata.category(char).startswith("P")


def is_chinese(char: str) -> bool:
    """Whether `char` is an ideograph, which stands as a word of its own."""
    return any(low <= ord(char) <= high for low, high in _CHINESE_BLOCKS)


def is_nonspacing_mark(char: str) -> bool:
    """Whether `char` only decorates the one before it, as accents do."""
    return unicodedata.category(char) == "Mn"
