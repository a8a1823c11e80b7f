"""Explorers in a real browser: what is drawn is torch's result, and every way of moving them works.

The tests run on sample pages that hold every view and every control; the last ones on every page of the built site
and in a real JupyterLab.
"""

import json
import re
import time

import explorers
import numpy as np
import pytest
import samples
import torch

from attn_helpers import explorer as machine

VIEWS = [function.__name__ for function in samples.VIEWS]
WIDTHS = [320, 390, 1280]


@pytest.fixture
def open_sample(open_page, sample_url):
    """Open a sample page; returns the page and its first explorer, drawn."""

    def opened(name, address="", **options):
        page = open_page(f"{sample_url}/{name}.html{address}", **options)
        found = explorers.ready(page)
        return page, found[0] if found else None

    return opened


def named(page, name):
    return page.locator(f".attn-explorer[data-name={name}]")


def drawn(explorer):
    """Everything that the picture shows at the current setting."""
    return explorer.locator(".attn-explorer-view").evaluate("""(view) => [
      view.textContent, view.innerHTML, [...view.querySelectorAll("canvas")].map((canvas) => canvas.toDataURL()),
    ]""")


def until(page, explorer, **wanted):
    """Wait until the picture shows these settings."""
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        shown = explorers.settings(explorer)
        if wanted.items() <= shown.items():
            return
        page.wait_for_timeout(20)
    raise AssertionError(f"shows {shown}, not {wanted}")


# --- what is shown ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", samples.SAMPLES)
def test_what_is_drawn_is_what_the_data_says(open_sample, name):
    _, explorer = open_sample(name)
    data = explorers.payload(explorer)
    options = explorers.random_options(data, 25, np.random.default_rng(0))
    shown = explorers.visit(explorer, options)
    found = [
        p
        for one, view in zip(options, shown, strict=True)
        for p in explorers.problems(data, one, view)
    ]
    assert found == []


def written(tensor, digits):
    """Torch's numbers as Python writes them, the oracle of what a page shows."""
    texts = [f"{number:.{digits}f}" for number in tensor.double().flatten().tolist()]
    return [re.sub(r"^-(0\.?0*)$", r"\1", text) for text in texts]


@pytest.mark.parametrize("name", ["kernel_regression", "sentence", "crew"])
def test_what_is_shown_is_torchs_result_rounded_for_100_settings(open_sample, name):
    _, explorer = open_sample(name)
    data, function = explorers.payload(explorer), samples.SAMPLES[name]
    options = explorers.random_options(data, 100, np.random.default_rng(1))
    for shown in explorers.visit(explorer, options):
        values = shown["settings"]
        if name == "sentence":
            values |= {
                "temperature": {"sharp": 0.3, "plain": 1.0, "flat": 4.0}[values["temperature"]]
            }
        tables = {table["title"]: table["rows"] for table in shown["tables"]}
        body = lambda title, tables=tables: [text for row in tables[title] for text in row[1:]]  # noqa: E731
        if name == "kernel_regression":
            values["x"] = float(values["x"])  # JSON in a browser has one kind of number
            matrix, curve, row, prediction, reach = function(**values)
            assert body("All weights") == written(matrix.numbers["values"], 2)
            assert body("Weights of this query") == written(row.numbers["values"], 2)
            digits = len(tables["The fit"][0][1].partition(".")[2])
            assert digits >= 2
            assert [line[1] for line in tables["The fit"]] == written(
                curve.numbers["curves"][0], digits
            )
            assert tables["Result"][0][1] == written(prediction.numbers["value"], 2)[0]
            assert tables["Result"][1][1] == reach.facts["text"]
        elif name == "sentence":
            scores, weights = samples.sentence_weights(values["temperature"], values["causal"])
            assert body("Weights") == body("Who looks at whom") == written(weights, 2)
            assert body("Scores") == [text.replace("-inf", "–") for text in written(scores, 2)]
            cell = weights[values["query"], values["key"]]
            assert tables["One weight, step by step"][3][2] == written(cell, 3)[0]
        else:
            query = torch.tensor([float(values["strength"]), float(values["intelligence"])])
            weights = (-(samples.STATS - query).norm(dim=1) / values["sharpness"]).softmax(0)
            assert body("Weights") == written(weights, 2)
            assert tables["Result"][0][1] == written(weights @ samples.SCORES, 1)[0] + " points"


@pytest.mark.parametrize("name", samples.SAMPLES)
def test_every_control_moves_the_picture(open_sample, name):
    _, explorer = open_sample(name)
    assert explorers.still_controls(explorer) == []


