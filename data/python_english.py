"""Writes a pre-training corpus from the English text that Python includes.

    python data/python_english.py --output_dir=/tmp/english

The topics of the language reference and the docstrings of the standard library
have about 250,000 words, enough to pre-train a small model without downloading
anything. In a few seconds this writes `train.txt` and `held_out.txt`, with one
sentence per line and blank lines between documents.
"""

import ast
import inspect
import os
import pathlib
import re
import sysconfig
from collections.abc import Iterable, Iterator
from pydoc_data.topics import topics

from official_bert.errors import InputError
from official_bert.io import files
from official_bert.options import cli
from official_bert.options.flags import Options, option, path_option

# The directory of the standard library.
LIBRARY = pathlib.Path(sysconfig.get_path("stdlib"))


class PythonEnglish(Options):
    """Options of `data/python_english.py`."""

    output_dir: str = path_option("Directory of train.txt and held_out.txt.")
    held_out: int = option(
        "Every Nth document goes to held_out.txt.", 20, at_least=2
    )


def main(options: PythonEnglish) -> None:
    """Writes the documents to the two files."""
    options = options.resolve()
    documents = collect(LIBRARY)
    every_nth = slice(options.held_out - 1, None, options.held_out)
    held_out, train = documents[every_nth], documents.copy()
    del train[every_nth]
    for name, part in (("train.txt", train), ("held_out.txt", held_out)):
        files.write_text(os.path.join(options.output_dir, name), corpus(part))
    sentences = [sentence for document in documents for sentence in document]
    print(
        f"{len(documents):,} documents, {len(sentences):,} sentences, "
        f"{sum(len(sentence.split()) for sentence in sentences):,} words "
        f"in {options.output_dir}"
    )


def corpus(documents: Iterable[list[str]]) -> str:
    """Returns the content of a corpus file."""
    return "\n".join("\n".join(document) + "\n" for document in documents)


def collect(library: pathlib.Path) -> list[list[str]]:
    """Returns the sentences of each document, without repeated ones.

    Args:
        library: The directory of the standard library.

    Raises:
        InputError: The library has no docstrings.
    """
    modules = [docstrings(path) for path in sources(library)]
    if not any(modules):
        raise InputError(
            f"{library}: the standard library must have source files with "
            "docstrings. Use another distribution of Python."
        )
    seen: set[str] = set()
    documents = []
    for texts in [[topics[name]] for name in sorted(topics)] + modules:
        all_sentences = (sentence for text in texts for sentence in prose(text))
        document = dict.fromkeys(s for s in all_sentences if s not in seen)
        seen.update(document)
        # Next sentence prediction needs two sentences.
        if len(document) > 1:
            documents.append(list(document))
    return documents


# Tests have little English, `encodings` has tables, and installed packages
# differ between machines.
_SKIPPED = {
    *("test", "tests", "idle_test", "encodings"),
    *("site-packages", "dist-packages"),
}


def sources(library: pathlib.Path) -> list[pathlib.Path]:
    """Returns the modules to read, sorted."""
    return [
        path
        for path in sorted(library.rglob("*.py"))
        if _SKIPPED.isdisjoint(path.relative_to(library).parts)
    ]


def parse(path: pathlib.Path) -> ast.Module | None:
    """Returns the syntax tree of a module, or None if it is not valid Python.

    The module is not imported: some modules have side effects.
    """
    try:
        return ast.parse(path.read_bytes())
    except (SyntaxError, ValueError):
        return None  # Templates, and examples of errors.


def docstrings(path: pathlib.Path) -> list[str]:
    """Returns the docstrings of a module, from top to bottom."""
    module = parse(path)
    if module is None:
        return []
    nodes = [
        node
        for node in ast.walk(module)
        if isinstance(
            node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
        )
    ]
    nodes.sort(key=lambda node: node.lineno)
    texts = [ast.get_docstring(node) for node in (module, *nodes)]
    return [text for text in texts if text]


def prose(text: str) -> Iterator[str]:
    """Yields the English sentences of a topic or a docstring."""
    for paragraph in paragraphs(text):
        for sentence in sentences(paragraph):
            if is_prose(sentence):
                yield sentence


