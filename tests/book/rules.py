"""The rules that every page keeps: each takes a page and the whole book, and yields its faults.

What a rule is for stands in its first line; test_rules.py shows for each a page that breaks it.
"""

import ast
import re
from inspect import ismodule

import attn_helpers

TEMPLATE = ["Summary", "Questions", "Exercises", "What comes next"]
OPENING = ["**The question.**", "**You will be able to**", "**You need**", "**Time**"]
DIRECTIVES = {"code-cell", "admonition", "note", "tip", "important", "dropdown", "figure"}
DIRECTIVES |= {
    "exercise",
    "solution-start",
    "solution-end",
    "list-table",
    "glossary",
    "bibliography",
}
GENERATED = {"helpers": {"eval-rst"}, "status": {"page-costs"}}
ROLES = {"eq", "ref", "doc", "term", "cite:t", "cite:p"}
JUPYTEXT = {"extension": ".md", "format_name": "myst"}
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}
PICTURES = re.compile(r"\b(picture|plot_heatmaps?)\(")
PLOTTING = re.compile(r"matplotlib|seaborn|\bplt\b|\bpyplot\b|\.imshow\(|^\s*[%!]", re.M)
# A measurement typed into the text: three decimals or more, or a time. (Bytes follow from shapes.)
TYPED = re.compile(r"(?<![\w.])\d+\.\d{3,}|(?<![\w.])\d[\d.,]*\s?(ms|s|seconds)\b")
EMOJI = re.compile("[\U0001f300-\U0001faff\u2600-\u27bf]")
FILLERS = re.compile(r"\b(simply|just|obviously|trivially|of course)\b", re.I)


def one_title(page, book):
    """One `#`, before every other heading."""
    levels = [level for _, level, _ in page.headings]
    if levels.count(1) != 1 or levels[0] != 1:
        yield f"headings of level 1: {levels.count(1)}, the first heading is of level {levels[:1]}"


def label_is_file_name(page, book):
    """The label before the title is the file's name, so that links can be guessed."""
    line = page.headings[0][0] if page.headings else 0
    before = [text for n, _, text in page.prose if n < line and text.strip()]
    if before[-1:] != [f"({page.path.stem})="]:
        yield f"expected ({page.path.stem})= before the title, got {before[-1:]}"


def front_matter(page, book):
    """With cells, jupytext's block and a kernel: without them the cells are not executed."""
    if not page.cells:
        return
    form = page.front.get("jupytext", {}).get("text_representation", {})
    kernel = page.front.get("kernelspec")
    if {key: form.get(key) for key in JUPYTEXT} != JUPYTEXT or kernel != KERNEL:
        yield f"expected {JUPYTEXT} and {KERNEL}, got {form} and {kernel}"


def template(page, book):
    """The opening's parts in order, then the sections, then the four closing ones."""
    sections = [text for _, level, text in page.headings if level == 2]
    if sections[-4:] != TEMPLATE:
        yield f"the last sections must be {TEMPLATE}, got {sections[-4:]}"
    if len(sections) < 6:
        yield f"expected two sections or more before the closing four, got {sections}"
    opening = [text for _, section, text in page.prose if section == ""]
    leads = [lead for text in opening for lead in OPENING if text.startswith(lead)]
    if leads != OPENING:
        yield f"the opening must have {OPENING}, got {leads}"
    if not any(d.title == "Where we are" and d.section == "" for d in page.directives):
        yield "no admonition 'Where we are' in the opening"


def vocabulary(page, book):
    """Few directives and roles, so that JupyterLab and the downloads can show each of them."""
    known = DIRECTIVES | GENERATED.get(page.path.stem, set())
    for d in page.directives:
        if d.name is not None and d.name not in known:
            yield f"line {d.line}: directive {d.name}"
    for number, _, text in page.prose:
        for role in re.findall(r"\{([a-z:]+)\}`", text):
            if role not in ROLES:
                yield f"line {number}: role {role}"


