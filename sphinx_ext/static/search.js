// What Sphinx's search leaves open: forbidden storage, words that every JavaScript object knows, saying what was found,
// and saying that it does not work. Loaded between Sphinx's scripts and the index.
"use strict";
const SPHINX_HIGHLIGHT_ENABLED = false; // Sphinx's way needs storage, and a script on every page
{
  const results = document.getElementById("search-results");
  const progress = document.getElementById("search-progress");
  const late = results.querySelector(".late");
  late.remove();

  // The index is asked for `terms[word]` and, of all that objects inherit, for this alone: "constructor" is a word too.
  const bare = Object.create(null, { hasOwnProperty: { value: Object.prototype.hasOwnProperty } });
  const isPlain = (part) => Object.getPrototypeOf(part) === Object.prototype;
  if (typeof Search !== "undefined") {
    const { setIndex } = Search;
    Search.setIndex = (index) => {
      for (const part of Object.values(index).filter(isPlain)) Object.setPrototypeOf(part, bare);
      setIndex(index);
    };
  }

  // Only the sentence that sums up is spoken, not the list as it grows.
  new MutationObserver(() => {
    const summary = results.querySelector(".search-summary")?.textContent;
    if (summary && progress.textContent !== summary) progress.textContent = summary;
  }).observe(results, { childList: true, subtree: true });

  const missing = (get) => { try { return !get(); } catch { return true; } };
  addEventListener("load", () => {
    if (![() => DOCUMENTATION_OPTIONS, () => Documentation, () => Stemmer, () => Search.hasIndex()].some(missing)) return;
    results.textContent = progress.textContent = late.textContent;
  });
}
