"""Words and their labels as the model reads them.

A word has its label on its first piece; the other pieces have none::

    words       Jim  Henson     was  a  puppeteer
    labels      1    2          0    0  0
    input_ids   [CLS]  Jim  Hen  ##son  was  a  puppet  ##eer  [SEP]
    label_ids     0     1    2     0     0   0    0       0      0
    label_mask    0     1    1     0     1   1    1       0      0
"""

from collections.abc import Sequence

from official_bert.inputs import features
from official_bert.inputs.features import Marks
from official_bert.tasks.tagging.windows import Window
from official_bert.tokenization import BatchTokenizer
from official_bert.tokenization.memo import Memo


class IdsOfWord(Memo[list[int]]):
    """{word: the ids of its first pieces, at least one}.

    Args:
        tokenizer: Of the model.
        at_most: How many pieces of a word are kept.
    """

    def __init__(self, tokenizer: BatchTokenizer, at_most: int) -> None:
        super().__init__()
        self.tokenizer = tokenizer
        self.at_most = at_most

    def compute(self, word: str) -> list[int]:
        """Tokenizes a word."""
        # Of control characters, say, nothing is left; they need a tag as well.
        pieces = self.tokenizer.tokenize(word) or ["[UNK]"]
        return self.tokenizer.convert_tokens_to_ids(pieces[: self.at_most])


def make_row(
    ids: Sequence[list[int]],
    labels: Sequence[int],
    window: Window,
    marks: Marks,
) -> dict[str, list[int]]:
    """Returns the features of the words in a window, not padded.

    Args:
        ids: Of the pieces of each word.
        labels: Of each word; not looked at where it is not predicted.
        window: Which words.
        marks: What to put around them.
    """
    pieces: list[int] = []
    firsts: list[int] = []  # Where in the row words begin.
    for word in range(window.begin, window.end):
        firsts.append(1 + len(pieces))
        pieces += ids[word]
    row = features.text_row(pieces, (), marks)
    row["label_ids"] = [0] * len(row["input_ids"])
    row["label_mask"] = [0] * len(row["input_ids"])
    for word in range(window.first, window.last):
        place = firsts[word - window.begin]
        row["label_ids"][place] = labels[word]
        row["label_mask"][place] = 1
    return row
