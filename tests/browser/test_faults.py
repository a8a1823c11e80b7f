"""What goes wrong around the built pages: missing scripts, a slow network, odd addresses, paper, strings that are not meant well."""

import re
import shutil
import subprocess

import explorers
import numpy as np
import pytest
from visits import listening, unfolded

MARKUP = "<img src=x onerror=window.hacked=1>"


def by_name(page, name):
    return page.locator(f".attn-explorer[data-name={name}]").first


def first_slider(explorer):
    """A slider of the explorer: its input, its argument, its options, and the option it starts from."""
    data = explorers.payload(explorer)
    control = next(c for c in data["controls"] if c["kind"] == "slider")
    slider = explorer.get_by_role("slider", name=control["label"], exact=True)
    return slider, control["name"], control["values"], control["index"]


def until(page, explorer, **wanted):
    page.wait_for_function(
        """([view, wanted]) => Object.entries(wanted)
          .every(([name, value]) => JSON.parse(view.dataset.settings)[name] === value)""",
        arg=[explorer.locator(".attn-explorer-view").element_handle(), wanted],
        timeout=5000,
    )


# --- scripts that do not come ---------------------------------------------------------------------------------


def scripts(site_dir, name):
    return re.findall(r'<script[^>]*\bsrc="([^"]+)"', (site_dir / name).read_text("utf-8"))


def file_name(address):
    return address.split("?")[0].split("/")[-1]


@pytest.mark.parametrize("name", ["index.html", "chapters/05-self-attention.html"])
def test_each_script_blocked(visited, site_url, site_dir, name):
    """Readable without any of them; without their own script, explorers are their pictures."""
    for script in scripts(site_dir, name):
        page, faults = visited()
        page.route(f"**/{file_name(script)}*", lambda route: route.abort())
        page.goto(f"{site_url}/{name}")
        page.wait_for_load_state("networkidle")
        found = page.locator(".attn-explorer").all()
        if file_name(script) == "explorer.js":
            for explorer in found:
                still = explorer.locator(".attn-explorer-view img")
                assert still.is_visible() and still.get_attribute("alt"), script
                assert explorer.locator("input, select, button").count() == 0
        else:
            explorers.ready(page)
            slider, argument, values, _ = first_slider(found[0])
            slider.press("End")
            until(page, found[0], **{argument: values[-1]})
        assert page.locator("article p").first.is_visible()
        assert page.get_by_role("link", name="Notation and shapes").first.is_visible()
        if file_name(script) == "book.js":  # a button that would do nothing does not stand there
            assert not page.locator("#theme-button").is_visible()
        own = [fault for fault in faults if file_name(script) not in fault]
        assert [fault for fault in own if "ERR_FAILED" not in fault] == [], script


def test_a_search_that_does_not_load_says_so(visited, site_url, site_dir):
    """Whichever of its scripts is missing; the chapters stand beside it."""
    searching = [s for s in scripts(site_dir, "search.html") if not re.search("theme|book", s)]
    assert len(searching) == 6
    for script in searching:
        page, faults = visited()
        page.route(f"**/{file_name(script)}*", lambda route: route.abort())
        page.goto(f"{site_url}/search.html?q=softmax")
        page.wait_for_load_state("networkidle")
        said = page.locator("#search-results").get_by_text("The search did not load")
        if file_name(script) == "search.js":  # what the page says of itself, after a while
            assert not said.is_visible()
        said.wait_for(timeout=10_000)
        assert page.get_by_role("link", name="Notation and shapes").first.is_visible()
        assert sum(": error:" in fault for fault in faults) <= 2, faults  # no cascade
    page, _ = visited(java_script_enabled=False)
    page.goto(f"{site_url}/search.html")
    page.get_by_text("The search did not load: it needs JavaScript").wait_for(timeout=10_000)


# --- a slow network -------------------------------------------------------------------------------------------

SHIFTS = """{
  window.shifted = 0;
  new PerformanceObserver((list) => list.getEntries().forEach((entry) => { window.shifted += entry.value; }))
    .observe({ type: "layout-shift", buffered: true });
}"""
SLOW = {"offline": False, "latency": 400, "downloadThroughput": 50_000, "uploadThroughput": 50_000}


def shift(page):
    """The page's cumulative layout shift, once all is there."""
    page.wait_for_load_state("networkidle")
    page.evaluate("document.fonts.ready.then(() => new Promise(requestAnimationFrame))")
    return page.evaluate("window.shifted")


@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_jumps_while_a_page_loads(browser, site_url, pages, width):
    """Google's "good" is below 0.1. Every page is somebody's first, before any font is there: a context each.

    The negative: a page that puts a box on top of what was there.
    """
    shifts = {}
    for name in pages:
        with listening(browser, [], viewport={"width": width, "height": 800}) as page:
            page.add_init_script(SHIFTS)
            page.goto(f"{site_url}/{name}")
            shifts[name] = shift(page)
            if name == "index.html":
                page.evaluate("""() => {
                  const box = document.createElement("div");
                  box.style.height = "500px";
                  document.querySelector("main").prepend(box);
                  return new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
                }""")
                assert shift(page) >= 0.1
    assert {name: value for name, value in shifts.items() if value >= 0.1} == {}


