"""What colour a weight has, and the heatmaps that show it.

One palette serves every picture and every explorer of the book. Weights live on a fixed 0–1 scale, so two
pictures can be compared by eye. With many keys the scale is square-root mapped: the weight 1/n of a uniform
row over n keys would be nearly white on a linear scale (8 % of it at n = 12), and reads as 29 % on a square-root one.
Signed data (scores, encodings) has a diverging scale, symmetric about 0.
"""

import math
import warnings
from collections.abc import Sequence
from contextlib import contextmanager
from io import BytesIO

import matplotlib
import numpy as np
import torch
from IPython import get_ipython
from IPython.display import display
from jaxtyping import Shaped
from matplotlib import font_manager
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import LinearSegmentedColormap, Normalize, PowerNorm
from matplotlib.figure import Figure, FigureBase
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator

from attn_helpers import _validate

# Colour-blind safe: one hue that darkens for weights; orange against blue for signs; and line colours that
# differ in lightness as well as in hue, each with at least 3:1 against white and against a dark page.
PALETTE = {
    "weights": [
        "#ffffff",
        "#e3eef8",
        "#c3dbee",
        "#98c4e2",
        "#67a8d4",
        "#3c88c0",
        "#1f68a5",
        "#0f4884",
        "#08285a",
    ],
    "signed": [
        "#4a1f03",
        "#85400c",
        "#c06f27",
        "#f0b275",
        "#f7f7f7",
        "#98c4e2",
        "#3c88c0",
        "#0f5496",
        "#08285a",
    ],
    "lines": ["#2f7fc1", "#d1600a", "#1b936b", "#b3579f", "#8a7a1f", "#75808c"],
}
BESIDE, BELOW = 1.0, 0.2  # inches for the colour bar and the names of the axes
PHONE = 4.2  # inches of cells, besides: a wider picture has letters too small to be read on a phone
LONGEST = 2.5  # inches of a label; a longer one is cut off
MANY_KEYS = 12  # above this many keys, weights are square-root mapped
STEPS = [step * 10**power for power in range(9) for step in (1, 2, 5)]  # of unlabelled ticks
NO_METADATA = dict.fromkeys(("Date", "Creator", "Format", "Type"))
TOLERANCE = 1e-4  # how far outside 0–1 rounding may carry a weight

COLOURS = {
    name: LinearSegmentedColormap.from_list(f"attn_{name}", PALETTE[name])
    for name in ("weights", "signed")
}

_installed = set(font_manager.fontManager.get_font_names())
_cjk = (
    "Noto Sans CJK SC",
    "Noto Sans CJK JP",
    "Source Han Sans SC",
    "WenQuanYi Zen Hei",
    "PingFang SC",
    "Hiragino Sans GB",
    "Microsoft YaHei",
)
STYLE = {
    "font.family": ["DejaVu Sans", *(name for name in _cjk if name in _installed), "sans-serif"],
    "font.size": 9.0,
    "axes.titlesize": 10,
    "axes.labelsize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#75808c",
    "xtick.color": "#333333",
    "ytick.color": "#333333",
    "text.parse_math": False,  # a title with two dollars is no formula
    "svg.hashsalt": "attn",  # the same picture is the same file
    "svg.fonttype": "none",  # letters stay letters: a fifth of the size, and the reader's fonts
}


# --- numbers and labels, as every picture and view takes them -------------------------------------------------


def as_numbers(name: str, value, shape: str, ndim: int) -> torch.Tensor:
    """A float64 copy on the CPU of a tensor, array or nested list with `ndim` axes, none of them empty."""
    try:
        tensor = _as_tensor(value)
        if tensor.is_complex():
            raise TypeError
        tensor = tensor.detach().to_dense().to("cpu", torch.float64, copy=True)
    except (TypeError, ValueError, OverflowError, RuntimeError, np.exceptions.ComplexWarning):
        raise TypeError(
            f"{name} must be a tensor of real numbers of shape {shape}, "
            f"got {_validate.describe(value)}"
        ) from None
    if tensor.ndim != ndim or tensor.numel() == 0:
        raise ValueError(
            f"{name} must be of shape {shape} with at least one entry, got {_validate.describe(tensor)}"
        )
    if tensor.isnan().any():
        where = tuple(tensor.isnan().nonzero()[0].tolist())
        raise ValueError(f"{name} must be numbers, got NaN at {where}")
    return tensor


