import re

import numpy as np
import pytest
from support import chromium, command_lines, tiny

from official_bert.commands import visualize_attention
from official_bert.errors import InputError
from official_bert.inference import attention_page, context_page
from official_bert.inference.trained_models import MASK, load_encoder
from official_bert.options import VisualizeAttention
from official_bert.tasks.classification import ClassificationTask

pytestmark = pytest.mark.slow

CONFIG = {**tiny.CONFIG, "num_hidden_layers": 2}
SCRIPT = "<script>window.hacked = 1</script> & 'dog'"
SENTENCES = "the red cat\n\nCat is bad & <b>red</b>\nit is what cat cat ?\n"


@pytest.fixture(scope="module", autouse=True)
def folder(tmp_path_factory):
    """The current directory, with two models, sentences and two pages."""
    folder = tmp_path_factory.mktemp("pages")
    # Training also stores moments.
    moments = {"bert/pooler/dense/bias/adam_m": np.zeros(3, np.float32)}
    tiny.save_pretrained(folder / "pretrained", CONFIG, 5, **moments)
    task = ClassificationTask(labels=("no", "yes"))
    tiny.save_finetuned(folder / "tuned", task, CONFIG)
    (folder / "cats.txt").write_text(SENTENCES)
    word = {"text_a": None, "text_b": None, "word": "cat"}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        run()
        run(**word, input_file="cats.txt", output_file="cat.html")
        yield folder


def options(**changes):
    flags = {
        "model_dir": "pretrained",
        "text_a": f"The good cat [MASK] {SCRIPT}",
        "text_b": "it is bad",
        "output_file": "attention.html",
        "max_seq_length": 64,
    }
    return VisualizeAttention(**{**flags, **changes})


def run(**changes):
    visualize_attention.main(options(**changes))


def load():
    return load_encoder(options().model_files, never_split=(MASK,))


@pytest.fixture(scope="module")
def expected():
    texts = options()
    return attention_page.compute(load(), texts.text_a, texts.text_b)


def test_pages_load_nothing_and_escape_the_text(folder):
    for name in ("attention.html", "cat.html"):
        page = (folder / name).read_text()
        urls = re.findall(r"\w+://[^\s\"'<]+", page)
        assert [url for url in urls if "www.w3.org" not in url] == []
        assert "default-src 'none'" in page
    assert "<script>window" not in (folder / "attention.html").read_text()
    assert "<b>red" not in (folder / "cat.html").read_text()


def test_page_has_the_name_of_the_model(folder):
    line = "--text_a=cat --output_file=named.html"
    command_lines.run(visualize_attention, line)
    page = (folder / "named.html").read_text()
    assert "bert_tiny_demo: 2 layers of 2 heads" in page


def test_probabilities_are_those_of_the_model_for_two_segments():
    model = load()
    found = attention_page.compute(model, "good cat", "dog")
    assert found.tokens == ["[CLS]", "good", "cat", "[SEP]", "dog", "[SEP]"]
    assert found.segment_ids == [0, 0, 0, 0, 1, 1]
    ids = np.array([model.tokenizer.convert_tokens_to_ids(found.tokens)])
    for segment_ids, is_same in ((found.segment_ids, True), ([0] * 6, False)):
        output = model.bert(
            ids, segment_ids=np.array([segment_ids]), return_attention=True
        )
        layers = [layer[0].numpy() for layer in output.attention_probs]
        assert np.array_equal(layers, found.probabilities) == is_same


def test_encoder_of_a_fine_tuned_model_is_loaded(expected):
    # Both models were made with the same seed, so their encoders are equal.
    line = "--model=tuned --text_a=cat --max_seq_length=64 --output_file=a.html"
    files = command_lines.parse(VisualizeAttention, line).model_files
    model, texts = load_encoder(files, never_split=(MASK,)), options()
    found = attention_page.compute(model, texts.text_a, texts.text_b)
    assert found.tokens == expected.tokens
    assert "[MASK]" in found.tokens
    np.testing.assert_array_equal(found.probabilities, expected.probabilities)


ATTENTION = "--model_dir=pretrained --text_a=cat"
WORD = "--model_dir=pretrained --word=cat"
WRONG = [
    ("--model_dir=pretrained --text_b=dog", "--text_b=dog needs --text_a"),
    (f"{WORD} --text_a=dog", "--text_a=dog conflicts with --word=cat"),
    (f"{WORD} --input_file=cats.txt --text_b=dog", "--text_b=dog needs"),
    (f"{ATTENTION} --model=tuned", "--model_dir=pretrained .* --model=tuned"),
    (f"{ATTENTION} --input_file=cats.txt", "--input_file=.* needs --word"),
    (f"{WORD} --input_file=none", "--input_file=none"),
    (f"{ATTENTION} --text_a=", "--text_a"),
    (f"{ATTENTION} --text_b=caf\udce9", "--text_b=.* UTF-8"),
    ("--model_dir=tuned --text_a=cat --do_lower_case", "--do_lower_case"),
    (f"{ATTENTION} --max_seq_length=65", "max_seq_length=65"),
    (f"{ATTENTION} --output_file=pretrained/vocab.txt", "=pretrained/vocab"),
]


@pytest.mark.parametrize(("command_line", "message"), WRONG)
def test_invalid_flags_are_an_error(command_line, message):
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
        run(output_file="none.html", **changes)
    assert not (folder / "none.html").exists()


