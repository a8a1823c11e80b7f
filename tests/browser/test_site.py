"""Every page of the built site, in a real browser: quiet, self-contained, readable everywhere.

What readers with other senses and hands meet is in test_reader.py, what goes wrong around a page in test_faults.py.
"""

import re

import pytest
from playwright.sync_api import expect
from visits import UNFOLD, listening, through

from tools import page_weight, serve

THEMES = ["light", "dark"]
WIDTHS = [320, 360, 390, 1280]
TOO_WIDE = """() => [...document.querySelectorAll(".math-scroll")]
  .filter((box) => box.scrollWidth > box.clientWidth + 1)
  .map((box) => box.querySelector("annotation").textContent.trim())"""
HEAVIEST = 350_000  # bytes of a page with all that it loads, compressed


@pytest.mark.parametrize("theme", THEMES)
def test_quiet_and_self_contained(browser, site_url, pages, theme):
    faults = []
    with listening(browser, faults, color_scheme=theme) as page:

        def note_outside(request):
            if not request.url.startswith((site_url, "data:", "blob:")):
                faults.append(f"{page.url}: asks {request.url}")

        page.on("request", note_outside)
        for name in pages:
            page.goto(f"{site_url}/{name}")
            through(page)
            assert page.evaluate("document.documentElement.dataset.theme") == theme
    assert faults == []


def test_no_page_scrolls_sideways(browser, site_url, pages):
    faults = []
    with listening(browser, faults) as page:
        for name in [*pages, "404.html"]:
            page.goto(f"{site_url}/{name}")
            page.evaluate(UNFOLD)
            for width in WIDTHS:
                page.set_viewport_size({"width": width, "height": 800})
                wide = page.evaluate("document.documentElement.scrollWidth")
                if wide > width:
                    faults.append(f"{name}: {wide} px wide at {width} px")
                if width >= 360:  # a formula may scroll in its box, but nobody should have to
                    faults += [f"{name}: {tex} at {width} px" for tex in page.evaluate(TOO_WIDE)]
    assert [fault for fault in faults if "404" not in fault] == []


def test_a_formula_that_is_too_wide_is_found(browser, site_url):
    with listening(browser, [], viewport={"width": 360, "height": 800}) as page:
        page.goto(f"{site_url}/chapters/01-new-operator.html")
        assert page.evaluate(TOO_WIDE) == []
        page.evaluate(
            "document.querySelectorAll('.katex-display').forEach((f) => { f.style.width = '400px'; })"
        )
        assert len(page.evaluate(TOO_WIDE)) > 3


LETTERS = r'font(?:-size)?(?:: ?|=")(?:\w+ )?([\d.]+)(?:px|")'  # their sizes in an SVG's own units


def test_letters_of_pictures_can_be_read_on_a_phone(browser, site_url, site_dir, chapters):
    """An SVG is scaled to the width of the screen, and its letters with it."""
    small, seen = [], 0
    with listening(browser, [], viewport={"width": 390, "height": 800}) as page:
        for name in ["index.html", *chapters]:
            page.goto(f"{site_url}/{name}")
            page.evaluate(UNFOLD)
            for picture in page.locator("article img[src$='.svg']:not(.attn-explorer img)").all():
                svg = (site_dir / name).parent.joinpath(picture.get_attribute("src")).read_text()
                wide = float(re.search(r'viewBox="\S+ \S+ (\S+)', svg)[1])
                least = min(float(size) for size in re.findall(LETTERS, svg))
                seen += 1
                if least * picture.bounding_box()["width"] / wide < 6.5:
                    small.append(f"{name}: {picture.get_attribute('alt')[:60]}")
    assert small == [] and seen > 20


def test_light_enough(browser, site_url, pages):
    sizes = {name: sum(page_weight.weigh(browser, f"{site_url}/{name}").values()) for name in pages}
    assert {name: size for name, size in sizes.items() if size > HEAVIEST} == {}


def test_strict_policy(site_dir, pages):
    """No inline script or handler anywhere, and a policy that would refuse one."""
    for name in pages:
        text = (site_dir / name).read_text(encoding="utf-8")
        assert "script-src 'self';" in text, name
        scripts = re.findall(r"<script(?![^>]*\bsrc=)([^>]*)>", text)
        assert all('type="application/json"' in script for script in scripts), name
        assert not re.search(
            r"<[^>]+\son\w+=", re.sub(r"<script.*?</script>", "", text, flags=re.S)
        )


def test_policy_refuses_an_inline_script(browser, site_url):
    faults = []
    with listening(browser, faults) as page:
        page.goto(f"{site_url}/index.html")
        page.evaluate(
            "() => { const s = document.createElement('script'); s.textContent = 'document.title = 1';"
            " document.body.append(s); }"
        )
        assert page.title() != "1"
    assert any("Content Security Policy" in fault for fault in faults)


