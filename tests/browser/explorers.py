"""Move the explorers of a page and read back all that they show.

For pages of any kind: samples made by a test, and every page of the built site. What is read is what was drawn: the
pixels of a heatmap, the shapes of an SVG, the text of a number. `problems` compares that with the page's own data.
"""

import base64

import numpy as np

from attn_helpers import plots
from attn_helpers import views as kinds
from attn_helpers.explorer import look_up

# Set the native inputs to each list of options in turn, wait for the frame, read everything.
VISIT = """
async (root, visits) => {
  const payload = JSON.parse(root.querySelector(".attn-explorer-data").textContent);
  const view = root.querySelector(".attn-explorer-view");
  const inputs = payload.controls.map((control, i) =>
    [...root.querySelectorAll(".attn-explorer-controls > *")[i].querySelectorAll("input, select")]);
  const frame = () => new Promise(requestAnimationFrame); // after the drawing, which was asked for before
  const numbers = (node, names) => Object.fromEntries(names.map((name) => [name, Number(node.getAttribute(name))]));
  const all = (node, selector, read) => [...node.querySelectorAll(selector)].map(read);
  const read = (figure) => ({
    kind: figure.className.replace(/.*attn-view-/, ""),
    title: figure.querySelector("figcaption span")?.textContent ?? "",
    pixels: all(figure, "canvas", (canvas) => {
      const { width, height } = canvas;
      const { data } = canvas.getContext("2d").getImageData(0, 0, width, height);
      return { width, height, colours: btoa(String.fromCharCode(...data)) };
    })[0],
    labels: all(figure, ".attn-label", (node) => node.textContent),
    cells: all(figure, ".attn-on-dark, .attn-on-light", (node) => node.textContent),
    numbers: all(figure, ".attn-number", (node) => node.textContent),
    bars: all(figure, ".attn-fill, .attn-fill-negative", (node) => numbers(node, ["x", "y", "width", "height"])),
    curves: all(figure, ".attn-curve", (node) => node.getAttribute("d")),
    points: all(figure, ".attn-point", (node) => numbers(node, ["cx", "cy", "r", "fill-opacity"])),
    links: all(figure, ".attn-link", (node) => numbers(node, ["y1", "y2", "stroke-width", "stroke-opacity"])),
    arrows: all(figure, ".attn-arrow", (node) => node.getAttribute("d")),
    mark: all(figure, ".attn-mark", (node) => numbers(node, ["x", "y", "width", "height"])),
    texts: all(figure, ".attn-readout-label > span, .attn-readout-value > span, .attn-step:not(.attn-absent) span > span",
      (node) => node.textContent),
  });
  const found = [];
  for (const visit of visits) {
    visit.forEach((option, i) => {
      const [input] = inputs[i];
      if (input.type === "range") input.value = option;
      else if (input.type === "checkbox") input.checked = payload.controls[i].values[option];
      else if (input.type === "radio") inputs[i][option].checked = true;
      else input.selectedIndex = option;
      const target = input.type === "radio" ? inputs[i][option] : input;
      target.dispatchEvent(new Event("input", { bubbles: true }));
    });
    await frame();
    found.push({
      settings: JSON.parse(view.dataset.settings),
      text: root.querySelector(".attn-explorer-text").textContent,
      tables: window.attnExplorers.tables(root),
      views: [...view.querySelectorAll("figure")].map(read),
      height: root.getBoundingClientRect().height,
    });
  }
  return found;
}
"""


def ready(page):
    """The explorers of a page, once all are drawn."""
    page.wait_for_function(
        "() => [...document.querySelectorAll('.attn-explorer')]"
        ".every(root => root.querySelector('.attn-explorer-view').dataset.settings)"
    )
    return page.locator(".attn-explorer").all()


def next_frames(page):
    """Wait for two frames: what a change of size or of settings asked for is drawn in the first."""
    page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def payload(explorer):
    return explorer.locator(".attn-explorer-data").evaluate("node => JSON.parse(node.textContent)")


def settings(explorer):
    """The settings that the picture shows."""
    view = explorer.locator(".attn-explorer-view")
    return view.evaluate("node => JSON.parse(node.dataset.settings)")


