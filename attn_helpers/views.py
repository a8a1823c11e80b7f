"""What an explorer or a static picture shows: a view holds torch's numbers, and knows how to round and draw them.

A view keeps its numbers apart from the rest (labels, titles, marks). `encode` rounds the numbers to the displayed
digits: that is what a page shows. The rule: a number is shown as the decimal with that many digits which is nearest
to the exact binary value that torch computed; of two equally near ones the even one; zero has no sign. That is what
Python's ``f"{value:z.2f}"`` writes.
"""

import json
import math
from decimal import Decimal
from numbers import Real
from pathlib import Path

import numpy as np
import torch
from matplotlib.ticker import MaxNLocator, NullFormatter, ScalarFormatter
from matplotlib.transforms import Bbox, ScaledTranslation

from attn_helpers import _validate, plots
from attn_helpers.plots import as_finite, as_labels, as_numbers, as_weights

WORDS = json.loads((Path(__file__).parent / "static" / "words.json").read_text("utf-8"))
GREY = "#75808c"
SMOOTH = 500  # steps over the range of a curve, below which it would look like a staircase
MOST_DIGITS = 100  # that a page can write


def rounded(values: torch.Tensor, digits: int):
    """The numbers times 10^digits as integers (nested lists), None where one is infinite."""
    exact = values.numpy()
    with np.errstate(invalid="ignore", over="ignore"):
        scaled = np.asarray(exact * 10.0**digits)
        nearest = np.asarray(np.rint(scaled))
        # the product is itself rounded: where that could decide, Python rounds the exact binary value
        unsure = np.abs(np.abs(scaled - nearest) - 0.5) < 1e-15 * np.abs(scaled) + 1e-9
    nearest[unsure] = [round(round(value, digits) * 10**digits) for value in exact[unsure].tolist()]
    if np.any(np.isfinite(exact) & (np.abs(nearest) > 2**53)):
        raise ValueError(
            f"a value must be below {2.0**53 / 10**digits:.1e} to be shown with {digits} digits, "
            f"got {np.abs(exact[np.isfinite(exact)]).max():.3g}"
        )
    return _integers(nearest)


def _integers(values: np.ndarray | np.float64):
    if np.isfinite(values).all():
        return values.astype(np.int64).tolist()
    return [_integers(row) for row in values] if values.ndim else None


def text(integer: int, digits: int) -> str:
    """How a rounded number is written: ``text(-5, 2) == "-0.05"``."""
    return f"{Decimal(integer).scaleb(-digits):f}"


class View:
    """One picture of an explorer, as the function returned it for one setting.

    Attributes:
        kind: the name of the view's drawing code.
        numbers: what is rounded; a tensor, a list whose entries are tensors, or None.
        facts: the rest, as JSON.
        digits: decimals shown.
    """

    kind = ""

    def __init__(self, digits: int, numbers: dict, facts: dict):
        self.digits = _validate.integer("digits", digits, least=0)
        if digits > 12:
            raise ValueError(f"digits must be at most 12, got {digits}")
        self.numbers = numbers
        self.facts = facts

    @classmethod
    def common(cls, views: "list[View]") -> tuple[dict[str, int], dict]:
        """Digits per number and the scales, which are the same for all settings."""
        digits = max(view.digits for view in views)
        return dict.fromkeys(views[0].numbers, digits), {}

    def encode(self, digits: dict[str, int]) -> dict:
        """Every attribute as JSON, the numbers as integers."""
        numbers = {name: _encode(value, digits[name]) for name, value in self.numbers.items()}
        return numbers | self.facts

    def size(self) -> tuple[float, float]:
        """Width and height of a static picture in inches."""
        return 4.6, 3.0

    @staticmethod
    def tell(props: dict, digits: dict[str, int]) -> str:
        """One sentence about the encoded view."""
        raise NotImplementedError

    def draw(self, ax, scales: dict) -> None:
        """Draw the view into matplotlib's axes."""
        raise NotImplementedError


def _encode(value, digits: int):
    if value is None:
        return None
    if isinstance(value, list):
        return [_encode(entry, digits) for entry in value]
    return rounded(value, digits)


def describe(kind: str, props: dict, digits: dict[str, int]) -> str:
    """One sentence that says what an encoded view shows; the page makes the same one when a slider moves."""
    title = props.get("title") or WORDS["views"][kind]
    return KINDS[kind].tell(props | {"title": title}, digits)


def _name(labels: list[str] | None, i: int) -> str:
    return str(i) if labels is None else labels[i]


def _tell_weights(kind: str, values, row: int | None, props: dict, digits: int) -> str:
    """Where the largest weight is: in a row, or in the whole matrix."""
    best = max(range(len(values)), key=lambda i: max(values[i])) if row is None else row
    column = values[best].index(max(values[best]))
    words = {
        "title": props["title"],
        "rows": len(values),
        "columns": len(values[0]),
        "row": _name(props["queries"], best),
        "column": _name(props["keys"], column),
        "value": text(values[best][column], digits),
    }
    told, empty = (kind, "zeros") if row is None else (f"{kind}_row", "nothing")
    return WORDS["say"][told if values[best][column] else empty].format(**words)


# --- arguments that several views share -----------------------------------------------------------------------


def _words(**texts) -> dict[str, str]:
    for name, value in texts.items():
        if not isinstance(value, str):
            raise TypeError(f"{name} must be a string, got {_validate.describe(value)}")
    return texts


