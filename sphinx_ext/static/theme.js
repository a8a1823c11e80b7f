// Runs before the first paint, so that a page never flashes in the wrong colours.
// data-mode is what the reader chose (auto, light, dark); data-theme is what that means now (light, dark).
"use strict";
{
  const root = document.documentElement;
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const paint = () => {
    const { mode } = root.dataset;
    root.dataset.theme = mode === "auto" ? (dark.matches ? "dark" : "light") : mode;
  };
  try {
    const kept = localStorage.getItem("mode");
    if (["auto", "light", "dark"].includes(kept)) root.dataset.mode = kept;
  } catch { /* storage is forbidden: the choice lasts as long as the page */ }
  paint();
  dark.addEventListener("change", paint);
  addEventListener("modechange", paint);
}
