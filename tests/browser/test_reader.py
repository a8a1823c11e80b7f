"""The built pages for readers with other senses, hands and screens: by ear, by keyboard, enlarged, in their own colours.

What a program can see of WCAG 2.2 AA is axe's; the rest is walked through. Each new kind of check has a page that breaks it.
"""

import io

import explorers
import numpy as np
import pytest
from PIL import Image
from visits import AXE, UNFOLD, sweep, unfolded

RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
PHONE = {"viewport": {"width": 390, "height": 800}, "has_touch": True, "is_mobile": True}


# --- what axe sees --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("theme", "width", "but"),
    [("light", 1280, []), ("dark", 1280, []), ("light", 390, ["color-contrast"])],
)
def test_accessible(visited, site_url, pages, theme, width, but):
    """WCAG 2.2 AA as far as a program can see it; colours are the same on a phone."""
    options = {"runOnly": RULES, "rules": {rule: {"enabled": False} for rule in but}}
    faults = []
    page, _ = visited(color_scheme=theme, viewport={"width": width, "height": 900}, bypass_csp=True)
    page.context.add_init_script(path=AXE)
    for name in [*pages, "404.html"]:
        page.goto(f"{site_url}/{name}")
        page.evaluate(UNFOLD)
        found = page.evaluate(
            "(options) => axe.run({exclude: [['.katex-html']]}, options).then((r) => r.violations)",
            options,
        )
        for violation in found:  # formulas: their MathML is read, the glyphs are hidden
            where = [node["html"][:200] for node in violation["nodes"][:3]]
            faults.append(f"{name}: {violation['id']}: {violation['help']}: {where}")
    assert faults == []


def test_axe_finds_a_fault(visited, site_url):
    """The test above could not fail if axe did not run."""
    page, _ = visited()
    page.context.add_init_script(path=AXE)
    page.goto(f"{site_url}/index.html")
    page.evaluate("document.querySelector('article').append(new Image())")
    found = page.evaluate("axe.run().then((r) => r.violations.map((v) => v.id))")
    assert "image-alt" in found


# --- the page by ear and by keyboard --------------------------------------------------------------------------

STRUCTURE = """() => {
  const found = [];
  const expect = (what, there) => there || found.push(what);
  const one = (selector) => document.querySelectorAll(selector).length === 1;
  expect("no language", /^[a-z]{2}/.test(document.documentElement.lang));
  expect("not one main", one("main"));
  expect("no name for the chapters", one("nav[aria-label=Chapters]"));
  expect("no banner", one("body > header"));
  expect("no search", document.querySelector("[role=search] input[aria-label]"));
  expect("the first link does not skip to the text",
    document.querySelector("a[href]").matches(".skip-link[href='#main-content']") && document.querySelector("main#main-content"));
  const headings = [...document.querySelectorAll("h1, h2, h3, h4, h5, h6")];
  expect("not one h1", headings.filter((h) => h.tagName === "H1").length === 1 && headings[0].tagName === "H1");
  headings.forEach((h, i) => expect(`${h.textContent} skips a level`, !i || h.tagName[1] <= Number(headings[i - 1].tagName[1]) + 1));
  for (const h of headings) expect("an empty heading", h.textContent.trim());
  const names = [...document.querySelectorAll("nav")].map((nav) => nav.getAttribute("aria-label"));
  expect(`navigations not told apart: ${names}`, names.every(Boolean) && new Set(names).size === names.length);
  return found;
}"""


def test_every_page_has_landmarks_and_headings_in_order(visited, site_url, pages):
    page, _ = visited()
    assert sweep(page, site_url, pages, STRUCTURE) == []
    page.evaluate("document.querySelector('main').append(document.createElement('h5'))")
    assert page.evaluate(STRUCTURE) == [" skips a level", "an empty heading"]