def _index(name: str, value, count: int) -> int | None:
    if value is None:
        return None
    if isinstance(value, torch.Tensor) and value.ndim == 0:
        value = value.item()
    index = _validate.integer(name, value, least=0)
    if index >= count:
        raise ValueError(f"{name} must be an index from 0 to {count - 1}, got {index}")
    return index


def _vector(name: str, value, count=None, letter="n", take=as_finite) -> torch.Tensor:
    tensor = take(name, value, f"({letter},)" if count is None else f"({count},)", 1)
    if count is not None and len(tensor) != count:
        raise ValueError(f"{name} must have {count} entries, got {len(tensor)}")
    return tensor


def _number_or_text(name: str, value) -> tuple[torch.Tensor | None, str | None]:
    """A number to round, or a text that stands as it is (integers, infinities and strings)."""
    if value is None or isinstance(value, str):
        return None, value
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, torch.Tensor) and value.numel() == 1:
        value = value.item()
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{name} must be a number or a string, got {_validate.describe(value)}")
    if isinstance(value, int):
        _validate.number(name, value)  # as other numbers, it must be one of float64
        return None, str(value)
    if math.isnan(value):
        raise ValueError(f"{name} must be a number, got NaN")
    if math.isinf(value):
        return None, "∞" if value > 0 else "−∞"
    return torch.tensor(value, dtype=torch.float64), None


def _span(tensors, margin: float, log: bool = False) -> list[float]:
    """Limits of an axis that holds all the numbers, with a margin."""
    entries = torch.cat([tensor.flatten() for tensor in tensors if tensor is not None])
    if log:
        entries = entries.log10()
    low, high = entries.min().item(), entries.max().item()
    room, size = (high - low) * margin, max(-low, high)
    if high - low <= 1e-12 * size + 1e-90:  # one number, as far as a page can tell
        room = 0.5 if log else max(0.5, size / 2)
    low, high = low - room, high + room
    digits = 4 - math.floor(math.log10(high - low))  # far finer than the margin
    limits = [round(low, digits), round(high, digits)]
    return [10.0 ** min(limit, 308) for limit in limits] if log else limits


def _steps(digits: int, *axes: list, log: bool = False) -> int:
    """Digits that make a drawn quantity smooth, as far as the largest leaves room in an exact integer."""
    wanted, largest = digits, 0.0
    for tensors in axes:
        entries = torch.cat([tensor.flatten() for tensor in tensors if tensor is not None])
        low, high = entries.min().item(), entries.max().item()
        largest = max(largest, high, -low)
        if log:  # three figures of the smallest
            wanted = max(wanted, 2 - math.floor(math.log10(low)))
        elif high > low:
            steps = min(max(SMOOTH / (high - low), 1e-300), 1e300)  # 0 or infinite at the extremes
            wanted = max(wanted, math.ceil(math.log10(steps)))
    room = 15 - math.ceil(math.log10(largest)) if largest else MOST_DIGITS
    return max(digits, min(wanted, room, MOST_DIGITS))


def _whole(tensors) -> bool:
    return all(tensor is None or bool((tensor == tensor.round()).all()) for tensor in tensors)


def _positive(name: str, tensor: torch.Tensor | None, log: bool, flag: str) -> None:
    if log and tensor is not None and (tensor <= 0).any():
        raise ValueError(f"{name} must be positive with {flag}=True, got {tensor.min().item():g}")


# --- the views ------------------------------------------------------------------------------------------------


class Heatmap(View):
    """A matrix, queries × keys, one coloured cell per number.

    Args:
        values: ``(q, k)``. Weights between 0 and 1, or any numbers with `signed` (an infinite score is left blank).
        queries, keys: ``q`` row labels and ``k`` column labels. Default: counted from 0.
        title: above the matrix.
        signed: diverging scale from minus to plus the largest magnitude over all settings.
        select: ``(row_control, column_control)``: choosing cell (i, j) sets these two controls to their i-th and
            j-th option.
        mark: ``(i, j)`` outlines a cell, ``(i, None)`` a row.
        digits: decimals shown.

    Raises:
        TypeError, ValueError: the argument, what was expected and what came. NaN is refused.
    """

    kind = "heatmap"

    def __init__(
        self,
        values,
        *,
        queries=None,
        keys=None,
        title="",
        signed=False,
        select=None,
        mark=None,
        digits=2,
    ):
        if _validate.flag("signed", signed):
            values = as_numbers("values", values, "(q, k)", 2)
        else:
            hint = "; for scores and other signed data say signed=True"
            values = as_weights("values", values, "(q, k)", 2, hint)
        rows, columns = values.shape
        self.signed = signed
        if select is not None:
            if not isinstance(select, (tuple, list)) or len(select) != 2:
                raise TypeError(
                    "select must be the names of two controls, (row, column), "
                    f"got {_validate.describe(select)}"
                )
            select = list(_words(**{"select[0]": select[0], "select[1]": select[1]}).values())
        if mark is not None:
            if not isinstance(mark, (tuple, list)) or len(mark) != 2:
                raise TypeError(f"mark must be (row, column), got {_validate.describe(mark)}")
            mark = [_index("mark[0]", mark[0], rows), _index("mark[1]", mark[1], columns)]
            if mark[0] is None:
                raise ValueError("mark must name a row: (i, j) for a cell, (i, None) for a row")
        facts = {
            "queries": as_labels("queries", queries, rows),
            "keys": as_labels("keys", keys, columns),
            "select": select,
            "mark": mark,
        }
        super().__init__(digits, {"values": values}, facts | _words(title=title))

    @classmethod
    def common(cls, views):
        digits, _ = super().common(views)
        values = [view.numbers["values"] for view in views]
        signed = any(view.signed for view in views)
        limit = plots.signed_limit(*values) if signed else 1.0
        kind = plots.scale_kind(max(tensor.shape[1] for tensor in values), signed)
        # as an integer like the values; at least 1, so that a matrix of zeros has a scale
        limit = max(1, round(Decimal(limit).scaleb(digits["values"])))
        return digits, {"scale": kind, "limit": limit}

    def size(self):
        facts = self.facts
        width, height = plots.heatmap_size(
            [self.numbers["values"]], facts["queries"], facts["keys"], facts["title"]
        )
        return width + plots.BESIDE, height + plots.BELOW

    @staticmethod
    def tell(props, digits):
        values = props["values"]
        if props["scale"] != "signed":
            row = props["mark"][0] if props["mark"] else None
            return _tell_weights("heatmap", values, row, props, digits["values"])
        finite = [v for line in values for v in line if v is not None]
        say = WORDS["say"]["heatmap_signed" if finite else "heatmap_infinite"]
        return say.format(
            title=props["title"],
            rows=len(values),
            columns=len(values[0]),
            low=text(min(finite, default=0), digits["values"]),
            high=text(max(finite, default=0), digits["values"]),
        )

    def draw(self, ax, scales):
        limit = scales["limit"] / 10**self.digits
        ax.set_title(self.facts["title"])
        scale = plots.colour_scale(scales["scale"], limit)
        plots.draw_heatmap(
            ax,
            self.numbers["values"],
            self.facts["queries"],
            self.facts["keys"],
            scale,
            mark=self.facts["mark"],
        )
        plots.name_axes([ax], 1, self.signed)