# Where a heading stands, frame by frame, once the page has gone to it. (A layout shift is the wrong measure there: the
# explorers above, which nobody sees, grow in the same frame.)
PLACES = """{
  window.places = new Set();
  const look = () => {
    const node = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (scrollY && node) window.places.add(Math.round(node.getBoundingClientRect().y));
    requestAnimationFrame(look);
  };
  look();
}"""


@pytest.fixture
def slow_page(visited):
    """A phone's page over 50 kB a second, 400 ms away."""
    page, faults = visited(viewport={"width": 390, "height": 800})
    page.set_default_timeout(60_000)
    session = page.context.new_cdp_session(page)
    session.send("Network.enable")
    session.send("Network.emulateNetworkConditions", SLOW)
    yield page
    assert faults == []


def test_nothing_jumps_on_a_slow_network(slow_page, site_url):
    """The first page, which opens with an explorer."""
    slow_page.add_init_script(SHIFTS)
    slow_page.goto(f"{site_url}/index.html")
    explorers.ready(slow_page)
    assert shift(slow_page) < 0.1


def test_a_link_into_a_page_leads_there_on_a_slow_network(slow_page, site_url, chapters):
    """Past two explorers, whose pictures are replaced by something taller after the text has come."""
    slow_page.add_init_script(PLACES)
    slow_page.goto(f"{site_url}/{chapters[0]}#summary")
    explorers.ready(slow_page)
    slow_page.wait_for_load_state("networkidle")
    [place] = slow_page.evaluate("[...window.places]")
    assert 0 <= place < 200


# --- addresses ------------------------------------------------------------------------------------------------


def test_back_and_forward_keep_the_settings(visited, site_url, chapters):
    """Set a slider, read another page, come back: it stands where it was left; forward and back again, too."""
    page, faults = visited()
    page.goto(f"{site_url}/{chapters[0]}")
    [explorer, *_] = explorers.ready(page)
    slider, argument, values, _ = first_slider(explorer)
    slider.press("End")
    page.wait_for_url(f"**#*{argument}=*")
    page.locator(".prev-next .next").click()
    page.wait_for_url(f"**/{chapters[1]}")
    explorers.ready(page)
    for step in [page.go_back, page.go_forward, page.go_back]:
        page.wait_for_load_state("networkidle")  # or what is left behind counts as failed
        step()
        explorers.ready(page)
    assert chapters[0] in page.url
    [explorer, *_] = explorers.ready(page)
    until(page, explorer, **{argument: values[-1]})
    assert first_slider(explorer)[0].input_value() == str(len(values) - 1)
    assert faults == []


def test_nonsense_and_markup_in_an_address(visited, site_url, explorer_pages):
    """On every page, for its first explorer: the defaults stay, and no string becomes an element."""
    page, faults = visited()
    for name in explorer_pages:
        page.goto("about:blank")
        page.goto(f"{site_url}/{name}")
        explorer = explorers.ready(page)[0]
        data, before = explorers.payload(explorer), explorers.settings(explorer)
        images = page.locator("img").count()
        for value in [MARKUP, "NaN", "__proto__", "%E0%A4%A", "constructor"]:
            query = "&".join(f"{control['name']}={value}" for control in data["controls"])
            page.evaluate("hash => { location.hash = hash; }", f"{data['name']}?{query}")
            page.evaluate("hash => { location.hash = hash; }", f"{value}?{query}")
            page.evaluate("new Promise((done) => setTimeout(done, 30))")
            assert explorers.settings(explorer) == before, (name, value)
        assert page.locator("img").count() == images, name
        assert page.evaluate("window.hacked") is None, name
    assert faults == []


@pytest.mark.parametrize("words", [MARKUP, f"softmax {MARKUP}", "<script>window.hacked=1</script>"])
def test_what_is_searched_for_is_never_markup(visited, site_url, words):
    page, faults = visited()
    page.goto(f"{site_url}/search.html")
    field = page.locator("main input[name=q]")
    field.fill(words)
    field.press("Enter")
    page.locator("#search-results .search-summary:not(:empty)").wait_for()
    assert page.locator("main input[name=q]").input_value() == words
    assert page.locator("#search-results :is(img, script)").count() == 0
    assert page.evaluate("window.hacked") is None
    assert faults == []


def test_markup_would_be_noticed(visited, site_url):
    """What the tests above count is there once a string is taken for HTML; the policy stops its handler even then."""
    page, faults = visited()
    page.goto(f"{site_url}/search.html")
    page.evaluate("html => { document.getElementById('search-results').innerHTML = html; }", MARKUP)
    page.wait_for_load_state("networkidle")
    assert page.locator("#search-results img").count() == 1
    assert page.evaluate("window.hacked") is None
    assert any("Content Security Policy" in fault for fault in faults)


