"""A page of the book taken apart: headings, prose, directives and code cells.

Line by line, as far as the rules need it. What MyST makes of a page is the build's business.
"""

import re
from dataclasses import dataclass, field
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
FENCE = re.compile(r"^(?P<mark>`{3,}|:{3,}|~{3,})\s*(\{(?P<name>[^}]*)\})?\s*(?P<rest>.*?)\s*$")
LITERAL = {None, "code-cell"}  # what stands inside is code, not Markdown


@dataclass
class Directive:
    """A fenced block; name None is a plain code block. Lines count from 1."""

    name: str | None
    title: str
    line: int
    section: str
    body: list[str] = field(default_factory=list)
    options: dict = field(default_factory=dict)

    @property
    def text(self):
        return "\n".join(self.body)


@dataclass
class Page:
    """path, front matter, headings (line, level, text), prose (line, section, text), directives in order."""

    path: Path
    text: str
    front: dict
    headings: list
    prose: list
    directives: list

    @property
    def cells(self):
        return [d for d in self.directives if d.name == "code-cell"]

    @property
    def equations(self):
        return set(re.findall(r"\$\$[ \t]*\(([\w:-]+)\)", self.text))

    def section(self, title):
        """The directives under one `##`."""
        return [d for d in self.directives if d.section == title]


def read(path):
    return parse(Path(path).read_text(encoding="utf-8"), Path(path))


def parse(text, path):
    page = Page(path, text, {}, [], [], [])
    lines = text.split("\n")
    start = 0
    if lines[0] == "---":
        start = lines.index("---", 1) + 1
        page.front = yaml.safe_load("\n".join(lines[1 : start - 1])) or {}
    open_blocks, section, display = [], "", False
    for number, line in enumerate(lines[start:], start + 1):
        inner = open_blocks[-1] if open_blocks else None
        fence = FENCE.match(line)
        if inner and fence and closes(inner, line):
            open_blocks.pop()
            continue
        for _, block in open_blocks:
            block.body.append(line)
        if inner and inner[1].name in LITERAL:
            continue
        if line.startswith("$$"):  # displayed mathematics is not prose
            display = not display and not re.search(r"\S\s*\$\$", line)
        elif display:
            continue
        elif fence:
            block = Directive(fence["name"], fence["rest"], number, section)
            page.directives.append(block)
            open_blocks.append((fence["mark"], block))
        elif heading := re.match(r"(#+) (.*)", line):
            page.headings.append((number, len(heading[1]), heading[2].strip()))
            section = heading[2].strip() if len(heading[1]) == 2 else section
        else:
            page.prose.append((number, section, line))
    for block in page.directives:
        split_options(block)
    return page


def closes(block, line):
    mark, bare = block[0], line.strip()
    return bare == mark[0] * len(bare) and len(bare) >= len(mark)


def split_options(block):
    """Move the option lines (`:key: value`, or YAML between ---) from the body into a dict."""
    if block.body and block.body[0] == "---":
        end = block.body.index("---", 1)
        block.options = yaml.safe_load("\n".join(block.body[1:end])) or {}
        block.body = block.body[end + 1 :]
        return
    lines = []
    # A long value goes on in indented lines (`:alt: >-`); a blank line ends the options.
    while block.body and re.match(r":[\w-]+:|  +\S" if lines else r":[\w-]+:", block.body[0]):
        lines.append(block.body.pop(0).removeprefix(":"))
    block.options = yaml.safe_load("\n".join(lines)) or {} if lines else {}
