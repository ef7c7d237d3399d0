import re
import struct
import time

import matplotlib.image
import numpy as np
import pytest
import tensorflow as tf
from support import chromium, tiny, write_json
from support.run_outputs import read_json_lines

from official_bert import plots
from official_bert.errors import InputError
from official_bert.plots import confusion_matrix, figures, training_curves


def write(folder, scalars):
    """Writes {name: {step: value}} as training does; returns the new file."""
    before = {*folder.glob("events*")}
    writer = tf.summary.create_file_writer(str(folder))
    with writer.as_default():
        for name, points in scalars.items():
            for step, value in points.items():
                tf.summary.scalar(name, value, step=step)
    writer.close()
    time.sleep(0.01)  # The next file gets a later time.
    (file,) = {*folder.glob("events*")} - before
    return file


def read_training(folder):
    """Returns the curves of training."""
    found = training_curves.read(str(folder))
    assert found.evaluation == {}
    return found.training


def test_resumed_run_replaces_what_the_killed_run_wrote_later(tmp_path):
    write(tmp_path, {"loss": {10: 5.0, 20: 4.0, 30: 3.0, 40: 2.5}})
    write(tmp_path, {"loss": {30: 3.5}, "norm": {30: 1.0}})
    write(tmp_path, {})
    found = read_training(tmp_path)
    assert found == {"loss": {10: 5.0, 20: 4.0, 30: 3.5}, "norm": {30: 1.0}}


def test_last_evaluation_of_a_step_counts(tmp_path):
    for step, value in ((10, 0.5), (20, 0.75), (30, 0.25), (20, 1.0)):
        write(tmp_path / "eval", {"eval_accuracy": {step: value}})
    found = training_curves.read(str(tmp_path))
    assert found.training == {}
    points = found.evaluation["eval_accuracy"]
    assert list(points.items()) == [(10, 0.5), (20, 1.0), (30, 0.25)]


def test_event_files_are_read_in_the_order_of_their_first_event(tmp_path):
    first = write(tmp_path, {"loss": {10: 5.0, 20: 4.0}})
    # Sorts after the second file.
    first.rename(tmp_path / "events.out.tfevents.9999999999.z.1.0.v2")
    write(tmp_path, {"loss": {20: 3.0}})
    assert read_training(tmp_path) == {"loss": {10: 5.0, 20: 3.0}}


@pytest.mark.parametrize("fault", ["length", "data", "end"])
def test_damaged_record_ends_a_curve_with_a_warning(tmp_path, caplog, fault):
    file = write(tmp_path, {"loss": {10: 5.0, 20: 4.0, 30: 3.0}})
    read_training(tmp_path)
    assert "not drawn" not in caplog.text
    data = bytearray(file.read_bytes())
    place = 0
    for _ in range(2):  # The version and the first point.
        place += struct.unpack_from("<Q", data, place)[0] + 16
    if fault == "end":
        del data[place + 5 :]
    else:
        data[place + (30 if fault == "data" else 0)] ^= 0xFF
    file.write_bytes(data)
    assert read_training(tmp_path) == {"loss": {10: 5.0}}
    assert f"{file}: data from byte {place} of" in caplog.text


def test_run_directory_without_events_has_no_plots(tmp_path):
    assert training_curves.read(str(tmp_path / "none")) is None
    assert plots.write(str(tmp_path)) == []
    assert list(tmp_path.iterdir()) == []


def test_smoothed_curve_is_an_unbiased_exponential_average():
    values = np.random.default_rng(1).normal(size=200)
    found = training_curves.smooth(values)
    expected = [
        np.average(values[: n + 1], weights=0.9 ** np.arange(n, -1, -1))
        for n in range(200)
    ]
    np.testing.assert_allclose(found, expected, rtol=1e-9)


LABELS = ["$a_1$", "<b>&", "猫", "d"]
COUNTS = [[5, 1, 0, 0], [0, 0, 0, 0], [2, 2, 4, 0], [0, 0, 0, 9]]


def results(labels=LABELS, counts=COUNTS):
    score = {"precision": 0.5, "recall": 0.25, "f1": 0.125, "support": 3}
    return {
        "global_step": 7,
        "per_class": dict.fromkeys(labels, score),
        "confusion_matrix": counts,
    }


def pixels(path):
    data = path.read_bytes()
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    return struct.unpack(">II", data[16:24])


@pytest.mark.parametrize("more", [{}, {"dev_mismatched": results()}])
def test_matrix_of_each_split_is_drawn(tmp_path, more):
    write_json(tmp_path / "eval_results.json", {**results(), **more})
    picture, page = (
        tmp_path / f"confusion_matrix.{kind}" for kind in ("png", "html")
    )
    assert plots.write(str(tmp_path)) == [str(picture), str(page)]
    width, height = pixels(picture)
    assert width >= 400 * (1 + len(more))
    assert height >= 400
    html = page.read_text()
    assert "<h1>Confusion matrix</h1>" in html
    assert "&lt;b&gt;&amp;" in html
    assert "<b>" not in html
    cells = re.findall(r"<td style=.*?>(\d+)</td>", html)
    assert [*map(int, cells)] == np.ravel(COUNTS).tolist() * (1 + len(more))
    assert ("dev_mismatched" in html) == bool(more)


