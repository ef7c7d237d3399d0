"""Documents: lists of sentences, each a list of word pieces."""

from collections.abc import Callable, Sequence

from official_bert import progress
from official_bert.errors import InputError

Sentence = list[str]
Document = list[Sentence]


def read_documents(
    names: Sequence[str], tokenize: Callable[[str], Sentence]
) -> list[Document]:
    """Reads text of one sentence a line, with blank lines between documents.

    As in the 2018 release, the end of a file does not end a document, and a
    line that holds nothing but characters the tokenizer drops is no blank line.

    Args:
        names: Text files, read one after another.
        tokenize: Cuts a line into word pieces.

    Returns:
        The documents that have any sentence, in their order.

    Raises:
        InputError: A file cannot be read, or there is no text in any.
    """
    documents: list[Document] = [[]]
    for line in progress.read_lines(names, "Reading text"):
        text = line.strip()
        if not text:
            documents.append([])
            continue
        tokens = tokenize(text)
        if tokens:
            documents[-1].append(tokens)
    documents = [document for document in documents if document]
    if not documents:
        raise InputError(
            "The input must hold text, one sentence a line. Received: none in "
            f"{', '.join(names)}."
        )
    return documents
