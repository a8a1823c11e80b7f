"""The views: how a number is rounded, what is stored and told of it, and the static pictures."""

import warnings
from decimal import ROUND_HALF_EVEN, Decimal

import matplotlib.pyplot
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused

from attn_helpers import (
    Arithmetic,
    Bars,
    Curve,
    Heatmap,
    Histogram,
    Lines,
    Points,
    Readout,
    picture,
    plots,
    views,
)

CREW = ["Ada", "Bo", "Cy"]
WEIGHTS = torch.tensor([[0.7, 0.2, 0.1], [0.0, 0.0, 0.0]])


@pytest.fixture
def shown(monkeypatch):
    figures = []
    monkeypatch.setattr(plots, "show", figures.append)
    return figures


def encoded(view, *others):
    """A view's attributes as a page gets them, with the scales of all settings."""
    digits, scales = type(view).common([view, *others])
    return view.encode(digits) | scales, digits


def told(view):
    props, digits = encoded(view)
    return views.describe(view.kind, props, digits)


def sample(kind):
    """One view of every kind, with every argument."""
    x = torch.linspace(0.5, 3, 11)
    return {
        "heatmap": lambda: Heatmap(WEIGHTS, queries=["a", "b"], keys=CREW, title="W", mark=(0, 2)),
        "signed": lambda: Heatmap(WEIGHTS - 0.5, title="S", signed=True, mark=(1, None)),
        "bars": lambda: Bars(WEIGHTS[0], labels=CREW, title="B", mark=1),
        "signed bars": lambda: Bars([-3.0, 2.0], labels=["a", "b"], signed=True),
        "curve": lambda: Curve(
            x,
            {"sine": x.sin(), "log": x.log()},
            points=(x[::5], x[::5].cos()),
            weights=[0.1, 0.2, 0.7],
            at=2.0,
            title="C",
            xlabel="x",
            ylabel="y",
        ),
        "log curve": lambda: Curve(10**x, 10**-x, xlog=True, ylog=True, xlabel="x"),
        "points": lambda: Points(
            torch.tensor([[207.0, 289.0], [180.0, 250.0], [206.0, 288.0]]),
            labels=CREW,
            weights=WEIGHTS[0],
            query=(200.0, 270.0),
            arrows=torch.ones(3, 2) * 9,
            title="P",
            xlabel="strength",
            ylabel="intelligence",
            equal=True,
        ),
        "lines": lambda: Lines(WEIGHTS, queries=["a", "b"], keys=CREW, title="L"),
        "readout": lambda: Readout("ability", 41.237, unit="points"),
        "arithmetic": lambda: Arithmetic(
            [("score", "q·k", -2.25), ("mask", "masked", None), ("keys", "n", 6)], title="A"
        ),
        "histogram": lambda: Histogram({"d = 4": x, "d = 64": x * 2}, bins=5, xlabel="score"),
    }[kind]()


KINDS = [
    "heatmap",
    "signed",
    "bars",
    "signed bars",
    "curve",
    "log curve",
    "points",
    "lines",
    "readout",
    "arithmetic",
    "histogram",
]


# --- rounding ---------------------------------------------------------------------------------------------


@given(
    st.floats(-1e6, 1e6, width=32) | st.floats(-1e6, 1e6) | st.decimals(-9, 9, places=3).map(float),
    st.integers(0, 6),
)
def test_a_shown_number_is_the_nearest_decimal_of_the_exact_binary_value(value, digits):
    expected = Decimal(value).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_EVEN)
    [integer] = views.rounded(torch.tensor([value], dtype=torch.float64), digits)
    assert Decimal(integer).scaleb(-digits) == expected
    assert views.text(integer, digits) == f"{value:z.{digits}f}"


@pytest.mark.parametrize(
    "value, digits, shown",
    [
        (0.125, 2, "0.12"),  # a tie: to the even one
        (0.375, 2, "0.38"),
        (0.145, 2, "0.14"),  # the binary value lies below
        (2.675, 2, "2.67"),
        (1.005, 2, "1.00"),
        (-0.001, 2, "0.00"),  # zero has no sign
        (1e9, 2, "1000000000.00"),
    ],
)
def test_hard_cases_of_rounding(value, digits, shown):
    integer = views.rounded(torch.tensor(value, dtype=torch.float64), digits)
    assert views.text(integer, digits) == shown


