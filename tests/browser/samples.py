"""Explorers that together show every view and every kind of control, and a page that holds them.

The functions are plain torch, so a test calls them for any setting and compares the page with what they return.
"""

from functools import cache

import ipywidgets
import torch

from attn_helpers import (
    KERNELS,
    Arithmetic,
    Bars,
    Curve,
    Heatmap,
    Lines,
    Points,
    Readout,
    explore,
    nadaraya_watson,
    sinusoidal_encoding,
)
from attn_helpers.explorer import script, style

generator = torch.Generator().manual_seed(3)
KEYS = torch.linspace(0.0, 5.0, 50)
VALUES = torch.sin(2 * KEYS) + 0.3 * torch.randn(50, generator=generator)
TOKENS = ["the", "cat", "sat", "on", "the", "mat"]
STATES = torch.randn(6, 4, generator=generator)
CREW = ["Amber", "Birch", "Cedar", "Delta", "Ember", "Flint"]
STATS = torch.tensor([[203.0, 281], [251, 180], [180, 240], [120, 300], [300, 310], [211, 295]])
SCORES = torch.tensor([62.0, 71, 55, 48, 90, 66])
COMPASS = torch.tensor([[1.0, 0], [0, 1], [-1, 0], [0, -1]])


@explore(
    x=(0.0, 5.0, 0.25), bandwidth=[0.1, 0.2, 0.5], kernel=list(KERNELS)[:3], exclude_self=False
)
def kernel_regression(x, bandwidth, kernel, exclude_self):
    query = torch.tensor([x])
    output, weights = nadaraya_watson(query, KEYS, VALUES, kernel=kernel, bandwidth=bandwidth)
    fit, matrix = nadaraya_watson(KEYS, KEYS, VALUES, kernel=kernel, bandwidth=bandwidth)
    if exclude_self:
        matrix = matrix * (1 - torch.eye(50))
        matrix = matrix / matrix.sum(1, keepdim=True).clamp_min(1e-9)
    return (
        Heatmap(matrix, title="All weights"),
        Curve(
            KEYS,
            {"estimate": fit, "truth": torch.sin(2 * KEYS)},
            points=(KEYS, VALUES),
            weights=weights[0],
            at=x,
            title="The fit",
            xlabel="x",
            ylabel="y",
        ),
        Heatmap(weights, title="Weights of this query"),
        Readout("prediction", output[0]),
        Readout("keys in reach", f"{int((weights > 0.005).sum())} of 50"),
    )


def sentence_weights(temperature, causal):
    scores = STATES @ STATES.T / 2
    if causal:
        scores = scores.masked_fill(torch.ones(6, 6).triu(1).bool(), -torch.inf)
    return scores, (scores / temperature).softmax(-1)


@explore(
    temperature=ipywidgets.ToggleButtons(options=[("sharp", 0.3), ("plain", 1.0), ("flat", 4.0)]),
    causal=False,
    query=ipywidgets.IntSlider(min=0, max=5, value=2),
    key=ipywidgets.IntSlider(min=0, max=5, value=1),
)
def sentence(temperature, causal, query, key):
    scores, weights = sentence_weights(temperature, causal)
    return (
        Heatmap(
            weights,
            queries=TOKENS,
            keys=TOKENS,
            select=("query", "key"),
            mark=(query, key),
            title="Weights",
        ),
        Lines(weights, queries=TOKENS, keys=TOKENS, row=query, title="Who looks at whom"),
        Heatmap(scores, queries=TOKENS, keys=TOKENS, signed=True, title="Scores"),
        Arithmetic(
            [
                ("dot product", f"x[{query}] · x[{key}] ÷ √4", scores[query, key]),
                ("÷ temperature", f"score ÷ {temperature}", scores[query, key] / temperature),
                ("mask", "may the query see this key?", "no" if causal and key > query else "yes"),
                ("softmax", "exp ÷ row sum", weights[query, key]),
            ],
            title="One weight, step by step",
        ),
    )


@explore(
    strength=(100, 320, 10),
    intelligence=(180, 300, 60),
    sharpness=ipywidgets.FloatLogSlider(min=-1, max=2, step=1, value=10.0),
)
def crew(strength, intelligence, sharpness):
    query = torch.tensor([float(strength), float(intelligence)])
    weights = (-(STATS - query).norm(dim=1) / sharpness).softmax(0)
    return (
        Bars(weights, labels=CREW, title="Weights", mark=int(weights.argmax())),
        Points(
            STATS,
            labels=CREW,
            weights=weights,
            query=query,
            title="The crew",
            xlabel="strength",
            ylabel="intelligence",
        ),
        Readout("ability", weights @ SCORES, unit="points", digits=1),
    )


