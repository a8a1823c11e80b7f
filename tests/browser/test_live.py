"""One explorer in a real JupyterLab: ipywidgets' own controls move the picture, and Python sees where they stand."""

import json
import time

import pytest

from tools import jupyter

pytestmark = pytest.mark.slow

CELLS = [
    """
import ipywidgets, torch
from attn_helpers import Bars, Heatmap, Readout, explore

TOKENS = ["the", "cat", "sat"]

@explore(x=(0.0, 2.0, 0.1), kernel=["gaussian", "boxcar"], query=(0, 2), key=(0, 2), causal=False)
def demo(x, kernel, query, key, causal):
    scores = x * torch.eye(3) + (kernel == "boxcar") * torch.arange(3) / 2
    weights = torch.eye(3) if causal else scores.softmax(-1)
    return (
        Heatmap(weights, queries=TOKENS, keys=TOKENS, select=("query", "key"), mark=(query, key)),
        Bars(weights[query], labels=TOKENS),
        Readout("cell", weights[query, key]),
    )
""",
    "print(demo.explorer.settings, demo.explorer.controls['x'].value)",
    "demo.explorer.controls['x'].value = 0.52; demo.explorer.settings = {'kernel': 'gaussian'}",
    "ipywidgets.VBox([demo.explorer, demo.explorer])",
]


@pytest.fixture(scope="module")
def lab_url(tmp_path_factory):
    """A JupyterLab of its own on a free port, with one notebook."""
    folder = tmp_path_factory.mktemp("lab")
    jupyter.write(folder / "live.ipynb", CELLS)
    with jupyter.lab(folder) as address:
        yield address


def settles(page, view, **wanted):
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        shown = json.loads(view.get_attribute("data-settings"))
        if wanted.items() <= shown.items():
            return
        page.wait_for_timeout(50)
    raise AssertionError(f"shows {shown}, not {wanted}")


def test_an_explorer_in_jupyterlab(browser, lab_url):
    page = browser.new_page(viewport={"width": 1280, "height": 1400})
    errors = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    # opened as "Open in Binder at this setting" does
    page.goto(f"{lab_url}/lab/tree/live.ipynb?attn=demo%3Fx%3D1.5%26kernel%3Dboxcar")
    page.locator(".jp-CodeCell").first.wait_for(timeout=90_000)
    page.wait_for_function("document.body.textContent.includes('| Idle')", timeout=90_000)
    cell = jupyter.run(page, 0)
    view = cell.locator(".attn-explorer-view")
    view.wait_for()
    settles(page, view, x=1.5, kernel="boxcar", query=1, key=1, causal=False)
    controls = cell.locator(".attn-explorer-controls")
    assert controls.locator(".widget-slider").count() == 3  # ipywidgets' own
    before = view.inner_html()

    controls.locator(".noUi-handle").first.focus()
    page.keyboard.press("ArrowRight")
    settles(page, view, x=1.6)
    assert view.inner_html() != before
    cells = page.locator(".jp-Notebook .jp-Cell").count()
    controls.locator("select").focus()
    page.keyboard.press("g")  # finds an option
    settles(page, view, kernel="gaussian")
    page.wait_for_timeout(1500)  # so that the next letter is the first of another word
    page.keyboard.press("b")  # JupyterLab's own would insert a cell
    settles(page, view, kernel="boxcar")
    assert page.locator(".jp-Notebook .jp-Cell").count() == cells
    controls.locator("select").select_option("gaussian")
    settles(page, view, kernel="gaussian")
    controls.locator("input[type=checkbox]").check()
    settles(page, view, causal=True)
    texts = view.locator(".attn-number").all_text_contents()
    assert texts == ["0.00", "1.00", "0.00"]

    canvas = view.locator("canvas").first
    box = canvas.bounding_box()
    page.mouse.click(box["x"] + box["width"] * 5 / 6, box["y"] + box["height"] / 6)
    settles(page, view, query=0, key=2)
    text = jupyter.run(page, 1).locator(".jp-OutputArea-output").inner_text()
    assert text.split() == [
        "{'x':",
        "1.6,",
        "'kernel':",
        "'gaussian',",
        "'query':",
        "0,",
        "'key':",
        "2,",
        "'causal':",
        "True}",
        "1.6",
    ]

    jupyter.run(page, 2)  # set from Python, off the slider's grid
    settles(page, view, x=0.5, kernel="gaussian")
    cell.locator(".attn-explorer-more > summary").click()
    cell.get_by_role("button", name="Pin this setting").click()
    assert cell.locator(".attn-pinned canvas").count() == 2
    cell.get_by_role("button", name="Reset").click()
    settles(page, view, x=1, kernel="gaussian", query=1, key=1, causal=False)
    cell.locator(".attn-call code", has_text="demo(x=1.0, ").wait_for()

    both = jupyter.run(page, 3).locator(".attn-explorer-view")
    both.nth(1).wait_for()
    cell.locator(".noUi-handle").first.focus()
    page.keyboard.press("ArrowRight")
    for one in (view, both.first, both.last):
        settles(page, one, x=1.1)
    jupyter.run(page, 0)  # again: the author's default, and no view of the old one is left
    settles(page, cell.locator(".attn-explorer-view"), x=1)
    assert cell.locator(".attn-explorer").count() == 1
    page.evaluate("document.body.dataset.jpThemeLight = 'false'")
    assert (
        cell.locator(".attn-fill").first.evaluate("bar => getComputedStyle(bar).fill")
        == "rgb(111, 183, 240)"
    )
    assert errors == []
    page.close()
