"""A headless Chromium, where there is one: pages as their readers see them."""

import contextlib
import json
import os
import shutil

import pytest

# Without a window, a first-run greeting, or talk to its maker.
_FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1280,1000",
)


@contextlib.contextmanager
def browser():
    """Yields a Selenium driver; skips the test where there can be none."""
    webdriver = pytest.importorskip("selenium.webdriver")
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not (chromium and driver):
        pytest.skip("needs chromium and chromedriver, as of Debian's packages")
    os.environ.update(SE_OFFLINE="true", SE_AVOID_STATS="true")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in _FLAGS:
        options.add_argument(flag)
    options.set_capability(
        "goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"}
    )
    service = webdriver.ChromeService(executable_path=driver)
    started = webdriver.Chrome(options=options, service=service)
    try:
        yield started
    finally:
        started.quit()


def show(driver, path):
    """Opens a file; fails if it asks for more than itself, or complains."""
    for kind in ("performance", "browser"):
        driver.get_log(kind)  # Of the page before.
    driver.get(path.as_uri())
    events = [
        json.loads(entry["message"])["message"]
        for entry in driver.get_log("performance")
    ]
    assert {
        event["params"]["request"]["url"]
        for event in events
        if event["method"] == "Network.requestWillBeSent"
    } == {path.as_uri()}
    assert complaints(driver) == []


def complaints(driver):
    """Returns what the console has, errors of scripts among it."""
    return [entry["message"] for entry in driver.get_log("browser")]