@pytest.mark.parametrize("word", ["constructor", "__proto__", "hasOwnProperty"])
def test_words_of_javascript_are_words(visited, site_url, word):
    page, faults = visited()
    page.goto(f"{site_url}/search.html?q={word}")
    summary = page.locator("#search-results .search-summary:not(:empty)")
    summary.wait_for()
    assert page.get_by_role("link", name="undefined").count() == 0
    assert faults == []


# --- two tabs, forbidden storage, a change of theme -----------------------------------------------------------


def test_two_tabs_keep_apart(visited, site_url, chapters):
    page, faults = visited()
    page.goto(f"{site_url}/{chapters[0]}")
    other = page.context.new_page()
    other.goto(page.url)
    [here, *_], [there, *_] = explorers.ready(page), explorers.ready(other)
    before = explorers.settings(here)
    slider, argument, values, _ = first_slider(there)
    slider.press("End")
    until(other, there, **{argument: values[-1]})
    other.locator("#theme-button").click()
    assert explorers.settings(here) == before
    page.bring_to_front()
    slider, argument, values, _ = first_slider(here)
    slider.press("Home")
    until(page, here, **{argument: values[0]})
    assert faults == []


def test_search_with_storage_forbidden(visited, site_url):
    page, faults = visited()
    page.add_init_script(
        "Object.defineProperty(window, 'localStorage', {get() { throw new Error('no'); }})"
    )
    page.goto(f"{site_url}/search.html?q=softmax")
    page.locator("#search-results li a").first.wait_for()
    assert faults == []


def test_theme_changed_while_sliding(visited, site_url, chapters):
    """The button that the reader has, between two steps of a slider: what is drawn is still what the data says."""
    page, faults = visited()
    page.goto(f"{site_url}/{chapters[0]}")
    [explorer, *_] = explorers.ready(page)
    slider, argument, values, at = first_slider(explorer)
    for _ in range(3):
        slider.press("ArrowRight")
        page.locator("#theme-button").click()
        slider.press("ArrowRight")
    until(page, explorer, **{argument: values[at + 6]})
    data = explorers.payload(explorer)
    options = explorers.random_options(data, 2, np.random.default_rng(0))
    for one, shown in zip(options, explorers.visit(explorer, options), strict=True):
        assert explorers.problems(data, one, shown) == []
    assert faults == []


# --- paper ----------------------------------------------------------------------------------------------------


def printed(page, file):
    """The words of a page on paper."""
    page.pdf(path=file, format="A4")
    done = subprocess.run(["pdftotext", "-raw", file, "-"], capture_output=True, text=True)
    return letters(done.stdout)


def letters(text):
    return re.sub(r"[^a-z0-9]", "", text.lower())


@pytest.mark.skipif(not shutil.which("pdftotext"), reason="pdftotext reads what was printed")
def test_paper_holds_all_words(visited, site_url, pages, tmp_path):
    """Every heading, folded answers and solutions, the captions and sentences of explorers, and no tools."""
    page, _ = visited()
    for name in [*pages[:-2], "index.html"]:
        page.goto(f"{site_url}/{name}")
        explorers.ready(page)
        wanted = page.locator("article").evaluate("""(article) => [...article.querySelectorAll(
          ":is(h1, h2, h3), summary, details p, .attn-explorer-text > span, .attn-title > span, dt")]
          .filter((node) => !node.querySelector(".katex, .headerlink:only-child") && !node.closest(".attn-explorer-tools, .hide > summary"))
          .map((node) => node.textContent.replace("¶", "").trim().slice(0, 40))""")
        paper = printed(page, tmp_path / "page.pdf")
        missing = [text for text in wanted if letters(text) not in paper]
        assert missing == [], name
        assert letters("Copy this code") not in paper and letters("Copy link") not in paper, name


def test_paper_shows_explorers_as_pictures(visited, site_url, explorer_pages):
    """From a phone at night, too: all of each picture is within the sheet, in dark ink, and the tools are gone."""
    page, _ = visited(viewport={"width": 390, "height": 800}, color_scheme="dark")
    for name in explorer_pages:
        unfolded(page, f"{site_url}/{name}")
        page.emulate_media(media="print")
        page.set_viewport_size({"width": 720, "height": 1000})  # A4 within its margins
        explorers.next_frames(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= 720, name
        wrong = page.locator(".attn-explorer").evaluate_all("""(roots) => roots.filter((root) => (
          [...root.querySelectorAll(".attn-plot")].some((plot) => plot.getBoundingClientRect().height < 40) ||
          root.querySelector(".attn-explorer-tools").checkVisibility() ||
          getComputedStyle(root).color !== "rgb(20, 32, 43)"
        )).map((root) => root.dataset.name)""")
        assert wrong == [], name
        page.emulate_media(media="screen")
        page.set_viewport_size({"width": 390, "height": 800})
