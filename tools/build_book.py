"""Build the book into _build/html, with every warning an error.

    python tools/build_book.py                     the whole book
    python tools/build_book.py --clean             from nothing, outputs executed again
    python tools/build_book.py --only chapters/03-kernel-regression.md --out /tmp/x
                                                   some pages, for their writer: links to other pages are not checked

`jupyter-book build .` builds the same pages; this adds the exit status, the plain last sentence and `--only`.
"""

import argparse
import os
import re
import shutil
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


class Recorder:
    """Stderr that is also kept, to name the first fault in the last line."""

    def __init__(self, stream):
        self.stream, self.lines = stream, []

    def write(self, text):
        self.lines += [line for line in text.splitlines() if line.strip()]
        return self.stream.write(text)

    def __getattr__(self, name):
        return getattr(self.stream, name)


def toc_of(pages, source, folder):
    """A table of contents that holds `pages` alone, the first as its root."""
    names = [Path(page).resolve().relative_to(source).with_suffix("").as_posix() for page in pages]
    chapters = "".join(f"- file: {name}\n" for name in names[1:])
    toc = Path(folder) / "_toc.yml"
    toc.write_text(
        f"format: jb-book\nroot: {names[0]}\n" + (f"chapters:\n{chapters}" if chapters else "")
    )
    return toc


def build(source, out, only=(), toc=None):
    """Build and return None, or the sentence that says why not."""
    from jupyter_book.sphinx import build_sphinx

    overrides = {
        "external_toc_path": str(toc or source / "_toc.yml"),
        "latex_individualpages": False,
    }
    if only:
        overrides["suppress_warnings"] = [
            "myst.domains",
            "myst.xref_missing",
            "ref",
            "bibtex",
        ]
        overrides["nitpicky"] = False
    recorder = sys.stderr = Recorder(sys.stderr)
    try:
        status = build_sphinx(
            source, out / "html", noconfig=True, path_config=source / "_config.yml", confoverrides=overrides,
            warningiserror=True, keep_going=True,
        )  # fmt: skip
    finally:
        sys.stderr = recorder.stream
    if status == 0:
        return None
    lines = [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in recorder.lines]
    faults = [line for line in lines if re.search(r"(^|: )(WARNING|ERROR|CRITICAL): ", line)]
    return faults[0] if faults else " ".join(lines[-2:]) or f"Sphinx stopped with {status!r}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--source", type=Path, default=ROOT, help="folder of the book (default: this repository)"
    )
    parser.add_argument(
        "--out", type=Path, help="where to build (default: _build in the book's folder)"
    )
    parser.add_argument(
        "--clean", action="store_true", help="forget the last build and its cached outputs"
    )
    parser.add_argument(
        "--only", nargs="+", default=[], metavar="PAGE", help="build these pages alone"
    )
    options = parser.parse_args()
    source = options.source.resolve()
    out = (options.out or source / "_build").resolve()
    sys.stdout.reconfigure(line_buffering=True)
    sys.path.insert(
        0, str(source)
    )  # the book's own sphinx_ext and attn_helpers come before installed ones
    started = time.monotonic()
    if options.clean:
        for part in ("html", ".doctrees", ".jupyter_cache", "jupyter_execute"):
            shutil.rmtree(out / part, ignore_errors=True)
    print(f"Building {', '.join(options.only) or 'the book'} into {out / 'html'}", flush=True)
    try:
        with tempfile.TemporaryDirectory() as folder:
            toc = toc_of(options.only, source, folder) if options.only else None
            fault = build(source, out, options.only, toc)
    except (OSError, ValueError, ImportError) as error:
        fault = str(error)
    if fault:
        print(f"\nThe book was not built. First fault: {fault}", flush=True)
        return 1
    print(
        f"\nThe book is built ({time.monotonic() - started:.0f} s): {os.path.join(out, 'html', 'index.html')}",
        flush=True,
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
