"""`explore`: the grammar, the sweep, what is stored, what is refused, and the widget's state."""

import functools
import itertools
import json
import math
import re

import ipywidgets
import nbclient
import nbformat
import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from attn_helpers import (
    Arithmetic,
    Bars,
    Curve,
    Heatmap,
    Histogram,
    Lines,
    Points,
    Readout,
    explore,
    explorer,
    progress,
)
from attn_helpers.views import text


def swept(function, **controls):
    """The explorer of a function."""
    return explore(**controls)(function).explorer


def control(**one):
    """What the payload says about a single control."""

    def f(**arguments):
        return Readout("r", str(arguments))

    return swept(f, **one).payload["controls"][0]


def attribute(explorer_, name, view=0):
    return explorer_.payload["views"][view]["props"][name]


def every_setting(payload):
    sizes = [range(len(c["values"])) for c in payload["controls"]]
    for indices in itertools.product(*sizes):
        yield indices, explorer.look_up(payload, list(indices))


# --- grammar ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "abbreviation, kind, values, texts",
    [
        ((0.0, 0.3, 0.1), "slider", [0.0, 0.1, 0.2, 0.3], ["0.0", "0.1", "0.2", "0.3"]),
        ((0.0, 1.0, 0.25), "slider", [0, 0.25, 0.5, 0.75, 1], ["0.00", "0.25", "0.50", "0.75", "1.00"]),
        ((2, 5), "slider", [2, 3, 4, 5], ["2", "3", "4", "5"]),
        ((1, 8, 3), "slider", [1, 4, 7], ["1", "4", "7"]),
        (2, "slider", [-2, -1, 0, 1, 2, 3, 4, 5, 6], list(["-2", "-1", "0", "1", "2", "3", "4", "5", "6"])),
        ([0.1, 0.5, 2.0], "select", [0.1, 0.5, 2.0], ["0.1", "0.5", "2.0"]),
        (np.linspace(0, 1, 3), "select", [0.0, 0.5, 1.0], ["0.0", "0.5", "1.0"]),
        ([torch.tensor(1), np.int64(2)], "select", [1, 2], ["1", "2"]),
        (ipywidgets.Dropdown(options=np.arange(2)), "select", [0, 1], ["0", "1"]),
        (["a", "b"], "select", ["a", "b"], ["a", "b"]),
        ({"one": 1, "two": [2]}, "select", ["one", "two"], ["one", "two"]),
        ([("one", 1), ("two", 2)], "select", ["one", "two"], ["one", "two"]),
        (True, "checkbox", [False, True], ["off", "on"]),
        (ipywidgets.RadioButtons(options=["a", "b"]), "radio", ["a", "b"], ["a", "b"]),
        (ipywidgets.ToggleButtons(options=[1, 2]), "toggle", [1, 2], ["1", "2"]),
        (ipywidgets.SelectionSlider(options=[1, 3]), "slider", [1, 3], ["1", "3"]),
        (ipywidgets.ToggleButton(), "checkbox", [False, True], ["off", "on"]),
        (ipywidgets.BoundedIntText(min=1, max=2), "slider", [1, 2], ["1", "2"]),
        (ipywidgets.BoundedFloatText(min=0, max=1, step=0.5), "slider", [0, 0.5, 1], ["0.0", "0.5", "1.0"]),
        (ipywidgets.FloatLogSlider(min=-1, max=1, step=1), "slider", [0.1, 1, 10], ["0.1", "1.0", "10.0"]),
    ],
)  # fmt: skip
def test_the_grammar_of_interact(abbreviation, kind, values, texts):
    told = control(x=abbreviation)
    assert (told["name"], told["kind"]) == ("x", kind)
    assert told["values"] == values and told["texts"] == texts
    assert json.loads(json.dumps(told)) == told