def test_matrices_of_variants_have_their_own_names(tmp_path):
    for name in ("eval_results", "eval_results_other"):
        write_json(tmp_path / f"{name}.json", results())
    written = plots.write(str(tmp_path))
    names = ("confusion_matrix", "confusion_matrix_other")
    kinds = ("png", "html")
    expected = [str(tmp_path / f"{n}.{kind}") for n in names for kind in kinds]
    assert written == expected


@pytest.fixture
def drawn(tmp_path, monkeypatch):
    """A function that draws matrices and returns the figure."""
    saved_figures = []
    write_files = figures.write

    def keep(figure, *arguments, **values):
        saved_figures.append(figure)
        return write_files(figure, *arguments, **values)

    monkeypatch.setattr(figures, "write", keep)

    def draw(labels, names=("",)):
        counts = np.eye(len(labels), dtype=int).tolist()
        (matrix,) = confusion_matrix.find(results(labels, counts))
        matrices = [matrix._replace(name=name) for name in names]
        confusion_matrix.draw(str(tmp_path), matrices)
        return saved_figures.pop()

    return draw


@pytest.mark.parametrize(
    ("num_labels", "length", "names"),
    [
        (2, 1, ("",)),
        (2, 50, ("", "dev_mismatched")),
        (26, 40, ("",)),
        pytest.param(120, 9, ("",), marks=pytest.mark.slow),
    ],
)
def test_labels_fit_in_the_picture(drawn, tmp_path, num_labels, length, names):
    labels = [chr(97 + n) * length for n in range(num_labels)]
    figure = drawn(labels, names)
    for axis in figure.axes:
        width, height = axis.get_position().size * figure.get_size_inches()
        assert width > max(2, 0.35 * min(num_labels, 40))
        assert height == pytest.approx(width, rel=0.1)
    picture = matplotlib.image.imread(tmp_path / "confusion_matrix.png")
    assert max(picture.shape) < 4000
    # Whatever is cut off would touch the edge.
    for edge in (picture[0], picture[-1], picture[:, 0], picture[:, -1]):
        assert (edge == 1).all()


def test_long_label_shows_its_start_and_end(drawn):
    labels = ["x" * 40, "a" * 26 + "b" * 11 + "c" * 13]
    (axis,) = drawn(labels).axes
    for ticks in (axis.get_xticklabels(), axis.get_yticklabels()):
        shown = [tick.get_text() for tick in ticks]
        assert shown == ["x" * 40, "a" * 26 + "…" + "c" * 13]


def test_shares_are_fractions_of_rows():
    (matrix,) = confusion_matrix.find(results())
    assert matrix.shares()[1:3] == [[0.0] * 4, [0.25, 0.25, 0.5, 0.0]]


@pytest.mark.slow
def test_browser_shows_curves_and_matrices(tmp_path):
    many = {step: 1 / step for step in range(1, 100)}
    write(tmp_path, {"loss": many, "learning_rate": many})
    write(tmp_path / "eval", {"loss": {99: 0.5}, "eval_accuracy": {99: 0.5}})
    write_json(tmp_path / "eval_results.json", results())
    assert len(plots.write(str(tmp_path))) == 4
    assert min(pixels(tmp_path / "training_curves.png")) > 400
    with chromium.browser() as driver:
        chromium.show(driver, tmp_path / "training_curves.html")
        (picture,) = driver.find_elements("css selector", "#plot svg")
        assert picture.size["width"] > 800
        axes = driver.find_elements("css selector", "#plot g[id^=axes_]")
        assert len(axes) == 3
        assert chromium.console_messages(driver) == []
        chromium.show(driver, tmp_path / "confusion_matrix.html")
        cells = driver.find_elements("css selector", "td[title]")
        assert [int(cell.text) for cell in cells] == np.ravel(COUNTS).tolist()


@pytest.mark.slow
@pytest.mark.usefixtures("without_learning")
def test_plots_flag_draws_the_evaluations_during_training(tmp_path):
    for split in ("train", "dev"):
        text = "text\tlabel\n" + "good cat\tyes\nbad dog\tno\n" * 40
        (tmp_path / f"{split}.tsv").write_text(text)
    flags = {"num_train_epochs": 6.0, "eval_every": 10, "do_predict": False}
    output, _ = tiny.run(tmp_path, task_name="tsv", plots=True, **flags)
    for name in ("training_curves", "confusion_matrix"):
        assert pixels(output / f"{name}.png")
        assert (output / f"{name}.html").exists()
    found = training_curves.read(str(output))
    assert list(found.training["loss"]) == [10, 20, 30]
    history = read_json_lines(output / "eval_history.jsonl")
    assert list(found.evaluation["eval_accuracy"]) == [10, 20, 30]
    assert found.evaluation["eval_loss"] == {
        entry["global_step"]: pytest.approx(entry["eval_loss"], rel=1e-6)
        for entry in history
    }


def test_plots_flag_without_matplotlib_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(InputError, match="--plots"):
        tiny.options(tmp_path, plots=True, task_name="tsv").resolve()
