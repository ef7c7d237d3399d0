"""The report of `demo.py`: a summary as text, and everything as one page."""

import collections
import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from official_bert import pages
from official_bert.inference.embedder import Embedder
from official_bert.io import files, json_files, tables
from official_bert.plots import figures, training_curves
from official_bert.runs import file_names
from official_bert.tasks.sentence_vectors import nearest
from official_bert.tokenization import Tokenizer

_COLORS = ("#1d5fbf", "#b8470f")

_NUM_RESULTS = 7  # For each query of the search.


class Table(NamedTuple):
    """A table of the report: a row is a name and its values, as text."""

    title: str
    columns: tuple[str, ...]
    rows: list[tuple[str, ...]]

    def text(self) -> str:
        """Returns the table with aligned columns."""
        indented = ((f"  {name}", *values) for name, *values in self.rows)
        lines = [(self.title, *self.columns), *indented]
        return "\n".join(
            name.ljust(42) + "".join(f"{value:>12}" for value in values)
            for name, *values in lines
        )


def write(
    directory: str, model: str, queries: Sequence[str], next_steps: str
) -> str:
    """Writes `report.html` of a finished demo; returns its tables as text.

    `queries` are searched among the functions that the demo collected.
    """
    blanks = _read_answers(f"{directory}/blanks.jsonl")
    finetuning_runs = {
        f"from {model}": f"{directory}/finetuning/pretrained",
        "from random weights": f"{directory}/finetuning/random",
    }
    finetuning = _make_finetuning_table(finetuning_runs)
    pretraining = _make_pretraining_table(f"{directory}/pretraining")
    pretraining_run = {"training": f"{directory}/pretraining/model"}
    untrained = Embedder.from_pretrained(model)
    trained = Embedder.from_pretrained(f"{directory}/search")
    embedders = {f"{model} as it is": untrained, "after training": trained}
    search = _make_search_table(directory, embedders)
    page = pages.render(
        "demo_report.html",
        model=model,
        blanks=blanks,
        attention=files.read_text(f"{directory}/attention.html"),
        finetuning=finetuning,
        finetuning_loss=_plot("loss", finetuning_runs),
        sentences=_read_answers(f"{directory}/sentences.jsonl"),
        pretraining=pretraining,
        pretraining_loss=_plot("masked_lm_loss", pretraining_run),
        search=search,
        queries=queries,
        **_search(directory, trained, queries),
        next_steps=next_steps,
    )
    files.write_text(f"{directory}/report.html", page)
    guesses: list[tuple[str, ...]] = [
        (blank["input"], blank["guesses"][0][0]["token"]) for blank in blanks
    ]
    filled = Table("Fill in the blank", ("best guess",), guesses)
    shown = (filled, finetuning, pretraining, search)
    return "\n\n".join(table.text() for table in shown)


def _read_answers(path: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in files.read_lines(path)]


def _make_finetuning_table(runs: dict[str, str]) -> Table:
    """Returns the accuracies of {name: directory}, and of a constant answer."""
    accuracies = {}
    for name, run in runs.items():
        results = json_files.read_object(f"{run}/{file_names.METRICS}")
        accuracies[name] = results["accuracy"]
    # Both runs were evaluated on the same examples.
    support = {
        label: scores["support"]
        for label, scores in results["per_class"].items()
    }
    most_frequent = max(support, key=lambda label: support[label])
    share = support[most_frequent] / sum(support.values())
    accuracies[f"always {most_frequent!r}"] = share
    return Table(
        "Are the words in order?",
        ("accuracy",),
        [(name, f"{value:.1%}") for name, value in accuracies.items()],
    )


def _make_pretraining_table(data: str) -> Table:
    rows: list[tuple[str, ...]] = []
    for name in ("untrained", "model"):
        path = f"{data}/{name}/{file_names.METRICS_TEXT}"
        lines = files.read_text(path).splitlines()
        results = dict(line.split(" = ") for line in lines)
        accuracy = float(results["masked_lm_accuracy"])
        loss = float(results["masked_lm_loss"])
        title = f"after {int(results['global_step']):,} steps"
        rows.append((title, f"{accuracy:.1%}", f"{loss:.2f}"))
    token, share = most_frequent_token(data)
    rows.append((f"always {token!r}", f"{share:.1%}", "-"))
    columns = ("accuracy", "loss")
    return Table("Masked words of held-out documents", columns, rows)


def most_frequent_token(data: str) -> tuple[str, float]:
    """Returns the most frequent token of `held_out.txt`, and its share.

    The share is the expected accuracy if this token is always the answer.
    """
    tokenizer = Tokenizer(f"{data}/vocab.txt")
    counts = collections.Counter(
        token
        for line in files.read_lines(f"{data}/held_out.txt")
        for token in tokenizer.tokenize(line)
    )
    ((token, count),) = counts.most_common(1)
    return token, count / counts.total()


def _read_functions(directory: str, part: str) -> list[tuple[str, str]]:
    """Returns the signatures of functions, and the sentence about each."""
    rows = tables.read(f"{directory}/functions/{part}.tsv", "tsv")
    return [(row.text("positive"), row.text("query")) for row in rows]


def _make_search_table(directory: str, embedders: dict[str, Embedder]) -> Table:
    """Returns how often a sentence finds its function, for each embedder."""
    signatures, sentences = zip(*_read_functions(directory, "dev"), strict=True)
    rows: list[tuple[str, ...]] = []
    for name, embedder in embedders.items():
        found = embedder.search(sentences, embedder(signatures), k=10).indices
        hits = found == np.arange(len(found))[:, np.newaxis]
        shares = hits[:, 0].mean(), hits.any(axis=1).mean()
        rows.append((name, *(f"{share:.1%}" for share in shares)))
    title = f"Find a function among {len(signatures)} by its sentence"
    return Table(title, ("first result", "first 10"), rows)


def _search(
    directory: str, embedder: Embedder, queries: Sequence[str]
) -> dict[str, Any]:
    """Returns all functions, and the results of all queries.

    The sentences about the functions are searched, and are also queries.
    Results are pairs: the number of a function, and the cosine.
    """
    functions = [
        function
        for part in ("train", "dev", "test")
        for function in _read_functions(directory, part)
    ]
    sentences = [sentence for _, sentence in functions]
    vectors = embedder([*queries, *sentences])
    indices, scores = nearest(vectors, vectors[len(queries) :], _NUM_RESULTS)
    cosines = scores.astype(float).round(2)
    rows = zip(indices.tolist(), cosines.tolist(), strict=True)
    results = [[*zip(*row, strict=True)] for row in rows]
    return {"functions": functions, "results": results}


def _plot(scalar: str, runs: dict[str, str]) -> str:
    """Returns an `svg` element with a loss curve for each {name: directory}."""
    with figures.figure(8, 3) as figure:
        axis = figure.subplots()
        for color, (name, run) in zip(_COLORS, runs.items(), strict=False):
            curves = training_curves.read(run)
            points = curves.training[scalar] if curves else {}
            values = training_curves.smooth(points.values())
            axis.plot(list(points), values, color=color, label=name)
        axis.set(xlabel="step", ylabel="training loss")
        if len(runs) > 1:
            axis.legend()
        return figures.to_svg(figure)
