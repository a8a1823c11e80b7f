"""Every chapter in a real JupyterLab, two in Notebook 7: it runs, its explorers draw and move, memory stays; launch and download."""

import html
import os
import re
import subprocess
import sys
import urllib.parse

import nbclient
import nbformat
import notebooks
import pytest

from sphinx_ext import repository

pytestmark = pytest.mark.slow

CHAPTERS = sorted(path.stem for path in (notebooks.ROOT / "chapters").glob("*.md"))
SOME = {"name": "someone/book", "branch": "main", "url": "https://github.com/someone/book"}


def launch_path(name):
    """What a page's Binder button opens: `lab/tree/chapters/….md`."""
    address = repository.links(SOME, f"chapters/{name}.md", "")["binder"]
    return urllib.parse.parse_qs(urllib.parse.urlsplit(address).query)["urlpath"][0]


@pytest.fixture(scope="session")
def lab(tmp_path_factory):
    with notebooks.Server("lab", tmp_path_factory.mktemp("lab")).running() as server:
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


@pytest.mark.parametrize("name", CHAPTERS)
def test_a_chapter_in_jupyterlab(page, lab, name, tmp_path):
    lab.forget()
    cells = notebooks.open_and_run(page, f"{lab.address}/{launch_path(name)}")
    shown = notebooks.explorers(page, cells)
    source = (notebooks.ROOT / "chapters" / f"{name}.md").read_text(encoding="utf-8")
    assert len(shown) == len(re.findall(r"^@explore", source, re.M)) > 0
    notebooks.moves_once(page, shown[0], notebooks.by_keyboard)
    page.screenshot(path=tmp_path / "moved.png")
    assert page.errors == []


@pytest.mark.parametrize("name", ["01-new-operator", "03-kernel-regression"])
def test_a_chapter_in_notebook_7(page, tmp_path, name):
    with notebooks.Server("notebook", tmp_path).running() as server:
        cells = notebooks.open_and_run(page, f"{server.address}/notebooks/chapters/{name}.md")
        for cell in notebooks.explorers(page, cells):
            notebooks.moves_once(page, cell, notebooks.by_mouse)
            notebooks.moves_once(page, cell, notebooks.by_keyboard)
            page.screenshot(path=tmp_path / "moved.png")
        server.forget()


def run_new_cell(page, cell, source):
    """A cell below, as a reader makes it; what it printed."""
    cell.locator(".cm-content").click()
    page.keyboard.press("Escape")
    page.keyboard.press("b")
    page.keyboard.press("Enter")
    page.keyboard.insert_text(source)
    page.keyboard.press("Control+Enter")
    page.wait_for_function(notebooks.DONE)
    cells = page.evaluate(notebooks.CELLS)
    notebooks.errors(cells)
    (new,) = [one for one in cells if one["source"] == source]
    return "".join(output.get("text", "") for output in new["outputs"])


def test_python_and_the_explorer_hear_each_other(page, lab):
    """300 moves leave no memory behind, running the cell again replaces the explorer, values go both ways."""
    lab.forget()
    cells = notebooks.open_and_run(page, f"{lab.address}/{launch_path('01-new-operator')}")
    cell = notebooks.explorers(page, cells)[0]
    count = page.locator(".attn-explorer").count()
    devtools = page.context.new_cdp_session(page)

    def memory():
        devtools.send("HeapProfiler.collectGarbage")
        return devtools.send("Runtime.getHeapUsage")["usedSize"], lab.kernel_memory()

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
    page.wait_for_function(notebooks.DONE)
    page.wait_for_timeout(1000)
    assert notebooks.settings(cell)["strength"] == 207
    assert cell.locator(".attn-explorer").count() == 1
    assert page.locator(".attn-explorer").count() == count


def test_the_launch_button_opens_its_own_chapter(tmp_path):
    """In a page built where the repository is known; the test above opens the same paths."""
    settings = {**os.environ, "BOOK_REPOSITORY": "someone/book", "BOOK_BRANCH": "main"}
    page = "chapters/01-new-operator"
    build = [sys.executable, "tools/build_book.py", "--only", f"{page}.md", "--out", tmp_path]
    done = subprocess.run(build, cwd=notebooks.ROOT, env=settings, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    text = (tmp_path / "html" / f"{page}.html").read_text(encoding="utf-8")
    binder = {
        html.unescape(address) for address in re.findall(r'href="([^"]*mybinder[^"]*)"', text)
    }
    assert binder == {repository.links(SOME, f"{page}.md", "")["binder"]}
    path = launch_path("01-new-operator")
    assert path == f"lab/tree/{page}.md"
    tracked = subprocess.run(
        ["git", "ls-files", "chapters"], cwd=notebooks.ROOT, capture_output=True, text=True
    ).stdout.split()
    for name in CHAPTERS:
        assert launch_path(name).removeprefix("lab/tree/") in tracked


@pytest.mark.parametrize("name", ["01-new-operator", "05-self-attention"])
def test_a_download_runs_elsewhere(site_dir, tmp_path, name, monkeypatch):
    """The page's .ipynb, top to bottom, in a folder without the repository."""
    for variable in ("PYTHONPATH", "ATTN_STATIC"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.chdir(tmp_path)
    notebook = nbformat.read(site_dir / "notebooks" / f"{name}.ipynb", as_version=4)
    nbformat.validate(notebook)
    client = nbclient.NotebookClient(
        notebook,
        timeout=300,
        kernel_name="python3",
        resources={"metadata": {"path": str(tmp_path)}},
    )
    client.execute()  # raises where a cell does
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    live = [cell for cell in code if "\n@explore" in "\n" + cell.source]
    view = "application/vnd.jupyter.widget-view+json"
    for cell in live:
        assert any(view in output.get("data", {}) for output in cell.outputs), cell.outputs
    assert live