def test_a_logarithmic_axis_within_one_decade_has_ticks(open_sample):
    _, explorer = open_sample("extremes")
    ticks = explorer.locator(".attn-view-curve .attn-tick").all_text_contents()
    assert ticks == ["2", "5", "10⁻⁶", "2·10⁻⁶"]


def test_a_control_that_moves_nothing_is_found(open_sample):
    """The rule above can fail: here the data no longer depends on the first control."""
    page, explorer = open_sample("crew")
    page.evaluate("""() => {
      const payload = document.querySelector(".attn-explorer").attnExplorer.payload;
      for (const view of payload.views) for (const prop of Object.values(view.props)) {
        if (prop.axes.includes(0)) Object.assign(prop, { axes: [], items: [prop.items[0]] });
      }
    }""")
    assert explorers.still_controls(explorer)[0] == "strength"


@pytest.mark.parametrize("width", WIDTHS)
def test_the_page_neither_jumps_nor_scrolls_sideways(open_sample, width):
    page, _ = open_sample("views", viewport={"width": width, "height": 800})
    for explorer in explorers.ready(page):
        data = explorers.payload(explorer)
        options = explorers.random_options(data, 15, np.random.default_rng(2))
        heights = {view["height"] for view in explorers.visit(explorer, options)}
        assert len(heights) == 1, data["name"]
        explorer.locator(".attn-explorer-more > summary").click()
        explorer.locator(".attn-numbers > summary").click()
        explorer.get_by_role("button", name="Pin this setting").click()
    page.wait_for_timeout(300)
    assert page.evaluate("document.documentElement.scrollWidth") <= width


# --- moving it ----------------------------------------------------------------------------------------------------


def test_many_events_draw_once_per_frame_and_the_first_counts(open_sample):
    page, explorer = open_sample("two_heatmaps")
    draws = explorer.evaluate("""async (root) => {
      let draws = 0;
      new MutationObserver((list) => draws += list.length).observe(
        root.querySelector(".attn-explorer-view"), { attributes: true, attributeFilter: ["data-settings"] });
      const input = root.querySelector("input");
      const frame = () => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)));
      const counts = [];
      for (const moves of [[7], [8, 9, 10, 11, 12, 13], [13, 13]]) {
        for (const at of moves) {
          input.value = at;
          input.dispatchEvent(new Event("input", { bubbles: true }));
        }
        input.dispatchEvent(new Event("change", { bubbles: true }));
        await frame();
        counts.push([draws, JSON.parse(root.querySelector(".attn-explorer-view").dataset.settings).x]);
      }
      return counts;
    }""")
    assert draws == [[1, 0.35], [2, 0.65], [2, 0.65]]
    page.wait_for_timeout(300)  # nothing replays after the hand has stopped
    assert explorers.settings(explorer) == {"x": 0.65}


def test_keyboard_moves_every_kind_of_control(open_sample):
    page, _ = open_sample("views")
    kernel = named(page, "kernel_regression")
    kernel.get_by_label("x", exact=True).focus()
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    until(page, kernel, x=0.25)
    kernel.get_by_label("kernel").focus()
    page.keyboard.press("ArrowDown")
    until(page, kernel, kernel="boxcar")
    kernel.get_by_label("exclude_self").focus()
    page.keyboard.press("Space")
    until(page, kernel, exclude_self=True)
    sentence = named(page, "sentence")
    sentence.get_by_label("sharp").focus()
    page.keyboard.press("ArrowRight")
    until(page, sentence, temperature="plain")
    positions = named(page, "positions")
    positions.get_by_label("100.0", exact=True).focus()
    page.keyboard.press("ArrowDown")
    until(page, positions, base=10000)
    positions.get_by_role("slider", name="angle").press("End")
    until(page, positions, angle="half")
    assert positions.get_by_role("slider", name="angle").get_attribute("aria-valuetext") == "half"


def test_keyboard_reads_cells_and_chooses_one(open_sample):
    page, explorer = open_sample("sentence")
    plot = explorer.locator(".attn-plot").first
    page.keyboard.press("Tab")
    while not plot.evaluate("node => node === document.activeElement"):
        page.keyboard.press("Tab")
    tip = plot.locator(".attn-tip")
    assert tip.inner_text() == "query sat, key cat: 0.01"  # the marked cell
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert tip.inner_text() == "query on, key on: 0.84"
    page.keyboard.press("End")
    page.keyboard.press("ArrowRight")
    assert tip.inner_text() == "query on, key mat: 0.00"
    page.keyboard.press("Enter")
    until(page, explorer, query=3, key=5)
    assert explorer.get_by_label("query").input_value() == "3"
    page.keyboard.press("Escape")
    assert tip.text_content() == ""
    assert plot.get_attribute("role") == "application"
    assert "Weights" in plot.get_attribute("aria-label")


