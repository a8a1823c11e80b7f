// What a page does beyond HTML: colours, copying code, the place in the page, printing. Without it all text is there.
"use strict";
{
  const root = document.documentElement;
  const all = (selector) => [...document.querySelectorAll(selector)];

  // Colours: auto → light → dark → auto.
  const button = document.getElementById("theme-button");
  if (button) {
    const modes = ["auto", "light", "dark"];
    const names = { auto: "Colours: as the system", light: "Colours: light", dark: "Colours: dark" };
    const show = () => {
      document.getElementById("theme-name").textContent = names[root.dataset.mode];
      button.title = names[root.dataset.mode];
    };
    button.hidden = false;
    button.addEventListener("click", () => {
      root.dataset.mode = modes[(modes.indexOf(root.dataset.mode) + 1) % modes.length];
      dispatchEvent(new Event("modechange"));
      show();
      try { localStorage.setItem("mode", root.dataset.mode); } catch { /* see theme.js */ }
    });
    show();
  }

  // Ctrl+K goes to the search field, or to the search page where the field is hidden.
  addEventListener("keydown", (event) => {
    if (event.key.toLowerCase() !== "k" || !(event.ctrlKey || event.metaKey) || event.shiftKey || event.altKey) return;
    event.preventDefault();
    const field = all("input[name=q]").find((input) => input.checkVisibility());
    if (field) field.select();
    else location.href = document.querySelector("form.search").action;
  });

  // A button on each cell copies its code.
  const copy = async (text) => {
    try { await navigator.clipboard.writeText(text); return true; } catch { return false; }
  };
  const said = Object.assign(document.createElement("p"), { className: "visually-hidden" }); // for those who do not see the button
  said.setAttribute("role", "status");
  document.body.append(said);
  for (const box of all(".cell_input, .highlight-python, .highlight-console, .highlight-bash")) {
    const code = box.querySelector("pre");
    if (!code || !navigator.clipboard) continue;
    const copyButton = Object.assign(document.createElement("button"), { type: "button", className: "copy", textContent: "Copy" });
    copyButton.setAttribute("aria-label", "Copy this code");
    copyButton.addEventListener("click", async () => {
      copyButton.textContent = said.textContent = (await copy(code.textContent.trimEnd())) ? "Copied" : "Not allowed";
      setTimeout(() => { copyButton.textContent = "Copy"; said.textContent = ""; }, 1500);
    });
    box.append(copyButton);
  }

  // What scrolls sideways inside the page can be reached by keyboard, and only that.
  const scrollers = all("pre, .math-scroll, .table-scroll, .cell_output");
  const mark = () => {
    for (const box of scrollers) {
      if (box.scrollWidth > box.clientWidth + 1) box.tabIndex = 0;
      else box.removeAttribute("tabindex");
    }
  };
  mark();
  addEventListener("resize", mark);
  document.fonts?.ready.then(mark);

  // The list of sections stands open where there is room, and marks the one being read.
  const toc = document.getElementById("page-toc");
  if (toc) {
    const wide = matchMedia("(min-width: 92em)");
    const fit = () => { toc.open = wide.matches; };
    fit();
    wide.addEventListener("change", fit);
    const links = new Map(all("#page-toc a").map((a) => [decodeURIComponent(a.hash.slice(1)), a]));
    const sections = [...links.keys()].map((id) => document.getElementById(id)).filter(Boolean);
    const follow = () => {
      const passed = sections.filter((section) => section.getBoundingClientRect().top < innerHeight * 0.3);
      const current = links.get(passed.at(-1)?.id);
      for (const link of links.values()) {
        if (link === current) link.setAttribute("aria-current", "true");
        else link.removeAttribute("aria-current");
      }
    };
    let waiting = false;
    addEventListener("scroll", () => {
      if (waiting) return;
      waiting = true;
      requestAnimationFrame(() => { waiting = false; follow(); });
    }, { passive: true });
    follow();
  }

  // On paper everything is unfolded.
  let closed = [];
  addEventListener("beforeprint", () => {
    closed = all("details:not([open])");
    for (const details of closed) details.open = true;
  });
  addEventListener("afterprint", () => { for (const details of closed) details.open = false; });
}