# Where focus is: what has it, whether a ring shows it, and whether it lies bare in the window.
FOCUS = """() => {
  const node = document.activeElement;
  if (node === document.body) return null;
  const { x, y, width, height } = node.getBoundingClientRect();
  const inside = (at, most) => Math.min(Math.max(at, 0), most - 1);
  const top = document.elementFromPoint(inside(x + width / 2, innerWidth), inside(y + Math.min(height / 2, 200), innerHeight));
  const ring = (one) => one && getComputedStyle(one).outlineStyle !== "none" && parseFloat(getComputedStyle(one).outlineWidth) >= 2;
  return {
    name: (node.getAttribute("aria-label") ?? node.textContent.trim() ?? "").slice(0, 40) || node.id || node.name,
    ring: ring(node) || ring(node.closest("form, label")),
    bare: width > 1 && height > 1 && (node.contains(top) || top.contains(node)),
  };
}"""


def walk(page, key="Tab"):
    """Press a key until focus leaves the page; what had focus on the way."""
    stops = []
    while len(stops) < 1000:
        page.keyboard.press(key)
        stop = page.evaluate(FOCUS)
        if stop is None:
            return stops
        stops.append(stop)
    raise AssertionError(f"focus never leaves: {stops[-3:]}")


@pytest.mark.parametrize("key", ["Tab", "Shift+Tab"])
def test_focus_is_seen_wherever_it_goes(visited, site_url, chapters, key):
    """Forwards and backwards through whole pages: a ring, and neither the bar nor anything else on top of it."""
    page, _ = visited(viewport={"width": 1280, "height": 600})
    for name in ["index.html", chapters[0], chapters[4], "search.html", "back/helpers.html"]:
        unfolded(page, f"{site_url}/{name}")
        stops = walk(page, key)
        assert len(stops) > 15, name
        assert [stop for stop in stops if not (stop["ring"] and stop["bare"])] == [], name


def test_a_covered_and_an_unmarked_focus_are_found(visited, site_url):
    page, _ = visited()
    unfolded(page, f"{site_url}/index.html")
    page.evaluate("""() => {
      document.querySelector(".brand").style.outline = "none";
      const { x, y, width, height } = document.querySelector("#site-nav a").getBoundingClientRect();
      const lid = document.createElement("div");
      Object.assign(lid.style, { position: "fixed", left: `${x}px`, top: `${y}px`, width: `${width}px`, height: `${height}px` });
      document.body.append(lid);
    }""")
    stops = walk(page)
    assert [stop["name"] for stop in stops if not stop["ring"]] == ["Attention by Hand"]
    assert [stop["name"] for stop in stops if not stop["bare"]] == ["Start"]


def test_answers_hints_and_solutions_open_by_keyboard(visited, site_url, chapters):
    page, _ = visited()
    for name in chapters:
        page.goto(f"{site_url}/{name}")
        folded = page.locator("article details:not(.attn-explorer *)")
        assert folded.count() >= 9, name  # three questions of three answers
        for fold in folded.all():
            summary = fold.locator(":scope > summary")
            summary.focus()
            page.keyboard.press("Enter")
            assert fold.get_attribute("open") is not None, name
            assert summary.inner_text().strip(), name
            assert summary.evaluate("node => node.matches(':focus-visible')"), name
        page.keyboard.press("Space")
        assert fold.get_attribute("open") is None, name


def test_what_was_copied_and_found_is_said(visited, site_url, chapters):
    page, _ = visited(permissions=["clipboard-read", "clipboard-write"])
    page.goto(f"{site_url}/{chapters[0]}")
    page.locator(".cell_input .copy").first.press("Enter")
    page.locator("[role=status]", has_text="Copied").wait_for(state="attached")
    page.goto(f"{site_url}/search.html?q=softmax")
    page.locator("#search-progress[role=status]", has_text="page(s)").wait_for(state="attached")


# --- explorers by ear and by keyboard -------------------------------------------------------------------------


class Ear:
    """What a screen reader is told of the element that has focus: role, name, value.

    From the browser's tree, but for a slider's value text: the protocol leaves `aria-valuetext` out.
    """

    def __init__(self, page):
        self.page, self.session = page, page.context.new_cdp_session(page)

    def __call__(self):
        node = self.session.send("Runtime.evaluate", {"expression": "document.activeElement"})
        heard = self.session.send(
            "Accessibility.getPartialAXTree",
            {"objectId": node["result"]["objectId"], "fetchRelatives": False},
        )["nodes"][0]
        states = {p["name"]: p["value"].get("value") for p in heard.get("properties", [])}
        text = self.page.evaluate("document.activeElement.getAttribute('aria-valuetext')")
        value = text or states.get("checked") or heard.get("value", {}).get("value")
        return heard["role"]["value"], heard["name"]["value"], value