class Bars(View):
    """Labelled horizontal bars, one per entry.

    Args:
        values: ``(n,)``. Weights between 0 and 1, unless `signed` or `limits` is given.
        labels: ``n`` labels. Default: counted from 0.
        title: above the bars.
        signed: a scale symmetric about 0, from the largest magnitude over all settings.
        limits: ``(low, high)`` of the scale, for other quantities.
        mark: index of a bar to set off.
        digits: decimals shown.

    Raises:
        TypeError, ValueError: the argument, what was expected and what came. NaN is refused.
    """

    kind = "bars"

    def __init__(
        self, values, *, labels=None, title="", signed=False, limits=None, mark=None, digits=2
    ):
        if _validate.flag("signed", signed) or limits is not None:
            values = _vector("values", values)
        else:
            hint = "; for other quantities say signed=True or limits=(low, high)"
            values = as_weights("values", values, "(n,)", 1, hint)
        if limits is not None:
            if signed:
                raise ValueError("limits must be left out with signed=True, which sets them itself")
            if not isinstance(limits, (tuple, list)) or len(limits) != 2:
                raise TypeError(f"limits must be (low, high), got {_validate.describe(limits)}")
            low, high = (_validate.number(f"limits[{i}]", limit) for i, limit in enumerate(limits))
            if not low < high:
                raise ValueError(f"limits must be (low, high) with low < high, got ({low}, {high})")
            near = plots.TOLERANCE * (high - low)
            if values.min() < low - near or values.max() > high + near:
                raise ValueError(
                    f"values must lie within limits ({low}, {high}), "
                    f"got {values.min():g} to {values.max():g}"
                )
            limits = [low, high]
        self.limits = limits
        facts = {
            "labels": as_labels("labels", labels, len(values)),
            "mark": _index("mark", mark, len(values)),
            "signed": signed,
        }
        super().__init__(digits, {"values": values}, facts | _words(title=title))

    @classmethod
    def common(cls, views):
        digits, _ = super().common(views)
        if any(view.facts["signed"] for view in views):
            limit = plots.signed_limit(*(view.numbers["values"] for view in views))
            return digits, {"xlim": [-limit, limit]}
        spans = [view.limits or [0.0, 1.0] for view in views]
        return digits, {"xlim": [min(low for low, _ in spans), max(high for _, high in spans)]}

    def size(self):
        count = len(self.numbers["values"])
        return 4.6, 0.5 + count * (0.3 if count <= 12 else 0.19)

    @staticmethod
    def tell(props, digits):
        values, labels, title = props["values"], props["labels"], props["title"]
        shown = [text(value, digits["values"]) for value in values]
        if len(values) <= 6:
            entries = ", ".join(f"{_name(labels, i)} {value}" for i, value in enumerate(shown))
            return WORDS["say"]["bars"].format(title=title, list=entries)
        high, low = values.index(max(values)), values.index(min(values))
        return WORDS["say"]["bars_many"].format(
            title=title,
            count=len(values),
            label=_name(labels, high),
            value=shown[high],
            low_label=_name(labels, low),
            low=shown[low],
        )

    def draw(self, ax, scales):
        values = self.numbers["values"].tolist()
        labels = self.facts["labels"] or [str(i) for i in range(len(values))]
        (low, high), blue = scales["xlim"], plots.PALETTE["lines"][0]
        marked = plots.PALETTE["lines"][1]
        colours = [marked if i == self.facts["mark"] else blue for i in range(len(values))]
        ax.barh(range(len(values)), values, height=0.7, color=colours)
        ax.set_yticks(range(len(values)), [plots.cut(ax, label) for label in labels])
        ax.set(title=self.facts["title"], xlim=(low, high), ylim=(len(values) - 0.5, -0.5))
        ax.axvline(max(low, min(0, high)), color=GREY, linewidth=0.8)
        ax.tick_params(axis="y", length=0)
        for i, value in enumerate(values):
            shown = text(rounded(self.numbers["values"][i], self.digits), self.digits)
            left = value < 0
            ax.annotate(
                shown,
                (value, i),
                (-3 if left else 3, 0),
                textcoords="offset points",
                va="center",
                ha="right" if left else "left",
                fontsize=8,
            )
        ax.margins(x=0.12)
        room = 0.14 * (high - low)
        ax.set_xlim(low - room * self.facts["signed"], high + room)


