"""A headless Chromium, if one is installed."""

import contextlib
import json
import os
import shutil

import pytest

# No window, no welcome page, no requests to Google.
_FLAGS = """
--headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run
--disable-background-networking --disable-component-update --disable-sync
--window-size=1280,1000
"""


@contextlib.contextmanager
def browser():
    """Yields a Selenium driver, or skips the test without Chromium.

    Fails at the end if the last page has messages on the console.
    """
    webdriver = pytest.importorskip("selenium.webdriver")
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not (chromium and driver):
        pytest.skip("needs chromium and chromedriver")
    os.environ.update(SE_OFFLINE="true", SE_AVOID_STATS="true")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in _FLAGS.split():
        options.add_argument(flag)
    options.set_capability(
        "goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"}
    )
    service = webdriver.ChromeService(executable_path=driver)
    started = webdriver.Chrome(options=options, service=service)
    try:
        yield started
        assert console_messages(started) == []
    finally:
        started.quit()


def show(driver, path):
    """Opens a file; fails if it loads other files or logs errors."""
    for kind in ("performance", "browser"):
        driver.get_log(kind)  # Discards the messages of the previous page.
    driver.get(path.as_uri())
    logged = [json.loads(e["message"]) for e in driver.get_log("performance")]
    events = [entry["message"] for entry in logged]
    assert {
        event["params"]["request"]["url"]
        for event in events
        if event["method"] == "Network.requestWillBeSent"
    } == {path.as_uri()}
    assert console_messages(driver) == []


def console_messages(driver):
    """Returns the messages on the console, including errors of scripts."""
    return [entry["message"] for entry in driver.get_log("browser")]
