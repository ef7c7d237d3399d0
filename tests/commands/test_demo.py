import importlib
import re
import shlex

import pytest
import python_english
from support import chromium, command_lines, conversions, tiny
from support.run_outputs import read_json

from official_bert.commands import COMMANDS, demo
from official_bert.errors import InputError
from official_bert.io import processes
from official_bert.options import Demo

SIZES = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2}
SMALL = {**SIZES, "intermediate_size": 8}


def run_in_this_process(step):
    """Runs a command without importing TensorFlow again."""
    path, *flags = step.command
    name = path.removesuffix(".py")
    module = name.removeprefix("data/")
    if name in COMMANDS:
        module = f"official_bert.commands.{name}"
    command_lines.run(importlib.import_module(module), shlex.join(flags))


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """Runs the demo with small models; returns its directory."""
    folder = tmp_path_factory.mktemp("demo")
    words = {word for text in demo.BLANKS for word in text.lower().split()}
    vocab = [*tiny.VOCAB, *sorted(words)]
    config = {**tiny.CONFIG, **SMALL, "vocab_size": len(vocab)}
    config["max_position_embeddings"] = 128
    tiny.save_pretrained(folder / "tf1", config, 5)
    tiny.write_model_files(folder / "tf1", config, vocab)
    conversions.to_hf(folder / "tf1", name="model")
    chapters = demo.chapters

    def shorten(directory):
        steps = chapters(directory)
        for step in steps["2. Fine-tuning"]:
            if step.command[0] == "run_classifier.py":
                step.command.append("--num_train_epochs=0.1")
        sizes = [f"--{name}={size}" for name, size in SIZES.items()]
        steps["3. Pre-training from scratch"][1].command.extend(sizes)
        return steps

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(demo, "MODEL", str(folder / "model"))
        patch.setattr(demo, "NUM_TRAIN_STEPS", 9)
        patch.setattr(demo, "chapters", shorten)
        with patch.context() as while_running:
            while_running.setattr(demo, "run", run_in_this_process)
            # Fewer sentences: those of the language reference and a package.
            library = python_english.LIBRARY / "asyncio"
            while_running.setattr(python_english, "LIBRARY", library)
            demo.main(Demo(output_dir=str(folder / "demo")))
        yield folder / "demo"


@pytest.mark.slow
def test_finished_steps_are_skipped(finished, capfd):
    (finished / "pretraining" / "held_out.tfrecord").unlink()
    demo.main(Demo(output_dir=str(finished)))
    shown = capfd.readouterr().out
    num_steps = sum(map(len, demo.chapters("demo").values()))
    assert shown.count("already done") == num_steps - 1
    assert shown.count("\npython ") == 1
    rows = re.findall(r"^  (.*?) +([\d.]+)%", shown, re.M)
    values = {name: float(value) for name, value in rows}
    majority, most_frequent = [n for n in values if n.startswith("always ")]
    assert majority in ("always 'correct'", "always 'swapped'")
    assert values[majority] == pytest.approx(50, abs=0.3)
    assert 3 < values[most_frequent] < 9
    assert {"from random weights", "after 0 steps", "after 9 steps"} < {*values}
    # Measured in the same way as `recall@1` of the fine-tuned model.
    results = read_json(finished / "search" / "eval_results.json")
    first = 100 * results["recall@1"]
    assert values["after training"] == pytest.approx(first, abs=0.06)


@pytest.mark.slow
def test_page_shows_results_and_attention(finished):
    with chromium.browser() as driver:
        chromium.show(driver, finished / "report.html")

        def texts(selector):
            found = driver.find_elements("css selector", selector)
            return [element.text for element in found]

        assert texts("#blanks th") == [*demo.BLANKS]
        *others, most_frequent = texts("#pretraining tbody th")
        assert most_frequent.startswith("always ")
        assert others == ["after 0 steps", "after 9 steps"]
        assert len(texts("#finetuning tbody th")) == 3 + len(demo.SENTENCES)
        for section in ("finetuning", "pretraining"):
            (plot,) = driver.find_elements("css selector", f"#{section} svg")
            assert plot.size["width"] > 600
        assert texts("#queries th") == [*demo.QUERIES]
        assert len(texts("#queries div")) == 3 * len(demo.QUERIES)
        driver.switch_to.frame(driver.find_element("css selector", "iframe"))
        assert texts("#text-a") == [demo.TEXT_A]
        assert driver.find_elements("css selector", "#lines path")


@pytest.mark.slow
def test_click_on_a_function_shows_similar_ones(finished):
    with chromium.browser() as driver:
        chromium.show(driver, finished / "report.html")
        words = driver.find_element("id", "words")
        words.clear()
        words.send_keys("Loop event")
        matches = driver.find_elements("css selector", "#matches button")
        shown = [match.text.lower() for match in matches]
        assert len(matches) > 1
        assert all("event" in text and "loop" in text for text in shown)
        count = driver.find_element("id", "count").text
        assert re.fullmatch(r"\d+ of \d+ are shown\.", count)
        driver.execute_script("arguments[0].click()", matches[1])
        title = driver.find_element("css selector", "#similar h3").text.lower()
        assert shown[1].startswith(title[len("similar to “") : -1])
        similar = driver.find_elements("css selector", "#similar button")
        cosines = [float(button.text.split()[0]) for button in similar]
        assert len(cosines) in (6, 7)
        assert cosines == sorted(cosines, reverse=True)
        assert shown[1] not in [b.text.lower()[5:] for b in similar]


@pytest.mark.parametrize(("status", "shown"), [(-9, 137), (143, 143)])
def test_step_that_was_stopped_ends_the_demo(monkeypatch, status, shown):
    def stopped(process):
        process.kill()
        process.wait()
        return status

    monkeypatch.setattr(processes, "wait", stopped)
    with pytest.raises(SystemExit, match=rf"^{shown}$"):
        demo.run(demo.Step("Ask", "none", ["predict.py"]))


def test_unusable_directory_is_an_error_at_the_start():
    with pytest.raises(InputError, match="de mo "):
        Demo(output_dir="de mo [1]").resolve()
