"""Find the Chromium that the browser tests drive; where there is none, install one."""

import os
import shutil
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

from tools import setup

NAMES = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"]
PLACES = [
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    r"C:\Program Files\Google\Chrome\Application\chrome.exe",
    r"C:\Program Files (x86)\Google\Chrome\Application\chrome.exe",
]
# Without these a browser asks outside hosts for updates, many times at each start.
OFFLINE = [
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-quic",
    "--no-first-run",
]


def arguments():
    """Command-line arguments: root in a container cannot use Chromium's sandbox."""
    return OFFLINE + (["--no-sandbox"] if is_root() else [])


def is_root():
    return hasattr(os, "geteuid") and os.geteuid() == 0


def find():
    """The path of an installed Chromium or Chrome, or of Playwright's own, or None."""
    found = [shutil.which(name) for name in NAMES] + PLACES + [playwrights_own()]
    return next((path for path in found if path and Path(path).exists()), None)


def playwrights_own():
    script = (
        "from playwright.sync_api import sync_playwright as start\n"
        "with start() as p: print(p.chromium.executable_path)"
    )
    failed, output = setup.call([setup.PYTHON, "-c", script])
    return None if failed else output.strip()


def find_or_install():
    path = find()
    if path:
        return path
    setup.say("No Chromium or Chrome found: fetching Playwright's own")
    try:
        subprocess.run(
            [str(setup.PYTHON), "-m", "playwright", "install", "chromium"],
            env=setup.environment(),
            timeout=600,
        )
    except subprocess.TimeoutExpired:
        setup.say("It did not come within ten minutes.")
    if not find() and sys.platform == "linux" and is_root() and shutil.which("apt-get"):
        setup.say("Installing Debian's chromium instead")
        quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        subprocess.run(["apt-get", "update", "-q"], env=quiet)
        subprocess.run(
            ["apt-get", "install", "-qy", "--no-install-recommends", "chromium"], env=quiet
        )
    path = find()
    if not path:
        raise setup.Stop(
            "The browser tests need Chromium or Chrome and none could be installed: install "
            "one (on Debian or Ubuntu 'apt install chromium'), then run it again."
        )
    return path


@contextmanager
def launched():
    """Chromium as Playwright drives it, as long as the block lasts."""
    from playwright.sync_api import sync_playwright  # here: set-up installs it

    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=find(), args=arguments())
        yield opened
        opened.close()
