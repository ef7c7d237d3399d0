"""What a file in SQuAD's format holds, and where something is missing.

```
{"data": [{"paragraphs": [{"context": "...", "qas": [
    {"id": "...", "question": "...", "is_impossible": false,
     "answers": [{"text": "...", "answer_start": 7}]}]}]}]}
```

`is_impossible` is what SQuAD 2.0 adds.
"""

from collections.abc import Iterator
from typing import Any

from official_bert import json_files
from official_bert.errors import InputError


def paragraphs(path: str) -> Iterator[tuple[str, Any]]:
    """Yields each paragraph's place in the file, and what stands there.

    Args:
        path: A JSON file; ``.gz`` is unpacked on the way.

    Raises:
        InputError: The file is no JSON, with the line, or lacks something.
    """
    root = json_files.read(path)
    for i, entry in enumerate(field(root, "data", list, f"{path}: (root)")):
        where = f"{path}: data[{i}]"
        for j, node in enumerate(field(entry, "paragraphs", list, where)):
            yield f"{where}.paragraphs[{j}]", node


def field(node: Any, key: str, kind: type, where: str) -> Any:
    """Returns `node[key]`.

    Args:
        node: What should be a JSON object.
        key: Of a field that it should have.
        kind: What the field should be: str, list, int or bool.
        where: The place of `node`, file first, for the message.

    Raises:
        InputError: It is not so.
    """
    name = {str: "a string", list: "a list", int: "an integer"}.get(
        kind, "true or false"
    )
    if not isinstance(node, dict) or key not in node:
        received = f"only {', '.join(node)}" if isinstance(node, dict) else node
        raise InputError(
            f"{where}: must have a field `{key}`, {name}. Received: "
            f"{str(received)[:80] or 'nothing'}. Is the file in SQuAD's format?"
        )
    if not isinstance(node[key], kind):
        raise InputError(
            f"{where}: `{key}` must be {name}. Received: "
            f"{str(node[key])[:80]!r}."
        )
    return node[key]