KEYS = {"slider": "ArrowRight", "select": "ArrowDown", "radio": "ArrowDown", "toggle": "ArrowRight"}
BACK = {"ArrowRight": "ArrowLeft", "ArrowDown": "ArrowUp"}
ROLES = {"slider": "slider", "select": "combobox", "checkbox": "checkbox"}


def key_for(control):
    """The key that moves a control from where it stands at first."""
    key = KEYS.get(control["kind"], "Space")
    return BACK[key] if key in BACK and control["index"] == len(control["values"]) - 1 else key


def focus_before(explorer):
    """Put the focus so that the next Tab enters the explorer."""
    explorer.evaluate("""(root) => {
      const before = document.createElement("span");
      before.tabIndex = -1;
      root.before(before);
      before.focus();
      before.remove();
    }""")


def move_by_keyboard(page, explorer, control, ear):
    """Tab to a control and press a key; sentences on what was not heard or seen."""
    page.keyboard.press("Tab")
    role, name, value = ear()
    where = f"{control['name']}: "
    if role != ROLES.get(control["kind"], "radio"):
        yield f"{where}Tab leads to a {role}"
    if name != control["label"] and control["kind"] not in ("radio", "toggle"):
        yield f"{where}its name is {name!r}"
    if control["kind"] in ("slider", "select") and value != control["texts"][control["index"]]:
        yield f"{where}its value is heard as {value!r}"
    before = explorers.settings(explorer), explorer.locator(".attn-explorer-text").inner_text()
    page.keyboard.press(key_for(control))
    if ear() == (role, name, value):
        yield f"{where}nothing new is heard"
    explorers.next_frames(page)
    after = explorers.settings(explorer), explorer.locator(".attn-explorer-text").inner_text()
    if after[0] == before[0]:
        yield f"{where}the setting stays"
    elif after[1] == before[1] and control["name"] not in SILENT:
        yield f"{where}the text says nothing new"
    focus = page.evaluate(FOCUS)
    if not (focus and focus["ring"] and focus["bare"]):
        yield f"{where}focus is {focus}"


# Controls whose first step moves the picture by less than the sentence's two decimals.
SILENT = {"sharp", "temperature"}


def read_by_keyboard(page, explorer, ear):
    """Tab through pictures and tools to the end of an explorer; sentences on what has no name or says nothing."""
    plots, heard = explorer.locator(".attn-plot").count(), []
    for _ in range(plots):
        page.keyboard.press("Tab")
        role, name, _ = ear()
        page.keyboard.press("ArrowRight")
        said = page.evaluate("document.activeElement.querySelector('[role=status]').textContent")
        if role != "application" or "arrow keys" not in name or not said:
            yield f"a picture is {role} {name!r} and says {said!r}"
    for wanted in ["Reset", "Copy link", "More"]:
        page.keyboard.press("Tab")
        heard.append(ear())
        if not heard[-1][1].startswith(wanted):
            yield f"{heard[-1]} where {wanted!r} should be"
    page.keyboard.press("Enter")
    for _ in range(3):
        page.keyboard.press("Tab")
        heard.append(ear())
    page.keyboard.press("Enter")  # the tables
    table = explorer.locator(".attn-tables table").first
    table.wait_for()
    if heard[3][1] != "Pin this setting" or not heard[5][1].startswith("Numbers as a table"):
        yield f"More is heard as {heard[3:]}"


@pytest.fixture
def walked(visited, site_url):
    """The faults that a walk through all explorers of a page finds."""

    def through_page(page, name, spoil=""):
        page.goto(f"{site_url}/{name}")
        found = explorers.ready(page)
        page.evaluate(spoil)
        ear, faults = Ear(page), []
        for explorer in found:
            focus_before(explorer)
            data = explorers.payload(explorer)
            said = f"{name}: {data['name']}: "
            for control in data["controls"]:
                faults += [said + fault for fault in move_by_keyboard(page, explorer, control, ear)]
            faults += [said + fault for fault in read_by_keyboard(page, explorer, ear)]
            text = explorer.locator(".attn-explorer-text[role=status]:not([aria-busy])")
            text.wait_for(timeout=2000)  # at rest it is spoken
            unnamed = explorer.locator("figure.attn-view:not(:has(figcaption, [aria-label], span))")
            if unnamed.count() or not explorer.get_attribute("aria-label"):
                faults.append(f"{said}a picture or the explorer has no name")
        return faults

    return through_page