def test_float32_is_rounded_as_the_number_that_it_is():
    value = torch.tensor(0.145)  # float32: 0.14499999582767487
    assert views.rounded(value.double(), 2) == 14
    assert encoded(Readout("r", value))[0]["value"] == 14


def test_a_number_too_large_for_its_digits_is_refused():
    with pytest.raises(ValueError, match=r"below 9\.0e\+13 to be shown with 2 digits, got 1e\+15"):
        encoded(Readout("r", 1e15))
    with pytest.raises(ValueError, match=r"below 9\.0e\+03 .*got 1e\+300"):  # times 10^12: infinite
        encoded(Readout("r", 1e300, digits=12))


@given(st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=5))
def test_every_number_of_a_list_is_shown_as_the_float64_that_it_is(values):
    shown = encoded(Bars(values, signed=True))[0]["values"]
    assert [views.text(integer, 2) for integer in shown] == [f"{value:z.2f}" for value in values]


# --- what is stored ---------------------------------------------------------------------------------------


def test_a_view_keeps_a_copy_of_the_numbers():
    matrix = torch.eye(2, dtype=torch.float64)
    view = Heatmap(matrix)
    matrix.zero_()
    assert encoded(view)[0]["values"] == [[100, 0], [0, 100]]


def test_heatmap_scales_hold_for_all_settings():
    small, large = Heatmap([[1.0, -2.0]], signed=True), Heatmap([[-5.0, -torch.inf]], signed=True)
    props, _ = encoded(small, large)
    assert (props["scale"], props["limit"]) == ("signed", 500)
    assert encoded(large, small)[0]["values"] == [[-500, None]]
    props, _ = encoded(Heatmap([[1.0]]), Heatmap(torch.full((1, 13), 1 / 13)))
    assert (props["scale"], props["limit"]) == ("sqrt", 100)
    assert encoded(Heatmap(WEIGHTS))[0]["scale"] == "linear"
    assert encoded(Heatmap([[0.0]], signed=True))[0]["limit"] == 100


def test_bars_scales():
    assert encoded(Bars([0.5, 0.5]))[0]["xlim"] == [0, 1]
    assert encoded(Bars([1.0], signed=True), Bars([-4.0], signed=True))[0]["xlim"] == [-4, 4]
    assert encoded(Bars([3.0], limits=(2, 5)), Bars([3.0], limits=(0, 4)))[0]["xlim"] == [0, 5]


def test_curve_limits_hold_every_setting():
    x = torch.linspace(0, 2, 30)
    props, digits = encoded(Curve(x, x, at=1.5), Curve(x - 5, 3 * x, points=([9.0], [-2.0])))
    assert props["xlim"][0] < -5 and props["xlim"][1] > 9
    assert props["ylim"][0] < -2 and props["ylim"][1] > 6
    assert props["names"] == [""] and props["px"] is None
    assert digits["at"] == digits["px"] == digits["x"] and digits["py"] == digits["curves"]


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize(
    "values", [[99_999, 100_000.9998], [1e6, 1e6 + 1], [123_456] * 2, [1e17] * 2, [1e-300] * 2]
)
def test_limits_leave_room_around_numbers_that_differ_little(values, log):
    _, scales = Curve.common([Curve(values, [1, 2], xlog=log)])
    low, high = scales["xlim"]
    assert low < min(values) and max(values) < high


@pytest.mark.parametrize("extent, digits", [(1000, 2), (1.0, 3), (0.01, 5)])
def test_a_curve_gets_the_digits_that_a_smooth_line_needs(extent, digits):
    x = torch.linspace(0, 1, 7)
    _, found = encoded(Curve(x, x * extent))
    assert found["curves"] == digits
    assert encoded(Curve(torch.arange(7), x))[1]["x"] == 0  # whole numbers need none
    assert encoded(Curve(x, torch.arange(7)))[1]["curves"] == 0


