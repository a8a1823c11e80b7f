"""What the chapters' text needs on its way to HTML: chapter numbers, folded solutions, tables that scroll, pictures described."""

import os
import re

from docutils import nodes
from sphinx.transforms import SphinxTransform
from sphinx.util import logging
from sphinx_exercise.nodes import is_solution_node

LOGGER = logging.getLogger(__name__)


class ChapterNumber(SphinxTransform):
    """A chapter's title is typed as `# 3. Title`, for readers of the file. Sphinx counts by itself: take the typed number away."""

    default_priority = 1

    def apply(self):
        title = next(self.document.findall(nodes.title), None)
        if title and isinstance(title[0], nodes.Text):
            title[0].parent.replace(
                title[0], nodes.Text(re.sub(r"^\d+\.\s+", "", title[0].astext()))
            )


def demand_alt_text(app, doctree):
    """A picture that nobody described is a fault of the build, not of the reader who cannot see it."""
    for image in doctree.findall(nodes.image):
        if not image.get("alt"):
            LOGGER.warning(
                "picture without alt text (a cell gives it as mystnb: image: alt)", location=image
            )


def html(text):
    return nodes.raw("", text, format="html")


def put_in_place(node, *others):
    """As node.replace_self, which would wrap the first of the others in the old node's id and classes."""
    at = node.parent.index(node)
    node.parent[at : at + 1] = others


def finish(app, doctree, docname):
    # sphinx-exercise gives every exercise of a page the same section ids, and folds by the script of another extension.
    for section in list(doctree.findall(nodes.section)):
        if section["ids"] in (["exercise-content"], ["solution-content"]):
            put_in_place(section, *section.children)
    if app.config.without_solutions:  # and no links to them either
        for link in list(doctree.findall(nodes.reference)):
            if "#solution-" in link.get("refuri", ""):
                put_in_place(link, nodes.Text("left out"))
    for node in list(doctree.findall(is_solution_node)):
        if app.config.without_solutions:
            node.parent.remove(node)
            continue
        title, *content = node.children
        folded = (
            f'<details class="solution" id="{node["ids"][0]}"><summary>{title.astext()}</summary>'
        )
        put_in_place(node, html(folded), *content, html("</details>"))
    # On the first page the picture comes first, then its (folded) code.
    for cell in doctree.findall(nodes.container):
        if "tag_hide-input" in cell["classes"]:
            cell.children.reverse()
    for table in list(doctree.findall(nodes.table)):
        put_in_place(table, html('<div class="table-scroll">'), table, html("</div>"))


def setup(app):
    # For a class: `BOOK_SOLUTIONS=0 make book` leaves the solutions out. (sphinx-exercise's own switch,
    # hide_solutions, breaks on solutions that hold cells.)
    app.add_config_value("without_solutions", os.environ.get("BOOK_SOLUTIONS") == "0", "env")
    app.add_transform(ChapterNumber)
    app.connect("doctree-read", demand_alt_text)
    app.connect("doctree-resolved", finish, priority=900)
