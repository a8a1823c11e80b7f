"""Run the tests: the helpers, then the book as built, its pages and its explorers."""

import itertools
import os
import random
import shutil
import time
from xml.etree import ElementTree

from tools import browser, setup

REPORTS = setup.ROOT / "_build" / "tests"
PYTEST = (setup.PYTHON, "-m", "pytest", "-q")
SHAPES = "--jaxtyping-packages=attn_helpers,beartype.beartype"


def main():
    """All tests but the slow ones."""
    prepare()
    os.environ.setdefault("FUZZ_EXAMPLES", "100")  # one short round; make fuzz goes on for minutes
    of_helpers = ["tests/unit", "tests/fuzz"]
    failed = pytest("helpers", "not messages", *of_helpers, SHAPES)
    # The hook that enforces shapes would raise before our own message does.
    failed |= pytest("messages", "messages", *of_helpers)
    failed |= of_the_site("not slow")
    setup.say("The slow tests (real JupyterLab, fresh environments) run by: make test-slow")
    return total(failed)


def slow():
    """The tests marked slow, all of them of the site."""
    prepare()
    return total(of_the_site("slow"))


def fuzz():
    """Rounds of random input, each with a new seed, until FUZZ_MINUTES are over or one fails."""
    setup.prepare(tests=True)
    asked = os.environ.get("FUZZ_MINUTES", "10")
    try:
        minutes = float(asked)
    except ValueError:
        raise setup.Stop(f"FUZZ_MINUTES must be a number of minutes, got {asked}") from None
    end = time.monotonic() + 60 * minutes
    for number in itertools.count(1):
        seed = random.randrange(2**32)
        setup.say(f"Round {number}, seed {seed}")
        if setup.run(*PYTEST, "tests/fuzz", f"--hypothesis-seed={seed}", "-p", "no:cacheprovider"):
            return 1
        if time.monotonic() >= end:
            setup.say(f"No finding in {number} rounds and {minutes:g} minutes.")
            return 0


def bench():
    """The table of the book against what people would use instead."""
    setup.prepare(tests=True)
    browser.find_or_install()
    return setup.run(setup.PYTHON, "-m", "bench")


def prepare():
    setup.prepare(tests=True)
    browser.find_or_install()
    shutil.rmtree(REPORTS, ignore_errors=True)


def of_the_site(marked):
    """Build the book, test its pages; return whether something failed."""
    if setup.build_book():
        setup.say("The book does not build: its pages were not tested.")
        return True
    return pytest("site", marked, "tests/book", "tests/browser")


def pytest(name, marked, *arguments):
    setup.say(f"\nTests of the {name}")
    code = setup.run(
        *(*PYTEST, "-m", marked, *arguments),
        *("-n", "auto", "--maxprocesses", "4", "--dist", "loadfile"),
        f"--junitxml={REPORTS / name}.xml",
    )
    return code != 0  # 5, too: a group without a test has been misspelt


def total(failed):
    """Add up the groups in one last line."""
    count = dict.fromkeys(["tests", "failures", "errors", "skipped"], 0)
    for report in REPORTS.glob("*.xml"):
        for suite in ElementTree.parse(report).iter("testsuite"):
            for key in count:
                count[key] += int(suite.get(key, 0))
    bad = count["failures"] + count["errors"]
    passed = count["tests"] - bad - count["skipped"]
    setup.say(f"{passed} passed, {bad} failed, {count['skipped']} skipped")
    return int(failed or bad > 0)