def test_defaults_and_labels_are_those_of_interact():
    def f(x, y=0.75, z=3, *, flag=True):
        return Readout("r", x + y + z + flag)

    e = swept(
        f, x=ipywidgets.IntSlider(min=0, max=5, value=4, description="width"), y=(0.0, 1.0, 0.25)
    )
    assert [c["label"] for c in e.payload["controls"]] == ["width", "y", "z", "flag"]
    assert e.settings == {"x": 4, "y": 0.75, "z": 3, "flag": True}


@pytest.mark.parametrize(
    "abbreviation, readout, second, last",
    [
        ((0.0, 0.01, 0.001), ".3f", "0.001", "0.010"),
        ((0.0, math.pi, math.pi / 8), ".1f", "0.4", "3.1"),
        ((0.0, math.pi, math.pi / 2000), ".3f", "0.002", "3.142"),
        ((0.0, 1e-6, 1e-8), ".1e", "1.0e-8", "1.0e-6"),
        ((0.0, 1e20, 1e19), ".0e", "1e+19", "1e+20"),
        (ipywidgets.FloatLogSlider(min=-9, max=1, step=1), ".0e", "1e-8", "1e+1"),
        (ipywidgets.FloatSlider(max=1, step=0.1, readout_format=".1%"), ".1%", "0.1", "1.0"),
    ],
)
def test_a_slider_shows_as_many_digits_as_its_steps_need(abbreviation, readout, second, last):
    e = swept(lambda x: Readout("r", str(x)), x=abbreviation)
    texts = e.payload["controls"][0]["texts"]
    assert (e.controls["x"].readout_format, texts[1], texts[-1]) == (readout, second, last)
    assert len(set(texts)) == len(texts)


@pytest.mark.parametrize(
    "high, step, count",
    [(math.pi, math.pi / 8, 9), (1.0, 1 / 3, 4), (np.float32(1), np.float32(0.1), 11), (2, 0.7, 3)],
)
def test_a_slider_ends_where_its_steps_lead(high, step, count):
    values = control(x=(0.0, high, step))["values"]
    assert len(values) == count and values[-1] == (1.4 if high == 2 else high)


def test_a_value_between_two_steps_begins_at_the_nearest():
    e = swept(lambda x: Readout("r", x), x=ipywidgets.FloatSlider(value=0.29, max=1.0, step=0.1))
    assert e.settings == {"x": 0.3} and e.controls["x"].value == 0.3


def test_fixed_arguments_are_no_controls():
    s, data = ipywidgets.fixed("kept"), ipywidgets.fixed(torch.eye(2))
    e = swept(lambda x, s, data: Readout("r", s), x=(0, 1), s=s, data=data)
    assert [c["name"] for c in e.payload["controls"]] == ["x"]
    assert e.payload["fixed"] == ["s='kept'", "data=data"]  # as they are written in a call
    assert attribute(e, "text")["items"] == ["kept"]


def test_named_options_say_how_they_are_written_in_a_call():
    told = control(x={"small": 1, "sine": torch.sin})
    assert told["python"] == ["1", "sin"]
    assert "python" not in control(x=["a", "b"])