def short_code(page, book):
    """At most 20 lines in a cell, 88 characters in a line: readable at one glance, on a phone."""
    for cell in page.cells:
        lines = [line for line in cell.body if line.strip()]
        if len(lines) > 20:
            yield f"line {cell.line}: {len(lines)} lines of code"
        yield from (f"too long: {line}" for line in lines if len(line) > 88)


def code_parses(page, book):
    """Every cell is plain Python."""
    for cell in page.cells:
        try:
            ast.parse(cell.text)
        except SyntaxError as error:
            yield f"line {cell.line + error.lineno}: {error.msg}"


def alt_texts(page, book):
    """A picture says in words what it shows."""
    for d in page.directives:
        alt = d.options.get("alt")
        if d.name == "code-cell":
            if not PICTURES.search(d.text):
                continue
            alt = d.options.get("mystnb", {}).get("image", {}).get("alt")
        elif d.name != "figure":
            continue
        if len(str(alt or "").split()) < 3:
            yield f"line {d.line}: a picture without alt text"
    for number, _, text in page.prose:
        if re.search(r"!\[\s*\]\(", text):
            yield f"line {number}: an image without alt text"


def no_plotting(page, book):
    """Drawing is the helpers' business; magics and shell commands run nowhere else."""
    for cell in page.cells:
        for found in PLOTTING.finditer(cell.text):
            yield f"line {cell.line}: {found[0].strip()}"


def public_names(page, book):
    """What a chapter takes from attn_helpers is public, taken from the package itself."""
    public = {n for n, value in vars(attn_helpers).items() if n[0] != "_" and not ismodule(value)}
    for cell in page.cells:
        for node in ast.walk(parsed(cell)):
            names = []
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("attn_helpers"):
                if node.module != "attn_helpers":
                    yield f"line {cell.line}: import from {node.module}"
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.Attribute) and ast.unparse(node.value) == "attn_helpers":
                names = [node.attr]
            yield from (
                f"line {cell.line}: {name} is not public" for name in names if name not in public
            )


def parsed(cell):
    try:
        return ast.parse(cell.text)
    except SyntaxError:  # code_parses says so
        return ast.Module([], [])


def questions(page, book):
    """Three or more, each with one right answer, and a reason under every answer."""
    starts = [
        number
        for number, section, text in page.prose
        if section == "Questions" and re.match(r"\*\*(?!Right|Not quite)", text)
    ]
    if len(starts) < 3:
        yield f"{len(starts)} questions, expected 3 or more"
    answers = [d for d in page.section("Questions") if d.name == "dropdown"]
    for start, end in zip(starts, [*starts[1:], 10**9], strict=True):
        options = [d for d in answers if start < d.line < end]
        verdicts = [
            re.match(r"\*\*(Right|Not quite)\.\*\*\s+\S+\s\S+", d.text.strip()) for d in options
        ]
        if len(options) < 2:
            yield f"line {start}: {len(options)} answers"
        if [v[1] for v in verdicts if v].count("Right") != 1:
            yield f"line {start}: expected one answer that starts with **Right.**"
        for option, verdict in zip(options, verdicts, strict=True):
            if not verdict:
                yield f"line {option.line}: expected **Right.** or **Not quite.** and a reason"


