"""Chapters in a real JupyterLab or Notebook 7: serve them, open, run all, move a control."""

import contextlib
import json
import re
import shutil
import urllib.parse
import urllib.request
from pathlib import Path

import psutil

from sphinx_ext import repository
from tools import jupyter
from tools.setup import ROOT

CHAPTERS = sorted(path.stem for path in (ROOT / "chapters").glob("*.md"))
SOMEONES = repository.find(ROOT, {"BOOK_REPOSITORY": "someone/book"})
# As the reader's panel knows it, not only what is on the screen.
CELLS = "() => jupyterapp.shell.currentWidget.context.model.toJSON().cells"
DONE = """
() => {
  const panel = window.jupyterapp?.shell.currentWidget;
  const cells = panel?.context?.model.toJSON().cells ?? [];
  return panel?.sessionContext?.session?.kernel?.status === "idle" && cells.length > 1
    && cells.every((cell) => cell.cell_type !== "code" || cell.execution_count || !cell.source.trim()
      || cell.metadata.tags?.includes("raises-exception"));
}
"""
# Count the redraws of an explorer from now on, and remember where its cell stands.
WATCH = """
(view) => {
  const cell = view.closest(".jp-Cell");
  const place = () => [Math.round(cell.getBoundingClientRect().top), Math.round(cell.getBoundingClientRect().height)];
  const seen = window.watched = { redraws: 0, places: [place()] };
  new MutationObserver((changes) => {
    seen.redraws += changes.length;
    seen.places.push(place());
  }).observe(view, { attributes: true, attributeFilter: ["data-settings"] });
  window.placeNow = place;
}
"""
# Controls that stick out of their explorer or reach into the next one on their line.
OVERLAPS = """
(box) => {
  const edge = box.getBoundingClientRect().right;
  const [all, found] = [[...box.children].map((node) => node.getBoundingClientRect()), []];
  all.forEach((one, i) => {
    const next = all[i + 1];
    if (one.right > edge + 1 || (next && next.left > one.left && next.left < one.right)) found.push(i);
  });
  return found;
}
"""


def launch_path(name):
    """What a chapter's Binder button opens: `lab/tree/chapters/….md`."""
    address = repository.links(SOMEONES, f"chapters/{name}.md", "")["binder"]
    return urllib.parse.parse_qs(urllib.parse.urlsplit(address).query)["urlpath"][0]


class Server:
    """One app ("lab" or "notebook") over the clone of an environment, started and configured as on Binder."""

    def __init__(self, app, environment):
        self.app, self.environment = app, environment

    @contextlib.contextmanager
    def running(self):
        def start(*options, **streams):
            own = ["--expose-app-in-browser", "--ServerApp.disable_check_xsrf=True"]
            return self.environment.start("jupyter", self.app, *options, *own, **streams)

        log = self.environment.home / f"{self.app}.txt"
        with jupyter.running(start, log) as (self.address, server):
            self.process = psutil.Process(server.pid)
            yield self

    def ask(self, path, method="GET"):
        request = urllib.request.Request(f"{self.address}/{path}", method=method)
        with urllib.request.urlopen(request, timeout=20) as answer:
            return json.loads(answer.read() or "null")

    def forget(self):
        """Stop the kernels and forget which notebooks were open."""
        for kernel in self.ask("api/kernels"):
            self.ask(f"api/kernels/{kernel['id']}", "DELETE")
        shutil.rmtree(self.environment.home / ".jupyter" / "lab" / "workspaces", ignore_errors=True)

    def kernel(self):
        """The process of the one kernel that runs."""
        processes = self.process.children(recursive=True)
        (found,) = [one for one in processes if "ipykernel_launcher" in " ".join(one.cmdline())]
        return found