REFUSED = [
    ("words", TypeError, r"'x' must have a finite list .*free text \(Text\); use a list of strings"),
    (ipywidgets.Combobox(options=["a"]), TypeError, r"free text \(Combobox\)"),
    (ipywidgets.FloatText(), TypeError, r"free number \(FloatText\); use \(min, max, step\)"),
    (ipywidgets.IntText(), TypeError, r"free number \(IntText\)"),
    (ipywidgets.IntRangeSlider(), TypeError, r"range \(IntRangeSlider\); use two sliders"),
    (ipywidgets.FloatRangeSlider(), TypeError, r"range \(FloatRangeSlider\)"),
    (ipywidgets.SelectionRangeSlider(options=[1, 2]), TypeError, r"multiple selection|a range"),
    (ipywidgets.SelectMultiple(options=[1, 2]), TypeError, r"multiple selection .*checkbox per option"),
    (ipywidgets.DatePicker(), TypeError, r"must be a slider, a list, a dict or a bool, got DatePicker"),
    (ipywidgets.Button(), TypeError, r"the control 'x' must be a tuple .*ValueWidget"),
    ((3, 1), ValueError, r"the control 'x' must be a tuple \(min, max, step\).*got \(3, 1\)"),
    ((0.0, 1.0, 0.0), ValueError, r"the control 'x' must be a tuple .*step must be"),
    (ipywidgets.FloatSlider(max=math.inf), ValueError, r"'x' must have finite numbers .*got \(0\.0, inf, 0\.1\)"),
    (ipywidgets.BoundedFloatText(), ValueError, r"the step of the control 'x' must be positive, got None"),
    (("a", "b"), (TypeError, ValueError), r"the control 'x' must be a tuple"),
    ([], ValueError, r"'x' must have at least one option, got none"),
    ([1, 1], ValueError, r"options of 'x' must have different names, got \['1', '1'\]"),
    (None, ValueError, r"the control 'x' must be a tuple .*got None"),
    ({"a": torch.ones(2), "b": torch.zeros(2)}, ValueError, r"the control 'x' must be .*Boolean value of Tensor"),
    ((0.0, math.inf, 1.0), ValueError, r"the control 'x' must be .*got \(0\.0, inf, 1\.0\)"),
]  # fmt: skip


@pytest.mark.messages
@pytest.mark.parametrize("abbreviation, kind, message", REFUSED)
def test_what_cannot_be_swept_is_refused_with_what_to_use(abbreviation, kind, message):
    with pytest.raises(kind, match=message):
        control(x=abbreviation)


@pytest.mark.messages
def test_mistakes_in_the_decorator_are_named():
    def f(x, y):
        return Readout("r", x)

    with pytest.raises(TypeError, match=r"f has no argument 'z'; expected controls for x, y"):
        explore(x=(0, 1), y=(0, 1), z=(0, 1))(f)
    with pytest.raises(
        TypeError, match=r"f needs a control for its argument 'y': explore\(y=...\)"
    ):
        explore(x=(0, 1))(f)
    with pytest.raises(
        TypeError, match=r"by name, as in @explore\(x=\(0.0, 5.0, 0.1\)\), got function"
    ):
        explore(f)
    with pytest.raises(ValueError, match=r"needs at least one control, got none"):
        explore()(lambda: Readout("r", 1))


class Machine:
    """What can be called, and is no function."""

    def __call__(self, x):
        pytest.fail("called")

    method = __call__


@pytest.mark.messages
@pytest.mark.parametrize(
    "wrong, came",
    [
        (3, "int 3"),
        (functools.partial(Machine(), 2), "partial"),
        (Machine(), "Machine"),
        (Machine().method, "method"),
        (Bars, "type"),
    ],
)
def test_only_a_function_is_explored(wrong, came):
    with pytest.raises(TypeError, match=rf"explore decorates a function .*, got {came}$"):
        explore(x=(0, 1))(wrong)


# --- sweep ------------------------------------------------------------------------------------------------


def test_every_combination_runs_once_and_the_name_stays_the_function():
    calls = []

    @explore(x=(0, 2), kind=["a", "b"], flag=False)
    def f(x, kind, flag):
        calls.append((x, kind, flag))
        return Readout("r", x)

    assert calls == list(itertools.product([0, 1, 2], ["a", "b"], [False, True]))
    assert isinstance(f(5, "a", True), Readout)
    assert f.__name__ == "f" and f.explorer.payload["settings"] == 12


def test_the_function_gets_the_values_of_named_options():
    got = []
    swept(lambda k: (got.append(k), Readout("r", 1))[1], k={"sine": torch.sin, "cosine": torch.cos})
    assert got == [torch.sin, torch.cos]


