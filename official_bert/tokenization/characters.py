"""The character classes that tokenization distinguishes.

As in the 2018 release they come from Python's Unicode tables, which differ
between versions of Python.
"""

import unicodedata


def is_removed(char: str) -> bool:
    """Whether `char` is a control or format character, or U+FFFD (invalid).

    Tab and line ends are not removed. Private-use, unassigned and surrogate
    code points are ordinary characters.
    """
    if char in "\t\n\r":
        return False
    return char == "\ufffd" or unicodedata.category(char) in ("Cc", "Cf")


def is_punctuation(char: str) -> bool:
    """Whether `char` is punctuation, which becomes a word of its own.

    In ASCII it includes symbols such as "$" and "^". Beyond ASCII it is
    Unicode's punctuation, which excludes symbols such as "€" and "≤".
    """
    if "!" <= char <= "~":
        return not char.isalnum()
    return unicodedata.category(char).startswith("P")


def is_chinese(char: str) -> bool:
    """Whether `char` is a Chinese character, which becomes a word of its own.

    As in the 2018 release, this excludes the extensions from F on.
    """
    return (
        "\u4e00" <= char <= "\u9fff"  # CJK unified ideographs,
        or "\u3400" <= char <= "\u4dbf"  # extension A,
        or "\U00020000" <= char <= "\U0002a6df"  # B,
        or "\U0002a700" <= char <= "\U0002b73f"  # C,
        or "\U0002b740" <= char <= "\U0002b81f"  # D,
        or "\U0002b820" <= char <= "\U0002ceaf"  # E,
        or "\uf900" <= char <= "\ufaff"  # compatibility ideographs,
        or "\U0002f800" <= char <= "\U0002fa1f"  # and their supplement.
    )


def is_nonspacing_mark(char: str) -> bool:
    """Whether `char` is an accent or similar mark on the character before."""
    return unicodedata.category(char) == "Mn"


def has_sign(char: str) -> bool:
    """Whether `char` has a mark without which words become other words.

    These are vowel signs and other marks of scripts such as Devanagari, Thai,
    Arabic and kana, but not the accents of Latin, Greek and Cyrillic letters,
    except for the horn and the hook above, which only Vietnamese uses.
    """
    for part in filter(is_nonspacing_mark, unicodedata.normalize("NFD", char)):
        name = unicodedata.name(part, "COMBINING")
        is_accent = name.startswith(("COMBINING", "VARIATION SELECTOR"))
        if not is_accent or "KATAKANA" in name or part in "\u0309\u031b":
            return True
    return False