def _as_tensor(value) -> torch.Tensor:
    if isinstance(value, torch.Tensor):
        return value
    if isinstance(value, np.ndarray):
        return torch.as_tensor(value.copy())  # torch takes none that is turned, as in array[::-1]
    with warnings.catch_warnings():
        # numpy's own complex numbers would lose their imaginary part, Python's floats half their digits
        warnings.simplefilter("error", np.exceptions.ComplexWarning)
        return torch.as_tensor(value, dtype=torch.float64)


def as_finite(name: str, value, shape: str, ndim: int) -> torch.Tensor:
    """As `as_numbers`, without infinities."""
    tensor = as_numbers(name, value, shape, ndim)
    if tensor.isinf().any():
        where = tuple(tensor.isinf().nonzero()[0].tolist())
        raise ValueError(f"{name} must be finite numbers, got {tensor[where].item()} at {where}")
    return tensor


def as_weights(name: str, value, shape: str, ndim: int, hint: str = "") -> torch.Tensor:
    """As `as_numbers`, with every entry between 0 and 1."""
    tensor = as_finite(name, value, shape, ndim)
    low, high = tensor.min().item() + 0.0, tensor.max().item() + 0.0  # no minus at zero
    if low < -TOLERANCE or high > 1 + TOLERANCE:
        raise ValueError(
            f"{name} must be weights between 0 and 1, got values from {low:g} to {high:g}{hint}"
        )
    return tensor


def as_labels(name: str, labels, count: int) -> list[str] | None:
    """`count` labels as strings, or None."""
    if labels is None:
        return None
    if isinstance(labels, (torch.Tensor, np.ndarray)):
        labels = labels.tolist()
    if isinstance(labels, str) or not isinstance(labels, Sequence):
        raise TypeError(
            f"{name} must be a list of {count} labels, got {_validate.describe(labels)}"
        )
    if len(labels) != count:
        raise ValueError(f"{name} must be a list of {count} labels, got {len(labels)}")
    return [str(label) for label in labels]


# --- scales ---------------------------------------------------------------------------------------------------


def colour_scale(kind: str, limit: float = 1.0):
    """The colour map and the norm of a scale: ``linear`` and ``sqrt`` for weights, ``signed`` for ±limit."""
    if kind == "signed":
        return COLOURS["signed"], Normalize(-limit, limit)
    return COLOURS["weights"], PowerNorm(0.5, 0, limit) if kind == "sqrt" else Normalize(0, limit)


def scale_kind(keys: int, signed: bool) -> str:
    """Which scale a picture with this many keys has."""
    return "signed" if signed else "sqrt" if keys > MANY_KEYS else "linear"


def signed_limit(*tensors: torch.Tensor) -> float:
    """The largest finite magnitude, 1 where there is none: ±limit spans a diverging scale."""
    finite = torch.cat([tensor[tensor.isfinite()].flatten() for tensor in tensors])
    return finite.abs().max().item() if finite.numel() and finite.any() else 1.0


# --- drawing into given axes ----------------------------------------------------------------------------------