@pytest.mark.parametrize("largest", [1.0, 1e-30, 1e-300, 1e12])
def test_a_nearly_constant_curve_gets_no_more_digits_than_can_be_stored(largest):
    flat = largest * torch.tensor([1.0, 1 + 2**-52, 1 - 2**-52], dtype=torch.float64)
    props, digits = encoded(Curve([0.0, 1, 2], flat))
    # as many as there is room for
    assert max(props["curves"][0]) >= 10**14 or digits["curves"] == 100
    _, digits = encoded(Points(torch.stack([flat, flat.new_tensor([0, 0.5, 1])], 1)))
    assert 2 <= digits["y"] == digits["x"] <= 15


def test_log_axes_keep_the_smallest_number_apart_from_zero():
    props, digits = encoded(Curve([1, 10, 100], [2e-5, 1e-3, 1.0], xlog=True, ylog=True))
    assert props["curves"][0][0] == 200 and digits["curves"] == 7
    assert 0 < props["ylim"][0] < 2e-5


def test_log_axes_of_any_range_can_be_stored():
    for low, high in [(1e-14, 1.0), (1e-6, 1e8), (1e-3, 1e-2)]:
        props, digits = encoded(Curve([1.0, 2.0], [low, high], ylog=True, digits=0))
        assert 0 < max(props["curves"][0]) <= 2**53
        assert digits["curves"] >= 0


@pytest.mark.parametrize(
    "numbers, shown",
    [
        ([1e-3, 1, 1e4], ["0.001", "0.01", "0.1", "1", "10", "100", "1000", "10000"]),
        ([1e-6, 2e-5], ["10⁻⁶", "10⁻⁵"]),
        ([2e-6, 6e-6], ["2·10⁻⁶", "5·10⁻⁶"]),
        ([0.15, 8], ["0.2", "0.5", "1", "2", "5"]),
        ([1e-39, 1], ["10⁻³⁹", "10⁻³⁵", "10⁻³¹"]),
        ([21, 39], ["20", "25", "30", "35", "40"]),
    ],
)
def test_the_ticks_of_a_logarithmic_axis(numbers, shown):
    ax = picture(Curve(numbers, [1] * len(numbers), xlog=True))
    assert [label.get_text() for label in ax.get_xticklabels()][: len(shown)] == shown


def test_what_would_be_zero_on_a_logarithmic_axis_is_refused():
    with pytest.raises(ValueError, match=r"curves must not round to 0 with ylog=True: 15.*1e-17"):
        encoded(Curve([1.0, 2.0], [1e-17, 1.0], ylog=True))


def test_points_limits_hold_query_and_arrows():
    props, _ = encoded(Points([[0.0, 0.0]], query=(5, -7), arrows=[[-3.0, 1.0]]))
    assert props["xlim"][0] < -3 and props["xlim"][1] > 5
    assert props["ylim"][0] < -7 and props["ylim"][1] > 1
    assert props["query"] == [5, -7] and props["arrows"] == [[-3], [1]]  # whole: no digits


def test_whole_numbers_and_words_are_shown_as_they_are():
    for value, shown in [(8, "8"), (torch.tensor(8), "8"), ("none", "none"), (-torch.inf, "−∞")]:
        props, _ = encoded(Readout("r", value))
        assert (props["value"], props["text"]) == (None, shown)
    props, _ = encoded(Arithmetic([("a", "b", 0.5), ("a", "b", "w"), ("a", "b", None)]))
    assert (props["values"], props["texts"]) == ([500, None, None], [None, "w", None])