def visit(explorer, options):
    """What is shown at each of several settings; one setting is a list with an option's index per control."""
    return explorer.evaluate(VISIT, options)


def default(data):
    return [control["index"] for control in data["controls"]]


def random_options(data, count, generator):
    sizes = [len(control["values"]) for control in data["controls"]]
    return [[int(generator.integers(size)) for size in sizes] for _ in range(count)]


def palette(scale, limit, values):
    """The colour of each number, (n, 3): 256 colours between the palette's stops."""
    stops = plots.PALETTE["signed" if scale == "signed" else "weights"]
    rgb = np.array([[int(stop[at : at + 2], 16) for at in (1, 3, 5)] for stop in stops], float)
    at = np.linspace(0, len(stops) - 1, 256)
    table = np.stack([np.interp(at, np.arange(len(stops)), channel) for channel in rgb.T], axis=1)
    missing = np.array([value is None for value in values])
    t = np.clip(np.array([value or 0 for value in values]) / limit, -1, 1)
    t = (t + 1) / 2 if scale == "signed" else np.sqrt(t) if scale == "sqrt" else t
    colours = table[np.floor(255 * t + 0.5).astype(int)]
    colours[missing] = 221
    return colours


def problems(data, options, shown):
    """Where the drawn explorer differs from what its data says for these options: a list of sentences."""
    found = []

    def expect(what, got, wanted):
        if got != wanted:
            found.append(f"{data['name']} at {options}: {what} shows {got!r}, not {wanted!r}")

    controls = data["controls"]
    expect(
        "settings",
        shown["settings"],
        {c["name"]: c["values"][i] for c, i in zip(controls, options, strict=True)},
    )
    views = look_up(data, options)
    expect(
        "the text", shown["text"], " ".join(filter(None, (kinds.describe(*view) for view in views)))
    )
    for (kind, props, digits), drawn in zip(views, shown["views"], strict=True):
        name = props.get("title") or kind
        expect("kind", drawn["kind"], kind)
        expect("title", drawn["title"], props.get("title") or "")
        CHECKS[kind](
            props,
            digits,
            drawn,
            lambda what, got, wanted, name=name: expect(f"{name}: {what}", got, wanted),
        )
    return found


def affine(places, values, tolerance=0.12):
    """Whether places are a + b·values, up to rounding of places."""
    places, values = np.asarray(places, float), np.asarray(values, float)
    if len(values) < 2 or np.ptp(values) == 0:
        return bool(np.ptp(places) <= tolerance) if len(places) else True
    fit = np.polynomial.Polynomial.fit(values, places, 1)
    return bool(np.abs(fit(values) - places).max() <= tolerance)


def heatmap(props, digits, drawn, expect):
    values = props["values"]
    flat = [number for row in values for number in row]
    pixels = drawn["pixels"]
    expect("size", (pixels["height"], pixels["width"]), (len(values), len(values[0])))
    colours = np.frombuffer(base64.b64decode(pixels["colours"]), np.uint8).reshape(-1, 4)[:, :3]
    wanted = palette(props["scale"], props["limit"], flat)
    expect("cells of another colour", int((np.abs(colours - wanted) > 1.01).any(1).sum()), 0)
    if drawn["cells"]:
        shown = ["–" if number is None else kinds.text(number, digits["values"]) for number in flat]
        expect("numbers", drawn["cells"], shown)
    expect("mark", len(drawn["mark"]), int(props["mark"] is not None))
    if drawn["mark"]:
        row, column = props["mark"]
        box = drawn["mark"][0]
        expect("marked row", round((box["y"] - 2) / box["height"], 3), row)
        if column is not None:
            left = box["x"] - column * box["width"]
            expect("marked column starts right of its labels", left >= 0, True)
    for labels in (props["queries"], props["keys"]):
        if labels and len(labels) <= 12:
            ends = [text.rstrip("…") for text in drawn["labels"]]
            unlabelled = [
                label for label in labels if not any(label.startswith(end) for end in ends)
            ]
            expect("labels left out", unlabelled, [])


