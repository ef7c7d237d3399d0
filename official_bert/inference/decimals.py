r"""Numbers as JSON, rounded to six decimals, many at once.

Each is written into sixteen bytes, four times four that are looked up::

    separator, sign    \n -                ,   ␣
    whole part         1  2                0
    three decimals     .  3  4  5          .  0
    the last three     6  7

The rest is \0, and left out in the end. The texts are those of
`json.dumps(round(float(x), 6))`, character by character.
"""

import json
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

_MILLION = 1_000_000
_TOO_LARGE = 10_000 * _MILLION
# So many numbers stay in the processor's cache, which is four times as fast.
_BLOCK = 2**13


def _words(texts: Iterable[str], size: int = 4) -> npt.NDArray[np.uint32]:
    """Returns the bytes of each text, filled up to `size`, as numbers."""
    data = b"".join(text.encode().ljust(size, b"\0") for text in texts)
    return np.frombuffer(data, np.uint32)


_THREE = [f"{n:03d}" for n in range(1000)]
# At the beginning of a row, and else; without a sign, and with one.
_SEPARATORS = _words(["\n", "\n-", ", ", ", -"])
_WHOLE = _words(str(n) for n in range(10_000))
# What ends with zeros ends before them, but has one digit behind the point.
_DECIMALS = _words(
    [
        *("." + (text.rstrip("0") or "0") for text in _THREE),
        *("." + text for text in _THREE),  # If others follow.
    ]
)
_LAST_DECIMALS = _words(text.rstrip("0") for text in _THREE)
# What JSON writes with an exponent: 0.000001 to 0.000099.
_NUM_SMALL = 100
_SMALL = _words([repr(n / _MILLION) for n in range(_NUM_SMALL)], 12)
_SMALL = _SMALL.reshape(_NUM_SMALL, 3)


def format_rows(values: npt.NDArray[np.float32]) -> list[bytes]:
    """Returns of each row its numbers, `, ` between them.

    ```
    [[0.5, -1.25], [1e-6, 3.0]] -> [b"0.5, -1.25", b"1e-06, 3.0"]
    ```

    Args:
        values: float32 [rows, columns], at least one of each.
    """
    rows_at_once = max(1, _BLOCK // values.shape[1])
    return [
        text
        for start in range(0, len(values), rows_at_once)
        for text in _format_block(values[start : start + rows_at_once])
    ]


def _format_block(values: npt.NDArray[np.float32]) -> list[bytes]:
    # Exact, since so few digits are in both: ties are seen as `round` does.
    scaled = np.rint(values.astype(np.float64) * _MILLION)
    size = np.abs(scaled)
    if not np.all(size < _TOO_LARGE):  # Or not finite.
        return [_one_by_one(row) for row in values]
    number = size.astype(np.int64)
    whole = (number // _MILLION).astype(np.int32)
    rest = (number - whole * np.int64(_MILLION)).astype(np.int32)
    high = rest // 1000
    low = rest - high * 1000
    separator = np.signbit(scaled).astype(np.int32)
    separator[:, 1:] += 2
    words = np.empty((*values.shape, 4), np.uint32)
    words[..., 0] = _SEPARATORS[separator]
    words[..., 1] = _WHOLE[whole]
    words[..., 2] = _DECIMALS[high + 1000 * (low != 0)]
    words[..., 3] = _LAST_DECIMALS[low]
    is_small = (size < _NUM_SMALL) & (size > 0)
    words[is_small, 1:] = _SMALL[number[is_small]]
    return words.tobytes().translate(None, b"\0").split(b"\n")[1:]


def _one_by_one(row: npt.NDArray[np.float32]) -> bytes:
    return json.dumps([round(float(x), 6) for x in row])[1:-1].encode()