# --- what is told -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "view, parts",
    [
        (Heatmap(WEIGHTS, queries=["a", "b"], keys=CREW, title="W"), ["W", "0.70", "a", "Ada"]),
        (Heatmap(WEIGHTS, keys=CREW, mark=(0, None)), ["0", "0.70", "Ada"]),
        (Heatmap(WEIGHTS, queries=["a", "b"], mark=(1, 0)), ["b", "nothing"]),
        (Heatmap([[1.0, -2.5], [-torch.inf, 0]], signed=True), ["-2.50", "1.00"]),
        (Heatmap([[-torch.inf]], signed=True, title="S"), ["S", "1 × 1", "all infinite"]),
        (Bars(WEIGHTS[0], labels=CREW), ["Ada 0.70, Bo 0.20, Cy 0.10"]),
        (Bars(torch.arange(9) / 10, title="B"), ["9", "0.00", "0", "0.80", "8"]),
        (Curve([0, 1, 2], {"f": [0, 5, 9], "g": [1, 1, 1]}, at=1.2), ["1.20", "f 5", "g 1"]),
        (Curve([0, 1], [1.5, 9.0], title="C"), ["C", "1.50", "9.00"]),
        (Points(torch.eye(3)[:, :2], labels=CREW, weights=WEIGHTS[0]), ["3", "0.70", "Ada"]),
        (Points(torch.eye(2)), ["2"]),
        (Lines(WEIGHTS, queries=["a", "b"], keys=CREW), ["0.70", "a", "Ada"]),
        (Lines(WEIGHTS, queries=["a", "b"], keys=CREW, row=1), ["b", "nothing"]),
        (Readout("ability", 41.237, unit="points"), ["ability", "41.24 points"]),
        (Arithmetic([("s", "e", 0.5), ("out", "e", None)], title="T"), ["T", "s", "0.500"]),
    ],
)
def test_a_sentence_says_what_the_view_shows(view, parts):
    sentence, place = told(view), 0
    for part in parts:  # each after the one before
        assert part in sentence[place:], sentence
        place = sentence.index(part, place) + len(part)
    assert "{" not in sentence


def test_steps_without_a_value_say_nothing():
    assert told(Arithmetic([("a", "b", None)])) == ""


# --- static pictures --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_a_picture_of_every_view_shows_every_text_whole(kind, shown):
    picture(sample(kind))
    [figure] = shown
    figure.draw_without_rendering()
    whole = figure.bbox
    texts = [t for t in figure.findobj(matplotlib.text.Text) if t.get_text() and t.get_visible()]
    ticks = {t for a in figure.axes for x in (a.xaxis, a.yaxis) for t in _unshown(a, x)}
    boxes = [(t.get_text(), t.get_window_extent()) for t in texts if t not in ticks]
    assert boxes
    for text, box in boxes:
        assert whole.x0 - 1 <= box.x0 and box.x1 <= whole.x1 + 1, text
        assert whole.y0 - 1 <= box.y0 and box.y1 <= whole.y1 + 1, text
    for i, (text, box) in enumerate(boxes):
        for other, second in boxes[i + 1 :]:
            assert not box.overlaps(second), (text, other)
    assert matplotlib.pyplot.get_fignums() == []


def _unshown(ax, axis):
    """Tick labels outside the limits, which matplotlib keeps but does not draw."""
    low, high = sorted(axis.get_view_interval())
    hidden = not ax.axison
    for tick in [*axis.get_major_ticks(), *axis.get_minor_ticks()]:
        if hidden or not low <= tick.get_loc() <= high:
            yield from (tick.label1, tick.label2)


def test_a_picture_of_several_views_returns_their_axes_in_order(shown):
    axes = picture(*(sample(kind) for kind in KINDS[:7]), columns=2)
    assert [ax.get_title() for ax in axes] == ["W", "S", "B", "", "C", "", "P"]
    assert len(shown) == 1
    assert axes._ipython_display_() is None


def test_columns_stand_side_by_side(shown):
    left, right, below = picture(*(Bars([0.5], title=t) for t in "abc"), columns=2)
    place = [ax.get_window_extent() for ax in (left, right, below)]
    assert place[0].x1 < place[1].x0 and place[0].y0 == pytest.approx(place[1].y0)
    assert place[2].y1 < place[0].y0


def test_a_heatmap_shows_the_digits_of_its_view(shown):
    matrix = [[0.1234, -0.0004], [12.0, 1.0]]
    views_ = [Heatmap(matrix, signed=True, digits=digits) for digits in (3, 1)]
    texts = [[text.get_text() for text in ax.texts] for ax in picture(*views_)]
    assert texts == [["0.123", "0.000", "12.000", "1.000"], ["0.1", "0.0", "12.0", "1.0"]]


def test_long_texts_leave_room_for_the_views(shown):
    long = 60 * "w"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        picture(Heatmap(WEIGHTS), Readout(long, long), Bars([0.5, 0.5], labels=[long, "a"]))
        [figure] = shown
        figure.draw_without_rendering()