def draw_heatmap(ax: Axes, values, queries, keys, scale, mark=None):
    """Draw one matrix with its labels on their cells; `fit_heatmaps` comes after. Returns the mesh."""
    import seaborn  # here: it takes a second, which a kernel that draws no heatmap need not spend

    colours, norm = scale
    rows, columns = values.shape
    grid = np.ma.masked_invalid(values.numpy())
    with _alone(ax):
        seaborn.heatmap(
            grid.filled(np.nan),
            ax=ax,
            cmap=colours,
            norm=norm,
            vmin=norm.vmin,  # or seaborn looks for the ends itself, and warns where no number is finite
            vmax=norm.vmax,
            cbar=False,
            xticklabels=False,  # the labels follow, so that each has its cell and all of them fit
            yticklabels=False,
            rasterized=grid.size > 64,  # so many cells are a small bitmap inside the SVG
        )
    ax.set_facecolor("#dddddd")  # an infinite score is no number and has no colour
    ax.tick_params(length=0)
    for spine in ax.spines.values():
        spine.set_visible(True)
        spine.set_linewidth(0.5)
    _label_cells(ax.xaxis, keys, columns)
    _label_cells(ax.yaxis, queries, rows)
    if mark is not None:
        row, column = mark
        left, width = (0, columns) if column is None else (column, 1)
        frame = Rectangle((left, row), width, 1, fill=False, clip_on=False)
        frame.set(edgecolor=PALETTE["lines"][1], linewidth=2, zorder=4)
        ax.add_patch(frame)
    return ax.collections[-1]


@contextmanager
def _alone(ax: Axes):
    """Hide the other axes: seaborn draws the whole figure after each heatmap, which is slow for many."""
    others = [
        other for other in ax.figure.canvas.figure.axes if other is not ax and other.get_visible()
    ]
    for other in others:
        other.set_visible(False)
    try:
        yield
    finally:
        for other in others:
            other.set_visible(True)


def _label_cells(axis, labels, count: int) -> None:
    """Every label on the middle of its cell; without labels, a few counted from 0."""
    if labels is None:
        shown = range(0, count, next(s for s in STEPS if count <= 10 * s))
        axis.set_ticks([i + 0.5 for i in shown], [str(i) for i in shown])
    else:
        axis.set_ticks([i + 0.5 for i in range(count)], [cut(axis.axes, text) for text in labels])


def cut(ax: Axes, text: str) -> str:
    """The text, or as much of it as `heatmap_size` keeps room for."""
    size, most = STYLE["font.size"], 72 * LONGEST
    shown, kept = text, len(text)
    # measuring takes time: short ones fit, whatever their letters
    while 1.2 * size * len(shown) > most and (width := _text_points(ax, shown, size)) > most:
        kept = min(kept - 1, int(kept * most / width))
        shown = text[:kept] + "…"
    return shown


def name_axes(axes: Sequence[Axes], columns: int, signed: bool, xlabel=None, ylabel=None) -> None:
    """Name the outer axes of a grid of matrices: keys and queries where they are weights, unless told."""
    usual = ("", "") if signed else ("keys", "queries")
    names = [u if name is None else name for u, name in zip(usual, (xlabel, ylabel), strict=True)]
    for i, ax in enumerate(axes):
        ax.set_xlabel(names[0] if i + columns >= len(axes) else "")
        ax.set_ylabel(names[1] if i % columns == 0 else "")


def fit_heatmaps(meshes: list, annotate: bool = True, digits: Sequence[int] | None = None) -> None:
    """Once a figure is laid out: labels that do not overlap, and the numbers where they fit.

    `digits` are the decimals shown, one for each mesh. Default: fewer the larger a number is.
    """
    if not meshes:
        return
    figure = meshes[0].axes.figure.canvas.figure  # the whole one, where axes stand in a part of it
    figure.draw_without_rendering()  # places the axes, so that cells have a size
    for _ in range(2):  # turned labels take room from the cells, small ones give some back
        for mesh in meshes:
            _fit_labels(mesh.axes)
        figure.draw_without_rendering()
    if annotate:
        for mesh, decimals in zip(meshes, digits or [None] * len(meshes), strict=True):
            _annotate(mesh, decimals)


def _fit_labels(ax: Axes) -> None:
    """Turn and shrink tick labels until none overlaps its neighbour."""
    size = STYLE["font.size"]
    width, height = (
        cell * (axis.get_ticklocs()[1] - 0.5 if len(axis.get_ticklocs()) > 1 else 1)
        for cell, axis in zip(_cell_points(ax), (ax.xaxis, ax.yaxis), strict=True)
    )
    ax.tick_params(axis="y", labelsize=min(size, height / 1.2))
    wide = max(_text_points(ax, label.get_text(), size) for label in ax.get_xticklabels())
    if wide <= 0.92 * width:
        ax.tick_params(axis="x", labelrotation=0, labelsize=size)
    else:
        ax.tick_params(axis="x", labelrotation=90, labelsize=min(size, width / 1.2))