def test_works_under_a_sub_path(browser, site_dir, pages, tmp_path):
    (tmp_path / "somebody").mkdir()
    (tmp_path / "somebody" / "book").symlink_to(site_dir)
    faults = []
    with serve.running(tmp_path) as url, listening(browser, faults) as page:
        for name in pages:
            page.goto(f"{url}/somebody/book/{name}")
            page.wait_for_load_state("networkidle")
        chapter = next(name for name in pages if name.startswith("chapters/"))
        page.goto(f"{url}/somebody/book/{chapter}")
        page.locator(".brand").click()
        expect(page).to_have_url(f"{url}/somebody/book/index.html")
    assert faults == []


def test_works_from_a_folder(browser, site_dir, pages):
    faults = []
    with listening(browser, faults) as page:
        for name in pages:
            page.goto(f"file://{site_dir}/{name}")
            through(page)
            explorers = page.locator(".attn-explorer")
            drawn = page.locator(".attn-explorer-view[data-settings]")
            assert drawn.count() == explorers.count(), name
        page.goto(f"file://{site_dir}/search.html?q=softmax")
        page.locator("#search-results li a").first.wait_for()
    assert faults == []


def test_readable_without_javascript(browser, site_url, pages):
    """Formulas, pictures in place of explorers, folded parts, the way to other pages."""
    faults = []
    with listening(browser, faults, java_script_enabled=False) as page:
        for name in pages:
            page.goto(f"{site_url}/{name}")
            assert page.locator(".site-nav a").count() == len(pages) - 1, name  # all but the search
            for formula in page.locator("article .katex-html").all()[:5]:
                box = formula.bounding_box()
                assert box is None or box["width"] > 3, name
            for explorer in page.locator(".attn-explorer").all():
                assert explorer.locator("img").first.get_attribute("alt"), name
            for folded in page.locator("article details").all()[:1]:
                folded.locator("summary").first.click()
                assert folded.get_attribute("open") is not None, name
    assert faults == []


WORDS = """(article) => {
  const text = article.cloneNode(true);
  text.querySelectorAll("pre, .katex, .attn-explorer, script, summary").forEach((e) => e.remove());
  return text.innerText.toLowerCase().match(/\\b[a-z]{8,}\\b/g) ?? [];
}"""


def test_search_finds_words_of_every_chapter(browser, site_url, chapters):
    """The words looked for are those that only one chapter uses, twice or more."""
    with listening(browser, []) as page:
        words = {}
        for name in chapters:
            page.goto(f"{site_url}/{name}")
            words[name] = page.locator("article").evaluate(WORDS)
        for name in chapters:
            others = {w for other in chapters if other != name for w in words[other]}
            own = [w for w in words[name] if w not in others and words[name].count(w) > 1]
            assert own, name
            page.goto(f"{site_url}/search.html?q={own[0]}")
            link = page.locator(f"#search-results li a[href*='{name}']").first
            link.wait_for(timeout=5000)
        link.click()
        page.wait_for_url(f"**/{chapters[-1]}**")


def test_search_field_and_shortcut(browser, site_url, chapters):
    with listening(browser, []) as page:
        page.goto(f"{site_url}/{chapters[0]}")
        page.keyboard.press("Control+k")
        page.keyboard.type("bandwidth")
        page.keyboard.press("Enter")
        page.locator("#search-results li a").nth(1).wait_for()


def test_colours_are_chosen_and_kept(browser, site_url, chapters):
    with listening(browser, []) as page:
        page.goto(f"{site_url}/index.html")
        paper = "getComputedStyle(document.body).backgroundColor"
        light = page.evaluate(paper)
        button = page.locator("#theme-button")
        button.click()
        button.click()
        dark = page.evaluate(paper)
        assert dark != light
        page.goto(f"{site_url}/{chapters[0]}")
        assert page.evaluate(paper) == dark
        assert "dark" in button.inner_text()
        button.click()
        assert page.evaluate("document.documentElement.dataset.theme") == "light"
        page.emulate_media(color_scheme="dark")
        page.wait_for_function("document.documentElement.dataset.theme === 'dark'")


def test_storage_forbidden(browser, site_url, chapters):
    """As in a browser that blocks all site data: the choice of colours lasts for the page."""
    faults = []
    forbid = "Object.defineProperty(window, 'localStorage', {get() { throw new Error('no'); }})"
    with listening(browser, faults) as page:
        page.add_init_script(forbid)
        page.goto(f"{site_url}/{chapters[0]}")
        page.locator("#theme-button").click()
        page.locator("#theme-button").click()
        assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    assert faults == []


