"""Files that the site needs and no source holds: made once, kept until the code or the look changes, served by the site itself.

KaTeX's style and fonts, the explorers' script and style (assembled by attn_helpers, the same text as in a live kernel), the colours of
code for light and dark pages, and the picture that social sites show beside a link.
"""

import re
import shutil
from pathlib import Path

from pygments.formatters import HtmlFormatter
from pygments.styles import get_style_by_name

from sphinx_ext.formulas import KATEX

LIGHT, DARK = "github-light-high-contrast", "github-dark-high-contrast"


def formulas(folder):
    """Style sheet and woff2 fonts, which every browser reads."""
    shutil.copytree(
        KATEX / "fonts",
        folder / "katex" / "fonts",
        ignore=shutil.ignore_patterns("*.ttf", "*.woff"),
    )
    css = (KATEX / "katex.min.css").read_text(encoding="utf-8")
    css = re.sub(r',url\([^)]*\.(?:woff|ttf)\) format\("[a-z]+"\)', "", css)
    (folder / "katex" / "katex.min.css").write_text(css, encoding="utf-8")


def explorers(folder):
    from attn_helpers import explorer

    (folder / "explorer.js").write_text(explorer.script(), encoding="utf-8")
    (folder / "explorer.css").write_text(explorer.style(), encoding="utf-8")


def code_colours(folder):
    """One rule a token: its colour on a light and on a dark page."""
    light, dark = get_style_by_name(LIGHT), get_style_by_name(DARK)
    rules = []
    for name, (_, token, _) in HtmlFormatter(style=light).class2style.items():
        colours = light.style_for_token(token)["color"], dark.style_for_token(token)["color"]
        if name and all(colours):
            rules.append(".highlight .{}{{color:light-dark(#{},#{})}}".format(name, *colours))
    (folder / "code.css").write_text("\n".join(rules), encoding="utf-8")


def preview(folder, title):
    """1200 × 630 pixels: the title beside a row-normalised heatmap."""
    import numpy as np
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 6.3), dpi=100, facecolor="#12304a")
    figure.text(0.06, 0.56, title, color="white", fontsize=46, weight="bold")
    figure.text(
        0.06, 0.43, "From one number to the heads of a trained model", color="#7fd1c7", fontsize=20
    )
    i, j = np.indices((9, 9))
    scores = 2.2 * np.cos(1.1 * (i - j)) - 0.25 * abs(i - j)
    weights = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    axes = figure.add_axes((0.7, 0.18, 0.336, 0.64))
    axes.imshow(weights, cmap="YlGnBu_r", vmin=0)
    axes.set_axis_off()
    figure.savefig(folder / "preview.png")


def stage(app, config):
    """Make what is missing and let html_static_path find it."""
    name = f"{config.code_fingerprint}-{config.look_fingerprint}"
    folder = Path(app.outdir).parent / "assets" / name
    if not folder.exists():
        shutil.rmtree(folder.parent, ignore_errors=True)
        making = folder.with_name("making")
        making.mkdir(parents=True)
        formulas(making)
        explorers(making)
        code_colours(making)
        preview(making, config.html_title)
        making.rename(folder)
    config.html_static_path += [str(folder), str(Path(__file__).parent / "static")]


def setup(app):
    app.connect(
        "config-inited", stage, priority=600
    )  # after execution.py has named the fingerprints
