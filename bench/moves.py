"""A slider move, from the key press to the painted frame: a page of the book, and `interact` in a local JupyterLab."""

import statistics
from pathlib import Path

from bench import sites, stock
from bench.rows import Row
from tools import browser, jupyter

ROUNDS = 15  # moves of each slider on each side
# Times one key press: from the event's own time stamp to the first frame after which `settled` holds.
# A message sent from a frame's callback arrives when that frame has been drawn.
STOPWATCH = """
() => {
  const settled = SETTLED;
  window.moved = new Promise((resolve) => {
    addEventListener("keydown", (event) => {
      const changed = settled(), channel = new MessageChannel();
      const next = () => requestAnimationFrame(() => channel.port2.postMessage(0));
      channel.port1.onmessage = () => (changed() ? resolve(performance.now() - event.timeStamp) : next());
      next();
    }, { capture: true, once: true });
  });
}
"""
# Each is a function that looks at the page before the move and gives the one that says whether it has followed.
OURS = """() => {
  const view = document.querySelector('.attn-explorer[data-name="%s"] .attn-explorer-view');
  const before = view.dataset.settings;
  return () => view.dataset.settings !== before;
}"""
LAB = """() => {
  const picture = () => document.querySelectorAll(".jp-CodeCell")[%d].querySelector(".jp-OutputArea img");
  const before = picture().src;
  return () => { const now = picture(); return now && now.src !== before && now.complete && now.naturalWidth > 0; };
}"""


def notebook(folder: Path) -> None:
    """One cell with what chapter 1 defines, then one for each of its sliders' functions, with `interact`."""
    found = stock.cells(stock.with_matplotlib(stock.chapter(), sliders=True))
    interactive = [code for code in found if "@interact(" in code]
    last = found.index(interactive[-1])
    before = [code for code in found[:last] if code not in interactive]
    (folder / "chapter.py").write_text("\n".join([*before, "plt.close('all')"]), "utf-8")
    jupyter.write(
        folder / "stock.ipynb", ['%%capture\nexec(open("chapter.py").read())', *interactive]
    )


def move(page, slider, settled: str, key: str) -> float:
    """Press one key on a slider; seconds until the picture that follows is painted."""
    page.bring_to_front()
    slider.focus()
    page.evaluate(STOPWATCH.replace("SETTLED", settled))
    page.keyboard.press(key)
    return page.evaluate("window.moved") / 1000


def rows() -> list[Row]:
    folder = stock.WORK / "lab"
    folder.mkdir(parents=True, exist_ok=True)
    notebook(folder)
    table = []
    with (
        sites.served(stock.our_site()) as site,
        jupyter.lab(folder) as lab,
        browser.launched() as opened,
    ):
        ours = opened.new_page(viewport={"width": 1280, "height": 900})
        ours.goto(site + stock.CHAPTER + ".html")
        theirs = opened.new_page(viewport={"width": 1280, "height": 1600})
        theirs.goto(f"{lab}/lab/tree/stock.ipynb?reset")
        theirs.locator(".jp-CodeCell .cm-content").first.wait_for(timeout=120_000)
        theirs.get_by_text("| Idle").wait_for(timeout=120_000)  # before that, no cell would run
        for number in range(1 + len(stock.CELLS)):
            jupyter.run(theirs, number)
        for number, name in enumerate(stock.CELLS, start=1):
            explorer = ours.locator(f'.attn-explorer[data-name="{name}"]')
            cell = theirs.locator(".jp-CodeCell").nth(number)
            cell.locator(".jp-OutputArea img").wait_for(timeout=60_000)
            sides = [
                (ours, explorer.locator("input[type=range]").first, OURS % name),
                (theirs, cell.locator(".noUi-handle").first, LAB % number),
            ]
            times = [[], []]
            for i in range(ROUNDS + 2):
                for (page, slider, settled), measured in zip(sides, times, strict=True):
                    seconds = move(page, slider, settled, "ArrowRight" if i % 2 else "ArrowLeft")
                    if i > 1:  # the first moves warm up
                        measured.append(1000 * seconds)
            medians = [statistics.median(series) for series in times]
            what = f"key press to painted frame, {name}"
            table.append(Row("a slider move", what, "ms", *medians, "interact in JupyterLab"))
    return table