@pytest.mark.parametrize("fails", [False, True])
def test_threads_and_grad_mode_are_as_before(fails):
    seen = []

    def f(x):
        seen.append((torch.get_num_threads(), torch.is_grad_enabled()))
        torch.set_grad_enabled(False)
        if fails:
            raise RuntimeError("no")
        return Readout("r", x)

    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        with pytest.raises(ValueError) if fails else torch.enable_grad():
            swept(f, x=(0, 1))
        assert seen[0] == (1, True)
        assert torch.get_num_threads() == 2
        assert torch.is_grad_enabled()
    finally:
        torch.set_num_threads(before)
        torch.set_grad_enabled(True)


def test_a_function_may_use_gradients():
    def f(x):
        w = torch.tensor(float(x), requires_grad=True)
        (w**2).backward()
        return Readout("gradient", w.grad)

    assert attribute(swept(f, x=(1, 3)), "value")["items"] == [200, 400, 600]


@pytest.mark.parametrize(
    "error, kind", [(ZeroDivisionError("by zero"), ValueError), (TypeError("no"), TypeError)]
)
def test_a_raising_function_is_named_with_its_setting(error, kind):
    def f(x, name):
        if (x, name) == (0.2, "b"):
            raise error
        return Readout("r", x)

    message = rf"f\(x=0\.2, name='b'\) raised {type(error).__name__}: {error}"
    with pytest.raises(kind, match=message) as caught:
        swept(f, x=(0.0, 0.3, 0.1), name=["a", "b"])
    assert caught.value.__cause__ is error


RETURNS = [
    (lambda x: torch.eye(2), TypeError, r"\(x=0\) must return a view .*float32 tensor of shape \(2, 2\)"),
    (lambda x: None, TypeError, r"must return a view .*got NoneType None"),
    (lambda x: [Readout("r", 1)], TypeError, r"must return a view .*tuple of views, got list"),
    (lambda x: (), ValueError, r"must return at least one view"),
    (lambda x: Histogram({"a": [1.0]}), TypeError, r"a Histogram is for picture\(\), use a Curve"),
    (lambda x: (Readout("r", 1),) * (1 + x), ValueError, r"same views .*expected readout, got readout, readout from .*\(x=1\)"),
    (lambda x: Readout("r", 1) if x else Bars([1.0]), ValueError, r"expected bars, got readout"),
    (lambda x: Readout("r", 0.5, digits=x), ValueError, r"digits of a view .*expected 0, got 1 from .*\(x=1\)"),
    (lambda x: Heatmap([[1.0]], select=("x", "y")), ValueError, r"select must name controls \(x\), got 'y'"),
    (lambda x: Heatmap(torch.eye(4), select=("x", "x")), ValueError, r"select names 'x', which must have an option for each of the 4 rows .*got 3"),
    (lambda x: Curve([1, 2], [1, 2], xlog=bool(x)), ValueError, r"xlog and ylog must be the same for every setting"),
    (lambda x: Heatmap([[1e300 if x == 1 else 0.0]], signed=True), ValueError, r"\(x=1\): its heatmap cannot be shown: .*below 9\.0e\+13 .*got 1e\+300"),
    (lambda x: Heatmap([[torch.nan]]), ValueError, r"\(x=0\) raised ValueError: values .*NaN"),
]  # fmt: skip


@pytest.mark.messages
@pytest.mark.parametrize("function, kind, message", RETURNS)
def test_wrong_results_are_refused(function, kind, message):
    with pytest.raises(kind, match=message):
        swept(function, x=(0, 2))


# --- what is stored ---------------------------------------------------------------------------------------


