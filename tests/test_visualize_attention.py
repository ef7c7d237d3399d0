"""visualize_attention.py: its options, and its pages in a browser."""

import json
import re

import numpy as np
import pytest
from support import chromium, command_lines, tiny

import visualize_attention
from official_bert.config import BertConfig
from official_bert.errors import InputError
from official_bert.inference import attention_page, context_page
from official_bert.inference.trained_models import (
    MASK,
    ModelFiles,
    load_encoder,
)
from official_bert.modeling.pretraining_model import PretrainingModel
from official_bert.options import VisualizeAttention
from official_bert.tasks.text import TextTask

CONFIG = {**tiny.CONFIG, "num_hidden_layers": 2}
SCRIPT = "<script>window.hacked = 1</script> & 'dog'"
SENTENCES = "the red cat\n\nCat is bad & <b>red</b>\nit is what cat cat ?\n"


def save(folder, model):
    # Training also stores moments.
    moments = {"bert/pooler/dense/bias/adam_m": np.zeros(3, np.float32)}
    tiny.save(folder, model, CONFIG, 5, **moments)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A directory with two models, sentences and two pages."""
    folder = tmp_path_factory.mktemp("pages")
    config = BertConfig.from_dict(CONFIG)
    save(folder / "pretrained", PretrainingModel(config))
    task = TextTask(task_type="classification", labels=("no", "yes"))
    save(folder / "tuned", task.build_model(config))
    described = {**task.to_json(), "max_seq_length": 16, "do_lower_case": False}
    (folder / "tuned" / "task.json").write_text(json.dumps(described))
    (folder / "cats.txt").write_text(SENTENCES)
    visualize_attention.main(options(folder))
    visualize_attention.main(
        options(
            folder, text_a=None, text_b=None, word="cat", output_file="cat.html"
        )
    )
    return folder


def options(folder, **changes):
    given = {
        "model_dir": "pretrained",
        "text_a": f"The good cat [MASK] {SCRIPT}",
        "text_b": "it is bad",
        "output_file": "attention.html",
        "max_seq_length": 64,
        **changes,
    }
    if given.get("word"):
        given["input_file"] = given.get("input_file", "cats.txt")
    for name in given:
        if re.search("(_dir|_file|_checkpoint)$", name) and given[name]:
            given[name] = str(folder / given[name])
    return VisualizeAttention(**given)


def load(options):
    return load_encoder(ModelFiles.of_options(options), never_split=(MASK,))


@pytest.fixture(scope="module")
def expected(folder):
    """The attention that the page shows."""
    loaded = load(options(folder))
    given = options(folder)
    return attention_page.compute(loaded, given.text_a, given.text_b)


def test_pages_load_nothing_and_escape_the_text(folder):
    for name in ("attention.html", "cat.html"):
        page = (folder / name).read_text()
        urls = re.findall(r"\w+://[^\s\"'<]+", page)
        assert [url for url in urls if "www.w3.org" not in url] == []
        assert "default-src 'none'" in page
    assert "<script>window" not in (folder / "attention.html").read_text()
    assert "<b>red" not in (folder / "cat.html").read_text()


def test_run_directory_and_model_files_give_the_same_attention(
    folder, expected
):
    of_files = options(
        folder,
        model_dir=None,
        bert_config_file="pretrained/bert_config.json",
        vocab_file="pretrained/vocab.txt",
        init_checkpoint="pretrained/model.ckpt-3",
    )
    # The seed and its name determine a weight.
    for given in (of_files, options(folder, model_dir="tuned")):
        loaded = load(given)
        found = attention_page.compute(loaded, "good cat [MASK]", "it is bad")
        again = attention_page.compute(
            load(options(folder)), "good cat [MASK]", "it is bad"
        )
        assert found.tokens == again.tokens
        assert "[MASK]" in found.tokens
        np.testing.assert_array_equal(found.probabilities, again.probabilities)


def test_left_to_right_models_have_triangular_attention(folder):
    config = BertConfig.from_dict({**CONFIG, "is_left_to_right": True})
    model = PretrainingModel(config)
    tiny.save(folder / "ltr", model, config.to_dict(), 5)
    found = attention_page.compute(
        load(options(folder, model_dir="ltr")),
        "good cat",
        "it is bad",
    )
    later = np.triu(np.ones(found.probabilities.shape[-2:]), 1) == 1
    assert np.all(found.probabilities[..., later] == 0)


def test_case_of_a_fine_tuned_model_follows_from_its_run(folder):
    tuned = load(options(folder, model_dir="tuned"))
    other = load(options(folder))
    assert attention_page.compute(tuned, "Good cat").tokens[1] == "[UNK]"
    assert attention_page.compute(other, "Good cat").tokens[1] == "good"


ATTENTION = "--model_dir=pretrained --text_a=cat"
WORD = "--model_dir=pretrained --word=cat"
FILES = "--text_a=cat --bert_config_file=pretrained/bert_config.json"
WRONG = [
    ("--model_dir=pretrained --text_b=dog", "--text_b=dog needs --text_a"),
    (f"{WORD} --text_a=dog", "--text_a=dog conflicts with --word=cat"),
    (f"{WORD} --input_file=cats.txt --text_b=dog", "--text_b=dog needs"),
    (f"{ATTENTION} --input_file=cats.txt", "--input_file=.* needs --word"),
    (f"{WORD} --input_file=none", "--input_file=none"),
    (f"{ATTENTION} --text_a=", "--text_a"),
    (f"{ATTENTION} --text_b=caf\udce9", "--text_b=.* UTF-8"),
    ("--text_a=cat", "--init_checkpoint must be given, or --model_dir"),
    (f"{ATTENTION} --vocab_file=v", "conflicts with --vocab_file"),
    (FILES, "--init_checkpoint.* must be given"),
    ("--model_dir=none --text_a=cat", "--model_dir=none"),
    ("--model_dir=tuned --text_a=cat --do_lower_case", "--do_lower_case"),
    (f"{ATTENTION} --max_seq_length=65", "max_seq_length=65"),
    (f"{ATTENTION} --output_file=pretrained/vocab.txt", "=pretrained/vocab"),
]


@pytest.mark.parametrize(("command_line", "message"), WRONG)
def test_invalid_flags_are_an_error(folder, monkeypatch, command_line, message):
    monkeypatch.chdir(folder)
    with pytest.raises(InputError, match=message):
        command_lines.parse(
            VisualizeAttention,
            f"--output_file=a.html --max_seq_length=64 {command_line}",
        )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"text_a": "cat " * 20, "max_seq_length": 16},
            "^--text_a and --text_b: 26 .*=16. Pass --max_seq_length=26",
        ),
        ({"text_a": "cat " * 70, "max_seq_length": 64}, "has 64 positions"),
        ({"text_b": "\u200b\x00"}, "^--text_b="),
    ],
)
def test_text_that_is_too_long_or_empty_is_an_error(folder, changes, message):
    with pytest.raises(InputError, match=message):
        visualize_attention.main(
            options(folder, output_file="none.html", **changes)
        )
    assert not (folder / "none.html").exists()


def test_too_many_tokens_for_a_page_are_an_error(folder, monkeypatch):
    monkeypatch.setattr(attention_page, "_MAX_PROBABILITIES", 8 * 100)
    with pytest.raises(InputError, match=r"8 heads.* 10"):
        visualize_attention.main(options(folder))


# In a browser.


@pytest.fixture(scope="module")
def driver():
    with chromium.browser() as started:
        yield started


@pytest.fixture
def page(driver, folder):
    """The attention page, newly opened; fails on console errors."""
    chromium.show(driver, folder / "attention.html")
    yield driver
    assert chromium.console_messages(driver) == []


def find(driver, selector):
    return driver.find_elements("css selector", selector)


def lines(driver):
    """Returns {(from, to): weight} of the lines; checks their opacity."""
    drawn = driver.execute_script(
        "return [...document.querySelectorAll('#lines path')].map(line => "
        "[line.dataset.from, line.dataset.to, line.dataset.weight, "
        "line.getAttribute('stroke-opacity')])"
    )
    for *_, weight, opacity in drawn:
        assert float(opacity) == pytest.approx(float(weight), abs=6e-5)
    return {(int(f), int(t)): float(weight) for f, t, weight, _ in drawn}


def numbers(driver, column):
    """Returns {index: the number beside the token}."""
    texts = driver.execute_script(
        "return [...document.querySelectorAll("
        f"'[data-column={column}] .number')].map(span => span.textContent)"
    )
    return {n: float(text) for n, text in enumerate(texts) if text}


def check(drawn, probabilities):
    """Asserts that the lines are those of a head."""
    assert drawn == {
        (f, t): pytest.approx(float(value), abs=0.51 / 65535)
        for (f, t), value in np.ndenumerate(probabilities)
        if value >= 1 / 255
    }


def choose(driver, layer, head):
    (button,) = find(driver, f'[data-layer="{layer}"][data-head="{head}"]')
    button.click()


def hover(driver, selector):
    from selenium.webdriver import ActionChains

    (element,) = find(driver, selector)
    driver.execute_script(
        "arguments[0].scrollIntoView({block: 'center'})", element
    )
    ActionChains(driver).move_to_element(element).perform()


def test_page_shows_the_tokens_and_the_text(page, expected):
    for column in ("from", "to"):
        shown = find(page, f".tokens.{column} bdi")
        assert [element.text for element in shown] == expected.tokens
    assert len(find(page, ".thumb")) == 2 * 4
    assert SCRIPT in find(page, "#text-a")[0].text
    assert page.execute_script("return window.hacked") is None


def test_lines_show_the_attention_of_the_chosen_head(page, expected):
    for layer in range(2):
        for head in range(4):
            choose(page, layer, head)
            check(lines(page), expected.probabilities[layer, head])
            (chosen,) = find(page, '.thumb[aria-pressed="true"]')
            assert chosen.accessible_name == (
                f"Layer {layer + 1}, head {head + 1}"
            )
            assert find(page, "#head")[0].get_property("value") == str(head)


def test_overview_has_a_different_picture_for_every_head(page):
    pictures = page.execute_script(
        "return [...document.querySelectorAll('.thumb canvas')]"
        ".map(canvas => canvas.toDataURL())"
    )
    blank = page.execute_script(
        "const c = document.querySelector('canvas').cloneNode();"
        "return c.toDataURL()"
    )
    assert len({*pictures, blank}) == 2 * 4 + 1


def test_lists_choose_layer_and_head(page, expected):
    for name, value in (("layer", 2), ("head", 3)):
        (option,) = find(page, f"#{name} option:nth-child({value})")
        option.click()
    check(lines(page), expected.probabilities[1, 2])


@pytest.mark.parametrize("column", ["from", "to"])
def test_hovering_shows_the_lines_of_one_token(page, expected, column):
    choose(page, 1, 3)
    hover(page, f'.token[data-column="{column}"][data-index="3"]')
    whole = expected.probabilities[1, 3]
    only = np.zeros_like(whole)
    mine = np.s_[3, :] if column == "from" else np.s_[:, 3]
    only[mine] = whole[mine]
    check(lines(page), only)
    other = "to" if column == "from" else "from"
    assert numbers(page, column) == {}
    assert numbers(page, other) == {
        n: pytest.approx(float(value), abs=0.00051)
        for n, value in enumerate(whole[mine])
    }
    hover(page, "h1")
    check(lines(page), whole)
    assert numbers(page, other) == {}


@pytest.mark.parametrize("pair", ["AA", "AB", "BA", "BB"])
def test_filter_shows_the_attention_between_two_segments(page, expected, pair):
    (label,) = find(page, f"label:has([value={pair}])")
    label.click()
    segments = np.array(expected.segment_ids)
    keep = np.outer(segments == "AB".index(pair[0]), segments == 1)
    if pair[1] == "A":
        keep = np.outer(segments == "AB".index(pair[0]), segments == 0)
    left = np.where(keep, expected.probabilities[0, 0], 0)
    assert lines(page)
    check(lines(page), left)
    first = int(np.argmax(segments == "AB".index(pair[0])))
    hover(page, f'.token[data-column="from"][data-index="{first}"]')
    assert [*numbers(page, "to")] == [*np.flatnonzero(keep[first])]


def test_page_works_from_the_keyboard(page, expected):
    from selenium.webdriver import ActionChains, Keys

    def press(*keys):
        ActionChains(page).send_keys(*keys).perform()

    page.execute_script("document.querySelector('.thumb').focus()")
    press(Keys.ARROW_RIGHT, Keys.ARROW_DOWN)
    whole = expected.probabilities[1, 1]
    check(lines(page), whole)
    # Tab stops: two lists, the filters, the tokens.
    press(Keys.TAB, Keys.TAB, Keys.TAB, Keys.ARROW_RIGHT)
    assert find(page, ":checked[name=filter]")[0].get_property("value") == "AA"
    press(Keys.ARROW_LEFT, Keys.TAB, Keys.ARROW_DOWN, Keys.ARROW_DOWN)
    assert {start for start, _ in lines(page)} == {2}
    assert "good" in find(page, "#spoken")[0].text
    press(Keys.ENTER)
    hover(page, "h1")
    page.execute_script("document.activeElement.blur()")
    assert {start for start, _ in lines(page)} == {2}
    press(Keys.ESCAPE)
    check(lines(page), whole)


def test_heat_map_shows_the_cosines_of_the_chosen_layer(driver, folder):
    loaded = load(options(folder))
    expected = context_page.compare(loaded, "cat", str(folder / "cats.txt"))
    chromium.show(driver, folder / "cat.html")
    marked = find(driver, "#heat mark")
    assert [mark.text for mark in marked] == ["cat", "Cat", "cat", "cat"]
    assert "Cat is bad & <b>red</b>" in driver.page_source.replace(
        "&lt;", "<"
    ).replace("&gt;", ">").replace("&amp;", "&").replace("<mark>", "").replace(
        "</mark>", ""
    )
    for layer in (2, 0, 1):
        driver.execute_script(
            "const range = document.getElementById('layer');"
            f"range.value = {layer};"
            "range.dispatchEvent(new Event('input'))"
        )
        cells = [
            float(cell.text) for cell in find(driver, "#heat td[data-row]")
        ]
        np.testing.assert_allclose(
            np.reshape(cells, (4, 4)), expected.cosines[layer], atol=0.00506
        )
    hover(driver, 'td[data-row="1"][data-column="3"]')
    said = find(driver, "#pair")[0].text
    assert "Cat is bad" in said
    assert "it is what cat" in said
    assert f"{expected.cosines[1][1, 3]:.4f}" in said
    assert chromium.console_messages(driver) == []