class Curve(View):
    """Curves over a shared x, with data points and a marker.

    Args:
        x: ``(n,)``.
        curves: ``(n,)``, or a dict of name -> ``(n,)``.
        points: ``(x, y)``, two tensors ``(m,)``, drawn as dots.
        weights: ``(m,)`` between 0 and 1: colour and size of the dots.
        at: the x of a vertical marker.
        title, xlabel, ylabel: texts.
        xlog, ylog: logarithmic axes; the numbers on them must be positive.
        digits: decimals shown, at least: a small range gets as many as a smooth line needs. An axis on which all
            numbers are whole shows none. The weights have just these.

    Axis limits are common to all settings.

    Raises:
        TypeError, ValueError: the argument, what was expected and what came. NaN is refused.
    """

    kind = "curve"

    def __init__(
        self,
        x,
        curves,
        *,
        points=None,
        weights=None,
        at=None,
        title="",
        xlabel="",
        ylabel="",
        xlog=False,
        ylog=False,
        digits=2,
    ):
        flags = {"xlog": _validate.flag("xlog", xlog), "ylog": _validate.flag("ylog", ylog)}
        x = _vector("x", x)
        n = len(x)
        if not isinstance(curves, dict):
            curves = {"": curves}
        if not curves:
            raise ValueError("curves must hold at least one curve, got an empty dict")
        names = [str(name) for name in curves]
        rows = [
            _vector(f"curves[{name!r}]" if name else "curves", curve, n)
            for name, curve in curves.items()
        ]
        px = py = None
        if points is not None:
            if not isinstance(points, (tuple, list)) or len(points) != 2:
                raise TypeError(
                    f"points must be two tensors (x, y), got {_validate.describe(points)}"
                )
            px = _vector("points[0]", points[0], letter="m")
            py = _vector("points[1]", points[1], len(px))
        if weights is not None:
            if px is None:
                raise ValueError("weights colour the points: give points too")
            weights = _vector("weights", weights, len(px), take=as_weights)
        if at is not None:
            at = torch.tensor(_validate.number("at", at), dtype=torch.float64)
        for name, tensor in {"x": x, "points[0]": px, "at": at}.items():
            _positive(name, tensor, xlog, "xlog")
        for name, tensor in {"curves": torch.stack(rows), "points[1]": py}.items():
            _positive(name, tensor, ylog, "ylog")
        numbers = {"x": x, "curves": rows, "px": px, "py": py, "weights": weights, "at": at}
        facts = {"names": names} | flags
        super().__init__(digits, numbers, facts | _words(title=title, xlabel=xlabel, ylabel=ylabel))

    def encode(self, digits):
        """As any view; zero has no place on a logarithmic axis."""
        drawn = ("xlog", "x", self._places()), ("ylog", "curves", self._heights())
        for flag, name, tensors in drawn:
            smallest = min(tensor.min() for tensor in tensors if tensor is not None)
            if self.facts[flag] and rounded(smallest, digits[name]) == 0:
                raise ValueError(
                    f"{name} must not round to 0 with {flag}=True: {digits[name]} digits can be shown "
                    f"beside the largest number, got {smallest.item():.3g}"
                )
        return super().encode(digits)

    def _heights(self):
        return [*self.numbers["curves"], self.numbers["py"]]

    def _places(self):
        return [self.numbers[name] for name in ("x", "px", "at")]

    @classmethod
    def common(cls, views):
        digits, _ = super().common(views)
        facts = views[0].facts
        if len({(view.facts["xlog"], view.facts["ylog"]) for view in views}) > 1:
            raise ValueError("xlog and ylog must be the same for every setting, got both")
        across = [tensor for view in views for tensor in view._places()]
        along = [tensor for view in views for tensor in view._heights()]
        x = 0 if _whole(across) else _steps(digits["x"], across, log=facts["xlog"])
        y = 0 if _whole(along) else _steps(digits["curves"], along, log=facts["ylog"])
        digits |= {"x": x, "px": x, "at": x, "curves": y, "py": y}
        return digits, {
            "xlim": _span(across, 0.02, facts["xlog"]),
            "ylim": _span(along, 0.06, facts["ylog"]),
        }

    @staticmethod
    def tell(props, digits):
        def shown(number):
            return text(number, digits["curves"])

        curves = list(zip(props["names"], props["curves"], strict=True))
        if props["at"] is None:
            say = WORDS["say"]["range"]
            entries = [
                say.format(name=name, low=shown(min(curve)), high=shown(max(curve))).strip()
                for name, curve in curves
            ]
            return WORDS["say"]["curve"].format(title=props["title"], list=", ".join(entries))
        gaps = [abs(x - props["at"]) for x in props["x"]]
        nearest = gaps.index(min(gaps))
        entries = [f"{name} {shown(curve[nearest])}".strip() for name, curve in curves]
        return WORDS["say"]["curve_at"].format(
            title=props["title"], at=text(props["at"], digits["at"]), list=", ".join(entries)
        )

    def draw(self, ax, scales):
        numbers, facts = self.numbers, self.facts
        colours = plots.PALETTE["lines"]
        x = numbers["x"].numpy()
        if numbers["px"] is not None:
            _dots(ax, numbers["px"], numbers["py"], numbers["weights"])
        for i, curve in enumerate(numbers["curves"]):
            colour = colours[i % len(colours)]
            label = facts["names"][i] or None
            ax.plot(x, curve.numpy(), color=colour, label=label, ls=("-", "--", "-.", ":")[i % 4])
        if numbers["at"] is not None:
            ax.axvline(numbers["at"].item(), color=GREY, linewidth=1, linestyle=":")
        _axes(ax, facts, scales, facts["xlog"], facts["ylog"])
        if any(facts["names"]):
            _legend(ax, ax.lines[: len(facts["names"])])


