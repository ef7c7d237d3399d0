import json
import re

import pytest

from docs import run_notebooks

PARTS = {path.stem: path for path in run_notebooks.NOTEBOOKS}


def outputs(notebook):
    """Returns the text and the errors of each code cell."""
    texts = []
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            text = ""
            for output in cell["outputs"]:
                assert output["output_type"] != "error", output
                data = output.get("data", {}).get("text/plain", "")
                text += "".join(output.get("text", data))
            texts.append(text)
    return texts


@pytest.mark.parametrize("name", PARTS)
def test_stored_outputs_are_short_and_complete(name):
    notebook = json.loads(PARTS[name].read_text())
    cells = [c for c in notebook["cells"] if c["cell_type"] == "code"]
    counts = [cell["execution_count"] for cell in cells]
    assert counts == [*range(1, len(cells) + 1)]
    for text in outputs(notebook):
        assert len(text.splitlines()) <= 25
        assert not re.search(r"/tmp|/home|/root|site-packages|Traceback", text)


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    for package in ("nbclient", "ipykernel"):
        pytest.importorskip(package, reason=f"needs {package}")
    with run_notebooks.workspace(tmp_path_factory.mktemp("notebooks")) as found:
        yield found


@pytest.mark.trains
@pytest.mark.nightly
def test_csv_notebook_trains_a_model_that_beats_the_baseline(directory):
    notebook = run_notebooks.run(PARTS["finetune_on_your_csv"], directory)
    *_, trained, data, predicted, matrix, suspects = outputs(notebook)
    model, baseline = re.search(r"accuracy +(\S+) +(\S+)", trained).groups()
    assert float(model) > float(baseline) + 0.2
    assert "examples" in data
    answers = [json.loads(line) for line in predicted.splitlines()]
    assert answers[0]["label"] == "good"
    num_held_out = int(re.search(r"dev, (\d+) examples", trained)[1])
    assert sum(map(int, re.findall(r"\d+", matrix))) == num_held_out
    is_wrong = r"\tgood\tbad\t.*(boring|awful|tedious|clumsy|dreadful)"
    is_wrong += r"|\tbad\tgood\t.*(superb|delightful|moving|clever|funny)"
    assert len(re.findall(is_wrong, suspects)) >= 5


@pytest.mark.trains
@pytest.mark.nightly
def test_keras_notebook_trains_and_loads_the_model_it_saved(directory):
    notebook = run_notebooks.run(PARTS["keras_build_fit_save"], directory)
    texts = outputs(notebook)
    fitted = next(text for text in texts if "epoch 5" in text)
    assert float(fitted.split()[-1]) > 0.9
    assert any("equal: True" in text for text in texts)
