"""A headless Chromium, driven by Selenium, for tests and benchmarks of pages.

Importing it ends the program with status 77 (skipped) where Selenium, Chromium
or its driver is missing, or the name localhost, by which Selenium reaches the
driver.
"""
import os
import shutil
import socket
import sys

try:
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys
    from selenium.webdriver.support.ui import Select, WebDriverWait
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)
try:
    socket.getaddrinfo("localhost", 80)
except OSError as error:
    print(f"skipped: the name localhost has no address: {error}")
    sys.exit(77)
if not shutil.which("chromium") or not shutil.which("chromedriver"):
    print("skipped: no chromium or chromedriver")
    sys.exit(77)

__all__ = ["ActionChains", "By", "Keys", "Select", "WebDriverWait", "open_page",
           "start_browser"]


def start_browser(home):
    """A driver; the browser's own files go to the folder `home`."""
    os.environ["HOME"] = str(home)
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    for flag in ("--headless=new", "--no-sandbox", "--disable-gpu",
                 "--disable-dev-shm-usage", "--window-size=1200,900",
                 "--hide-scrollbars"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(service=Service(shutil.which("chromedriver")),
                            options=options)


def open_page(driver, path):
    """Waits until the report marks all of its sections as drawn."""
    driver.get(path.as_uri())
    WebDriverWait(driver, 60).until(
        lambda d: d.find_element(By.TAG_NAME, "body")
        .get_attribute("data-ready") == "yes")