def _cell_points(ax: Axes) -> tuple[float, float]:
    """Width and height of a cell in points."""
    box = ax.get_window_extent()
    rows, columns = abs(np.diff(ax.get_ylim())[0]), abs(np.diff(ax.get_xlim())[0])
    scale = 72 / ax.figure.dpi
    return box.width / columns * scale, box.height / rows * scale


def _text_points(ax: Axes, text: str, size: float) -> float:
    """Width of a text in points."""
    shown = ax.text(0, 0, text, fontsize=size)
    width = shown.get_window_extent().width * 72 / ax.figure.dpi
    shown.remove()
    return width


def _annotate(mesh, digits: int | None) -> None:
    """Write each number on its cell, dark on light and light on dark, if all of them fit."""
    ax, grid = mesh.axes, mesh.get_array()
    width, height = _cell_points(ax)
    if digits is None:
        largest = abs(grid).max()
        digits = 2 if largest < 10 else 1 if largest < 100 else 0
    cells = [cell for cell in np.ndindex(grid.shape) if grid[cell] is not np.ma.masked]
    texts = [f"{grid[cell]:z.{digits}f}" for cell in cells]
    longest = max(texts, key=len, default="")
    size = min(8.5, 8 * 0.82 * width / (_text_points(ax, longest, 8.0) or 1), height / 1.5)
    if size < 6.8:
        return
    for (row, column), text in zip(cells, texts, strict=True):
        dark = luminance(mesh.to_rgba(float(grid[row, column]))) < 0.18
        ax.text(
            column + 0.5,
            row + 0.5,
            text,
            size=size,
            color="white" if dark else "black",
            ha="center",
            va="center",
        )


def luminance(colour) -> float:
    """Relative luminance of a colour, by the definition of WCAG: the darker of two texts contrasts below 0.18."""
    channels = np.asarray(matplotlib.colors.to_rgb(colour))
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


@contextmanager
def drawing():
    """Our style. Where no CJK font is installed, matplotlib warns; the SVG's text has the reader's fonts."""
    with matplotlib.rc_context(STYLE), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")
        yield


# --- showing --------------------------------------------------------------------------------------------------


def new_figure(width: float, height: float) -> Figure:
    """A figure that pyplot knows nothing of: none is left open, none is shown twice.

    Lay it out once all meshes are drawn: seaborn draws the whole figure at every heatmap.
    """
    figure = Figure(figsize=(width, height), facecolor="white", dpi=100)
    FigureCanvasAgg(figure)  # it measures texts much faster than the bare canvas
    return figure


def svg(figure: Figure) -> bytes:
    """The figure as SVG: sharp at every zoom, and small."""
    buffer = BytesIO()
    with drawing():
        figure.savefig(buffer, format="svg", dpi=200, metadata=NO_METADATA)
    return buffer.getvalue()


def show(figure: Figure) -> None:
    """Show the figure once, under the running cell; nowhere outside a notebook."""
    if get_ipython() is not None:
        picture = svg(figure).decode()
        display({"image/svg+xml": picture, "text/plain": "a picture"}, raw=True)


class Panels(list):
    """A list of Axes that stays silent as the last line of a cell: the picture has been shown already."""

    def _ipython_display_(self) -> None:
        pass


def quiet(ax: Axes) -> Axes:
    """Axes that stay silent as the last line of a cell."""
    ax._ipython_display_ = lambda: None
    return ax


# --- the public pictures --------------------------------------------------------------------------------------