def test_every_explorer_by_keyboard_and_screen_reader(visited, walked, explorer_pages):
    page, _ = visited(viewport={"width": 1280, "height": 700})
    faults = []
    for name in explorer_pages:
        faults += walked(page, name)
    assert faults == []


def test_a_mute_explorer_is_found(visited, walked):
    """The walk above can fail: here the first slider has no name, no value text, and its text stays."""
    page, _ = visited(viewport={"width": 1280, "height": 700})
    faults = walked(
        page,
        "index.html",
        """() => {
          const root = document.querySelector(".attn-explorer");
          root.querySelectorAll(".attn-explorer-controls label").forEach((label) => label.removeAttribute("for"));
          root.querySelector(".attn-plot").removeAttribute("role");
          const text = root.querySelector(".attn-explorer-text span");
          const kept = text.textContent;
          new MutationObserver(() => text.textContent === kept || (text.textContent = kept))
            .observe(text, { childList: true, characterData: true, subtree: true });
        }""",
    )
    for part in ["its name is", "the text says nothing new", "a picture is"]:
        assert any(part in fault for fault in faults), (part, faults)


# --- enlarged, and with wider text ----------------------------------------------------------------------------

# Texts that leave their box, lie under what clips them or on one another; a cell's tip may lie on anything.
CUT = """() => {
  const found = [];
  const seen = (node) => node.checkVisibility({ visibilityProperty: true, opacityProperty: true });
  const say = (what, node, more = "") => found.push(`${what}: ${node.textContent.trim().slice(0, 40)} ${more}`);
  const leaves = (r, box) => r.left < box.left - 1 || r.right > box.right + 1 || r.top < box.top - 1 || r.bottom > box.bottom + 1;
  const controls = ".top *, .site-nav a, .menu a, .page-toc a, .prev-next a, button, summary";

  function texts(root, leaveOut) {
    const list = [];
    const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      const node = walker.currentNode.parentElement;
      if (!walker.currentNode.data.trim() || node.closest(leaveOut) || !seen(node)) continue;
      const range = document.createRange();
      range.selectNodeContents(walker.currentNode);
      const rect = range.getBoundingClientRect();
      if (rect.width) list.push([node, rect]);
    }
    return list;
  }

  function boxed(node, rect, root) {
    for (let box = node; box && box !== root.parentElement; box = box.parentElement) {
      const clips = getComputedStyle(box).overflowX !== "visible" && box.tagName !== "svg";
      if ((clips || box.matches("button, summary, label, a.button")) && leaves(rect, box.getBoundingClientRect())) {
        return say("cut off", node);
      }
    }
    if (root.matches(".attn-explorer") && leaves(rect, root.getBoundingClientRect())) say("outside", node);
  }

  for (const root of document.querySelectorAll(".attn-explorer")) {
    const list = texts(root, "script, option, .attn-tip, .attn-scroll");
    for (const [node, rect] of list) boxed(node, rect, root);
    list.forEach(([node, a], i) => list.slice(i + 1).forEach(([other, b]) => {
      const across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
      const down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      const room = node.closest("svg") ? 4 : 1; // boxes of glyphs are taller than their ink
      if (across > 2 && down > room) say("overlaps", node, `and ${other.textContent.trim().slice(0, 40)}`);
    }));
  }
  for (const node of document.querySelectorAll(controls)) {
    if (node.closest("svg, .katex, .visually-hidden, .button-text, .attn-explorer") || !seen(node)) continue;
    for (const [inner, rect] of texts(node, "svg, .katex, .visually-hidden, .button-text")) boxed(inner, rect, node);
  }
  return found;
}"""
SPACED = """{
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(`* { line-height: 1.5 !important; letter-spacing: 0.12em !important; word-spacing: 0.16em !important; }
    p { margin-bottom: 2em !important; }`);
  document.adoptedStyleSheets = [sheet];
}"""