# Starts of paragraphs that are not part of the first sentence.
_LEAD = re.compile(
    r"""
    (?: [-*+•o] | \(? (?:\d\d?|[a-z]|[ivx]+) [.)] ) \ +       # * or 1. or (b)
    | (?: New | Changed | Deprecated )\ [^:]*version\ [^:]*: \ +
    | : \w+ [^:]* : \ +                                       # :param name:
    | (?: [\w.]+ \( [^()]* \) | \S+ (?:\ \S+)? )              # name(x) or term
      (?: \ + (?: -> | --? ) \ + | \ {3,} | : \ + (?=["'A-Z]) )
    """,
    re.VERBOSE,
)
# Lines of tables, grammar and directives, and lines with only a signature.
_NO_PROSE = re.compile(
    r"""
    [|+] | [^\w\s]{3,}$ | .*::= | \.\.\  | .*\S\ {3,}\S.*\ {3,}\S
    | (?: \w+\  )? [\w.]+ \( .* \) :? $
    """,
    re.VERBOSE,
)
_HEADING = re.compile(r"^.*\S.*\n *([=*~^#\"-])\1{2,} *$", re.MULTILINE)


def paragraphs(text: str) -> Iterator[str]:
    """Yields the paragraphs of a text, each as one line, without code.

    A bullet, a definition or the description of a parameter is a paragraph.
    """
    text = _HEADING.sub("", inspect.cleandoc(text).expandtabs())
    paragraph = ""
    for line in _without_code(text.splitlines()):
        lead = _LEAD.match(line)
        if lead or not line or paragraph.endswith(":"):
            yield paragraph
            paragraph = ""
        is_hyphenated = re.search(r"\w-$", paragraph) is not None
        paragraph += "" if is_hyphenated else " "
        paragraph += line[lead.end() :] if lead else line
    yield paragraph


def _without_code(lines: Iterable[str]) -> Iterator[str]:
    """Yields the stripped lines, with empty lines in place of code.

    An interactive example ends at an empty line, a literal block after "::"
    where the indentation ends.
    """
    is_example = False
    block: int | None = None
    for line in lines:
        stripped = line.strip()
        indent = len(line) - len(line.lstrip())
        is_example = stripped.startswith(">>>") or (
            is_example and stripped != ""
        )
        if block is not None and stripped and indent <= block:
            block = None
        if is_example or block is not None or _NO_PROSE.match(stripped):
            yield ""
            continue
        yield stripped
        if stripped.endswith("::"):
            block = indent


# Markup, and its replacement.
_MARKUP = [
    (re.compile(r":\w[\w:]*:`[~!.]?([^`]+)`"), r"\1"),  # :func:`name`
    (re.compile(r"(?<!`)`([^`'\s]+)'(?!`)"), r"\1"),  # `name'
    (re.compile(r"`+_?"), ""),  # `name`, ``code``
    (re.compile(r"(?<![\w*])\*{1,2}([^\s*]|[^\s*][^*]*[^\s*])\*{1,2}"), r"\1"),
    (re.compile(r" \[\d+\]"), ""),  # Footnotes.
    (re.compile(r"::$"), ":"),
]
_END = re.compile(r"(?<=[.!?])[\"')\]]*\s+(?=[\"'(]*[A-Z])")
_ABBREVIATION = re.compile(r"\b(e\.g|i\.e|cf|vs|Mr|Mrs|Dr|St|No|ed|[A-Z])\.$")


def sentences(paragraph: str) -> Iterator[str]:
    """Yields the sentences of a paragraph, without markup.

    A sentence ends at a period, question mark or exclamation mark before a
    capital, except after an abbreviation or an initial.
    """
    for pattern, replacement in _MARKUP:
        paragraph = pattern.sub(replacement, paragraph)
    start = 0
    for end in _END.finditer(paragraph):
        if not _ABBREVIATION.search(paragraph[start : end.start()]):
            yield " ".join(paragraph[start : end.end()].split())
            start = end.end()
    yield " ".join(paragraph[start:].split())


_WORD = re.compile(r"\W{0,2}[A-Za-z]+(?:[-'’/][A-Za-z]+)*\W{0,3}$")
# Fragments, heads of compound statements, and assignments.
_CODE = re.compile(r"[\"'(]*[^\w\"'(]|[a-z].*:$|.*( = |#|\\).*[^.!?]$")
_COMMON = re.compile(
    r"\b(a|all|an|and|are|as|at|be|been|by|can|do|for|from|has|have|if|in|is|it"
    r"|its|may|must|no|not|of|on|or|same|should|so|than|that|the|their|then"
    r"|there|these|this|to|use|used|was|when|which|will|with|you|your)\b",
    re.IGNORECASE,
)


def is_prose(sentence: str) -> bool:
    """Whether a sentence is English: at least three words, and mostly words.

    Without a period it must have a very common word, which few headings and
    lists of names have.
    """
    words = sentence.split()
    if len(words) < 3 or _CODE.match(sentence):
        return False
    num_plain = sum(_WORD.match(word) is not None for word in words)
    is_english = sentence.endswith((".", "!", "?")) or _COMMON.search(sentence)
    return num_plain >= 0.75 * len(words) and bool(is_english)


if __name__ == "__main__":
    cli.run(main, PythonEnglish)
