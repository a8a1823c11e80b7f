"""What a page costs a reader: every byte that Chromium loads for it, compressed as a server would.

python -m tools.page_weight [FOLDER]     a table of the built site's pages
"""

import gzip
import sys
from pathlib import Path

from tools import browser, serve

COMPRESSED = (".woff2", ".png", ".jpg", ".zip")  # already; gzip would add bytes


def weigh(browser, url):
    """Load the page as a first visitor; return {address: bytes} of all that came."""
    # reduced motion: a smooth scroll would be waited for
    context = browser.new_context(viewport={"width": 1280, "height": 900}, reduced_motion="reduce")
    page = context.new_page()
    answers = []
    page.on("response", lambda answer: answers.append(answer))
    page.goto(url, wait_until="networkidle")
    height = page.evaluate("document.body.scrollHeight")
    for y in range(0, height, 3000):  # what loads only when it comes into sight counts too
        page.evaluate(f"scrollTo(0, {y})")
    page.wait_for_load_state("networkidle")
    sizes = {}
    for answer in answers:
        if answer.request.method != "GET" or answer.url.startswith("data:"):
            continue
        body = answer.body()
        path = answer.url.split("?")[0]
        sizes[path] = len(body) if path.endswith(COMPRESSED) else len(gzip.compress(body, 6))
    context.close()
    return sizes


def main(folder):
    with serve.running(folder) as site, browser.launched() as chromium:
        print(f"{'kB':>6} {'files':>6}  page")
        for file in sorted(Path(folder).rglob("*.html")):
            name = file.relative_to(folder).as_posix()
            sizes = weigh(chromium, f"{site}/{name}")
            print(f"{sum(sizes.values()) / 1000:6.0f} {len(sizes):6}  {name}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "_build/html")