@pytest.mark.parametrize(
    ("name", "view", "keys", "text"),
    [
        ("crew", "bars", ["ArrowDown"], "Delta: 0.00"),
        ("crew", "points", ["End"], "Flint: (211, 295), weight 0.06"),
        (
            "kernel_regression",
            "curve",
            ["Home", "ArrowRight"],
            r"x 0\.10\d*: estimate .*, truth 0\.20.*",
        ),
        ("sentence", "lines", ["ArrowRight"], "query the, key cat: 0.00"),
    ],
)
def test_keyboard_reads_the_values_of_every_plot(open_sample, name, view, keys, text):
    page, explorer = open_sample(name)
    plot = explorer.locator(f".attn-view-{view} .attn-plot")
    plot.focus()
    for key in keys:
        page.keyboard.press(key)
    assert re.fullmatch(
        text if "\\" in text else re.escape(text), plot.locator(".attn-tip").inner_text()
    )


def test_pointer_reads_a_value_that_follows_the_sliders(open_sample):
    page, explorer = open_sample("sentence")
    plot = explorer.locator(".attn-plot").first
    canvas = plot.locator("canvas").first.bounding_box()
    cell = (canvas["x"] + canvas["width"] * 4.5 / 6, canvas["y"] + canvas["height"] * 2.5 / 6)
    page.mouse.move(*cell)
    assert plot.locator(".attn-tip").inner_text() == "query sat, key the: 0.71"
    explorer.evaluate("root => root.querySelectorAll('.attn-options input')[2].click()")
    until(page, explorer, temperature="flat")
    assert plot.locator(".attn-tip").inner_text() != "query sat, key the: 0.71"
    page.mouse.click(*cell)
    until(page, explorer, query=2, key=4)
    page.mouse.move(5, 5)
    assert plot.locator(".attn-tip").text_content() == ""


def test_touch_drags_a_slider_without_scrolling_and_chooses_a_cell(open_sample):
    page, explorer = open_sample(
        "sentence", has_touch=True, is_mobile=True, viewport={"width": 360, "height": 640}
    )
    slider = explorer.get_by_label("query")
    slider.evaluate("node => node.scrollIntoView({ block: 'center' })")
    box = slider.bounding_box()
    y = box["y"] + box["height"] / 2
    before = page.evaluate("scrollY")
    touch = page.context.new_cdp_session(page)
    for step, x in enumerate(np.linspace(0.42, 0.98, 12)):
        point = {"x": box["x"] + box["width"] * x, "y": y + (step > 3) * 2}
        kind = "touchStart" if step == 0 else "touchMove"
        touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [point]})
    touch.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    until(page, explorer, query=5)
    assert page.evaluate("scrollY") == before
    canvas = explorer.locator("canvas").first
    canvas.evaluate("node => node.scrollIntoView({ block: 'center' })")
    box = canvas.bounding_box()
    page.touchscreen.tap(box["x"] + box["width"] * 3.5 / 6, box["y"] + box["height"] * 0.5 / 6)
    until(page, explorer, query=0, key=3)


@pytest.mark.parametrize("width", [360, 1280])
def test_targets_are_large_enough_for_a_finger(open_sample, width):
    page, _ = open_sample("views", viewport={"width": width, "height": 800})
    for more in page.locator(".attn-explorer-more > summary").all():
        more.click()
    small = page.evaluate("""() => [...document.querySelectorAll(
      ".attn-explorer :is(input, select, button, summary, a, .attn-plot)")].map((node) => {
        const { width, height } = node.getBoundingClientRect();
        return [node.outerHTML.slice(0, 90), width, height];
      }).filter(([, width, height]) => Math.min(width, height) < 24)""")
    assert small == []


def test_text_alternative_follows_and_is_announced_once_the_slider_rests(open_sample):
    page, explorer = open_sample("crew")
    text = explorer.locator(".attn-explorer-text")
    assert text.get_attribute("role") == "status"
    before = text.inner_text()
    explorer.get_by_label("strength").press("End")
    until(page, explorer, strength=320)
    assert text.get_attribute("aria-busy") == "true"
    assert text.inner_text() != before and "the largest weight is" in text.inner_text()
    page.wait_for_function(
        "() => !document.querySelector('.attn-explorer-text').hasAttribute('aria-busy')"
    )


def test_a_screen_reader_finds_names_and_values(open_sample):
    page, explorer = open_sample("crew")
    tree = explorer.locator(".attn-explorer-controls").aria_snapshot()
    assert '- slider "strength"' in tree and '- slider "intelligence"' in tree
    names = explorer.locator(".attn-plot").evaluate_all(
        "list => list.map((node) => node.getAttribute('aria-label'))"
    )
    assert names == ["Weights: arrow keys read the values", "The crew: arrow keys read the values"]