def test_by_keyboard(browser, site_url, chapters):
    """The first stop skips the bar; on a phone the chapters open, and close with Escape."""
    with listening(browser, [], viewport={"width": 390, "height": 800}) as page:
        page.goto(f"{site_url}/{chapters[0]}")
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        assert page.evaluate("document.activeElement.id") == "main-content"
        nav = page.locator("#site-nav")
        assert not nav.is_visible()
        page.get_by_role("button", name="Chapters").focus()
        page.keyboard.press("Enter")
        assert nav.is_visible()
        page.keyboard.press("Escape")
        assert not nav.is_visible()
        page.get_by_role("button", name="Notebook").focus()
        page.keyboard.press("Enter")
        assert page.get_by_role("link", name=".ipynb").is_visible()


def test_copies_a_cell(browser, site_url, chapters):
    with listening(browser, [], permissions=["clipboard-read", "clipboard-write"]) as page:
        page.goto(f"{site_url}/{chapters[0]}")
        cell = page.locator(".cell_input").first
        cell.get_by_role("button", name="Copy").click()
        page.wait_for_function("navigator.clipboard.readText().then(Boolean)")
        copied = page.evaluate("navigator.clipboard.readText()")
        assert copied == cell.locator("pre").inner_text().rstrip()


@pytest.mark.parametrize(
    "at", ["nothing", "somebody/book/nothing", "somebody/book/a/b/nothing.html"]
)
def test_page_not_found(browser, site_dir, tmp_path, at):
    """As GitHub Pages does: the answer to a wrong address, at any depth, is 404.html."""
    root = tmp_path
    for folder in at.split("/")[:2] if at.startswith("somebody") else []:
        root = root / folder
    root.parent.mkdir(parents=True, exist_ok=True)
    if root != tmp_path:
        root.symlink_to(site_dir)
        top = tmp_path
    else:
        top = site_dir
    body = (site_dir / "404.html").read_text(encoding="utf-8")
    with serve.running(top) as url, listening(browser, []) as page:
        page.route(
            f"{url}/{at}",
            lambda route: route.fulfill(status=404, body=body, content_type="text/html"),
        )
        page.goto(f"{url}/{at}")
        link = page.locator("#home a")
        link.wait_for()
        if not link.get_attribute("href").startswith("https://"):  # the site's address is not known
            link.click()
            expect(page).to_have_title("Attention by Hand")


def test_print_is_complete(browser, site_url, chapters):
    """On paper folded parts are open and the bars are gone."""
    with listening(browser, []) as page:
        page.goto(f"{site_url}/{chapters[0]}")
        page.emulate_media(media="print")
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        assert page.locator("article details:not([open])").count() == 0
        assert not page.locator(".top").is_visible()
        assert not page.locator("#site-nav").is_visible()
        assert page.locator(".solution pre").first.is_visible()
        page.evaluate("dispatchEvent(new Event('afterprint'))")
        assert page.locator("article details[open]").count() == 0


def test_social_tags(site_dir, pages):
    for name in pages:
        text = (site_dir / name).read_text(encoding="utf-8")
        tags = dict(re.findall(r'<meta (?:property|name)="([\w:]+)" content="([^"]*)"', text))
        for tag in ("description", "og:title", "og:description", "og:image", "twitter:card"):
            assert tags.get(tag), f"{name}: {tag}"
        if not tags["og:image"].startswith("https://"):
            assert (site_dir / name).parent.joinpath(tags["og:image"]).resolve().exists(), name


def test_every_link_leads_somewhere(site_dir, pages):
    """Within the site: the page is there, and so is the place on it. References to equations say its number."""
    texts = {name: (site_dir / name).read_text(encoding="utf-8") for name in pages}
    places = {name: set(re.findall(r'\bid="([^"]+)"', text)) for name, text in texts.items()}
    faults = []
    for name, text in texts.items():
        for href, inside in re.findall(r'<a\b[^>]*\bhref="([^"]*)"[^>]*>(.*?)</a>', text, re.S):
            if re.match(r"[a-z]+:", href):
                continue
            path, _, anchor = href.partition("#")
            file = (site_dir / name).parent.joinpath(path).resolve() if path else site_dir / name
            if not file.exists():
                faults.append(f"{name}: {href} is not there")
                continue
            target = file.relative_to(site_dir.resolve() if path else site_dir).as_posix()
            if anchor and target in places and anchor not in places[target]:
                faults.append(f"{name}: {href}: no such place")
            if (
                anchor.startswith("equation-")
                and "headerlink" not in inside
                and re.match(r"\(", inside)
            ):
                block = texts[target].partition(f'id="{anchor}"')[2]
                number = re.search(r'class="eqno">(\([\d.]+\))', block)
                if not number or number[1] != inside:
                    faults.append(
                        f"{name}: {href} says {inside}, the equation {number and number[1]}"
                    )
    assert faults == []


def test_nojekyll(site_dir):
    assert (site_dir / ".nojekyll").exists()