class Points(View):
    """Points in the plane: a map of who is near whom.

    Args:
        positions: ``(n, 2)``.
        labels: ``n`` labels, written beside the points.
        weights: ``(n,)`` between 0 and 1: colour and size of the points.
        query: ``(2,)``, drawn as a diamond.
        arrows: ``(n, 2)``, a vector drawn from each point.
        title, xlabel, ylabel: texts.
        equal: one unit is equally long on both axes.
        digits: decimals shown, as in `Curve`; the same for both axes.

    Raises:
        TypeError, ValueError: the argument, what was expected and what came. NaN is refused.
    """

    kind = "points"

    def __init__(
        self,
        positions,
        *,
        labels=None,
        weights=None,
        query=None,
        arrows=None,
        title="",
        xlabel="",
        ylabel="",
        equal=False,
        digits=2,
    ):
        positions = self._pairs("positions", positions)
        n = len(positions)
        if weights is not None:
            weights = _vector("weights", weights, n, take=as_weights)
        if arrows is not None:
            arrows = self._pairs("arrows", arrows, n).T.contiguous()
        if query is not None:
            query = _vector("query", query, 2)
        numbers = {
            "x": positions[:, 0].contiguous(),
            "y": positions[:, 1].contiguous(),
            "weights": weights,
            "query": query,
            "arrows": arrows,
        }
        facts = {
            "labels": as_labels("labels", labels, n),
            "equal": _validate.flag("equal", equal),
        }
        super().__init__(digits, numbers, facts | _words(title=title, xlabel=xlabel, ylabel=ylabel))

    @staticmethod
    def _pairs(name, value, n=None):
        pairs = as_finite(name, value, "(n, 2)" if n is None else f"({n}, 2)", 2)
        if pairs.shape[1] != 2 or (n is not None and len(pairs) != n):
            raise ValueError(
                f"{name} must have shape ({'n' if n is None else n}, 2), got {tuple(pairs.shape)}"
            )
        return pairs

    def _along(self, axis: int):
        start, numbers = self.numbers["xy"[axis]], self.numbers
        tips = None if numbers["arrows"] is None else start + numbers["arrows"][axis]
        query = None if numbers["query"] is None else numbers["query"][axis]
        return [start, tips, query]

    @classmethod
    def common(cls, views):
        digits, _ = super().common(views)
        x = [tensor for view in views for tensor in view._along(0)]
        y = [tensor for view in views for tensor in view._along(1)]
        shared = 0 if _whole(x + y) else _steps(views[0].digits, x, y)
        digits |= dict.fromkeys(("x", "y", "query", "arrows"), shared)
        return digits, {"xlim": _span(x, 0.12), "ylim": _span(y, 0.12)}

    def size(self):
        return 4.6, 3.6

    @staticmethod
    def tell(props, digits):
        words = {"title": props["title"], "count": len(props["x"])}
        if props["weights"] is None:
            return WORDS["say"]["points"].format(**words)
        best = props["weights"].index(max(props["weights"]))
        words["label"] = _name(props["labels"], best)
        words["value"] = text(props["weights"][best], digits["weights"])
        return WORDS["say"]["points_weights"].format(**words)

    def draw(self, ax, scales):
        numbers, facts = self.numbers, self.facts
        _dots(ax, numbers["x"], numbers["y"], numbers["weights"], size=40)
        if numbers["arrows"] is not None:
            dx, dy = numbers["arrows"].numpy()
            ax.quiver(
                numbers["x"].numpy(),
                numbers["y"].numpy(),
                dx,
                dy,
                angles="xy",
                scale_units="xy",
                scale=1,
                width=0.006,
                color=plots.PALETTE["lines"][0],
            )
        if numbers["query"] is not None:
            ax.scatter(
                *numbers["query"].tolist(),
                marker="D",
                s=60,
                color=plots.PALETTE["lines"][1],
                zorder=4,
            )
        if facts["equal"]:
            ax.set_aspect("equal", adjustable="box")
        _axes(ax, facts, scales)