# --- the link -----------------------------------------------------------------------------------------------------


def test_the_address_keeps_and_restores_the_settings(open_sample, open_page):
    page, explorer = open_sample("sentence")
    length = page.evaluate("history.length")
    explorer.get_by_label("query").press("End")
    explorer.get_by_label("causal").check()
    page.wait_for_function("location.hash.includes('causal=true&query=5')")
    assert page.evaluate("history.length") == length
    address = page.url
    assert address.endswith("#sentence?temperature=sharp&causal=true&query=5&key=1")
    copy = open_page(address)
    [restored] = explorers.ready(copy)
    until(copy, restored, temperature="sharp", causal=True, query=5, key=1)
    assert drawn(restored) == drawn(explorer)
    assert restored.get_by_label("query").input_value() == "5"
    assert restored.get_by_label("causal").is_checked()
    copy.reload()
    [restored] = explorers.ready(copy)
    until(copy, restored, query=5)


def test_back_and_forward_between_settings(open_sample):
    page, explorer = open_sample("sentence", "#sentence?query=4")
    until(page, explorer, query=4)
    page.evaluate("location.hash = 'sentence?query=0&key=3'")
    until(page, explorer, query=0, key=3)
    page.go_back()
    until(page, explorer, query=4, key=1)
    page.go_forward()
    until(page, explorer, query=0, key=3)
    page.evaluate("location.hash = 'some-section'")
    page.wait_for_timeout(100)
    until(page, explorer, query=0, key=3)


@pytest.mark.parametrize(
    ("address", "settings"),
    [
        ("#sentence?query=99&key=-3", {"query": 5, "key": 0}),
        ("#sentence?query=NaN&key=Infinity", {"query": 2, "key": 1}),
        ("#sentence?query=&key=%20", {"query": 2, "key": 1}),
        ("#sentence?query=3.4&temperature=Plain", {"query": 3, "temperature": "sharp"}),
        ("#sentence?query=constructor&__proto__=1&causal=yes", {"query": 2, "causal": False}),
        (
            "#sentence?temperature=<img src=x onerror=window.hacked=1>&query=1",
            {"temperature": "sharp", "query": 1},
        ),
        ("#<img src=x onerror=window.hacked=1>?query=1", {"query": 2}),
        ("#%E0%A4%A?query=1", {"query": 2}),
        ("#sentence?query=1&query=4", {"query": 1}),
        ("#sentence?", {"query": 2, "key": 1}),
        ("#sentence", {"query": 2, "key": 1}),
        ("#other?query=5", {"query": 2}),
        ("#" + "x" * 50_000, {"query": 2}),
        ("?query=5", {"query": 2}),
    ],
)
def test_a_hand_edited_address_does_no_harm(open_sample, address, settings):
    page, explorer = open_sample("sentence", address)
    until(page, explorer, **settings)
    assert page.evaluate("window.hacked") is None
    assert page.locator("img").count() == 0


def test_a_link_shows_its_explorer_and_leaves_the_others(open_sample):
    page, _ = open_sample("many", "#crew-7?strength=300")
    crews = named(page, "crew").all()
    until(page, crews[6], strength=300)
    assert [explorers.settings(crew)["strength"] for crew in crews].count(300) == 1
    page.wait_for_function("scrollY > 0")
    box = crews[6].bounding_box()
    assert -5 < box["y"] < 900
    crews[1].get_by_label("strength").press("Home")
    page.wait_for_function("location.hash.startsWith('#crew-2?strength=100')")


def test_copy_link_and_reset(open_sample, sample_url):
    page, explorer = open_sample("crew", permissions=["clipboard-read", "clipboard-write"])
    explorer.get_by_label("strength").press("Home")
    explorer.get_by_role("button", name="Copy link").click()
    explorer.locator(".attn-status", has_text="Copied").wait_for()
    link = page.evaluate("navigator.clipboard.readText()")
    assert link == f"{sample_url}/crew.html#crew?strength=100&intelligence=240&sharpness=10"
    explorer.get_by_role("button", name="Reset").click()
    until(page, explorer, strength=210)
    assert explorer.get_by_label("strength").input_value() == "11"


# --- More ---------------------------------------------------------------------------------------------------------


def more(explorer):
    explorer.locator(".attn-explorer-more > summary").press("Enter")