def peak(process):
    """The most bytes that a process held so far; on Linux, as Binder is."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    return 1024 * int(re.search(r"VmHWM:\s+(\d+) kB", status)[1])


def open_chapter(page, address):
    """Open a chapter as a notebook and wait for its kernel."""
    page.goto(address)
    page.locator(".jp-Notebook .jp-CodeCell").first.wait_for(timeout=90_000)
    page.wait_for_function(
        "jupyterapp.shell.currentWidget.sessionContext?.session?.kernel?.status === 'idle'",
        timeout=90_000,
    )


def all_have_run(page):
    """Wait until no cell is left to run. Not asked at every frame: that slows down what is measured."""
    page.wait_for_function(DONE, polling=100, timeout=150_000)


def run_all(page):
    """Run all by the menu, wait for the end; the cells with their outputs."""
    page.locator(".lm-MenuBar-itemLabel", has_text="Run").first.click()
    page.locator(".lm-Menu-itemLabel", has_text="Run All Cells").first.click()
    try:
        all_have_run(page)
    except Exception:
        errors(page.evaluate(CELLS))  # says more than that the time is over
        raise
    return page.evaluate(CELLS)


def errors(cells):
    """No cell ended in an error that its author did not announce."""
    for cell in cells:
        if "raises-exception" in cell["metadata"].get("tags", []):
            continue
        for output in cell.get("outputs", []):
            assert output["output_type"] != "error", f"{cell['source']}\n{output['evalue']}"


def explorers(page, cells):
    """The cells that hold an explorer, each drawn; nothing else in the notebook failed to display."""
    errors(cells)
    found = []
    for number, cell in enumerate(cells):
        if cell["cell_type"] == "code" and "\n@explore" in "\n" + cell["source"]:
            shown = page.locator(f".jp-Notebook .jp-Cell[data-windowed-list-index='{number}']")
            shown.locator(".attn-explorer-view[data-settings]").wait_for(
                state="attached", timeout=20_000
            )
            assert shown.locator(".attn-explorer").count() == 1
            assert shown.locator(".attn-explorer-controls").evaluate(OVERLAPS) == []
            assert shown.locator(
                ".attn-explorer-view figure, .attn-explorer-view svg, .attn-readout-value"
            ).count()
            found.append(shown)
    assert page.get_by_text("Error displaying widget").count() == 0
    return found


def settings(cell):
    return json.loads(cell.locator(".attn-explorer-view").get_attribute("data-settings"))


def at_rest(page):
    """Pictures and formulas above the explorer have their height."""
    page.evaluate("document.fonts.ready")
    page.wait_for_timeout(1000)


def show(page, cell):
    """Scroll an explorer's picture into the window and wait until the page is at rest."""
    for _ in range(2):
        cell.locator(".attn-explorer").evaluate("node => node.scrollIntoView({ block: 'center' })")
        at_rest(page)


def by_keyboard(page, cell):
    controls = cell.locator(".attn-explorer-controls")
    first = controls.locator(".noUi-handle, select, input[type=checkbox]").first
    first.focus()
    kind = first.evaluate("node => node.type ?? 'slider'")
    page.keyboard.press({"slider": "ArrowRight", "checkbox": "Space"}.get(kind, "ArrowDown"))


def by_mouse(page, cell):
    """Click into the first slider's track, left or right of its handle."""
    slider = cell.locator(".attn-explorer-controls .noUi-target").first
    box, handle = slider.bounding_box(), slider.locator(".noUi-handle").bounding_box()
    middle = box["x"] + box["width"] / 2
    share = 0.25 if handle["x"] + handle["width"] / 2 > middle else 0.75
    page.mouse.click(box["x"] + share * box["width"], box["y"] + box["height"] / 2)


def moves_once(page, cell, move):
    """One move of a control: new settings, one redraw, and the page stays where it is."""
    show(page, cell)
    before, drawn = settings(cell), cell.locator(".attn-explorer-view").inner_html()
    cell.locator(".attn-explorer-view").evaluate(WATCH)
    move(page, cell)
    page.wait_for_function("watched.redraws > 0", timeout=10_000)
    page.wait_for_timeout(700)  # for a second redraw, if there is one
    after = settings(cell)
    assert sum(before[name] != after[name] for name in before) == 1, (before, after)
    assert (
        cell.locator(".attn-explorer-view").inner_html() != drawn or cell.locator("canvas").count()
    )
    seen = page.evaluate("watched")
    assert seen["redraws"] == 1, seen
    places = [*seen["places"], page.evaluate("placeNow()")]
    assert all(place == places[0] for place in places), places