def sweepable(x, bandwidth, kernel, flag):
    """Every view, each depending on other controls."""
    keys = torch.arange(4.0)
    weights = torch.softmax(-((keys - x) ** 2) / bandwidth, 0)
    weights = weights.flip(0) if kernel == "flipped" else weights
    n = 3 if flag else 4  # shapes and labels may vary
    square = weights[:n].expand(n, n)
    return (
        Heatmap(square, keys=list("abcd")[:n], mark=(0, 1), title=f"x = {x}"),
        Heatmap(torch.log(square), signed=True, digits=4),
        Bars(weights, labels=list("abcd")),
        Curve(keys, {"w": weights, "k": keys}, at=x, points=(keys, weights), weights=weights),
        Points(torch.stack([keys, keys.flip(0)], 1), weights=weights, query=(x, bandwidth)),
        Lines(square, queries=list("abcd")[:n], keys=list("abcd")[:n], row=0),
        Readout("mean", weights @ keys),
        Arithmetic([("mean", "w·k", weights @ keys), ("n", "keys", n)]),
    )


def test_looked_up_results_are_torch_s_rounded_at_every_setting():
    e = swept(
        sweepable, x=(0.0, 3.0, 0.5), bandwidth=[0.1, 1.0], kernel=["plain", "flipped"], flag=False
    )
    values = [[*c.values] for c in e._options]
    seen = 0
    for indices, found in every_setting(e.payload):
        setting = [options[i] for options, i in zip(values, indices, strict=True)]
        for (kind, props, digits), view in zip(found, sweepable(*setting), strict=True):
            assert kind == view.kind
            for name, numbers in view.numbers.items():
                if isinstance(numbers, torch.Tensor):
                    for integer, number in zip(
                        *map(leaves, (props[name], numbers.tolist())), strict=True
                    ):
                        assert text(integer, digits[name]) == f"{number:z.{digits[name]}f}"
                        seen += 1
            assert {name: props[name] for name in view.facts} == view.facts
    assert seen > 4000


def leaves(value):
    return (
        [leaf for entry in value for leaf in leaves(entry)] if isinstance(value, list) else [value]
    )


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.differing_executors])
@given(st.data())
def test_any_table_of_results_survives_storing(data):
    sizes = data.draw(st.lists(st.integers(1, 3), min_size=1, max_size=3))
    depends = data.draw(st.lists(st.booleans(), min_size=len(sizes), max_size=len(sizes)))
    numbers = st.floats(-1e4, 1e4)
    table = {
        key: data.draw(st.lists(numbers, min_size=1, max_size=3))
        for key in itertools.product(
            *(range(n) if d else [0] for n, d in zip(sizes, depends, strict=True))
        )
    }

    def f(**arguments):
        key = tuple(v if d else 0 for v, d in zip(arguments.values(), depends, strict=True))
        return Bars(table[key], signed=True, digits=3)

    e = swept(f, **{f"c{i}": list(range(n)) for i, n in enumerate(sizes)})
    prop = attribute(e, "values")
    assert all(depends[axis] for axis in prop["axes"])
    for indices, [(_, props, _)] in every_setting(e.payload):
        expected = table[tuple(i if d else 0 for i, d in zip(indices, depends, strict=True))]
        assert [text(v, 3) for v in props["values"]] == [f"{v:z.3f}" for v in expected]


def test_what_does_not_change_is_stored_once():
    def f(x, y):
        return Heatmap([[x / 4]], keys=["k"], title=str(y))

    e = swept(f, x=(0, 3), y=["a", "b", "c"])
    assert attribute(e, "values") == {
        "axes": [0],
        "items": [[[0]], [[25]], [[50]], [[75]]],
        "digits": 2,
    }
    assert attribute(e, "title") == {"axes": [1], "items": ["a", "b", "c"]}
    assert attribute(e, "keys") == {"axes": [], "items": [["k"]]}


def test_nothing_but_numbers_of_json_is_stored():
    with pytest.raises(ValueError, match="not JSON compliant"):
        explorer._json([math.nan])


def test_an_attribute_of_two_controls_is_stored_for_their_combinations():
    e = swept(lambda x, y, z: Readout("r", str(x * z)), x=(1, 2), y=(0, 4), z=(3, 5))
    assert attribute(e, "text") == {"axes": [0, 2], "items": ["3", "4", "5", "6", "8", "10"]}