@pytest.mark.parametrize(
    ("width", "scale", "spaced"),
    [(640, 2, False), (320, 4, False), (1280, 1, True), (320, 4, True)],
    ids=["200 %", "400 %", "wider text", "400 % and wider text"],
)
def test_nothing_is_cut_off(visited, site_url, explorer_pages, width, scale, spaced):
    """Zoom to 200 and 400 % on a window of 1280 pixels; the text spacing of WCAG 1.4.12."""
    page, _ = visited(viewport={"width": width, "height": 720 // scale}, device_scale_factor=scale)
    if spaced:
        page.add_init_script(SPACED)
    names = [*explorer_pages, "search.html", "back/helpers.html"]
    assert sweep(page, site_url, names, CUT) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_text_that_is_cut_off_is_found(visited, site_url):
    page, _ = visited()
    unfolded(page, f"{site_url}/index.html")
    page.evaluate("""() => {
      Object.assign(document.querySelector(".attn-explorer-tools button").style, { width: "20px", padding: 0 });
      const [first, second] = document.querySelectorAll(".attn-explorer .attn-control-name");
      second.style.position = "relative";
      const [a, b] = [first, second].map((node) => node.getBoundingClientRect());
      Object.assign(second.style, { left: `${a.x - b.x}px`, top: `${a.y - b.y}px` });
    }""")
    kinds = {fault.split(":")[0] for fault in page.evaluate(CUT)}
    assert kinds == {"cut off", "overlaps"}


# --- the reader's own colours, no motion ----------------------------------------------------------------------

CONTROLS = """() => {
  const found = [];
  const plain = new Set(["rgba(0, 0, 0, 0)", getComputedStyle(document.body).backgroundColor]);
  for (const node of document.querySelectorAll(".button, .copy, .attn-explorer :is(select, .attn-explorer-tools button, .attn-control-toggle label)")) {
    if (!node.checkVisibility()) continue;
    const { borderTopStyle, borderTopWidth, borderTopColor } = getComputedStyle(node);
    if (borderTopStyle === "none" || borderTopWidth === "0px" || plain.has(borderTopColor)) found.push(`no border: ${node.outerHTML.slice(0, 80)}`);
  }
  for (const tip of document.querySelectorAll(".attn-tip")) {
    if (plain.has(getComputedStyle(tip).color)) found.push("the text of a tip has the page's colour");
  }
  const lines = { stroke: ".attn-curve, .attn-link, .attn-arrow, .attn-zero", fill: ".attn-fill, .attn-fill-negative, .attn-point, .attn-query, svg text" };
  for (const part in lines) {
    for (const node of document.querySelectorAll(`.attn-explorer :is(${lines[part]}):not(.attn-on-light, .attn-on-dark)`)) {
      if (plain.has(getComputedStyle(node)[part])) found.push(`not seen: ${node.outerHTML.slice(0, 80)}`);
    }
  }
  return found;
}"""


def pixels(locator):
    return np.asarray(Image.open(io.BytesIO(locator.screenshot())).convert("RGB")).astype(int)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_forced_colours(visited, site_url, explorer_pages, theme):
    """Controls have borders, lines and bars differ from the page, and heatmaps keep the colours of their numbers."""
    page, _ = visited(forced_colors="active", color_scheme=theme)
    assert sweep(page, site_url, explorer_pages, CONTROLS) == []
    page.evaluate("document.querySelector('#theme-button').style.border = 'none'")
    assert len(page.evaluate(CONTROLS)) == 1
    page.goto(f"{site_url}/{explorer_pages[4]}")
    explorers.ready(page)
    canvas = page.locator(".attn-view-heatmap canvas").first
    drawn = canvas.evaluate("""(node) => {
      const { data } = node.getContext("2d").getImageData(0, 0, node.width, node.height);
      return [...data.slice(0, 3), ...data.slice(-4, -1)];
    }""")
    shown = pixels(canvas)
    corners = [*shown[4, 4], *shown[-5, -5]]
    assert np.abs(np.subtract(corners, drawn)).max() <= 2
    assert len(np.unique(shown.reshape(-1, 3), axis=0)) > 5


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("forced", ["none", "active"])
def test_the_cell_that_arrow_keys_visit_is_seen(visited, site_url, chapters, theme, forced):
    """On the palest and on the darkest cell, the frame's pixels and those beside it have a contrast of 3 or more."""
    page, _ = visited(color_scheme=theme, forced_colors=forced)
    page.goto(f"{site_url}/{chapters[4]}")
    explorers.ready(page)
    plot = page.locator(".attn-view-heatmap .attn-plot").first
    for shade in ["#fff", "#08306b"]:
        plot.locator("canvas").first.evaluate(
            """(node, shade) => {
              const context = node.getContext("2d");
              context.fillStyle = shade;
              context.fillRect(0, 0, node.width, node.height);
            }""",
            shade,
        )
        plot.focus()
        for key in ["Escape", "ArrowDown", "Home", "ArrowRight", "ArrowRight"]:  # amid other cells
            page.keyboard.press(key)
        frame = pixels(plot.locator(".attn-cursor"))
        edge = np.concatenate([frame[4:-4, :3].reshape(-1, 3), frame[:3, 4:-4].reshape(-1, 3)])
        light = [luminance(colour) for colour in np.unique(edge, axis=0)]
        assert (max(light) + 0.05) / (min(light) + 0.05) >= 3, (theme, shade)


def luminance(colour):
    channels = np.asarray(colour) / 255
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    return linear @ [0.2126, 0.7152, 0.0722]


MOVES = """() => [document.documentElement, ...document.querySelectorAll("*")].filter((node) => {
  const { transitionDuration, animationName, scrollBehavior } = getComputedStyle(node);
  return /[1-9]/.test(transitionDuration) || animationName !== "none" || scrollBehavior === "smooth";
}).map((node) => node.tagName).concat(document.getAnimations().map(() => "an animation"))"""


def test_nothing_moves_where_motion_is_reduced(visited, site_url, pages):
    assert sweep(visited()[0], site_url, pages, MOVES) == []
    lively, _ = visited(reduced_motion="no-preference")
    lively.goto(f"{site_url}/index.html")
    assert lively.evaluate(MOVES)


# --- fingers --------------------------------------------------------------------------------------------------

# WCAG 2.5.8: 24 × 24 CSS pixels, but for links within a sentence or a heading. A link that stands alone in a line may
# be smaller where a circle of 24 pixels around its middle meets no other target (the exception for spacing).
SMALL = """() => {
  const found = [];
  const targets = [...document.querySelectorAll(
    "a[href], button, select, summary, input:not([type=hidden]), label:has(input), [tabindex='0']",
  )].filter((node) => node.checkVisibility({ visibilityProperty: true })).map((node) => {
    const { left, right, top, bottom } = (node.querySelector("img") ?? node).getBoundingClientRect();
    return { node, left, right, top, bottom, x: (left + right) / 2, y: (top + bottom) / 2, small: Math.min(right - left, bottom - top) < 24 };
  });
  const inSentence = ({ node }) => {
    const sentence = node.closest("p, li, td, th, dd, dt, figcaption, caption, cite, h1, h2, h3, h4, .eqno, .citation");
    return node.matches("a") && getComputedStyle(node).display === "inline" &&
      sentence?.textContent.trim().length > node.textContent.trim().length;
  };
  const meets = (a, b) => {
    const across = Math.max(b.left - a.x, 0, a.x - b.right);
    const down = Math.max(b.top - a.y, 0, a.y - b.bottom);
    return Math.hypot(across, down) < 12 || (b.small && Math.hypot(a.x - b.x, a.y - b.y) < 24);
  };
  for (const target of targets.filter((one) => one.small && !inSentence(one))) {
    const alone = target.node.matches("a") && !targets.some((other) => other !== target && meets(target, other));
    if (!alone) found.push(target.node.outerHTML.slice(0, 100));
  }
  return found;
}"""


def test_targets_are_large_enough_for_a_finger(visited, site_url, pages):
    page, _ = visited(**PHONE)
    assert sweep(page, site_url, pages, SMALL) == []
    for button in ["Chapters", "Notebook"]:  # what opens on a tap
        page.goto(f"{site_url}/index.html")
        page.get_by_role("button", name=button).tap()
        assert page.evaluate(SMALL) == []
    page.evaluate("""() => {
      document.querySelector("#theme-button").style = "min-width: 20px; width: 20px; padding: 0";
    }""")
    assert len(page.evaluate(SMALL)) == 1
