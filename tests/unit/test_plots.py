"""The palette and the heatmaps: what colour a weight has, and where its labels stand."""

import warnings

import matplotlib.pyplot
import numpy as np
import pytest
import torch
from matplotlib.axes import Axes
from matplotlib.colors import Normalize, PowerNorm
from matplotlib.figure import Figure
from refusals import refused

from attn_helpers import plot_heatmap, plot_heatmaps, plots

TOKENS = ["The", "navigator", "thanks", "the", "old", "engineer", "."]


@pytest.fixture
def shown(monkeypatch):
    """The figures that were shown, without a notebook."""
    figures = []
    monkeypatch.setattr(plots, "show", figures.append)
    return figures


def weights(*shape):
    return torch.softmax(2 * torch.randn(*shape), -1)


def mesh_of(ax):
    return ax.collections[0]


def tick_labels(ax):
    return [t.get_text() for t in ax.get_yticklabels()], [
        t.get_text() for t in ax.get_xticklabels()
    ]


def boxes(texts):
    return [text.get_window_extent() for text in texts]


def overlapping(found):
    return [(a, b) for i, a in enumerate(found) for b in found[i + 1 :] if a.overlaps(b)]


def contrast(one, other):
    light, dark = sorted((plots.luminance(one), plots.luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


# --- palette ----------------------------------------------------------------------------------------------


def test_luminance_is_wcag_s():
    assert contrast("white", "black") == pytest.approx(21)
    assert contrast("#777777", "white") == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize("colour", plots.PALETTE["lines"])
@pytest.mark.parametrize("page", ["#ffffff", "#121212", "#14181e", "#222832"])
def test_lines_stand_out_on_light_and_dark_pages(colour, page):
    assert contrast(colour, page) >= 3


def test_larger_weights_are_darker():
    shades = [plots.luminance(plots.COLOURS["weights"](t)) for t in np.linspace(0, 1, 101)]
    assert all(np.diff(shades) < 0)


def test_the_signed_scale_darkens_equally_on_both_sides_of_zero():
    at = plots.COLOURS["signed"]
    for size in np.linspace(0.1, 1, 10):
        minus, plus = (plots.luminance(at(0.5 + sign * size / 2)) for sign in (-1, 1))
        assert abs(minus - plus) < 0.06
        assert max(minus, plus) < plots.luminance(at(0.5))


@pytest.mark.parametrize(
    "keys, norm, uniform", [(12, Normalize, 1 / 12), (13, PowerNorm, (1 / 13) ** 0.5)]
)
def test_weights_are_square_root_mapped_where_there_are_many_keys(keys, norm, uniform):
    _, scale = plots.colour_scale(plots.scale_kind(keys, signed=False))
    assert type(scale) is norm
    assert scale(0) == 0 and scale(1) == 1
    assert scale(1 / keys) == pytest.approx(uniform)


# --- one heatmap ------------------------------------------------------------------------------------------


def test_a_heatmap_shows_the_matrix_row_by_row_from_the_top(shown):
    matrix = weights(3, 5)
    ax = plot_heatmap(matrix, queries=list("abc"), keys=list("vwxyz"))
    assert np.allclose(mesh_of(ax).get_array(), matrix)
    assert ax.get_ylim() == (3, 0) and ax.get_xlim() == (0, 5)  # whole rows, the first one on top
    assert tick_labels(ax) == (list("abc"), list("vwxyz"))
    assert list(ax.get_yticks()) == [0.5, 1.5, 2.5]
    assert list(ax.get_xticks()) == [0.5, 1.5, 2.5, 3.5, 4.5]


def test_it_is_shown_once_and_pyplot_knows_nothing_of_it(shown):
    ax = plot_heatmap(torch.eye(4))
    assert isinstance(ax, Axes)
    assert shown == [ax.figure]
    assert matplotlib.pyplot.get_fignums() == []
    assert ax._ipython_display_() is None  # the last line of a cell does not print it again


def test_it_draws_into_given_axes_and_shows_nothing(shown):
    figure = Figure(figsize=(6, 3))
    left, right = figure.subplots(1, 2)
    assert (
        plot_heatmap(weights(7, 7), queries=TOKENS, keys=TOKENS, ax=right, title="right") is right
    )
    assert shown == [] and figure.axes == [left, right] and not left.collections
    assert right.get_title() == "right"
    assert overlapping(boxes(right.get_xticklabels())) == []


@pytest.mark.parametrize("count", [3, 7, 19, 40])
@pytest.mark.parametrize("length", [1, 6, 14])
def test_all_labels_are_drawn_and_none_overlaps(shown, count, length):
    names = [f"{i}".rjust(length, "w") for i in range(count)]
    ax = plot_heatmap(weights(count, count), queries=names, keys=names)
    ax.figure.draw_without_rendering()
    assert tick_labels(ax) == (names, names)
    for labels in (ax.get_xticklabels(), ax.get_yticklabels()):
        assert overlapping(boxes(labels)) == []
    whole = ax.figure.bbox
    for box in boxes([*ax.get_xticklabels(), *ax.get_yticklabels()]):
        assert box.x0 >= whole.x0 - 1 and box.y0 >= whole.y0 - 1  # nothing is cut off


@pytest.mark.parametrize("letter", ["w", "i", "核"])
def test_a_long_label_is_cut_off(shown, letter):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ax = plot_heatmap(torch.eye(2), queries=["a", 60 * letter], keys=[60 * letter, "b"])
        plot_heatmaps(torch.ones(3, 2, 2) / 2, queries=["a", 60 * letter], keys=[90 * letter, "b"])
    long = ax.get_yticklabels()[1]
    assert long.get_text().startswith(9 * letter)
    assert 1.5 < long.get_window_extent().width / ax.figure.dpi <= (2.5 if letter != "i" else 60)
    assert long.get_text().endswith("…") == (letter != "i")


@pytest.mark.parametrize("count, step", [(10, 1), (11, 2), (50, 5), (128, 20)])
def test_without_labels_cells_are_counted_from_zero(shown, count, step):
    ax = plot_heatmap(weights(2, count))
    assert [int(label) for label in tick_labels(ax)[1]] == list(range(0, count, step))
    assert list(ax.get_xticks()) == [i + 0.5 for i in range(0, count, step)]


def test_numbers_stand_inside_their_cells_and_can_be_read(shown):
    matrix = torch.linspace(0, 1, 30).view(5, 6)
    ax = plot_heatmap(matrix)
    ax.figure.draw_without_rendering()
    assert len(ax.texts) == 30
    mesh = mesh_of(ax)
    for text in ax.texts:
        column, row = (int(v) for v in text.get_position())
        assert text.get_text() == f"{matrix[row, column]:.2f}"
        cell = ax.transData.transform([(column, row + 1), (column + 1, row)])
        box = text.get_window_extent()
        assert cell[0][0] < box.x0 and box.x1 < cell[1][0]
        assert cell[0][1] < box.y0 and box.y1 < cell[1][1]
        assert contrast(text.get_color(), mesh.to_rgba(matrix[row, column].item())) >= 4.5


def test_numbers_that_do_not_fit_are_left_out(shown):
    assert not plot_heatmap(weights(50, 50)).texts
    assert not plot_heatmap(weights(3, 3), annotate=False).texts
    assert len(plot_heatmap(weights(14, 14), annotate=True).texts) == 14 * 14


def test_the_number_zero_has_no_sign(shown):
    ax = plot_heatmap(torch.tensor([[-0.001, -1.0]]), signed=True)
    assert [text.get_text() for text in ax.texts] == ["0.00", "-1.00"]


def test_signed_data_has_a_scale_symmetric_about_zero(shown):
    ax = plot_heatmap(torch.tensor([[0.5, -3.0], [1.0, -torch.inf]]), signed=True)
    norm = mesh_of(ax).norm
    assert (norm.vmin, norm.vmax) == (-3, 3)
    assert mesh_of(ax).get_array().mask.tolist() == [[False, False], [False, True]]
    assert len(ax.texts) == 3  # a masked score has no number


def test_scores_that_are_all_infinite_are_left_grey(shown):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ax = plot_heatmap(torch.full((2, 2), -torch.inf), signed=True)
    assert mesh_of(ax).get_array().mask.all() and not ax.texts


def test_axes_hidden_for_a_moment_are_shown_again_whatever_happens(shown):
    one, other = Figure().subplots(1, 2)
    with pytest.raises(ZeroDivisionError), plots._alone(one):
        _ = not other.get_visible() and 1 / 0
    assert other.get_visible()


def test_weights_are_on_the_scale_from_0_to_1_whatever_they_are(shown):
    norm = mesh_of(plot_heatmap(torch.full((3, 3), 0.1))).norm
    assert (norm.vmin, norm.vmax) == (0, 1)


def test_arrays_lists_and_any_dtype_are_taken_and_left_alone(shown):
    matrix = torch.eye(2, dtype=torch.float16, requires_grad=True)
    before = matrix.detach().clone()
    plot_heatmap(matrix)
    assert torch.equal(matrix, before)
    for same in (
        np.eye(2),
        [[1, 0], [0, 1]],
        torch.eye(2, dtype=torch.bool),
        torch.eye(2).bfloat16(),
        torch.eye(2).to_sparse(),
    ):
        assert np.array_equal(mesh_of(plot_heatmap(same)).get_array(), np.eye(2))


def test_floats_are_kept_as_float64_and_arrays_may_be_turned():
    for exact in (1234567.89, 1e-110, 0.1):
        for value in ([exact], [torch.tensor(exact, dtype=torch.float64)], np.array([exact])):
            assert plots.as_numbers("x", value, "(n,)", 1).tolist() == [exact]
    assert plots.as_numbers("x", [[True, 2], [3, 4.5]], "(n, m)", 2).tolist() == [[1, 2], [3, 4.5]]
    assert plots.as_numbers("x", np.arange(3)[::-1], "(n,)", 1).tolist() == [2, 1, 0]


@pytest.mark.messages
@pytest.mark.parametrize(
    "value",
    [
        [1, 1j],
        torch.tensor([1j]),
        [torch.tensor(1j)],
        np.array([1j]),
        [np.complex64(1j)],
        [10**400],
        [[1.0], [1.0, 2.0]],
    ],
)
def test_what_float64_does_not_hold_is_refused(value):
    came = r"complex64 tensor of shape \(1,\)|list|ndarray"
    with pytest.raises(TypeError, match=rf"^x must be a tensor of real numbers .*, got ({came})$"):
        plots.as_numbers("x", value, "(n,)", 1)


def test_chinese_labels_are_drawn_without_a_warning(shown):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ax = plot_heatmap(
            torch.eye(2), queries=["查询", "键"], keys=["核回归", "值"], title="评分函数"
        )
        drawn = plots.svg(ax.figure).decode()
    assert "核回归" in drawn  # letters, for the reader's fonts


def test_labels_and_titles_are_no_formulas(shown):
    ax = plot_heatmap(torch.eye(2), queries=["$5", "$x^$"], keys=["a", "b"], title="$5 or $6")
    drawn = plots.svg(ax.figure).decode()
    assert ">$5 or $6</text>" in drawn and ">$x^$</text>" in drawn


# --- several heatmaps -------------------------------------------------------------------------------------


def test_panels_share_one_scale_and_one_colour_bar(shown):
    panels = plot_heatmaps(weights(5, 3, 4), titles=list("abcde"))
    assert [ax.get_title() for ax in panels] == list("abcde")
    [figure] = shown
    assert len(figure.axes) == 6  # five panels and one bar
    assert {(n.vmin, n.vmax) for n in (mesh_of(ax).norm for ax in panels)} == {(0, 1)}
    assert matplotlib.pyplot.get_fignums() == []


def test_signed_panels_share_the_largest_magnitude(shown):
    panels = plot_heatmaps([torch.tensor([[1.0]]), torch.tensor([[-4.0]])], signed=True)
    assert [mesh_of(ax).norm.vmax for ax in panels] == [4, 4]
    assert [mesh_of(ax).norm.vmin for ax in panels] == [-4, -4]


def test_panels_of_different_widths_share_the_square_root_map(shown):
    panels = plot_heatmaps([weights(2, 3), weights(2, 20)])
    assert all(isinstance(mesh_of(ax).norm, PowerNorm) for ax in panels)


@pytest.mark.parametrize("heads, size", [(8, 7), (12, 12), (3, 16)])
def test_the_labels_of_panels_do_not_overlap(shown, heads, size):
    names = [f"token{i}" for i in range(size)]
    panels = plot_heatmaps(weights(heads, size, size), queries=names, keys=names)
    panels[0].figure.draw_without_rendering()
    texts = [t for ax in panels for t in (*ax.get_xticklabels(), *ax.get_yticklabels())]
    for ax in panels:
        assert tick_labels(ax) == (names, names)
    assert overlapping(boxes(texts)) == []


def test_columns_set_the_panels_of_a_row(shown):
    panels = plot_heatmaps(weights(6, 3, 3), columns=2)
    assert panels[0].get_gridspec().ncols == 2 and panels[0].get_gridspec().nrows == 3


# --- showing ----------------------------------------------------------------------------------------------


def test_outside_a_notebook_nothing_is_shown(capsys):
    plot_heatmap(torch.eye(2))
    assert capsys.readouterr().out == ""


def test_in_a_notebook_one_svg_is_shown(monkeypatch):
    bundles = []
    monkeypatch.setattr(plots, "get_ipython", object)
    monkeypatch.setattr(plots, "display", lambda bundle, raw: bundles.append(bundle))
    plot_heatmap(torch.eye(2))
    [bundle] = bundles
    assert bundle["image/svg+xml"].lstrip().startswith("<?xml")
    assert "Figure" not in bundle["text/plain"]


def test_the_same_picture_is_the_same_file(shown):
    one, two = (plot_heatmap(torch.eye(3)).figure for _ in range(2))
    assert plots.svg(one) == plots.svg(two)


# --- refusals ---------------------------------------------------------------------------------------------

WRONG = [
    (lambda: plot_heatmap(torch.eye(3) * 1.5), ValueError, r"weights .*between 0 and 1.*0 to 1\.5.*signed=True"),
    (lambda: plot_heatmap(-torch.eye(3)), ValueError, r"weights .*-1 to 0.*signed=True"),
    (lambda: plot_heatmap(torch.tensor([[0.5, torch.nan]])), ValueError, r"weights .*got NaN at \(0, 1\)"),
    (lambda: plot_heatmap(torch.full((1, 1), torch.nan), signed=True), ValueError, r"weights .*NaN"),
    (lambda: plot_heatmap(torch.rand(2, 3, 4)), ValueError, r"weights must be of shape \(q, k\).*\(2, 3, 4\)"),
    (lambda: plot_heatmap(torch.rand(3, 0)), ValueError, r"weights .*at least one.*\(3, 0\)"),
    (lambda: plot_heatmap("weights"), TypeError, r"weights must be a tensor of real numbers.*str"),
    (lambda: plot_heatmap([["a"]]), TypeError, r"weights must be a tensor of real numbers.*list"),
    (lambda: plot_heatmap(torch.eye(3), queries=["a"]), ValueError, r"queries must be a list of 3 labels, got 1"),
    (lambda: plot_heatmap(torch.eye(3), keys="abc"), TypeError, r"keys must be a list of 3 labels, got str"),
    (lambda: plot_heatmap(torch.eye(3), signed="no"), TypeError, r"signed must be True or False, got str 'no'"),
    (lambda: plot_heatmap(torch.eye(3), annotate=0), TypeError, r"annotate must be True or False, got int 0"),
    (lambda: plot_heatmap(torch.eye(3), ax=3), TypeError, r"ax must be matplotlib Axes or None, got int 3"),
    (lambda: plot_heatmaps(torch.eye(3)), ValueError, r"weights .*\(h, q, k\).*\(3, 3\)"),
    (lambda: plot_heatmaps([]), ValueError, r"weights must hold at least one matrix"),
    (lambda: plot_heatmaps(3), TypeError, r"weights .*list of \(q, k\) matrices, got int 3"),
    (lambda: plot_heatmaps([torch.eye(2), torch.eye(2) * 2]), ValueError, r"weights\[1\] .*0 to 2"),
    (lambda: plot_heatmaps(torch.rand(2, 2, 2), titles=["a"]), ValueError, r"titles .*2 labels, got 1"),
    (lambda: plot_heatmaps(torch.rand(2, 2, 2), signed=1), TypeError, r"signed must be True or False, got int 1"),
    (lambda: plot_heatmaps(torch.rand(2, 2, 2), columns=0), ValueError, r"columns .*at least 1, got 0"),
]  # fmt: skip


test_wrong_input_is_named = refused(WRONG)


def test_rounding_errors_of_weights_are_no_error(shown):
    plot_heatmap(torch.tensor([[1.00001, -0.00001]]))


# --- axes -------------------------------------------------------------------------------------------------


def names(axes):
    return [(ax.get_xlabel(), ax.get_ylabel()) for ax in axes]


def test_the_axes_of_weights_say_which_side_asks(shown):
    assert names([plot_heatmap(weights(3, 5))]) == [("keys", "queries")]
    assert names([plot_heatmap(torch.randn(3, 5), signed=True)]) == [("", "")]
    told = plot_heatmap(torch.randn(3, 5), signed=True, xlabel="dimensions", ylabel="positions")
    assert names([told]) == [("dimensions", "positions")]


def test_only_the_outer_panels_name_their_axes(shown):
    """Five panels on two columns: the right column ends one row earlier."""
    panels = plot_heatmaps(weights(5, 3, 3), columns=2)
    outer = [("", "queries"), ("", ""), ("", "queries"), ("keys", ""), ("keys", "queries")]
    assert names(panels) == outer


@pytest.mark.parametrize("annotate, count", [(None, 9), (False, 0)])
def test_numbers_can_be_left_out(shown, annotate, count):
    (panel,) = plot_heatmaps(weights(1, 3, 3), annotate=annotate)
    assert len(panel.texts) == count