# --- sizes ------------------------------------------------------------------------------------------------


def test_too_many_settings_are_refused_before_anything_runs():
    calls = []
    message = r"at most 20,000 settings, got 20,200 \(x: 101 × y: 200\); reduce 'y', which has 200 options"
    with pytest.raises(ValueError, match=message):
        swept(lambda x, y: calls.append(x), x=(0, 100), y=list(range(200)))
    with pytest.raises(ValueError, match=r"got 1,000,001 \(x: 1,000,001\); reduce 'x'"):
        swept(lambda x: calls.append(x), x=(0, 1_000_000))
    assert calls == []


def test_too_heavy_results_are_refused_with_what_to_reduce():
    def noise(x, y):
        return Readout("light", x), Heatmap(torch.rand(60, 60), title="heavy")

    message = r"at most 150 kB compressed, got \d{3} kB, of which the values of its heatmap take \d{3} kB .*x: 40.*reduce 'x'"
    with pytest.raises(ValueError, match=message):
        swept(noise, x=(1, 40), y=[1, 2])


def test_a_single_view_that_is_too_heavy_is_named():
    big = torch.rand(500, 500)
    with pytest.raises(ValueError, match=r"reduce the size of the view"):
        swept(lambda x: Heatmap(big, digits=4), x=(0, 1))


# --- the page ---------------------------------------------------------------------------------------------


def test_the_element_of_a_page():
    def f(x):
        return Bars([0.25, 0.75], labels=["<b>", '"&"'], title="</script>"), Readout("r", x)

    page = swept(f, x=(0, 3)).html()
    assert page.startswith('<div class="attn-explorer" data-name="f">')
    order = [
        page.index(part)
        for part in (
            "attn-explorer-controls",
            "attn-explorer-view",
            "<img",
            "attn-explorer-text",
            "attn-explorer-data",
        )
    ]
    assert order == sorted(order)
    data = re.search(
        r'<script type="application/json" class="attn-explorer-data">(.*?)</script>', page, re.S
    )[1]
    assert json.loads(data) == f.explorer.payload
    alt = re.search(r'alt="([^"]*)"', page)[1]
    assert "&lt;b&gt; 0.25" in alt and "0.75" in alt
    assert page.count("<script") == 1 and page.count("src=") == 1


def test_the_picture_of_a_page_is_small():
    e = swept(
        lambda x: (
            Heatmap(
                torch.softmax(torch.randn(8, 8), -1),
                queries=list("abcdefgh"),
                keys=list("abcdefgh"),
            ),
            Bars(torch.ones(8) / 8),
        ),
        x=(0, 1),
    )
    source, width, height = e.picture()
    assert (
        source.startswith(("data:image/svg+xml,", "data:image/png;base64,")) and '"' not in source
    )
    assert explorer.compressed(source) < 20_000
    assert 200 < width < 1000 and 100 < height < 1000


def test_a_heavy_drawing_becomes_a_bitmap():
    x = torch.linspace(0, 9, 4000)
    e = swept(lambda a: Curve(x, x, points=(x, torch.rand(4000)), digits=0), a=[1])
    source, _, _ = e.picture()
    assert source.startswith("data:image/png;base64,")


def test_the_script_carries_palette_and_words():
    script = explorer.script()
    assert script.startswith("(() => {") and script.rstrip().endswith("})();")
    palette = re.search(r"^const PALETTE = (.*);$", script, re.M)[1]
    assert json.loads(palette) == explorer.plots.PALETTE
    words = json.loads(re.search(r"^const WORDS = (.*);$", script, re.M)[1])
    assert words == explorer.views.WORDS
    assert not re.search(r"^\s*//", script, re.M)
    assert (
        explorer.Explorer._esm
        == script + "export default { render: window.attnExplorers.render };\n"
    )