def test_a_pinned_setting_stays_while_the_other_moves(open_sample):
    page, explorer = open_sample("crew")
    more(explorer)
    explorer.get_by_role("button", name="Pin this setting").press("Enter")
    pinned = explorer.locator(".attn-pinned-view")
    before = pinned.inner_html()
    assert (
        explorer.locator(".attn-pinned").get_attribute("aria-label")
        == "Pinned: strength 210, intelligence 240, sharpness 10.0"
    )
    numbers = [
        explorer.locator(f"{side} .attn-number").all_text_contents()
        for side in (".attn-pinned-view", ".attn-explorer-view")
    ]
    assert numbers[0] == numbers[1] and len(numbers[0]) == 6
    explorer.get_by_role("slider", name="strength").press("End")
    until(page, explorer, strength=320)
    assert pinned.inner_html() == before
    sides = [side.bounding_box() for side in explorer.locator(".attn-side").all()]
    assert sides[0]["y"] == sides[1]["y"] and sides[0]["x"] < sides[1]["x"]
    explorer.get_by_role("button", name="Remove the pin").press("Enter")
    assert explorer.locator(".attn-pinned").count() == 0


def test_the_python_call_makes_the_picture_shown(open_sample):
    page, explorer = open_sample(
        "kernel_regression", permissions=["clipboard-read", "clipboard-write"]
    )
    more(explorer)
    explorer.get_by_label("x", exact=True).press("Home")
    explorer.get_by_label("exclude_self").check()
    wanted = 'kernel_regression(x=0.00, bandwidth=0.1, kernel="gaussian", exclude_self=True)'
    page.wait_for_function(
        "text => document.querySelector('.attn-call code').textContent === text", arg=wanted
    )
    explorer.get_by_role("button", name="Copy the Python call").press("Enter")
    explorer.locator(".attn-status", has_text="Copied").wait_for()
    assert page.evaluate("navigator.clipboard.readText()") == wanted
    views = eval(wanted, {"kernel_regression": samples.kernel_regression})
    shown = explorer.locator(".attn-readout-value").first.inner_text()
    assert shown == written(views[3].numbers["value"], 2)[0]


def test_the_python_call_takes_named_options_and_fixed_arguments(open_sample):
    page, explorer = open_sample("positions")
    more(explorer)
    explorer.get_by_role("slider", name="angle").press("End")
    page.wait_for_function(
        "document.querySelector('.attn-call code').textContent.includes('angle=3.14159')"
    )
    names = {"positions": samples.positions, "compass": samples.COMPASS}
    eval(explorer.locator(".attn-call code").inner_text(), names)


def test_the_numbers_as_a_table_and_as_csv(open_sample, tmp_path):
    page, explorer = open_sample("crew")
    more(explorer)
    explorer.locator(".attn-numbers > summary").press("Enter")
    rows = explorer.locator(".attn-tables table").first.locator("tbody tr")
    rows.first.wait_for()
    assert rows.count() == 6 and rows.first.inner_text().split() == ["Amber", "0.22"]
    explorer.get_by_label("sharpness").press("End")
    until(page, explorer, sharpness=100)
    page.wait_for_function(
        "!document.querySelector('.attn-tables td').textContent.includes('0.22')"
    )
    with page.expect_download() as download:
        explorer.get_by_role("button", name="Download CSV: The crew").press("Enter")
    assert download.value.suggested_filename == "crew-the-crew.csv"
    download.value.save_as(tmp_path / "crew.csv")
    lines = (tmp_path / "crew.csv").read_text("utf-8-sig").splitlines()
    assert lines[0] == "name,strength,intelligence,weight"
    weights = (-(samples.STATS - torch.tensor([210.0, 240.0])).norm(dim=1) / 100).softmax(0)
    assert [line.split(",")[3] for line in lines[1:]] == written(weights, 2)


def test_binder_opens_at_this_setting(open_sample):
    page, explorer = open_sample("binder")
    more(explorer)
    explorer.get_by_label("strength").press("End")
    page.wait_for_function("document.querySelector('.attn-binder').href.includes('320')")
    href = explorer.get_by_role("link", name="Open in Binder").get_attribute("href")
    assert href == (
        "https://mybinder.org/v2/gh/someone/book/main?urlpath=lab%2Ftree%2Fchapters%2F01.md%3Fattn%3D"
        "crew%253Fstrength%253D320%2526intelligence%253D240%2526sharpness%253D10"
    )


def test_no_binder_link_on_a_page_without_launch_button(open_sample):
    _, explorer = open_sample("crew")
    more(explorer)
    assert explorer.get_by_role("link").count() == 0


# --- themes, paper, and adverse pages -----------------------------------------------------------------------------