class Lines(View):
    """Two columns of tokens, queries and keys, joined by lines whose thickness is the weight.

    Args:
        weights: ``(q, k)`` between 0 and 1.
        queries, keys: ``q`` and ``k`` labels.
        title: above the lines.
        row: show the lines of this query only.
        digits: decimals shown.

    Raises:
        TypeError, ValueError: the argument, what was expected and what came. NaN is refused.
    """

    kind = "lines"

    def __init__(self, weights, *, queries, keys, title="", row=None, digits=2):
        weights = as_weights("weights", weights, "(q, k)", 2)
        rows, columns = weights.shape
        facts = {
            "queries": as_labels("queries", queries, rows),
            "keys": as_labels("keys", keys, columns),
            "row": _index("row", row, rows),
        }
        super().__init__(digits, {"weights": weights}, facts | _words(title=title))

    @classmethod
    def common(cls, views):
        digits, _ = super().common(views)
        keys = max(view.numbers["weights"].shape[1] for view in views)
        return digits, {"scale": plots.scale_kind(keys, signed=False)}

    def size(self):
        return 3.6, 0.6 + 0.24 * max(self.numbers["weights"].shape)

    @staticmethod
    def tell(props, digits):
        return _tell_weights("lines", props["weights"], props["row"], props, digits["weights"])

    def draw(self, ax, scales):
        weights = self.numbers["weights"]
        rows, columns = weights.shape
        colours, norm = plots.colour_scale(scales["scale"])
        for (i, j), weight in np.ndenumerate(weights.numpy()):
            if self.facts["row"] in (None, i) and weight > 0:
                strength = float(norm(min(weight, 1)))
                colour = plots.PALETTE["lines"][0]
                ax.plot([0, 1], [i, j], color=colour, alpha=strength, lw=0.5 + 4 * strength)
        names = self.facts["queries"] or [str(i) for i in range(rows)]
        others = self.facts["keys"] or [str(i) for i in range(columns)]
        for i, label in enumerate(names):
            bold = "bold" if i == self.facts["row"] else "normal"
            ax.text(-0.03, i, label, ha="right", va="center", fontweight=bold)
        for j, label in enumerate(others):
            ax.text(1.03, j, label, ha="left", va="center")
        side = 0.2 + 0.05 * max(len(label) for label in [*names, *others])
        ax.set(xlim=(-side, 1 + side), ylim=(max(rows, columns) - 0.5, -0.5))
        ax.set_title(self.facts["title"])
        ax.axis("off")


class Readout(View):
    """One labelled number, or a word.

    Args:
        label: what it is.
        value: a number, shown with `digits` decimals; an integer or a string is shown as it is.
        unit: after the value.
        digits: decimals shown.

    Raises:
        TypeError, ValueError: the argument, what was expected and what came. NaN is refused.
    """

    kind = "readout"

    def __init__(self, label, value, *, unit="", digits=2):
        if value is None:
            raise TypeError("value must be a number or a string, got None")
        number, word = _number_or_text("value", value)
        super().__init__(digits, {"value": number}, {"text": word} | _words(label=label, unit=unit))

    def size(self):
        return 4.6, 0.4

    @staticmethod
    def tell(props, digits):
        number = props["value"]
        value = props["text"] if number is None else text(number, digits["value"])
        value = f"{value} {props['unit']}" if props["unit"] else value
        return WORDS["say"]["readout"].format(label=props["label"], value=value)

    def draw(self, ax, scales):
        number = self.numbers["value"]
        value = (
            self.facts["text"]
            if number is None
            else text(rounded(number, self.digits), self.digits)
        )
        ax.axis("off")
        line = f"{self.facts['label']}: {value} {self.facts['unit']}".strip()
        size = _fitting(ax, 12.0, len(line))
        told = ax.text(0, 0.5, line, va="center", fontsize=size, transform=ax.transAxes)
        told.set_in_layout(False)  # a long line takes no room from other views


class Arithmetic(View):
    """A computation, step by step, in numbers.

    Args:
        steps: list of ``(label, expression, value)``: two strings, and a number, a string or None.
        title: above the steps.
        digits: decimals shown.

    Raises:
        TypeError, ValueError: the argument, what was expected and what came. NaN is refused.
    """

    kind = "arithmetic"

    def __init__(self, steps, *, title="", digits=3):
        if not isinstance(steps, (list, tuple)) or not steps:
            came = "none" if isinstance(steps, (list, tuple)) else _validate.describe(steps)
            raise TypeError(f"steps must be a list of (label, expression, value), got {came}")
        labels, expressions, values, texts = [], [], [], []
        for i, step in enumerate(steps):
            if not isinstance(step, (list, tuple)) or len(step) != 3:
                raise TypeError(f"steps[{i}] must be (label, expression, value), got {step!r}")
            label, expression, value = step
            names = {f"steps[{i}][0]": label, f"steps[{i}][1]": expression}
            _words(**names)
            number, word = _number_or_text(f"steps[{i}][2]", value)
            labels.append(label)
            expressions.append(expression)
            values.append(number)
            texts.append(word)
        facts = {"labels": labels, "expressions": expressions, "texts": texts}
        super().__init__(digits, {"values": values}, facts | _words(title=title))

    def size(self):
        return 6.4, 0.35 + 0.28 * len(self.facts["labels"])

    @staticmethod
    def tell(props, digits):
        steps = zip(props["labels"], props["values"], props["texts"], strict=True)
        told = [
            (label, word if number is None else text(number, digits["values"]))
            for label, number, word in steps
            if number is not None or word is not None
        ]
        if not told:
            return ""
        label, value = told[-1]
        return WORDS["say"]["arithmetic"].format(title=props["title"], label=label, value=value)

    def draw(self, ax, scales):
        facts = self.facts
        values = [
            word if number is None else text(rounded(number, self.digits), self.digits)
            for number, word in zip(self.numbers["values"], facts["texts"], strict=True)
        ]
        columns = [facts["labels"], facts["expressions"], [value or "" for value in values]]
        letters = [max(len(entry) for entry in column) + 2 for column in columns]
        size = _fitting(ax, 9.0, sum(letters))
        ax.axis("off")
        ax.set_title(facts["title"], loc="left")
        starts = (0, letters[0] / sum(letters), 1)
        for column, x, side in zip(columns, starts, ("left", "left", "right"), strict=True):
            for i, entry in enumerate(column):
                y = 1 - (i + 0.5) / len(column)
                ax.text(x, y, entry, size=size, ha=side, va="center", transform=ax.transAxes)


