"""Everything besides the vocabulary that the tokens of a text depend on."""

import dataclasses
import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

from official_bert.errors import InputError, listed

# The values of `--strip_accents`.
_SWITCHES = {"auto": None, "true": True, "false": False}


@dataclasses.dataclass(frozen=True)
class AddedToken:
    """A token that is found in texts before these are split into words.

    The fields are those of transformers.

    Attributes:
        content: The token, as in the vocabulary.
        single_word: Whether it is ignored next to a letter, a digit or "_".
        lstrip, rstrip: Not used: the whitespace around it has no tokens anyway.
        normalized: Whether it is found in normalized text: "covid" also in
            "COVID" if text is lower-cased.
        special: Not used.
    """

    content: str
    single_word: bool = False
    lstrip: bool = False
    rstrip: bool = False
    normalized: bool = False
    special: bool = False


@dataclasses.dataclass(frozen=True)
class TokenizerSettings:
    """The settings of a tokenizer, with transformers' names.

    Attributes:
        do_lower_case: Whether to lower-case text; None, if it is not known,
            means True.
        strip_accents: Whether to remove accents; None means `is_uncased`.
        tokenize_chinese_chars: Whether every Chinese character is a word.
        added_tokens: Tokens that are kept whole wherever they occur in a text.
        num_wordpieces: Words are split into the first N tokens of the
            vocabulary; the others are only found as added tokens. None: all.
    """

    do_lower_case: bool | None = None
    strip_accents: bool | None = None
    tokenize_chinese_chars: bool = True
    added_tokens: tuple[AddedToken, ...] = ()
    num_wordpieces: int | None = None

    @property
    def is_uncased(self) -> bool:
        """Whether text is lower-cased."""
        return self.do_lower_case is not False

    @property
    def strips_accents(self) -> bool:
        """Whether accents are removed."""
        if self.strip_accents is None:
            return self.is_uncased
        return self.strip_accents

    def to_json(self) -> dict[str, Any]:
        """Returns `do_lower_case`, and values that are not the defaults."""
        values, defaults = map(dataclasses.asdict, (self, UNKNOWN))
        changed = {n: v for n, v in values.items() if v != defaults[n]}
        return {**changed, "do_lower_case": self.is_uncased}

    def keeping(self, never_split: Sequence[str]) -> "TokenizerSettings":
        """Returns settings that also keep the tokens `never_split` whole."""
        if isinstance(never_split, str) or any(
            token.split() != [token] for token in never_split
        ):
            raise InputError(
                "`never_split` must be a sequence of tokens without "
                f"whitespace. Received: {never_split!r}. "
                "Pass a tuple such as ('[MASK]',)."
            )
        tokens = {token.content: token for token in self.added_tokens}
        for content in never_split:
            tokens.setdefault(content, AddedToken(content, special=True))
        return dataclasses.replace(self, added_tokens=tuple(tokens.values()))

    def with_flags(
        self,
        do_lower_case: bool | None,
        strip_accents: str = "auto",
        never_split: str = "",
    ) -> "TokenizerSettings":
        """Returns settings with the values of flags; None and auto: no change.

        Tokens in `never_split` are separated by commas.
        """
        flags: dict[str, Any] = {"do_lower_case": do_lower_case}
        flags["strip_accents"] = _SWITCHES[strip_accents]
        given = {name: v for name, v in flags.items() if v is not None}
        settings = dataclasses.replace(self, **given)
        return settings.keeping(never_split.replace(",", " ").split())

    def require_in(self, vocab: Collection[str], where: str) -> None:
        """Raises `InputError` unless a vocabulary has all added tokens."""
        added = [token.content for token in self.added_tokens]
        missing = [content for content in added if content not in vocab]
        if missing:
            raise InputError(
                f"{where}: the vocabulary must contain the tokens of "
                "`never_split`, and the added tokens in the files beside it. "
                f"Received: {listed(missing)}, which are not in it. Omit them "
                "or, for a Hugging Face model, use --model=DIRECTORY."
            )

    def require_exportable(self) -> None:
        """Raises `InputError` if TensorFlow operations cannot find a token."""
        for token in self.added_tokens:
            if token.normalized or token.single_word:
                raise InputError(
                    "To export a tokenizer, added tokens must have `normalized`"
                    f" and `single_word` false. Received: {token}. Change "
                    "tokenizer_config.json, so that only exactly this text is "
                    "found or, for a fine-tuned model, pass --noexport_text."
                )


UNKNOWN = TokenizerSettings()
UNCASED, CASED = TokenizerSettings(True), TokenizerSettings(False)


class TokenFinder:
    """Finds tokens in texts: at each position, the longest one.

    `tokens` are pairs of a string to find and the token it stands for.
    """

    def __init__(self, tokens: Iterable[tuple[str, AddedToken]]) -> None:
        self.tokens = dict(tokens)
        by_length = sorted(self.tokens, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, by_length)))

    def split(self, text: str) -> Iterator[tuple[int, int, AddedToken | None]]:
        """Yields the start, the end and the token, if any, of each part."""
        start = 0
        for match in self._pattern.finditer(text) if self.tokens else ():
            token = self.tokens[match[0]]
            if token.single_word and _is_in_word(text, *match.span()):
                continue
            yield start, match.start(), None
            yield *match.span(), token
            start = match.end()
        yield start, len(text), None


def _is_in_word(text: str, start: int, end: int) -> bool:
    around = text[max(start - 1, 0) : start] + text[end : end + 1]
    categories = map(unicodedata.category, around)
    return any(kind[0] in "LMN" or kind == "Pc" for kind in categories)
