"""Characters as single bytes, for those that can be treated one by one.

```
text    D  ü  r  e  r  '  s     –  ß  ö  Σ
codes   d  u  r  e  r  1  s  0  1  3  o  2
```

"'" and "–" are isolated. No token has an "ß", so that its word is unknown, as
all words with such letters are. "Σ" is odd: it depends on what follows.
"""

import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping

import numpy as np
import numpy.typing as npt

from official_bert.tokenization.normalize import normalize

# All codes above ISOLATED make words. Those from FIRST_LETTER on are the
# vocabulary's own letters, the 251 that are in most tokens.
SPACE, ISOLATED, ODD, UNKNOWN_LETTER, _NOT_YET_SEEN, FIRST_LETTER = range(6)
_NUM_CODES = 256
_NUM_CODE_POINTS = 0x110000

# Zeros after the codes, so that one may read somewhat further than they go.
PADDING = 16

Codes = npt.NDArray[np.uint8]
CodePoints = npt.NDArray[np.uint32]


def code_points(text: str) -> CodePoints:
    """Returns the characters of `text` as numbers."""
    # To BERT, unpaired surrogates are characters like others.
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), "<u4")


class Alphabet:
    """Knows what becomes of each character.

    Its two tables have a place for every character there is, and take 5.5 MB.
    They are filled with those that turn up.

    Args:
        vocab: {token: id}.
        unknown_id: What stands for isolated characters that are no tokens.
        do_lower_case: Whether to lower-case letters and to drop their accents.

    Attributes:
        ids_of_isolated: By code point, the ids of characters that have turned
            up isolated.
    """

    def __init__(
        self, vocab: Mapping[str, int], unknown_id: int, do_lower_case: bool
    ):
        self._vocab = vocab
        self._unknown_id = unknown_id
        self._do_lower_case = do_lower_case
        self._codes = np.full(_NUM_CODE_POINTS, _NOT_YET_SEEN, np.uint8)
        self.ids_of_isolated = np.zeros(_NUM_CODE_POINTS, np.int32)
        counts = Counter("".join(vocab))
        self._code_of_letter = dict.fromkeys(counts, ODD)
        free_codes = iter(range(FIRST_LETTER, _NUM_CODES))
        for char, _ in counts.most_common():
            if self._treat(char) == (UNKNOWN_LETTER, char):
                code = next(free_codes, None)
                if code is None:
                    break
                self._codes[ord(char)] = self._code_of_letter[char] = code

    def encode_seen(self, points: CodePoints) -> Codes:
        """Returns codes and `PADDING`, as far as characters have been seen.

        At first these are the letters that are the same once normalised. Codes
        below FIRST_LETTER stand for the others.
        """
        codes = np.zeros(len(points) + PADDING, np.uint8)
        codes[: len(points)] = np.take(self._codes, points)
        return codes

    def encode(self, points: CodePoints) -> Codes:
        """Returns the codes of characters, and `PADDING`."""
        codes = self.encode_seen(points)
        new = np.flatnonzero(codes == _NOT_YET_SEEN)
        if len(new):
            self._learn(np.unique(points[new]).tolist())
            codes[new] = self._codes[points[new]]
        return codes

    def _learn(self, points: Iterable[int]) -> None:
        for point in points:
            code, char = self._treat(chr(point))
            if code == ISOLATED:
                self.ids_of_isolated[point] = self._vocab.get(
                    char, self._unknown_id
                )
            elif code == UNKNOWN_LETTER:
                code = self._code_of_letter.get(char, UNKNOWN_LETTER)
            self._codes[point] = code

    def _treat(self, char: str) -> tuple[int, str]:
        """Returns a code, if only one for all letters, and what `char` becomes.

        What is removed, becomes several characters or depends on those around
        it is odd.
        """
        words = normalize(f"a{char}b", self._do_lower_case).split()
        if words == ["a", "b"]:
            return SPACE, " "
        normalized = "".join(words)[1:-1]
        # Marks can change places, and a sigma be the last letter of its word.
        is_independent = (
            len(normalized) == 1
            and not unicodedata.combining(normalized)
            and char != "Σ"
        )
        if is_independent and words == [f"a{normalized}b"]:
            return UNKNOWN_LETTER, normalized
        if is_independent and words == ["a", normalized, "b"]:
            return ISOLATED, normalized
        return ODD, ""
