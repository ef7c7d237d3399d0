"""Sentences per second of prediction, with three ways to make batches.

  python -m benchmarks.prediction DIRECTORY VOCAB_FILE 2000 [tiny mini ...]

DIRECTORY holds SST-2; the first 2,000 sentences of its training data are
predicted in batches of 32 by models with random weights. Each time is the best
of five. README.md describes the columns.
"""

import sys
import time
from unittest import mock

from benchmarks.step import CELLS
from official_bert.inference.forward import Forward
from official_bert.inputs import padding
from official_bert.modeling.finetuning_models import build_model
from official_bert.options import RunClassifier
from official_bert.tasks import glue
from official_bert.tokenization import Tokenizer

ROUNDS = 5
LENGTH = 128


def main(
    directory: str, vocab_file: str, num_examples: str, *sizes: str
) -> None:
    task = glue.make(RunClassifier(task_name="sst-2", data_dir=directory))
    examples = task.data.read("train")[: int(num_examples)]
    tokenizer = Tokenizer(vocab_file)
    blocks = list(task.featurize(examples, tokenizer, LENGTH))
    print("model     texts   padded  by length  overlapping   ratios")
    for size in sizes or ("tiny", "mini", "small", "base"):
        model = build_model(task.head, CELLS[size].config)
        padded, by_length = (
            Forward(
                task.head,
                model,
                max_seq_length=LENGTH,
                batch_size=32,
                pad_to=pad_to,
            )
            for pad_to in ("max", "bucket")
        )
        ways = {
            "padded": (padded, map),
            "by length": (by_length, map),
            "overlapping": (by_length, padding.parallel_map),
        }
        best = dict.fromkeys(ways, float("inf"))
        for _ in range(ROUNDS):
            for name, (computation, map_function) in ways.items():
                with mock.patch.object(padding, "parallel_map", map_function):
                    start = time.perf_counter()
                    for block in blocks:
                        computation.run(block)
                    seconds = time.perf_counter() - start
                best[name] = min(best[name], seconds)
        rates = [len(examples) / seconds for seconds in best.values()]
        print(
            f"{size:8} {len(examples):6,} {rates[0]:8,.0f} {rates[1]:10,.0f} "
            f"{rates[2]:12,.0f} {rates[1] / rates[0]:5.2f} "
            f"{rates[2] / rates[1]:5.2f}",
            flush=True,
        )


if __name__ == "__main__":
    main(*sys.argv[1:])