def exercises(page, book):
    """Three or more, each with a hint and a folded solution that runs and calls its check."""
    here = page.section("Exercises")
    tasks = [d for d in here if d.name == "exercise"]
    if len(tasks) < 3:
        yield f"{len(tasks)} exercises, expected 3 or more"
    for task, end in zip(tasks, [*(t.line for t in tasks[1:]), 10**9], strict=True):
        parts = [d for d in here if task.line < d.line < end]
        shape = [d.name for d in parts if d.name in ("dropdown", "solution-start", "solution-end")]
        label = task.options.get("label")
        solution = next((d for d in parts if d.name == "solution-start"), None)
        if not label:
            yield f"line {task.line}: no label"
        hints = [d.title for d in parts if d.name == "dropdown" and d.title.startswith("Hint")]
        if not hints or shape[-2:] != ["solution-start", "solution-end"]:
            yield f"line {task.line}: expected a hint, then a solution, got {shape}"
        if solution is None:
            continue
        if solution.title != label or solution.options.get("class") != "dropdown":
            yield f"line {solution.line}: expected the folded solution of {label}"
        cells = [d for d in parts if d.name == "code-cell" and d.line > solution.line]
        if not any(re.search(r"^\s*check_\w+\(", cell.text, re.M) for cell in cells):
            yield f"line {solution.line}: the solution does not call its check"


def equation_references(page, book):
    """Every {eq} names an equation of the book."""
    known = set().union(*(other.equations for other in book), page.equations)
    for name in re.findall(r"\{eq\}`([^`]+)`", page.text):
        if name not in known:
            yield f"{name} is no equation"


def no_outputs(page, book):
    """No output is kept in the source: it would be shown long after it stopped being true."""
    for sign in ("data:image", "```{code-output}", "widget-state", "{glue", "{eval}"):
        if sign in page.text:
            yield sign


def no_typed_measurements(page, book):
    """A number that depends on a seed or a machine is printed by a cell, not typed."""
    for number, _, text in page.prose:
        if text.startswith("**Time**") or text.startswith("|"):
            continue
        for found in TYPED.finditer(re.sub(r"\$[^$]*\$|`[^`]*`|\]\([^)]*\)", "", text)):
            yield f"line {number}: {found[0]}"


def plain_words(page, book):
    """No exclamation mark, no emoji, no word that belittles a difficulty."""
    blocks = [(d.line, d.text) for d in page.directives if d.name not in (None, "code-cell")]
    for number, text in [(n, text) for n, _, text in page.prose] + blocks:
        text = re.sub(r"\$\$.*?\$\$|\$[^$]*\$|`[^`]*`|!\[|\]\([^)]*\)", "", text, flags=re.S)
        for found in (re.search(r"!", text), EMOJI.search(text), FILLERS.search(text)):
            if found:
                yield f"line {number}: {found[0]!r}"


OF_PAGES = [
    one_title,
    label_is_file_name,
    front_matter,
    vocabulary,
    code_parses,
    alt_texts,
    no_plotting,
    public_names,
    equation_references,
    no_outputs,
    plain_words,
]
OF_CHAPTERS = [template, short_code, questions, exercises, no_typed_measurements]


# The built pages


def no_widget_state(html):
    """Explorers bring their own script: no page holds Jupyter's widget state or its loaders."""
    for sign in ("widget-state+json", "widget-view+json", "require.js", "html-manager"):
        if sign in html:
            yield sign


def no_errors_shown(html):
    """No traceback and nothing from stderr in what a reader sees."""
    for sign in (
        "Traceback (most recent call last)",
        "stderr docutils",
        "Warning:",
        "&lt;Figure size",
    ):
        if sign in html:
            yield sign


def images_have_alt(html):
    """Every image has its alt text; an empty one only for decoration."""
    for tag in re.findall(r"<img\b[^>]*>", html):
        alt = re.search(r'\balt="([^"]*)"', tag)
        if not alt or re.match(r"data:|_images/|\S+\.(png|svg)$", alt[1]):
            yield tag[:120]


def no_raw_markup(html):
    """Nothing of MyST or of LaTeX is left for the reader to see."""
    visible = re.sub(r"<(script|style|pre|annotation|code)\b.*?</\1>", "", html, flags=re.S)
    yield from re.findall(r":::\{[\w-]+\}|```\{[\w-]+\}|\{eq\}`|\$\$|katex-error", visible)


OF_BUILT = [no_widget_state, no_errors_shown, images_have_alt, no_raw_markup]