def test_width_sets_the_width(shown):
    picture(Bars([0.5]), width=3)
    assert shown[0].get_size_inches()[0] == 3


def test_bars_and_curves_stand_at_their_numbers(shown):
    bars = picture(sample("bars"))
    assert [bar.get_width() for bar in bars.patches] == pytest.approx([0.7, 0.2, 0.1])
    assert [label.get_text() for label in bars.get_yticklabels()] == CREW
    assert bars.get_ylim() == (2.5, -0.5)  # the first one on top, none half-cut
    curve = picture(sample("curve"))
    assert np.allclose(curve.lines[0].get_ydata(), np.sin(curve.lines[0].get_xdata()))
    assert [text.get_text() for text in curve.get_legend().get_texts()] == ["sine", "log"]


def test_a_histogram_has_common_bins_and_an_area_of_one_each(shown):
    ax = picture(Histogram({"a": torch.randn(90), "b": 3 * torch.randn(500)}, bins=20))
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["a", "b"]
    for line in ax.lines:
        x, y = line.get_data()
        assert np.sum(y[:-1] * np.diff(x)) == pytest.approx(1)
    assert np.array_equal(ax.lines[0].get_xdata(), ax.lines[1].get_xdata())


def test_lines_are_thicker_for_larger_weights(shown):
    ax = picture(sample("lines"))
    assert [list(line.get_ydata()) for line in ax.lines] == [[0, 0], [0, 1], [0, 2]]  # no zeros
    widths = [line.get_linewidth() for line in ax.lines]
    assert widths == sorted(widths, reverse=True)


# --- refusals ---------------------------------------------------------------------------------------------