def test_too_many_tokens_for_a_page_are_an_error(monkeypatch):
    monkeypatch.setattr(attention_page, "_MAX_PROBABILITIES", 8 * 100)
    with pytest.raises(InputError, match=r"exceed the 10 .* 8 heads"):
        run()


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
        "line.getAttribute('stroke-opacity')].map(Number))"
    )
    for *_, weight, opacity in drawn:
        assert opacity == pytest.approx(weight, abs=6e-5)
    return {(f, t): weight for f, t, weight, _ in drawn}


def numbers(driver, column):
    """Returns {index: the number beside the token}."""
    spans = find(driver, f"[data-column={column}] .number")
    texts = [span.get_property("textContent") for span in spans]
    return {n: float(text) for n, text in enumerate(texts) if text}


def check(driver, probabilities):
    """Asserts that the lines show the probabilities of a head."""
    assert lines(driver) == {
        place: pytest.approx(float(value), abs=0.51 / 65535)
        for place, value in np.ndenumerate(probabilities)
        if value >= 1 / 255
    }


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
    assert SCRIPT in find(page, "#text-a")[0].text
    assert page.execute_script("return window.hacked") is None


def test_lines_show_the_attention_of_the_chosen_head(page, expected):
    for layer, head in np.ndindex(2, 4):
        (button,) = find(page, f'[data-layer="{layer}"][data-head="{head}"]')
        button.click()
        check(page, expected.probabilities[layer, head])
        (chosen,) = find(page, '.thumb[aria-pressed="true"]')
        assert chosen.accessible_name == f"Layer {layer + 1}, head {head + 1}"
        assert find(page, "#head")[0].get_property("value") == str(head)
    for option, place in (
        ("#head :nth-child(3)", (1, 2)),
        ("#layer :first-child", (0, 2)),
    ):
        find(page, option)[0].click()
        check(page, expected.probabilities[place])
    # Each head has its own picture.
    pictures = page.execute_script(
        "const all = [...document.querySelectorAll('.thumb canvas')];"
        "return [...all, all[0].cloneNode()].map(c => c.toDataURL())"
    )
    assert len(pictures) == len(set(pictures)) == 2 * 4 + 1


@pytest.mark.parametrize(("column", "other"), [("from", "to"), ("to", "from")])
def test_hovering_shows_the_lines_of_one_token(page, expected, column, other):
    hover(page, f'.token[data-column="{column}"][data-index="3"]')
    head = expected.probabilities[0, 0]
    one_token = np.zeros_like(head)
    lines_of_token = np.s_[3, :] if column == "from" else np.s_[:, 3]
    one_token[lines_of_token] = head[lines_of_token]
    check(page, one_token)
    assert numbers(page, column) == {}
    assert numbers(page, other) == {
        n: pytest.approx(float(value), abs=0.00051)
        for n, value in enumerate(head[lines_of_token])
    }
    hover(page, "h1")
    check(page, head)
    assert numbers(page, other) == {}


@pytest.mark.parametrize("pair", ["AA", "AB", "BA", "BB"])
def test_filter_shows_the_attention_between_two_segments(page, expected, pair):
    (label,) = find(page, f"label:has([value={pair}])")
    label.click()
    segments = np.array(["AB"[number] for number in expected.segment_ids])
    keep = np.outer(segments == pair[0], segments == pair[1])
    assert lines(page)
    check(page, np.where(keep, expected.probabilities[0, 0], 0))
    first = int(np.argmax(segments == pair[0]))
    hover(page, f'.token[data-column="from"][data-index="{first}"]')
    assert [*numbers(page, "to")] == [*np.flatnonzero(keep[first])]


def test_page_works_from_the_keyboard(page, expected):
    from selenium.webdriver import ActionChains, Keys

    def press(*keys):
        ActionChains(page).send_keys(*keys).perform()

    page.execute_script("document.querySelector('.thumb').focus()")
    press(Keys.ARROW_RIGHT, Keys.ARROW_DOWN)
    head = expected.probabilities[1, 1]
    check(page, head)
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
    check(page, head)


def test_heat_map_shows_the_cosines_of_the_chosen_layer(driver, folder):
    model = load()
    contexts = context_page.find(model, "cat", "cats.txt")
    cosines = context_page.compare(model, contexts)
    chromium.show(driver, folder / "cat.html")
    marked = find(driver, "#heat mark")
    assert [mark.text for mark in marked] == ["cat", "Cat", "cat", "cat"]
    table = find(driver, "#heat")[0].get_property("textContent")
    assert "Cat is bad & <b>red</b>" in table
    for layer in (2, 0, 1):
        driver.execute_script(
            "const range = document.getElementById('layer');"
            f"range.value = {layer};"
            "range.dispatchEvent(new Event('input'))"
        )
        cells = find(driver, "#heat td[data-row]")
        shown = np.reshape([float(cell.text) for cell in cells], (4, 4))
        np.testing.assert_allclose(shown, cosines[layer], atol=0.00506)
    hover(driver, 'td[data-row="1"][data-column="3"]')
    caption = find(driver, "#pair")[0].text
    for text in ("Cat is bad", "it is what cat", f"{cosines[1][1, 3]:.4f}"):
        assert text in caption
