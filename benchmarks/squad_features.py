"""SQuAD questions converted to records per CPU second.

  python -m benchmarks.squad_features TRAIN_FILE VOCAB_FILE

The reference tokenizes each word of a paragraph for each question about it, and
compares all windows for each token. It gets the first thousand questions of the
shuffled file, and `write_records` gets all of them. Both write a file. This
takes about twenty seconds. README.md describes the rows.
"""

import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf

from official_bert.tasks import record_files
from official_bert.tasks.data_set import shuffle_examples
from official_bert.tasks.squad.examples import (
    Answer,
    SquadExample,
    read_examples,
)
from official_bert.tasks.squad.features import FIRST_UNIQUE_ID
from official_bert.tasks.squad.task import SquadTask
from official_bert.tokenization import FullTokenizer, Tokenizer

TASK = SquadTask(doc_stride=128, max_query_length=64)
MAX_SEQ_LENGTH = 384
NUM_QUESTIONS = 1000


def windows(num_tokens: int, room: int) -> Iterator[tuple[int, int]]:
    start = 0
    while start + room < num_tokens:
        yield start, room
        start += min(room, TASK.doc_stride)
    yield start, num_tokens - start


def has_most_context(
    window: tuple[int, int], token: int, all_windows: list[tuple[int, int]]
) -> bool:
    best, best_score = window, -1.0
    for start, length in all_windows:
        context = min(token - start, start + length - 1 - token)
        if context >= 0 and context + 0.01 * length > best_score:
            best, best_score = (start, length), context + 0.01 * length
    return best == window


def answer_span(
    answer: Answer, tokens: list[str], words: list[int], text: str
) -> tuple[int, int]:
    first = words.index(answer.start)
    last = len(words) - 1 - words[::-1].index(answer.end)
    for start in range(first, last + 1):
        for end in range(last, start - 1, -1):
            if " ".join(tokens[start : end + 1]) == text:
                return start, end
    return first, last


def padded(values: list[int]) -> list[int]:
    return values + [0] * (MAX_SEQ_LENGTH - len(values))


def reference(
    examples: list[SquadExample], tokenizer: FullTokenizer
) -> Iterator[dict[str, Any]]:
    """Yields the features of each record."""
    unique_id = FIRST_UNIQUE_ID
    for example in examples:
        question = tokenizer.tokenize(example.question_text)
        question = question[: TASK.max_query_length]
        by_word = [tokenizer.tokenize(word) for word in example.paragraph.words]
        tokens = [token for word in by_word for token in word]
        words = [i for i, word in enumerate(by_word) for _ in word]
        assert example.answer
        text = " ".join(tokenizer.tokenize(example.answer.text))
        first, last = answer_span(example.answer, tokens, words, text)
        offset = len(question) + 2
        room = MAX_SEQ_LENGTH - offset - 1
        all_windows = list(windows(len(tokens), room))
        for start, length in all_windows:
            window = tokens[start : start + length]
            for token in range(start, start + length):
                has_most_context((start, length), token, all_windows)
            packed = ["[CLS]", *question, "[SEP]", *window, "[SEP]"]
            ids = tokenizer.convert_tokens_to_ids(packed)
            segments = [0] * offset + [1] * (len(window) + 1)
            is_inside = start <= first and last < start + length
            shift = offset - start
            yield {
                "unique_ids": [unique_id],
                "input_ids": padded(ids),
                "input_mask": padded([1] * len(ids)),
                "segment_ids": padded(segments),
                "start_positions": [first + shift if is_inside else 0],
                "end_positions": [last + shift if is_inside else 0],
                "is_impossible": [0],
            }
            unique_id += 1


def write_reference(
    path: str, examples: list[SquadExample], tokenizer: FullTokenizer
) -> None:
    with tf.io.TFRecordWriter(path) as writer:
        for values in reference(examples, tokenizer):
            example = tf.train.Example()
            for name, ids in values.items():
                example.features.feature[name].int64_list.value.extend(ids)
            data = example.SerializeToString(deterministic=True)
            writer.write(data)


def seconds(function: Callable[..., Any], *args: Any) -> float:
    start = time.process_time()
    function(*args)
    return time.process_time() - start


def main(train_file: str, vocab_file: str) -> None:
    start = time.process_time()
    examples = read_examples(
        train_file, is_training=True, version_2_with_negative=False
    )
    reading = time.process_time() - start
    examples = shuffle_examples(examples)
    print(f"{len(examples):,} questions are read in {reading:.2f} CPU s")
    with tempfile.TemporaryDirectory() as folder:
        expected, path = (os.path.join(folder, name) for name in "ab")
        few = examples[:NUM_QUESTIONS]
        reference_tokenizer = FullTokenizer(vocab_file)
        slow = seconds(write_reference, expected, few, reference_tokenizer)
        rows = {"reference": (few, slow)}
        arguments = path, TASK, examples, Tokenizer(vocab_file), MAX_SEQ_LENGTH
        for name in ("write_records", "  unchanged"):
            fast = seconds(record_files.write_records, *arguments)
            rows[name] = examples, fast
        pairs = tf.data.Dataset.zip(
            tf.data.TFRecordDataset(expected), tf.data.TFRecordDataset(path)
        )
        equal = [bool(a == b) for a, b in pairs.as_numpy_iterator()]
    reference_rate = len(few) / slow
    print("what            questions  CPU s  questions / CPU s  ratio")
    for name, (questions, cpu_seconds) in rows.items():
        rate = len(questions) / cpu_seconds
        print(
            f"{name:15} {len(questions):9,} {cpu_seconds:6.2f} {rate:18,.0f} "
            f"{rate / reference_rate:6.1f}"
        )
    print(f"{sum(equal):,} of {len(equal):,} records have the same bytes")


if __name__ == "__main__":
    main(*sys.argv[1:])