class Histogram(View):
    """How samples are spread, for a static `picture` only (an explorer shows a `Curve` instead).

    Args:
        samples: dict of name -> ``(n,)``.
        bins: number of bins, over the range of all samples.
        title, xlabel: texts.

    Each has an area of 1, so that samples of different sizes compare.

    Raises:
        TypeError, ValueError: the argument, what was expected and what came. NaN is refused.
    """

    kind = "histogram"

    def __init__(self, samples, *, bins=40, title="", xlabel=""):
        if not isinstance(samples, dict) or not samples:
            raise TypeError(
                f"samples must be a dict of name -> (n,), got {_validate.describe(samples)}"
            )
        self.bins = _validate.integer("bins", bins)
        numbers = {str(name): _vector(f"samples[{name!r}]", v) for name, v in samples.items()}
        super().__init__(2, numbers, _words(title=title, xlabel=xlabel))

    def draw(self, ax, scales):
        import seaborn  # here: it takes a second, which other pictures need not spend

        names, colours = list(self.numbers), plots.PALETTE["lines"]
        seaborn.histplot(
            {name: sample.numpy() for name, sample in self.numbers.items()},
            bins=self.bins,
            stat="density",
            common_norm=False,  # every sample has an area of 1, whatever its size
            element="step",
            fill=False,
            palette=[colours[i % len(colours)] for i in range(len(names))],
            legend=False,
            ax=ax,
        )
        lines = ax.lines[::-1]  # seaborn draws the last first
        for line, name in zip(lines, names, strict=True):
            line.set_label(name)
        ax.set(title=self.facts["title"], xlabel=self.facts["xlabel"], ylabel="density")
        _legend(ax, lines)


KINDS = {view.kind: view for view in (Heatmap, Bars, Curve, Points, Lines, Readout, Arithmetic)}


# --- drawing that several views share -------------------------------------------------------------------------


def _fitting(ax, size: float, letters: int) -> float:
    """The size of a line of text, smaller where so many letters do not fit the picture."""
    return min(size, 120 * ax.figure.bbox.width / ax.figure.dpi / letters)


def _dots(ax, x, y, weights, size=16) -> None:
    if weights is None:
        ax.scatter(x.numpy(), y.numpy(), s=size, color=GREY, alpha=0.8, linewidths=0, zorder=2)
        return
    colours, norm = plots.colour_scale(plots.scale_kind(len(weights), signed=False))
    shades = norm(weights.clamp(0, 1).numpy())
    ax.scatter(
        x.numpy(),
        y.numpy(),
        s=size * (0.7 + 3 * np.asarray(shades)),
        c=colours(shades),
        edgecolors=GREY,
        linewidths=0.7,
        zorder=3,
    )


def _legend(ax, lines) -> None:
    """Below the axis and its label, where it covers nothing."""
    below = ScaledTranslation(0, (-34 if ax.get_xlabel() else -20) / 72, ax.figure.dpi_scale_trans)
    ax.legend(
        handles=list(lines),
        loc="upper center",
        bbox_to_anchor=(0.5, 0),
        bbox_transform=ax.transAxes + below,
        ncols=min(len(lines), 3),
        frameon=False,
        fontsize=8,
    )


def _name_points(ax, numbers, labels) -> None:
    """Write each label beside its point, on the side where it covers least of the points and arrows."""
    x, y = numbers["x"].numpy(), numbers["y"].numpy()
    drawn = np.stack([x, y], 1)
    if numbers["arrows"] is not None:
        along = [drawn + share * numbers["arrows"].numpy().T for share in np.linspace(0, 1, 6)]
        drawn = np.concatenate(along)
    if numbers["query"] is not None:
        drawn = np.concatenate([drawn, numbers["query"].numpy()[None]])
    spots = ax.transData.transform(drawn)
    reach = 4 * ax.figure.dpi / 72
    taken = [Bbox.from_extents(*(spot - reach), *(spot + reach)) for spot in spots]
    frame = ax.get_window_extent()
    for label, *spot in zip(labels, x.tolist(), y.tolist(), strict=True):
        tried = []
        for dx, dy in ((1, 0.6), (-1, 0.6), (1, -0.6), (-1, -0.6), (0, 1.6), (0, -1.6)):
            side = {0: "center", 1: "left", -1: "right"}[dx]
            text = ax.annotate(
                label,
                spot,
                (6 * dx, 6 * dy),
                textcoords="offset points",
                ha=side,
                va="center",
                fontsize=8,
                zorder=5,
            )
            box = text.get_window_extent()
            outside = not (frame.x0 <= box.x0 and box.x1 <= frame.x1)
            tried.append((sum(box.overlaps(other) for other in taken) + outside, len(tried), text))
        best = min(tried)[2]
        for _, _, text in tried:
            if text is not best:
                text.remove()
        taken.append(best.get_window_extent())


