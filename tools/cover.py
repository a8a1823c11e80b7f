"""Take the picture of the README from the built site: .venv/bin/python -m tools.cover"""

from tools import browser, serve, setup

PICTURE = setup.ROOT / ".github" / "cover.png"


def main():
    with serve.running(serve.SITE) as site, browser.launched() as chromium:
        page = chromium.new_page(viewport={"width": 1200, "height": 860}, color_scheme="light")
        page.goto(f"{site}/index.html")
        page.wait_for_selector(".attn-explorer-view[data-settings]")
        page.screenshot(path=PICTURE)
    setup.say(f"{PICTURE}: {PICTURE.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