@explore(
    length=(2, 30, 4),
    dim=[4, 8, 16, 24],
    base=ipywidgets.RadioButtons(options=[10.0, 100.0, 10_000.0]),
    angle=ipywidgets.SelectionSlider(
        options=[("none", 0.0), ("a quarter", 1.5708), ("half", 3.14159)]
    ),
    compass=ipywidgets.fixed(COMPASS),
)
def positions(length, dim, base, angle, compass):
    encoding = sinusoidal_encoding(length, dim, base=base)
    turn = torch.tensor([[0.0, angle], [-angle, 0.0]]).matrix_exp()
    return (
        Heatmap(encoding, signed=True, title="Encoding"),
        Bars(
            encoding[-1, :4],
            labels=["sin 0", "cos 0", "sin 1", "cos 1"],
            signed=True,
            title="Last position",
        ),
        Points(compass, arrows=0.5 * compass @ turn, equal=True, title="Turned"),
    )


@explore(noise=(0.1, 1.0, 0.1), log=False)
def spread(noise, log):
    x = torch.logspace(0, 3, 40)
    middle = x**0.5
    return Curve(
        x,
        {"low": middle / (1 + noise), "root": middle, "high": middle * (1 + noise)},
        xlog=True,
        ylog=True,
        title="With a logarithm" if log else "A spread",
        xlabel="n",
        ylabel="steps",
    )


SAMPLES = {f.__name__: f for f in (kernel_regression, sentence, crew, positions, spread)}


@explore(x=(0.0, 5.0, 0.05))
def two_heatmaps(x):
    """The load that a slider move is measured on: two matrices of 50 × 50 and a curve."""
    weights = (-((KEYS[:, None] - KEYS - x + 2.5) ** 2) * (1 + x)).softmax(-1)
    return (
        Heatmap(weights, title="One"),
        Heatmap(weights.flip(0), title="Other"),
        Curve(KEYS, torch.sin(KEYS * (1 + x)), points=(KEYS, VALUES), weights=weights[25], at=x),
    )


@explore(x=(0, 2))
def extremes(x):
    """Numbers that differ little, a logarithmic axis within one decade, scores that are all infinite."""
    return (
        Points([[1e6, 1e6], [1e6 + 1, 1e6 + 1 + x]], labels=["a", "b"], title="Near"),
        Curve([2.0, 3, 8], [1e-6, 2e-6 + 1e-6 * x, 3e-6], xlog=True, ylog=True),
        Heatmap([[-torch.inf, 2.0 - x if x else -torch.inf]], signed=True),
    )


HOSTILE = "<img src=x onerror='window.hacked = 1'>{title}</script><b>"


@explore(
    choice=ipywidgets.Dropdown(options=[HOSTILE, "plain"], description=HOSTILE),
    row=(0, 1),
    column=(0, 1),
)
def hostile(choice, row, column):
    """Labels that would be markup, were they not text."""
    weights = torch.tensor([[0.25, 0.75], [0.5, 0.5]])
    if choice == "plain":
        weights = weights.flip(0)
    labels = [HOSTILE, choice]
    return (
        Heatmap(
            weights,
            queries=labels,
            keys=labels,
            title=HOSTILE,
            select=("row", "column"),
            mark=(row, column),
        ),
        Readout(HOSTILE, choice, unit=HOSTILE),
        Arithmetic([(HOSTILE, HOSTILE, choice)], title=HOSTILE),
    )


VIEWS = (kernel_regression, sentence, crew, positions, spread)
SAMPLES = {function.__name__: function for function in (*VIEWS, two_heatmaps, extremes, hostile)}
POLICY = (
    "<meta http-equiv='Content-Security-Policy' content=\"default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src data:; base-uri 'none'; form-action 'none'\">"
)
LAUNCH = "<a href='https://mybinder.org/v2/gh/someone/book/main?urlpath=lab/tree/chapters/01.md'>Binder</a>"
THEME = """
html[data-theme=dark] {
  --pst-color-text-base: #ced6dd; --pst-color-text-muted: #9ca4af; --pst-color-background: #14181e;
  background: #14181e; color: #ced6dd;
}
body { margin: 0; font-family: system-ui; }
main { max-width: 46rem; margin: auto; padding: 0 16px; }
"""


@cache
def block(name):
    return SAMPLES[name].explorer.html()


def page(names, *, head="", body="", repeat=1):
    """An HTML page that holds explorers as a chapter of the book does."""
    blocks = "".join(block(name) for name in names for _ in range(repeat))
    return (
        f'<!doctype html><html lang="en" data-theme="light"><head><meta charset="utf-8"><title>Explorers</title>{head}'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><link rel="icon" href="data:,">'
        '<link rel="stylesheet" href="explorer.css"><script defer src="explorer.js"></script></head>'
        f"<body><main><h1>Explorers</h1>{body}{blocks}</main></body></html>"
    )


def write(folder, pages):
    """Write pages (name → HTML) with the script and the style beside them."""
    (folder / "explorer.js").write_text(script(), "utf-8")
    (folder / "explorer.css").write_text(THEME + style(), "utf-8")
    for name, text in pages.items():
        (folder / f"{name}.html").write_text(text, "utf-8")