CONTRAST = """() => {
  const rgb = (colour) => {
    const context = document.createElement("canvas").getContext("2d");
    context.fillStyle = colour;
    context.fillRect(0, 0, 1, 1);
    return [...context.getImageData(0, 0, 1, 1).data];
  };
  const light = (colour) => rgb(colour).slice(0, 3).map((c) => c / 255)
    .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const ground = (node) => {
    for (; node; node = node.parentElement) {
      const colour = getComputedStyle(node).backgroundColor;
      if (rgb(colour)[3] === 255) return colour;
    }
    return "white";
  };
  const poor = [];
  for (const node of document.querySelectorAll(".attn-explorer *")) {
    const own = [...node.childNodes].some((child) => child.nodeType === 3 && child.textContent.trim());
    if (!own || !node.getClientRects().length || node.matches(".attn-on-dark, .attn-on-light, script, style")) continue;
    const style = getComputedStyle(node);
    const [a, b] = [light(node.closest("svg") ? style.fill : style.color), light(ground(node))].sort((x, y) => y - x);
    if ((a + 0.05) / (b + 0.05) < 4.5) poor.push([node.textContent.slice(0, 30), style.color, ground(node)]);
  }
  return poor;
}"""


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_text_is_readable_in_both_themes(open_sample, theme):
    page, explorer = open_sample("views")
    page.evaluate("theme => document.documentElement.dataset.theme = theme", theme)
    for summary in page.locator(".attn-explorer-more > summary").all():
        summary.click()
    assert page.evaluate(CONTRAST) == []
    ink = explorer.evaluate("root => getComputedStyle(root).color")
    assert (ink == "rgb(206, 214, 221)") == (theme == "dark")


@pytest.mark.parametrize("name", ["sentence", "positions"])
def test_numbers_on_cells_are_readable_on_their_colour(open_sample, name):
    """White or black, whichever reads better: at least 4.5:1 for every number on every cell."""
    _, explorer = open_sample(name)
    data = explorers.payload(explorer)
    worst = explorer.evaluate("""(root) => [...root.querySelectorAll(".attn-view-heatmap")].map((figure) => {
      const canvas = figure.querySelector("canvas");
      const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
      return [...figure.querySelectorAll(".attn-on-dark, .attn-on-light")].map((node, i) => [
        getComputedStyle(node).fill, ...data.slice(4 * i, 4 * i + 3),
      ]);
    }).flat()""")
    assert len(worst) >= 36, data["name"]
    for ink, *colour in worst:
        channels = np.array(colour) / 255
        light = np.where(
            channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4
        ) @ [0.2126, 0.7152, 0.0722]
        assert (
            1.05 / (light + 0.05) if ink == "rgb(255, 255, 255)" else (light + 0.05) / 0.05
        ) >= 4.5


def test_theme_changed_while_sliding(open_sample):
    page, explorer = open_sample("crew")
    slider = explorer.get_by_label("strength")
    for theme in ["dark", "light", "dark"]:
        slider.press("ArrowRight")
        page.evaluate("theme => document.documentElement.dataset.theme = theme", theme)
        slider.press("ArrowRight")
    until(page, explorer, strength=270)
    data = explorers.payload(explorer)
    options = [17, *explorers.default(data)[1:]]
    [shown] = explorers.visit(explorer, [options])
    assert explorers.problems(data, options, shown) == []


def test_forced_colours_and_reduced_motion(open_sample):
    page, explorer = open_sample("crew", forced_colors="active", reduced_motion="reduce")
    assert explorer.evaluate("""(root) => {
      const colour = (name) => { root.style.color = name; const c = getComputedStyle(root).color; root.style.color = ""; return c; };
      const bar = getComputedStyle(root.querySelector(".attn-fill")).fill;
      return bar !== colour("Canvas") && bar === colour("Highlight");
    }""")
    assert page.evaluate("document.getAnimations().length") == 0
    moving = [rule for rule in re.findall(r"(?:transition|animation)[^:]*:", machine.style())]
    assert moving == []


def test_paper_shows_the_current_picture_in_dark_ink(open_sample):
    page, explorer = open_sample("kernel_regression")
    page.evaluate("document.documentElement.dataset.theme = 'dark'")
    explorer.get_by_label("x", exact=True).press("Home")
    until(page, explorer, x=0)
    page.emulate_media(media="print")
    assert not explorer.locator(".attn-explorer-tools").is_visible()
    assert explorer.locator("canvas").first.is_visible()
    assert explorer.evaluate("root => getComputedStyle(root).color") == "rgb(20, 32, 43)"
    assert page.evaluate("document.documentElement.scrollWidth") <= 1280
    assert len(page.pdf()) > 20_000


