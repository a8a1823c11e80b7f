"""Take the picture of the README from the built site: .venv/bin/python -m tools.cover"""

import threading

from playwright.sync_api import sync_playwright

from tools import browser, serve, setup

PICTURE = setup.ROOT / ".github" / "cover.png"


def main():
    with serve.server(serve.SITE) as site, sync_playwright() as playwright:
        threading.Thread(target=site.serve_forever, daemon=True).start()
        chromium = playwright.chromium.launch(
            executable_path=browser.find(), args=browser.arguments()
        )
        page = chromium.new_page(viewport={"width": 1200, "height": 860}, color_scheme="light")
        page.goto(f"http://127.0.0.1:{site.server_port}/index.html")
        page.wait_for_selector(".attn-explorer-view[data-settings]")
        page.screenshot(path=PICTURE)
        chromium.close()
        site.shutdown()
    setup.say(f"{PICTURE}: {PICTURE.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