def _axes(ax, facts, scales, xlog=False, ylog=False) -> None:
    ax.set(title=facts["title"], xlabel=facts["xlabel"], ylabel=facts["ylabel"])
    if xlog:
        ax.set_xscale("log")
    if ylog:
        ax.set_yscale("log")
    ax.set(xlim=scales["xlim"], ylim=scales["ylim"])
    for axis, log in ((ax.xaxis, xlog), (ax.yaxis, ylog)):
        if log:
            _log_ticks(axis)


def _log_ticks(axis) -> None:
    """The ticks of a page: powers of ten, or where fewer than two are in reach their double and fivefold, too."""
    axis.set_minor_formatter(NullFormatter())
    low, high = axis.get_view_interval()
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for factors in ((1,), (1, 2, 5)):
        ticks = [(m * 10.0**p, power_of_ten(m, p)) for p in powers for m in factors]
        ticks = [(at, told) for at, told in ticks if low <= at <= high]
        if len(ticks) > 1:
            axis.set_ticks(*zip(*ticks[:: math.ceil(len(ticks) / 10)], strict=True))
            return
    axis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10]))
    axis.set_major_formatter(ScalarFormatter())


def power_of_ten(factor: int, exponent: int) -> str:
    """``0.002``, ``10⁻⁶``, ``2·10⁸``: as the page writes it."""
    if abs(exponent) < 5:
        return f"{float(f'{factor}e{exponent}'):.{max(0, -exponent)}f}"
    power = "10" + str(exponent).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return power if factor == 1 else f"{factor}·{power}"


# --- static pictures ------------------------------------------------------------------------------------------


def figure_of(views, scales, columns=None, width=None):
    """A figure of the views and its axes; `scales` as `View.common` gives them, one per view."""
    sizes = [view.size() for view in views]
    small = [view.kind in ("readout", "arithmetic") for view in views]
    if columns is None:
        widest = max(
            (size[0] for size, text in zip(sizes, small, strict=True) if not text), default=9
        )
        columns = max(1, int(9.6 / widest))
    rows = _rows(small, columns)
    across = width or min(9.6, max(sum(sizes[i][0] for i in row) for row in rows))
    heights = [max(sizes[i][1] for i in row) for row in rows]
    if width is not None:
        heights = [
            h * min(1.0, width / sum(sizes[i][0] for i in row))
            for h, row in zip(heights, rows, strict=True)
        ]
    figure = plots.new_figure(across, sum(heights))
    axes = [None] * len(views)
    bands = figure.subfigures(len(rows), 1, height_ratios=heights, squeeze=False).flatten()
    for band, row in zip(bands, rows, strict=True):
        ratios = [sizes[i][0] for i in row]
        cells = band.subplots(1, len(row), width_ratios=ratios, squeeze=False).flatten()
        for i, ax in zip(row, cells, strict=True):
            axes[i] = ax
    for view, scale, ax in zip(views, scales, axes, strict=True):
        view.draw(ax, scale)
    figure.set_layout_engine("constrained")
    maps = [(view, ax) for view, ax in zip(views, axes, strict=True) if view.kind == "heatmap"]
    meshes = [ax.collections[0] for _, ax in maps]
    for mesh in meshes:
        plots.colour_bar(mesh.axes.figure, mesh, [mesh.axes])
    plots.fit_heatmaps(meshes, digits=[view.digits for view, _ in maps])
    named = [
        (view, ax)
        for view, ax in zip(views, axes, strict=True)
        if view.facts.get("labels") and view.kind == "points"
    ]
    if named:
        figure.draw_without_rendering()  # places the axes, so that there is room to measure
    for view, ax in named:
        _name_points(ax, view.numbers, view.facts["labels"])
    return figure, axes


def _rows(small: list[bool], columns: int) -> list[list[int]]:
    """Which views stand side by side: texts have a row of their own."""
    rows: list[list[int]] = []
    for i, alone in enumerate(small):
        last = rows[-1] if rows else []
        if alone or not last or small[last[-1]] or len(last) >= columns:
            rows.append([i])
        else:
            last.append(i)
    return rows


def picture(*views, columns: int | None = None, width: Real | None = None):
    """Show views as one static picture, drawn by matplotlib.

    Args:
        views: one or more views.
        columns: how many stand side by side. Default: as many as fit.
        width: of the picture, in inches.

    Returns:
        The axes of a single view, else the list of axes, in the order of the views.

    Raises:
        TypeError, ValueError: the argument, what was expected and what came.
    """
    if not views:
        raise ValueError("views must be at least one view, got none")
    for view in views:
        if not isinstance(view, View):
            raise TypeError(
                f"views must be views such as Heatmap or Curve, got {_validate.describe(view)}"
            )
    if columns is not None:
        columns = _validate.integer("columns", columns)
    if width is not None:
        width = _validate.number("width", width, positive=True)
    with plots.drawing():
        scales = [type(view).common([view])[1] for view in views]
        figure, axes = figure_of(views, scales, columns, width)
        plots.show(figure)
    return plots.quiet(axes[0]) if len(axes) == 1 else plots.Panels(axes)
