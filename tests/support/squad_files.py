"""Small SQuAD files for tests."""

import json


def write(path, *paragraphs, **changes):
    """Writes paragraphs to a JSON file; returns its name.

    A paragraph is a context and its questions: (id, question, answer or None,
    offset of the answer). `changes` are made to each question.
    """
    nodes = [
        {"context": text, "qas": [_question(*q) | changes for q in questions]}
        for text, *questions in paragraphs
    ]
    path.write_text(json.dumps({"data": [{"paragraphs": nodes}]}))
    return str(path)


def _question(name, question, text, start):
    answers = [{"text": text, "answer_start": start}]
    return {
        "id": name,
        "question": question,
        "is_impossible": text is None,
        "answers": [] if text is None else answers,
    }