def plot_heatmap(
    weights: Shaped[torch.Tensor, "q k"] | Shaped[np.ndarray, "q k"] | Sequence,
    *,
    queries: Sequence[str] | None = None,
    keys: Sequence[str] | None = None,
    ax: Axes | None = None,
    title: str = "",
    xlabel: str | None = None,
    ylabel: str | None = None,
    signed: bool = False,
    annotate: bool | None = None,
) -> Axes:
    """Draw one matrix, queries × keys: row i shows how query i spreads its weight over the keys.

    Introduced in chapter 2. The colour of a weight is the same in every picture with at most 12 keys, and again in
    every picture with more: there it follows the square root of the weight. (An explorer counts its widest setting.)

    Args:
        weights: ``(q, k)`` tensor, array or nested list. Weights between 0 and 1; any finite numbers with `signed`
            (there, an infinite score is left grey).
        queries, keys: ``q`` row labels and ``k`` column labels, drawn each on its cell. Default: counted from 0.
        ax: axes to draw into; nothing is shown then. Default: a figure of its own, shown once.
        title: above the matrix.
        xlabel, ylabel: what columns and rows are. Default: keys and queries for weights, nothing with `signed`.
        signed: use the diverging scale, from minus to plus the largest magnitude.
        annotate: True makes the cells of a figure of its own large enough for their numbers; False writes none;
            None writes them where they fit.

    Returns:
        The axes.

    Raises:
        TypeError, ValueError: the argument, what was expected and what came. NaN is refused.
    """
    _validate_annotate(annotate)
    values = _matrix("weights", weights, signed)
    queries, keys = (
        as_labels("queries", queries, values.shape[0]),
        as_labels("keys", keys, values.shape[1]),
    )
    if ax is not None and not isinstance(ax, Axes):
        raise TypeError(f"ax must be matplotlib Axes or None, got {_validate.describe(ax)}")
    scale = colour_scale(
        scale_kind(values.shape[1], signed), signed_limit(values) if signed else 1.0
    )
    with drawing():
        figure = None
        if ax is None:
            cell = 0.48 if annotate else None
            width, height = heatmap_size([values], queries, keys, title, cell=cell)
            figure = new_figure(width + BESIDE, height + BELOW)
            ax = quiet(figure.subplots())
        ax.set_title(title)
        mesh = draw_heatmap(ax, values, queries, keys, scale)
        name_axes([ax], 1, signed, xlabel, ylabel)
        if figure is not None:
            figure.set_layout_engine("constrained")
            colour_bar(figure, mesh, [ax])
        fit_heatmaps([mesh], annotate is not False)
        if figure is not None:
            show(figure)
    return ax


