"""Visit pages of the built site: a quiet context, everything unfolded, what a checker finds on each page."""

from contextlib import contextmanager

import explorers

from tools import setup

AXE = setup.ROOT / "tools" / "npm" / "node_modules" / "axe-core" / "axe.min.js"
UNFOLD = "document.querySelectorAll('details').forEach((d) => { d.open = true; })"


@contextmanager
def listening(browser, faults, **options):
    """A browser page; whatever it complains about or fails to load is added to `faults`.

    With reduced motion, or every `scrollTo` would wait for the end of a smooth scroll: most of a sweep's time.
    """
    usual = {"viewport": {"width": 1280, "height": 900}, "reduced_motion": "reduce"}
    context = browser.new_context(**usual | options)
    page = context.new_page()

    def note(kind, text):
        faults.append(f"{page.url.split('/', 3)[-1]}: {kind}: {text}")

    page.on("pageerror", lambda error: note("error", error))
    page.on("console", lambda m: m.type in ("error", "warning") and note("console", m.text))
    # Aborted is what had not come when the test went on to the next page, as a slow favicon.
    page.on("requestfailed", lambda r: r.failure != "net::ERR_ABORTED" and note("failed", r.url))
    page.on("response", lambda r: r.status >= 400 and note(r.status, r.url))
    yield page
    context.close()


def through(page, height=2400):
    """Scroll to the end, so that whatever waits to come into sight loads and draws."""
    page.evaluate(
        """async (height) => {
          for (let y = 0; y < document.body.scrollHeight; y += height) {
            scrollTo(0, y);
            await new Promise(requestAnimationFrame);
          }
        }""",
        height,
    )
    page.wait_for_load_state("networkidle")


def unfolded(page, address):
    """Open a page and everything that folds; return its explorers."""
    page.goto(address)
    found = explorers.ready(page)
    page.evaluate(UNFOLD)
    page.evaluate("new Promise((done) => setTimeout(done, 50))")  # tables follow the opening
    return found


def sweep(page, site_url, names, check, argument=None):
    """What a script finds on each of the pages, unfolded: a list of sentences."""
    found = []
    for name in names:
        unfolded(page, f"{site_url}/{name}")
        found += [f"{name}: {fault}" for fault in page.evaluate(check, argument)]
    return found