# --- the widget -------------------------------------------------------------------------------------------


@pytest.fixture
def widget():
    def f(x, kernel, flag):
        return Readout("r", f"{x} {kernel} {flag}")

    return swept(f, x=(0.0, 1.0, 0.25), kernel={"g": 1, "b": 2}, flag=False)


def test_settings_follow_the_controls(widget):
    assert widget.settings == {"x": 0.5, "kernel": "g", "flag": False}
    widget.controls["x"].value = 0.75
    widget.controls["kernel"].value = 2
    widget.controls["flag"].value = True
    assert widget.settings == {"x": 0.75, "kernel": "b", "flag": True}


def test_controls_follow_the_settings_all_at_once(widget):
    seen = []
    widget.observe(lambda change: seen.append(change["new"]), "settings")
    widget.settings = {"x": 1.0, "kernel": 2, "flag": True}
    assert [w.value for w in widget.controls.values()] == [1.0, 2, True]
    assert widget.settings == {"x": 1.0, "kernel": "b", "flag": True}
    assert seen == [widget.settings]  # told once
    widget.settings = {"kernel": np.int64(1), "flag": np.bool_(False)}
    assert widget.settings == {"x": 1.0, "kernel": "g", "flag": False}
    seen.clear()
    widget.settings = {"x": 1.0, "kernel": torch.tensor(2), "flag": True}
    widget.settings = {"x": 0.3}  # the rest stays; between two steps: the nearest
    assert widget.settings == {"x": 0.25, "kernel": "b", "flag": True}


def test_a_value_off_the_grid_is_shown_at_the_nearest_setting(widget):
    widget.controls["x"].value = 0.6
    assert widget.settings["x"] == 0.5


@pytest.mark.parametrize(
    "wrong, message",
    [
        ({"y": 1}, r"settings must name controls \(x, kernel, flag\), got 'y'"),
        ({"kernel": "c"}, r"kernel must be one of \['g', 'b'\], got 'c'"),
        ({"flag": 1}, r"flag must be one of \[False, True\], got 1"),
        ({"x": float("nan")}, r"x must be a finite number, got nan"),
    ],
)
def test_unknown_settings_are_refused_and_nothing_moves(widget, wrong, message):
    before = widget.settings
    with pytest.raises(ValueError, match=message):
        widget.settings = wrong
    assert widget.settings == before


def test_the_widget_s_state_holds_payload_and_controls(widget):
    state = widget.get_state()
    assert state["payload"] == widget.payload
    assert list(state["controls"]) == ["x", "kernel", "flag"]
    assert all(reference.startswith("IPY_MODEL_") for reference in state["controls"].values())
    assert "settings" not in state  # nobody asks the kernel to draw
    assert ipywidgets.VBox([widget]).children == (widget,)


def test_closing_leaves_the_controls_of_others_alone():
    mine = ipywidgets.IntSlider(max=2)
    e = swept(lambda x, y: Readout("r", x), x=mine, y=(0, 1))
    theirs = e.controls["y"]
    e.close()
    assert theirs.comm is None and mine.comm is not None


def test_a_failed_sweep_leaves_no_widget_behind():
    before = len(ipywidgets.widgets.widget._instances)
    with pytest.raises(ValueError):
        swept(lambda x: 1 / 0, x=(0, 1))
    assert len(ipywidgets.widgets.widget._instances) == before


# --- where it is shown ------------------------------------------------------------------------------------


class Kernel:
    """A stand-in for the shell of a live kernel, in which cell "one" runs."""

    class kernel:
        @staticmethod
        def get_parent(channel):
            return {"metadata": {"cellId": "one"}}


@pytest.fixture
def displayed(monkeypatch):
    found = []
    monkeypatch.setattr(explorer, "display", lambda *things, **options: found.append(things[0]))
    monkeypatch.delenv("ATTN_STATIC", raising=False)
    return found