def test_without_scripts_the_reader_gets_a_picture_with_its_text(open_page, sample_url):
    page = open_page(f"{sample_url}/views.html", java_script_enabled=False)
    assert page.locator("input, select, button").count() == 0
    pictures = page.locator(".attn-explorer-view img").all()
    texts = page.locator(".attn-explorer-text").all()
    assert len(pictures) == len(texts) == len(VIEWS)
    for picture, text in zip(pictures, texts, strict=True):
        assert picture.is_visible() and picture.bounding_box()["height"] > 100
        assert picture.get_attribute("alt") == text.inner_text() != ""


def test_the_strictest_policy_is_enough(open_sample):
    """No inline script, no inline style, no eval, nothing from elsewhere: `open_page` fails on any refusal."""
    page, _ = open_sample("strict")
    for explorer in explorers.ready(page):
        assert explorers.settings(explorer)
        more(explorer)


def test_labels_are_text_never_markup(open_sample):
    page, explorer = open_sample("hostile")
    more(explorer)
    explorer.locator(".attn-numbers > summary").press("Enter")
    explorer.locator(".attn-plot").first.focus()
    page.keyboard.press("ArrowRight")
    explorer.get_by_role("button", name="Pin this setting").click()
    page.wait_for_timeout(300)
    assert page.evaluate("window.hacked") is None
    assert page.locator(".attn-explorer :is(img, b)").count() == 0
    assert samples.HOSTILE in explorer.locator("figcaption").first.inner_text()
    label = explorer.locator(".attn-explorer-controls label").first.inner_text()
    assert label == samples.HOSTILE


def test_twenty_explorers_and_the_script_twice(open_sample):
    page, _ = open_sample("many")
    assert len(explorers.ready(page)) == 20
    inputs = page.locator(".attn-explorer-controls input").count()
    page.add_script_tag(url=page.url.replace("many.html", "explorer.js"))
    page.wait_for_timeout(200)
    assert page.locator(".attn-explorer-controls input").count() == inputs
    ids = page.evaluate("[...document.querySelectorAll('[id]')].map((node) => node.id)")
    assert len(ids) == len(set(ids))
    last = named(page, "spread").last
    last.get_by_label("noise").press("End")
    until(page, last, noise=1.0)
    assert explorers.settings(named(page, "spread").first)["noise"] == 0.5


def test_storage_forbidden_and_two_tabs(open_sample):
    forbidden = """for (const name of ["localStorage", "sessionStorage", "indexedDB"]) {
      Object.defineProperty(window, name, { get() { throw new DOMException("denied", "SecurityError"); } });
    }"""
    page, explorer = open_sample("crew", scripts=[forbidden])
    other = page.context.new_page()
    other.goto(page.url)
    [second] = explorers.ready(other)
    second.get_by_label("strength").press("Home")
    until(other, second, strength=100)
    assert explorers.settings(explorer)["strength"] == 210
    page.bring_to_front()
    explorer.get_by_label("strength").press("End")
    until(page, explorer, strength=320)


def test_a_page_opened_from_the_file_system(open_page, tmp_path):
    samples.write(tmp_path, {"crew": samples.page(["crew"])})
    page = open_page((tmp_path / "crew.html").as_uri())
    [explorer] = explorers.ready(page)
    explorer.get_by_label("strength").press("End")
    until(page, explorer, strength=320)
    page.wait_for_function("location.hash.includes('strength=320')")
    page.reload()
    [explorer] = explorers.ready(page)
    until(page, explorer, strength=320)


def test_broken_data_leaves_the_picture_and_the_others(browser, sample_url):
    page = browser.new_page()
    page.route(
        "**/views.html",
        lambda route: route.fulfill(
            response=(answer := route.fetch()),
            body=answer.text().replace('{"name":"kernel_regression"', '{"name:', 1),
        ),
    )
    page.goto(f"{sample_url}/views.html")
    page.wait_for_function("document.querySelectorAll('[data-settings]').length === 4")
    assert named(page, "kernel_regression").locator("img").is_visible()
    page.close()