def plot_heatmaps(
    weights: Shaped[torch.Tensor, "h q k"] | Shaped[np.ndarray, "h q k"] | Sequence,
    *,
    queries: Sequence[str] | None = None,
    keys: Sequence[str] | None = None,
    titles: Sequence[str] | None = None,
    xlabel: str | None = None,
    ylabel: str | None = None,
    signed: bool = False,
    annotate: bool | None = None,
    columns: int | None = None,
) -> list[Axes]:
    """Draw several matrices side by side on one colour scale with one colour bar: the heads of a layer.

    Introduced in chapter 6. One scale for all panels: a strong head looks strong beside a faint one.

    Args:
        weights: ``(h, q, k)`` tensor, or a list of h matrices, with h panels. As in `plot_heatmap`.
        queries, keys: labels shared by all panels, which then have one shape.
        titles: one per panel.
        xlabel, ylabel: as in `plot_heatmap`, on the outer panels.
        signed: as in `plot_heatmap`; one limit for all panels.
        annotate: False writes no numbers. Default: where they fit.
        columns: panels per row. Default: as many as fit the page.

    Returns:
        The list of axes, one per panel.

    Raises:
        TypeError, ValueError: the argument, what was expected and what came. NaN is refused.
    """
    if not isinstance(weights, (torch.Tensor, np.ndarray, list, tuple)):
        raise TypeError(
            "weights must be a tensor of shape (h, q, k) or a list of (q, k) matrices, "
            f"got {_validate.describe(weights)}"
        )
    if isinstance(weights, (torch.Tensor, np.ndarray)) and weights.ndim != 3:
        raise ValueError(
            "weights must be a tensor of shape (h, q, k) or a list of (q, k) matrices, "
            f"got shape {tuple(weights.shape)}"
        )
    if len(weights) == 0:
        raise ValueError("weights must hold at least one matrix, got none")
    matrices = [_matrix(f"weights[{i}]", matrix, signed) for i, matrix in enumerate(weights)]
    for matrix in matrices:
        row_labels = as_labels("queries", queries, matrix.shape[0])
        column_labels = as_labels("keys", keys, matrix.shape[1])
    titles = as_labels("titles", titles, len(matrices)) or [""] * len(matrices)
    _validate_annotate(annotate)
    if columns is not None:
        columns = min(_validate.integer("columns", columns), len(matrices))

    named, longest = any(titles), max(matrix.shape[1] for matrix in matrices)
    least = 0.04 if row_labels is None and column_labels is None else 0.12  # inches of a cell
    narrow, _ = heatmap_size(matrices, row_labels, column_labels, named, cell=least)
    if columns is None:
        most = max(1, min(4, int(PHONE / narrow)))
        columns = math.ceil(len(matrices) / math.ceil(len(matrices) / most))
    spare = PHONE / columns - narrow
    cell = min(0.42, 2.8 / longest, least + max(0.0, spare / longest))
    width, height = heatmap_size(matrices, row_labels, column_labels, named, cell=cell)
    rows = math.ceil(len(matrices) / columns)
    scale = colour_scale(
        scale_kind(longest, signed),
        signed_limit(*matrices) if signed else 1.0,
    )
    with drawing():
        figure = new_figure(columns * width + BESIDE, rows * height + BELOW)
        grid = figure.subplots(rows, columns, squeeze=False).flatten()
        for ax in grid[len(matrices) :]:
            ax.remove()
        panels = Panels(grid[: len(matrices)])
        for ax, title in zip(panels, titles, strict=True):
            ax.set_title(title)
        meshes = [
            draw_heatmap(ax, matrix, row_labels, column_labels, scale)
            for ax, matrix in zip(panels, matrices, strict=True)
        ]
        name_axes(panels, columns, signed, xlabel, ylabel)
        figure.set_layout_engine("constrained")
        colour_bar(figure, meshes[0], list(panels))
        fit_heatmaps(meshes, annotate is not False)
        show(figure)
    return panels


def _validate_annotate(annotate) -> None:
    if annotate is not None:
        _validate.flag("annotate", annotate)


def _matrix(name: str, value, signed: bool) -> torch.Tensor:
    if _validate.flag("signed", signed):
        return as_numbers(name, value, "(q, k)", 2)
    return as_weights(
        name, value, "(q, k)", 2, "; for scores and other signed data say signed=True"
    )


def heatmap_size(matrices, queries, keys, titled, cell: float | None = None) -> tuple[float, float]:
    """Width and height in inches that give the cells, the labels and the title their room."""
    rows = max(matrix.shape[0] for matrix in matrices)
    columns = max(matrix.shape[1] for matrix in matrices)
    if cell is None:
        cell = max(0.08, min(0.48, PHONE / columns, PHONE / rows))
    letter = 0.085  # inches, about
    side, below = (max(map(len, labels or ["00"])) * letter for labels in (queries, keys))
    width = min(columns * cell, 9.0) + min(side, LONGEST) + 0.3
    turned = keys is not None and below > cell
    height = (
        min(rows * cell, 9.0) + (min(below, LONGEST) if turned else 0.2) + 0.3 + 0.25 * bool(titled)
    )
    return max(width, 1.2), max(height, 1.0)


def colour_bar(figure: FigureBase, mesh, axes: list[Axes]) -> None:
    """One colour bar for all the axes."""
    bar = figure.colorbar(mesh, ax=axes, fraction=0.05, pad=0.02, aspect=20)
    bar.outline.set_linewidth(0.5)
    low = figure.bbox.height / figure.dpi < 1.5  # inches: room for two or three numbers
    if mesh.norm.vmin != 0:
        bar.locator = MaxNLocator(2 if low else 8)
    elif low:
        bar.set_ticks([0, 1])
    elif isinstance(mesh.norm, PowerNorm):
        bar.set_ticks([0, 0.1, 0.25, 0.5, 1])
    else:
        bar.set_ticks([0, 0.25, 0.5, 0.75, 1])