def test_a_page_gets_html_only(displayed, monkeypatch):
    monkeypatch.setenv("ATTN_STATIC", "1")
    monkeypatch.setattr(explorer, "get_ipython", Kernel)
    e = swept(lambda x: Readout("r", x), x=(0, 1))
    assert displayed == [{"text/html": e.html()}]


def test_a_live_kernel_gets_the_widget(displayed, monkeypatch):
    monkeypatch.setattr(explorer, "get_ipython", Kernel)
    e = swept(lambda x: Readout("r", x), x=(0, 1))
    assert displayed == [e]


def test_running_a_cell_again_closes_what_it_made_before(displayed, monkeypatch):
    monkeypatch.setattr(explorer, "get_ipython", Kernel)

    def f(x):
        return Readout("r", x)

    first = swept(f, x=(0, 1))
    count = len(ipywidgets.widgets.widget._instances)
    for _ in range(5):
        again = swept(f, x=(0, 1))
    assert first.comm is None and again.comm is not None
    assert len(ipywidgets.widgets.widget._instances) == count


def test_without_a_notebook_nothing_is_shown(displayed):
    assert swept(lambda x: Readout("r", x), x=(0, 1)).settings == {"x": 0}
    assert displayed == []


class Shown:
    """A stand-in for what display(..., display_id=True) returns."""

    def __init__(self):
        self.bars = []

    def update(self, bar):
        self.bars.append(bar.data)


@pytest.fixture
def clock(monkeypatch):
    """A clock that each look moves by 0.3 s."""
    ticks = itertools.count(0, 0.3)
    monkeypatch.setattr(explorer.time, "monotonic", lambda: next(ticks))


def test_a_long_sweep_shows_its_progress_and_takes_it_away(monkeypatch, clock):
    monkeypatch.delenv("ATTN_STATIC", raising=False)
    monkeypatch.setattr(explorer, "get_ipython", Kernel)
    shown = Shown()
    monkeypatch.setattr(
        explorer, "display", lambda *_, display_id=None: shown if display_id else None
    )
    swept(lambda x: Readout("r", x), x=(0, 9))
    assert "computing 3 of 10" in shown.bars[0] and '<progress max="10" value="3">' in shown.bars[0]
    assert len(shown.bars) > 2 and shown.bars[-1] == ""


def test_no_progress_bar_on_a_page(monkeypatch, clock):
    monkeypatch.setenv("ATTN_STATIC", "1")
    monkeypatch.setattr(explorer, "get_ipython", Kernel)
    monkeypatch.setattr(explorer, "display", lambda *_, **__: pytest.fail("shown"))
    assert list(progress(range(10))) == list(range(10))


@pytest.mark.messages
def test_progress_refuses_at_once_what_it_can_show_no_bar_for():
    with pytest.raises(TypeError, match=r"steps must have a length.*, got generator$"):
        progress(i for i in range(3))
    with pytest.raises(TypeError, match=r"description must be a string, got int 3"):
        progress(range(3), 3)


CELL = """
import torch
from attn_helpers import Bars, explore, plot_heatmap
@explore(x=(0, 3), flag=False)
def bars(x, flag):
    return Bars([x / 3])
plot_heatmap(torch.eye(3))
"""


@pytest.mark.parametrize("static", [True, False])
def test_a_real_kernel(static, monkeypatch):
    """Static: HTML and an SVG, and no widget state, for which a page would load scripts from other hosts."""
    monkeypatch.setenv("ATTN_STATIC", "1" if static else "0")
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(CELL)])
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    kinds = [set(output.data) - {"text/plain"} for output in notebook.cells[0].outputs]
    first = "text/html" if static else "application/vnd.jupyter.widget-view+json"
    assert kinds == [{first}, {"image/svg+xml"}]  # and the axes, last in the cell, print nothing
    assert ("widgets" in notebook.metadata) is not static