def test_hidden_at_first_then_shown(open_sample):
    """In a closed dropdown a box has no width: the picture is laid out again when it gets one."""
    page, explorer = open_sample("crew")
    width = explorer.locator("svg").first.bounding_box()["width"]
    page.evaluate("""() => {
      const root = document.querySelector(".attn-explorer");
      const dropdown = document.createElement("details");
      root.before(dropdown);
      dropdown.append(document.createElement("summary"), root);
    }""")
    explorer.evaluate("root => root.parentElement.open = true")
    explorers.next_frames(page)
    assert explorer.locator("svg").first.bounding_box()["width"] == width
    page.set_viewport_size({"width": 360, "height": 700})
    explorers.next_frames(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    view = explorer.locator("svg").first.get_attribute("viewBox").split()
    assert float(view[2]) == pytest.approx(
        explorer.locator("svg").first.bounding_box()["width"], abs=1
    )


# --- how fast -----------------------------------------------------------------------------------------------------


def move_times(page, moves=200):
    """Milliseconds on the main thread for each slider move: script, style, layout, paint, all tasks of the page."""
    session, events, done = page.context.new_cdp_session(page), [], []
    session.on("Tracing.dataCollected", lambda part: events.extend(part["value"]))
    session.on("Tracing.tracingComplete", lambda _: done.append(True))
    config = {"includedCategories": ["toplevel", "blink.user_timing"]}
    session.send("Tracing.start", {"traceConfig": config, "transferMode": "ReportEvents"})
    page.evaluate(
        """async (moves) => {
      const input = document.querySelector(".attn-explorer input[type=range]");
      const frame = () => new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
      for (let i = 0; i <= moves; i++) {
        performance.mark("move");
        input.value = (37 * i) % (Number(input.max) + 1);
        input.dispatchEvent(new Event("input", { bubbles: true }));
        await frame();
        await frame();
      }
    }""",
        moves,
    )
    session.send("Tracing.end")
    while not done:
        page.wait_for_timeout(20)
    marks = sorted(event["ts"] for event in events if event["name"] == "move")
    thread = next((event["pid"], event["tid"]) for event in events if event["name"] == "move")
    times = {"dur": np.zeros(moves), "tdur": np.zeros(moves)}
    for event in events:
        if event["name"].endswith("RunTask") and (event["pid"], event["tid"]) == thread:
            at = np.searchsorted(marks, event["ts"], side="right") - 1
            if 0 <= at < moves:
                for clock in times:
                    times[clock][at] += event.get(clock, 0) / 1000
    return times


def test_a_slider_move_costs_little_and_nothing_grows(open_sample, capsys):
    """Prints the times, as the clock and as the processor counts them; asserts what no machine can change."""
    page, explorer = open_sample("two_heatmaps")
    before = explorer.evaluate("root => root.querySelectorAll('*').length")
    times = move_times(page)
    with capsys.disabled():
        print("\n  a slider move, 2 heatmaps of 50 × 50 and a curve, on the main thread:", end="")
        for clock, name in (("tdur", "processor time"), ("dur", "clock time")):
            median, high = np.percentile(times[clock], [50, 95])
            print(f" {name}: median {median:.1f} ms, 95th percentile {high:.1f} ms;", end="")
    assert explorer.evaluate("root => root.querySelectorAll('*').length") <= before + 2
    assert page.locator(".attn-view-heatmap svg *").count() < 150  # cells are pixels, not elements


def test_the_script_is_small():
    import gzip

    sizes = {
        name: len(gzip.compress(text.encode(), 9))
        for name, text in {"script": machine.script(), "style": machine.style()}.items()
    }
    assert sizes["script"] < 16_500 and sizes["style"] < 4_500, json.dumps(sizes)


# --- the built site -----------------------------------------------------------------------------------------------


def test_site_every_explorer_shows_its_data_and_every_control_moves(
    explorer_pages, site_url, open_page
):
    found = []
    for address in explorer_pages:
        page = open_page(f"{site_url}/{address}")
        for explorer in explorers.ready(page):
            data = explorers.payload(explorer)
            options = [
                explorers.default(data),
                *explorers.random_options(data, 20, np.random.default_rng(4)),
            ]
            shown = explorers.visit(explorer, options)
            for one, view in zip(options, shown, strict=True):
                found += [
                    f"{address}: {problem}" for problem in explorers.problems(data, one, view)
                ]
            found += [
                f"{address}: {data['name']}: {name} moves nothing"
                for name in explorers.still_controls(explorer)
            ]
            if len({view["height"] for view in shown}) > 1:
                found.append(f"{address}: {data['name']}: its height changes with the settings")
        page.context.close()
    assert found == []


@pytest.mark.parametrize("width", WIDTHS)
def test_site_explorers_fit_the_page(explorer_pages, site_url, open_page, width):
    found = []
    for address in explorer_pages:
        page = open_page(f"{site_url}/{address}", viewport={"width": width, "height": 800})
        for explorer in explorers.ready(page):
            box, inside = explorer.bounding_box(), explorer.evaluate("root => root.scrollWidth")
            if box["x"] < 0 or box["x"] + max(box["width"], inside) > width + 0.5:
                found.append((address, explorer.get_attribute("data-name"), box, inside))
        page.context.close()
    assert found == []
