"""What a page with sliders costs its reader: bytes, requests, and the wait for the first slider that answers."""

import statistics
import time

from bench import sites, stock
from bench.rows import Row
from tools import browser

ROUNDS = 5
SLOW = {
    "offline": False,
    "latency": 150,  # ms
    "downloadThroughput": 1.6e6 / 8,  # bytes a second
    "uploadThroughput": 0.75e6 / 8,
}

# Runs in the page from its first moment: looks for a slider, moves it once, waits until something follows.
FIRST_ANSWER = """
(() => {
  const kinds = [
    { slider: ".attn-explorer input[type=range]", told: ".attn-explorer-view",
      read: (view) => view.dataset.settings,
      move(slider) { slider.stepUp(); slider.dispatchEvent(new Event("input", { bubbles: true })); } },
    { slider: ".widget-slider .noUi-handle", told: ".widget-slider .widget-readout",
      read: (readout) => readout.textContent,
      move(slider) { slider.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight", bubbles: true })); } },
  ];
  let before;
  const watch = setInterval(() => {
    for (const kind of kinds) {
      const slider = document.querySelector(kind.slider), told = document.querySelector(kind.told);
      const now = slider && told && kind.read(told);
      if (!now) continue;
      if (before === undefined) { before = now; kind.move(slider); }
      if (kind.read(told) !== before) { window.answered = performance.now(); clearInterval(watch); }
    }
  }, 5);
})();
"""


def weigh(opened, address: str) -> tuple[int, int]:
    """Bytes on the wire and number of requests of a first visit, read to the end of the page."""
    page = opened.new_page(viewport={"width": 1280, "height": 900})
    wire, sizes = page.context.new_cdp_session(page), {}
    wire.send("Network.enable")
    wire.on(
        "Network.loadingFinished", lambda e: sizes.update({e["requestId"]: e["encodedDataLength"]})
    )
    page.goto(address, wait_until="networkidle")
    for y in range(0, page.evaluate("document.body.scrollHeight"), 800):
        page.evaluate(f"scrollTo(0, {y})")
    page.wait_for_load_state("networkidle")
    page.wait_for_timeout(500)
    page.context.close()
    got = [size for size in sizes.values() if size]  # data: addresses cost nothing more
    return sum(got), len(got)


def first_answer(opened, address: str, network: dict | None) -> float:
    """Seconds from the start of the visit to the first slider that answers."""
    page = opened.new_context(viewport={"width": 1280, "height": 900}).new_page()
    page.add_init_script(FIRST_ANSWER)
    if network:
        wire = page.context.new_cdp_session(page)
        wire.send("Network.enable")
        wire.send("Network.emulateNetworkConditions", network)
    page.goto(address, wait_until="commit", timeout=120_000)
    for _ in range(
        600
    ):  # not wait_for_function: the book's own security policy forbids what it does
        answered = page.evaluate("window.answered")
        if answered:
            page.context.close()
            return answered / 1000
        time.sleep(0.2)
    raise TimeoutError(f"no slider answers within two minutes: {address}")


def rows() -> list[Row]:
    table, group = [], "a page with sliders"
    with (
        sites.served(sites.fetch_cdn()) as cdn,
        sites.served(stock.our_site()) as ours,
        sites.served(stock.site_of_pages(), cdn=cdn) as theirs,
        browser.launched() as opened,
    ):
        page = ours + stock.CHAPTER + ".html"
        peers = {
            "stock page with sliders": f"{theirs}{stock.CHAPTER}.html",
            "stock page without sliders": f"{theirs}{stock.CHAPTER}-plain.html",
        }
        size, requests = weigh(opened, page)
        for against, address in peers.items():
            peer_size, peer_requests = weigh(opened, address)
            table += [
                Row(group, "bytes, gzip", "kB", size / 1000, peer_size / 1000, against),
                Row(group, "requests", "", requests, peer_requests, against),
            ]
        against = "stock page with sliders"
        for what, network in (
            ("first slider that answers", None),
            ("first slider that answers, 1.6 Mbit/s and 150 ms", SLOW),
        ):
            waits = {page: [], peers[against]: []}
            for _ in range(ROUNDS):
                for address in waits:
                    waits[address].append(first_answer(opened, address, network))
            medians = [statistics.median(times) for times in waits.values()]
            table.append(Row(group, what, "s", *medians, against))
    return table