X = [0.0, 1.0]
WRONG = [
    (lambda: Heatmap([[2.0]]), ValueError, r"values must be weights between 0 and 1.*2.*signed=True"),
    (lambda: Heatmap([[torch.nan]], signed=True), ValueError, r"values .*NaN at \(0, 0\)"),
    (lambda: Heatmap([0.5]), ValueError, r"values must be of shape \(q, k\).*\(1,\)"),
    (lambda: Heatmap([[0.5]], mark=(0, 3)), ValueError, r"mark\[1\] must be an index from 0 to 0, got 3"),
    (lambda: Heatmap([[0.5]], mark=(None, 0)), ValueError, r"mark must name a row"),
    (lambda: Heatmap([[0.5]], mark=1), TypeError, r"mark must be \(row, column\), got int 1"),
    (lambda: Heatmap([[0.5]], select="row"), TypeError, r"select must be the names of two controls"),
    (lambda: Heatmap([[0.5]], select=(1, "a")), TypeError, r"select\[0\] must be a string, got int 1"),
    (lambda: Heatmap([[0.5]], title=3), TypeError, r"title must be a string, got int 3"),
    (lambda: Heatmap([[0.5]], signed="yes"), TypeError, r"signed must be True or False, got str"),
    (lambda: Heatmap([[0.5]], digits=-1), ValueError, r"digits must be an integer of at least 0, got -1"),
    (lambda: Heatmap([[0.5]], digits=13), ValueError, r"digits must be at most 12, got 13"),
    (lambda: Bars([2.0]), ValueError, r"values .*between 0 and 1.*limits=\(low, high\)"),
    (lambda: Bars([2.0], limits=(0, 1)), ValueError, r"values must lie within limits \(0\.0, 1\.0\)"),
    (lambda: Bars([2.0], limits=(3, 1)), ValueError, r"limits must be .*low < high, got \(3\.0, 1\.0\)"),
    (lambda: Bars([2.0], limits=3), TypeError, r"limits must be \(low, high\), got int 3"),
    (lambda: Bars([2.0], limits=(0, 3), signed=True), ValueError, r"limits must be left out"),
    (lambda: Bars([0.5], labels=["a", "b"]), ValueError, r"labels must be a list of 1 labels, got 2"),
    (lambda: Bars([0.5], mark=1), ValueError, r"mark must be an index from 0 to 0, got 1"),
    (lambda: Curve(X, [0.0]), ValueError, r"curves must have 2 entries, got 1"),
    (lambda: Curve(X, {"f": X, "g": [1.0]}), ValueError, r"curves\['g'\] must have 2 entries, got 1"),
    (lambda: Curve(X, {}), ValueError, r"curves must hold at least one"),
    (lambda: Curve(X, [0.0, torch.inf]), ValueError, r"curves must be finite numbers, got inf at \(1,\)"),
    (lambda: Curve(X, X, points=X + X), TypeError, r"points must be two tensors \(x, y\), got list"),
    (lambda: Curve(X, X, points=(X, [1.0])), ValueError, r"points\[1\] must have 2 entries, got 1"),
    (lambda: Curve(X, X, weights=X), ValueError, r"weights colour the points: give points too"),
    (lambda: Curve(X, X, points=(X, X), weights=[0.1]), ValueError, r"weights must have 2 entries, got 1"),
    (lambda: Curve(X, X, xlog=True), ValueError, r"x must be positive with xlog=True, got 0"),
    (lambda: Curve(X, X, ylog=True), ValueError, r"curves must be positive with ylog=True, got 0"),
    (lambda: Curve(X, X, at="1"), TypeError, r"at must be a finite number, got str '1'"),
    (lambda: Curve(X, X, ylog=1), TypeError, r"ylog must be True or False, got int 1"),
    (lambda: Points([[1.0, 2.0, 3.0]]), ValueError, r"positions must have shape \(n, 2\), got \(1, 3\)"),
    (lambda: Points([X], query=[1.0]), ValueError, r"query must have 2 entries, got 1"),
    (lambda: Points([X], arrows=[X, X]), ValueError, r"arrows must have shape \(1, 2\), got \(2, 2\)"),
    (lambda: Points([X], weights=[2.0]), ValueError, r"weights must be weights between 0 and 1"),
    (lambda: Points([X], weights=X), ValueError, r"weights must have 1 entries, got 2"),
    (lambda: Points([X], equal=None), TypeError, r"equal must be True or False, got NoneType None"),
    (lambda: Lines([[0.5]], queries=["a"], keys="b"), TypeError, r"keys must be a list of 1 labels, got str"),
    (lambda: Lines([[0.5]], queries=["a"], keys=["b"], row=1), ValueError, r"row must be an index from 0 to 0"),
    (lambda: Readout("r", None), TypeError, r"value must be a number or a string, got None"),
    (lambda: Readout("r", torch.nan), ValueError, r"value must be a number, got NaN"),
    (lambda: Readout("r", 10**400), ValueError, r"value must be a finite number, got one beyond float64"),
    (lambda: Readout("r", True), TypeError, r"value must be a number or a string, got bool True"),
    (lambda: Readout("r", torch.eye(2)), TypeError, r"value must be a number or a string, got .*\(2, 2\)"),
    (lambda: Readout(3, 1), TypeError, r"label must be a string, got int 3"),
    (lambda: Arithmetic([]), TypeError, r"steps must be a list of \(label, expression, value\)"),
    (lambda: Arithmetic(torch.ones(3)), TypeError, r"steps must be a list of .*got float32 tensor of shape \(3,\)"),
    (lambda: Arithmetic([("a", "b")]), TypeError, r"steps\[0\] must be \(label, expression, value\)"),
    (lambda: Arithmetic([("a", 3, 1)]), TypeError, r"steps\[0\]\[1\] must be a string, got int 3"),
    (lambda: Histogram([1.0]), TypeError, r"samples must be a dict of name -> \(n,\), got list"),
    (lambda: Histogram({"a": [torch.nan]}), ValueError, r"samples\['a'\] .*NaN"),
    (lambda: Histogram({"a": X}, bins=0), ValueError, r"bins must be an integer of at least 1, got 0"),
    (lambda: picture(), ValueError, r"views must be at least one view, got none"),
    (lambda: picture(torch.eye(2)), TypeError, r"views must be views such as Heatmap.*\(2, 2\)"),
    (lambda: picture(Bars(X), columns=0), ValueError, r"columns .*at least 1, got 0"),
    (lambda: picture(Bars(X), width=-1), ValueError, r"width must be a positive finite number, got -1"),
    (lambda: views.describe("pie", {}, {}), KeyError, r"pie"),
]  # fmt: skip


test_wrong_input_is_named = refused(WRONG)