def bars(props, digits, drawn, expect):
    values = props["values"]
    if drawn["numbers"]:
        expect(
            "numbers", drawn["numbers"], [kinds.text(number, digits["values"]) for number in values]
        )
    expect("bars", len(drawn["bars"]), len(values))
    low, high = (limit * 10 ** digits["values"] for limit in props["xlim"])
    zero = min(max(0, low), high)
    expect(
        "lengths",
        affine(
            [bar["width"] for bar in drawn["bars"]] + [0], [abs(v - zero) for v in values] + [0]
        ),
        True,
    )


def curve(props, digits, drawn, expect):
    expect("curves", len(drawn["curves"]), len(props["curves"]))
    for path, numbers in zip(drawn["curves"], props["curves"], strict=True):
        steps = [step.split(" ") for step in path.lstrip("M").split("L")]
        x, y = np.array(steps, float).T
        across = np.log(props["x"]) if props["xlog"] else props["x"]
        along = np.log(numbers) if props["ylog"] else numbers
        expect("x of the curve", affine(x, across), True)
        expect("y of the curve", affine(y, along), True)
    if props["px"]:
        check_points(props, digits, drawn, expect, "px", "py")


def points(props, digits, drawn, expect):
    check_points(props, digits, drawn, expect, "x", "y")
    expect("arrows", len(drawn["arrows"]), len(props["arrows"][0]) if props["arrows"] else 0)
    if props["labels"]:
        expect("labels", drawn["labels"], props["labels"])


def check_points(props, digits, drawn, expect, xname, yname):
    expect("points", len(drawn["points"]), len(props[xname]))
    for place, name, log in (("cx", xname, "xlog"), ("cy", yname, "ylog")):
        numbers = np.log(props[name]) if props.get(log) else props[name]
        expect(f"{name} of points", affine([p[place] for p in drawn["points"]], numbers), True)
    if props["weights"]:
        root = np.sqrt(np.array(props["weights"]) / 10 ** digits["weights"])
        expect("sizes", affine([p["r"] for p in drawn["points"]], root, 1e-6), True)
        expect("strengths", affine([p["fill-opacity"] for p in drawn["points"]], root, 1e-6), True)


def lines(props, digits, drawn, expect):
    row = props["row"]
    weights = [w for i, line in enumerate(props["weights"]) for w in line if w and row in (None, i)]
    expect("lines", len(drawn["links"]), len(weights))
    strength = np.array(weights) / 10 ** digits["weights"]
    strength = np.sqrt(strength) if props["scale"] == "sqrt" else strength
    expect(
        "widths", affine([link["stroke-width"] for link in drawn["links"]], strength, 1e-6), True
    )


def readout(props, digits, drawn, expect):
    value = props["text"] if props["value"] is None else kinds.text(props["value"], digits["value"])
    expect(
        "label and value",
        drawn["texts"],
        [props["label"], f"{value} {props['unit']}" if props["unit"] else value],
    )


def arithmetic(props, digits, drawn, expect):
    wanted = []
    for label, expression, value, word in zip(
        props["labels"], props["expressions"], props["values"], props["texts"], strict=True
    ):
        number = word or "" if value is None else kinds.text(value, digits["values"])
        wanted += [label, expression, number]
    expect("steps", drawn["texts"], wanted)


CHECKS = {
    "heatmap": heatmap,
    "bars": bars,
    "curve": curve,
    "points": points,
    "lines": lines,
    "readout": readout,
    "arithmetic": arithmetic,
}


def still_controls(explorer):
    """Controls that change nothing in the picture, wherever the others stand: a list of names.

    Each control is moved over all its options from several settings of the others, until something moves.
    """
    data = payload(explorer)
    generator = np.random.default_rng(0)
    starts = [default(data), *random_options(data, 12, generator)]
    still = []
    for i, control in enumerate(data["controls"]):
        count = len(control["values"])
        if count == 1:
            continue
        options = sorted({0, count - 1, count // 2, count // 3, *range(min(count, 8))})
        for start in starts:
            shown = visit(explorer, [[*start[:i], option, *start[i + 1 :]] for option in options])
            if any(one["views"] != shown[0]["views"] for one in shown):
                break
        else:
            still.append(control["name"])
    return still
