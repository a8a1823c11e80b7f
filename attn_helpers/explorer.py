"""`explore`: from a plain torch function to a slider that works where it is read.

The way of a result: the controls are read by ipywidgets (`read_controls`), the function runs once for every
combination of their options (`sweep`), its views are rounded and what does not change is stored once (`encode`),
and one drawing script looks the results up, on a page (`Explorer.html`) and in a live kernel (`Explorer`, an
anywidget) alike. No mathematics happens after the sweep.
"""

import base64
import gzip
import html
import inspect
import itertools
import json
import math
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from decimal import Decimal
from io import BytesIO
from pathlib import Path
from urllib.parse import quote

import anywidget
import comm
import ipywidgets
import numpy as np
import torch
import traitlets
from IPython import get_ipython
from IPython.display import HTML, display
from PIL import Image

from attn_helpers import _validate, plots, views

MOST_SETTINGS = 20_000
MOST_BYTES = 150_000
MOST_PICTURE = 12_000  # bytes of a fallback drawing, above which a bitmap may be smaller
Selection = ipywidgets.widgets.widget_selection._Selection  # lists, radio and toggle buttons
STATIC_FOLDER = Path(__file__).parent / "static"


def is_static() -> bool:
    """Whether outputs are made for a page that has no kernel: the build sets ATTN_STATIC=1."""
    return os.environ.get("ATTN_STATIC") == "1"


if is_static():
    # Any widget that opens a channel, even one made to read the grammar, leaves widget state in the notebook; the
    # page would then load require.js and a widget manager from other hosts.
    comm.create_comm = comm._create_comm


def script() -> str:
    """The drawing script with the palette and the words it needs: a classic script, for pages and widgets."""
    words = (STATIC_FOLDER / "words.json").read_text("utf-8")
    data = {"PALETTE": plots.PALETTE, "WORDS": json.loads(words)}
    constants = [f"const {name} = {_json(value)};" for name, value in data.items()]
    drawing = (STATIC_FOLDER / "explorer.js").read_text("utf-8")
    # comments stand on lines of their own, for those who read the source; the page needs neither
    drawing = re.sub(r"^[ \t]*(//.*)?\n|^[ \t]+", "", drawing, flags=re.MULTILINE)
    return "\n".join(["(() => {", '"use strict";', *constants, drawing, "})();", ""])


def style() -> str:
    """The style sheet of explorers, for pages and widgets."""
    return (STATIC_FOLDER / "explorer.css").read_text("utf-8")


def _json(value) -> str:
    """Compact JSON that may stand inside a script element."""
    told = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return told.replace("<", "\\u003c")


# --- controls -------------------------------------------------------------------------------------------------


@dataclass
class Control:
    """One argument of the function that the reader sets.

    Attributes:
        name: the argument.
        widget: ipywidgets' own control.
        kind: slider, select, radio, checkbox or toggle (a row of buttons).
        values: what the function is called with, one per option.
        names: the options as settings show them: the value, or the name of a named option.
        texts: the options as the reader sees them.
        made_here: whether the widget was made from an abbreviation, not handed to us.
    """

    name: str
    widget: ipywidgets.Widget
    kind: str
    values: list
    names: list
    texts: list[str]
    made_here: bool = False

    @property
    def index(self) -> int:
        """The option that the widget stands at; a slider moved off its grid from Python is at the nearest."""
        if isinstance(self.widget, Selection):
            return self.widget.index
        return self.find(self.widget.value)

    def find(self, value) -> int:
        """The option that a value or an option's name means."""
        value = _plain(value)
        if self.kind == "slider" and not isinstance(value, str):
            number = _validate.number(self.name, value)
            if all(isinstance(option, (int, float)) for option in self.values):
                return min(range(len(self.values)), key=lambda i: abs(self.values[i] - number))
        for i, (option, name) in enumerate(zip(self.values, self.names, strict=True)):
            if value is option or (_is_plain(value) and _json(value) == _json(name)):
                return i
            if isinstance(name, float) and isinstance(value, int) and value == name:
                return i
        raise ValueError(f"{self.name} must be one of {self.names}, got {value!r}")

    def go(self, index: int) -> None:
        """Move the widget to an option."""
        if isinstance(self.widget, Selection):
            self.widget.index = index
        else:
            self.widget.value = self.values[index]


def _plain(value):
    """A number of numpy or torch as Python's own; anything else as it is."""
    numeric = isinstance(value, (np.generic, np.ndarray, torch.Tensor)) and value.ndim == 0
    return value.item() if numeric else value


def _is_plain(value) -> bool:
    """Whether a setting can be written down as it is, in a link for instance."""
    return type(value) in (str, int, bool) or (type(value) is float and math.isfinite(value))


def _source(name, value) -> str:
    """How an option is written in a call."""
    if value is None or type(value) in (str, int, float, bool):
        return repr(value)
    return getattr(value, "__name__", str(name))


def read_controls(function: Callable, abbreviations: dict) -> tuple[list[Control], dict]:
    """The controls of a function, and its fixed arguments, by the grammar of `ipywidgets.interact`."""
    name, controls, fixed = function.__name__, [], {}
    read = ipywidgets.interactive.widgets_from_abbreviations
    for argument, abbreviation, default in _abbreviations(function, abbreviations):
        abbreviation = _plain(abbreviation)
        if isinstance(abbreviation, (list, np.ndarray, torch.Tensor)):
            abbreviation = [_plain(option) for option in abbreviation]
        try:
            [widget] = read(ipywidgets.interactive, [(argument, abbreviation, default)])
        except Exception as error:  # torch and numpy raise their own when their values are compared
            raise _as_argument_error(error)(
                f"{name}: the control {argument!r} must be a tuple (min, max, step), a list, a dict, "
                f"a bool or an ipywidgets control, got {abbreviation!r}: {error}"
            ) from error
        if isinstance(widget, ipywidgets.fixed):
            fixed[argument] = widget.value
            continue
        control = _control(name, argument, widget)
        control.made_here = widget is not abbreviation
        control.go(control.index)  # a value between two steps: to the nearest
        if not widget.style.description_width:
            widget.style.description_width = "initial"  # the whole name is readable
        controls.append(control)
    if not controls:
        raise ValueError(
            f"{name} needs at least one control, got none: @explore(x=(0.0, 5.0, 0.1))"
        )
    return controls, fixed


def _abbreviations(function: Callable, given: dict) -> list[tuple]:
    """Argument, abbreviation and default of each control, in the order of the function's arguments."""
    name, empty = function.__name__, inspect.Parameter.empty
    parameters = inspect.signature(function).parameters
    named = {
        argument: parameter.default
        for argument, parameter in parameters.items()
        if parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL)
    }
    takes_any = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())
    for argument in given:
        if argument not in named and not takes_any:
            raise TypeError(
                f"{name} has no argument {argument!r}; "
                f"expected controls for {', '.join(named) or 'none'}"
            )
    for argument, default in named.items():
        if argument not in given and default is empty:
            raise TypeError(
                f"{name} needs a control for its argument {argument!r}: explore({argument}=...), "
                f"got controls for {', '.join(given) or 'none'}"
            )
    arguments = [*named, *(argument for argument in given if argument not in named)]
    defaults = [named.get(argument, empty) for argument in arguments]
    return [
        (a, given.get(a, default), default) for a, default in zip(arguments, defaults, strict=True)
    ]


def _as_argument_error(error: Exception) -> type[Exception]:
    return TypeError if isinstance(error, TypeError) else ValueError


def _control(function: str, name: str, widget) -> Control:
    w = ipywidgets
    if isinstance(widget, (w.Checkbox, w.ToggleButton)):
        return Control(name, widget, "checkbox", [False, True], [False, True], ["off", "on"])
    if isinstance(widget, Selection):
        options = widget._options_full
        kind = "slider" if isinstance(widget, w.SelectionSlider) else "select"
        kind = {w.RadioButtons: "radio", w.ToggleButtons: "toggle"}.get(type(widget), kind)
        texts = [label for label, _ in options]
        values = [_plain(value) for _, value in options]
        labelled = zip(texts, values, strict=True)
        names = [v if _is_plain(v) and label == str(v) else label for label, v in labelled]
        if len(options) == 0:
            raise ValueError(
                f"{function}: the control {name!r} must have at least one option, got none"
            )
        if len(set(texts)) < len(texts):
            raise ValueError(
                f"{function}: the options of {name!r} must have different names, got {texts}"
            )
        if widget.index is None:
            widget.index = 0
        return Control(name, widget, kind, values, names, texts)
    if isinstance(widget, (w.IntSlider, w.FloatSlider, w.BoundedIntText, w.BoundedFloatText)):
        values = _grid(function, name, widget)
    elif isinstance(widget, w.FloatLogSlider):
        exponents = _grid(function, name, widget)
        values = [float(f"{widget.base**exponent:.12g}") for exponent in exponents]
    else:
        raise TypeError(f"{function}: the control {name!r} {_instead(widget)}")
    form = _number_format(values)
    floats = isinstance(widget, (w.FloatSlider, w.FloatLogSlider))
    if floats and widget.readout_format == type(widget).readout_format.default_value:
        widget.readout_format = form  # an author's own stays
    # JavaScript writes 1e-7 where Python writes 1e-07
    texts = [re.sub(r"(e[+-])0", r"\1", format(value, form)) for value in values]
    return Control(name, widget, "slider", values, values, texts)


def _grid(function: str, name: str, widget) -> list:
    """min + k·step in decimal arithmetic, so that 3 steps of 0.1 are 0.3; 4 steps of π/4 are π, though none is exact."""
    low, high, step = (Decimal(str(v)) for v in (widget.min, widget.max, widget.step or 0))
    if not all(v.is_finite() for v in (low, high, step)):
        raise ValueError(
            f"{function}: the control {name!r} must have finite numbers for its ends and its step, "
            f"got ({widget.min}, {widget.max}, {widget.step})"
        )
    if step <= 0:
        raise ValueError(
            f"{function}: the step of the control {name!r} must be positive, got {widget.step}"
        )
    steps, near = (high - low) / step, Decimal("1e-4")
    count = int(steps + near) + 1
    if count > MOST_SETTINGS:
        raise _too_many(function, count, f"{name}: {count:,}", name, count)
    number = int if isinstance(widget.value, int) else float
    values = [number(low + k * step) for k in range(count)]
    if abs(steps - (count - 1)) < near:
        values[-1] = widget.max
    return values


def _number_format(values: list) -> str:
    """All with as many decimals as the longest needs; where these are many, with the fewest digits that tell them apart."""
    if all(isinstance(v, int) for v in values):
        return "d"
    decimals = max(max(-Decimal(str(v)).as_tuple().exponent, 0) for v in values)
    fixed = [decimals] if decimals <= 6 else range(7)
    scientific = [f".{n}e" for n in range(17)]  # for very large or small numbers
    formats = [f".{n}f" for n in fixed if max(map(abs, values)) < 1e12] + scientific
    return next((f for f in formats if len({format(v, f) for v in values}) == len(values)), ".16e")


def _instead(widget) -> str:
    """Why a control cannot be swept, and what to use."""
    kind, w = type(widget).__name__, ipywidgets
    if isinstance(widget, (w.Text, w.Textarea, w.Combobox)):
        return f"must have a finite list of settings, got free text ({kind}); use a list of strings"
    if isinstance(widget, (w.IntText, w.FloatText)):
        return (
            f"must have a finite list of settings, got a free number ({kind}); use (min, max, step)"
        )
    if isinstance(widget, w.widgets.widget_selection._MultipleSelection):
        return f"must have one value at a time, got multiple selection ({kind}); use a checkbox per option"
    if "Range" in kind:
        return f"must have one value at a time, got a range ({kind}); use two sliders, for its ends"
    return (
        f"must be a slider, a list, a dict or a bool, got {kind}; use a list of the values to show"
    )


# --- the sweep ------------------------------------------------------------------------------------------------


def _too_many(function: str, count: int, shape: str, control: str, options: int) -> ValueError:
    return ValueError(
        f"{function} must have at most {MOST_SETTINGS:,} settings, got {count:,} ({shape}); "
        f"reduce {control!r}, which has {options:,} options"
    )


def sweep(function: Callable, controls: list[Control], fixed: dict) -> list[tuple]:
    """The views of every combination of options, the last control varying fastest. Each runs once."""
    count = math.prod(len(control.values) for control in controls)
    if count > MOST_SETTINGS:
        shape = " × ".join(f"{control.name}: {len(control.values):,}" for control in controls)
        longest = max(controls, key=lambda control: len(control.values))
        raise _too_many(function.__name__, count, shape, longest.name, len(longest.values))
    threads, grad = torch.get_num_threads(), torch.is_grad_enabled()
    # many tiny calls: several threads would spend their time waiting for one another
    torch.set_num_threads(1)
    names = [control.name for control in controls]
    combinations = list(itertools.product(*(control.values for control in controls)))
    results: list[tuple] = []
    try:
        with closing(progress(combinations)) as steps:
            for options in steps:
                arguments = dict(zip(names, options, strict=True))
                results.append(_run(function, arguments, fixed))
                _same_kinds(function.__name__, arguments, results[-1], results[0])
    finally:
        torch.set_num_threads(threads)
        torch.set_grad_enabled(grad)
    return results


def _call(name: str, arguments: dict) -> str:
    return f"{name}({', '.join(f'{key}={value!r}' for key, value in arguments.items())})"


def _run(function: Callable, arguments: dict, fixed: dict) -> tuple:
    try:
        result = function(**arguments, **fixed)
    except Exception as error:
        raise _as_argument_error(error)(
            f"{_call(function.__name__, arguments)} raised {type(error).__name__}: {error}"
        ) from error
    shown = result if isinstance(result, tuple) else (result,)
    for view in shown:
        if not isinstance(view, views.View) or isinstance(view, views.Histogram):
            hint = (
                "; a Histogram is for picture(), use a Curve"
                if isinstance(view, views.Histogram)
                else ""
            )
            raise TypeError(
                f"{_call(function.__name__, arguments)} must return a view (Heatmap, Bars, Curve, Points, Lines, "
                f"Readout, Arithmetic) or a tuple of views, got {_validate.describe(view)}{hint}"
            )
    if not shown:
        raise ValueError(
            f"{_call(function.__name__, arguments)} must return at least one view, got ()"
        )
    return shown


def _same_kinds(name: str, arguments: dict, shown: tuple, first: tuple) -> None:
    kinds = [view.kind for view in shown]
    expected = [view.kind for view in first]
    if kinds != expected:
        raise ValueError(
            f"{name} must return the same views for every setting: expected {', '.join(expected)}, "
            f"got {', '.join(kinds)} from {_call(name, arguments)}"
        )
    for view, other in zip(shown, first, strict=True):
        if view.digits != other.digits:
            raise ValueError(
                f"{name}: the digits of a view must be the same for every setting: expected {other.digits}, "
                f"got {view.digits} from {_call(name, arguments)}"
            )


def progress(steps: Sequence, description: str = "computing") -> Iterator:
    """Run through `steps` with a bar under the cell, as ``for step in progress(range(400), "training")``.

    The bar shows in a live kernel once a second has passed, and goes away at the end. A page keeps none.

    Args:
        steps: anything with a length, which the bar needs: a range, a list, a loader of batches.
        description: before the count of steps.

    Raises:
        TypeError: the argument, what was expected and what came.
    """
    try:
        count = len(steps)
    except TypeError:
        raise TypeError(
            f"steps must have a length, as a range or a list has, got {_validate.describe(steps)}"
        ) from None
    if not isinstance(description, str):
        raise TypeError(f"description must be a string, got {_validate.describe(description)}")
    return _progress(steps, count, description)


def _progress(steps: Iterable, count: int, description: str) -> Iterator:
    due, shown = time.monotonic() + 1.0 if is_live() else math.inf, None
    try:
        for done, step in enumerate(steps):
            if time.monotonic() > due:
                bar = HTML(
                    f"{html.escape(description)} {done:,} of {count:,} "
                    f'<progress max="{count}" value="{done}"></progress>'
                )
                shown = shown or display(HTML(""), display_id=True)
                shown.update(bar)
                due = time.monotonic() + 0.1
            yield step
    finally:
        if shown is not None:
            shown.update(HTML(""))


def is_live() -> bool:
    """Whether the cell's output goes to a kernel's client that can show widgets."""
    return not is_static() and hasattr(get_ipython(), "kernel")


# --- the payload ----------------------------------------------------------------------------------------------


def encode(name: str, controls: list[Control], fixed: dict, results: list[tuple]) -> dict:
    """Everything that the drawing script needs, rounded; what does not change is stored once."""
    described = [
        {
            "name": control.name,
            "label": control.widget.description,
            "kind": control.kind,
            "values": control.names,
            "texts": control.texts,
            "index": control.index,
        }
        for control in controls
    ]
    for told, control in zip(described, controls, strict=True):
        sources = [_source(*option) for option in zip(control.names, control.values, strict=True)]
        if sources != [_source(name, name) for name in control.names]:
            told["python"] = sources  # named options: the names are for the reader
    shape = [len(control.values) for control in controls]
    shown = [_encode_view(name, controls, variants) for variants in zip(*results, strict=True)]
    payload = {"name": name, "controls": described, "views": shown, "settings": math.prod(shape)}
    if fixed:  # a call needs them, too
        payload["fixed"] = [f"{key}={_source(key, value)}" for key, value in fixed.items()]
    _check_selects(name, controls, results)
    _check_size(payload)
    return payload


def _encode_view(name: str, controls: list[Control], variants: Sequence[views.View]) -> dict:
    """One view over all settings: per attribute the controls that it depends on, and its items."""
    digits, scales = type(variants[0]).common(variants)
    encoded, shape = [], [len(control.values) for control in controls]
    for i, view in enumerate(variants):
        try:
            encoded.append(view.encode(digits))
        except ValueError as error:
            at = zip(controls, np.unravel_index(i, shape), strict=True)
            call = _call(name, {control.name: control.values[option] for control, option in at})
            raise ValueError(f"{call}: its {view.kind} cannot be shown: {error}") from error
    props = {}
    for attribute in encoded[0]:
        axes, items = _compress(shape, [one[attribute] for one in encoded])
        props[attribute] = {"axes": axes, "items": items}
        if attribute in digits:
            props[attribute]["digits"] = digits[attribute]
    props |= {scale: {"axes": [], "items": [value]} for scale, value in scales.items()}
    return {"kind": variants[0].kind, "props": props}


def _compress(shape: list[int], items: list) -> tuple[list[int], list]:
    """Drop every axis along which the items do not change."""
    known: dict[str, int] = {}
    numbers = [known.setdefault(json.dumps(item), i) for i, item in enumerate(items)]
    grid, axes = np.array(numbers).reshape(shape), list(range(len(shape)))
    for axis in reversed(range(len(shape))):
        first = grid.take([0], axis)
        if (grid == first).all():
            grid = first.squeeze(axis)
            axes.remove(axis)
    return axes, [items[i] for i in grid.flatten().tolist()]


def look_up(payload: dict, indices: list[int]) -> list[tuple[str, dict, dict]]:
    """Kind, attributes and digits of each view at one setting, as the drawing script looks them up."""
    sizes = [len(control["values"]) for control in payload["controls"]]
    found = []
    for view in payload["views"]:
        props, digits = {}, {}
        for name, prop in view["props"].items():
            position = 0
            for axis in prop["axes"]:
                position = position * sizes[axis] + indices[axis]
            props[name] = prop["items"][position]
            if "digits" in prop:
                digits[name] = prop["digits"]
        found.append((view["kind"], props, digits))
    return found


def compressed(value) -> int:
    """Bytes of the JSON after gzip, as a page is sent."""
    return len(gzip.compress(_json(value).encode(), 9, mtime=0))


def _check_selects(name: str, controls: list[Control], results: list[tuple]) -> None:
    """Choosing a cell sets two controls: they exist, and have an option for each row or column."""
    options = {control.name: len(control.values) for control in controls}
    for view in itertools.chain.from_iterable(results):
        for i, chosen in enumerate(view.facts.get("select") or []):
            if chosen not in options:
                raise ValueError(
                    f"{name}: select must name controls ({', '.join(options)}), got {chosen!r}"
                )
            count = view.numbers["values"].shape[i]
            if count > options[chosen]:
                raise ValueError(
                    f"{name}: select names {chosen!r}, which must have an option for each of the "
                    f"{count} {'columns' if i else 'rows'} of the heatmap, got {options[chosen]}"
                )


def _check_size(payload: dict) -> None:
    size = compressed(payload)
    if size <= MOST_BYTES:
        return
    parts = [
        (compressed(prop), view["kind"], name, prop["axes"])
        for view in payload["views"]
        for name, prop in view["props"].items()
    ]
    part, kind, attribute, axes = max(parts, key=lambda entry: entry[0])
    controls = payload["controls"]
    message = (
        f"{payload['name']} must be at most {MOST_BYTES / 1000:.0f} kB compressed, got {size / 1000:.0f} kB, "
        f"of which the {attribute} of its {kind} take {part / 1000:.0f} kB"
    )
    if axes:
        counts = [f"{controls[a]['name']}: {len(controls[a]['values'])}" for a in axes]
        longest = max((controls[a] for a in axes), key=lambda c: len(c["values"]))
        message += f" ({' × '.join(counts)}); reduce {longest['name']!r} or the size of the view"
    else:
        message += "; reduce the size of the view"
    raise ValueError(message)


# --- the explorer ---------------------------------------------------------------------------------------------


class Explorer(anywidget.AnyWidget):
    """The results of a sweep with their controls: a Jupyter widget in a live kernel, HTML on a page.

    Attributes:
        controls: ipywidgets' controls by argument; ``explorer.controls["x"].value`` reads or sets one.
        settings: dict of all settings, with the names of named options; can be set (in part), and observed.
        payload: what the drawing script reads.
    """

    _esm = script() + "export default { render: window.attnExplorers.render };\n"
    _css = style()

    payload = traitlets.Dict().tag(sync=True)
    controls = traitlets.Dict().tag(sync=True, **ipywidgets.widget_serialization)
    settings = traitlets.Dict()

    def __init__(self, payload: dict, controls: list[Control], results: list[tuple]):
        super().__init__(payload=payload, controls={c.name: c.widget for c in controls})
        self._options, self._leading = controls, False
        indices = self._indices()
        self._default = results[np.ravel_multi_index(indices, [len(c.values) for c in controls])]
        self._encoded = look_up(payload, indices)
        self._follow()
        for control in controls:
            control.widget.observe(self._follow, names="value")

    def _indices(self) -> list[int]:
        return [control.index for control in self._options]

    def _follow(self, change=None) -> None:
        """A control moved: the settings say so."""
        if not self._leading:
            indices = zip(self._options, self._indices(), strict=True)
            self.settings = {control.name: control.names[i] for control, i in indices}

    @traitlets.validate("settings")
    def _known_settings(self, proposal) -> dict:
        """Settings left out keep their value; unknown ones are refused."""
        current = dict(self.settings)
        for name, value in proposal["value"].items():
            if name not in self.controls:
                raise ValueError(
                    f"settings must name controls ({', '.join(self.controls)}), got {name!r}"
                )
            control = next(control for control in self._options if control.name == name)
            current[name] = control.names[control.find(value)]
        return current

    @traitlets.observe("settings")
    def _lead(self, change) -> None:
        """The settings were set: the controls move there, all before anyone looks at them again."""
        self._leading = True
        try:
            for control in self._options:
                index = control.find(change["new"][control.name])
                if index != control.index:
                    control.go(index)
        finally:
            self._leading = False

    def close(self) -> None:
        """Close the widget and the controls that it made; those that were handed to it stay."""
        if self.comm is not None:
            self.layout.close()
            _close(self._options)
        super().close()

    def describe(self) -> str:
        """The text alternative at the settings the explorer was made with."""
        told = [views.describe(*view) for view in self._encoded]
        return " ".join(sentence for sentence in told if sentence)

    def picture(self) -> tuple[str, int, int]:
        """A small picture at the same settings: a data URI, and its size in CSS pixels."""
        with plots.drawing():
            figure, _ = views.figure_of(self._default, [props for _, props, _ in self._encoded])
            width, height = (round(inches * 96) for inches in figure.get_size_inches())
            source = "data:image/svg+xml," + quote(plots.svg(figure), safe=" /:;=,.()-")
            if len(gzip.compress(source.encode())) > MOST_PICTURE:
                buffer = BytesIO()
                figure.savefig(buffer, format="png", dpi=110)
                image, buffer = Image.open(buffer).convert("RGB").quantize(24), BytesIO()
                image.save(buffer, format="png", optimize=True)
                bitmap = "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()
                source = min(source, bitmap, key=lambda uri: len(gzip.compress(uri.encode())))
        return source, width, height

    def html(self) -> str:
        """The explorer as one element of a page, with a picture of the default setting for those without scripts."""
        source, width, height = self.picture()
        told = html.escape(self.describe())
        return (
            f'<div class="attn-explorer" data-name="{html.escape(self.payload["name"])}">'
            '<div class="attn-explorer-controls"></div>'
            f'<div class="attn-explorer-view"><img class="attn-explorer-fallback" alt="{told}" '
            f'width="{width}" height="{height}" src="{source}"></div>'
            f'<p class="attn-explorer-text" role="status">{told}</p>'
            f'<script type="application/json" class="attn-explorer-data">{_json(self.payload)}</script>'
            "</div>"
        )


def _close(controls: list[Control]) -> None:
    for control in controls:
        if control.made_here:
            for part in (control.widget.layout, control.widget.style, control.widget):
                part.close()


_alive: dict[tuple, Explorer] = {}


def _replace(explorer: Explorer) -> None:
    """Close what an earlier run of the same cell has made: ipywidgets keeps every widget until it is closed."""
    if not is_live():
        return
    cell = get_ipython().kernel.get_parent("shell").get("metadata", {}).get("cellId")
    if cell is not None:
        key = (cell, explorer.payload["name"])
        if key in _alive:
            _alive[key].close()
        _alive[key] = explorer


def _build(function: Callable, abbreviations: dict) -> Explorer:
    controls, fixed = read_controls(function, abbreviations)
    try:
        results = sweep(function, controls, fixed)
        return Explorer(encode(function.__name__, controls, fixed, results), controls, results)
    except BaseException:
        _close(controls)
        raise


def explore(*misplaced, **controls):
    """Decorator: run a function for every setting of its controls, and show a reader what it returns at each.

    ::

        @explore(x=(0.0, 5.0, 0.1), kernel=list(KERNELS))
        def kernel_regression(x, kernel):
            ...  # plain torch
            return Heatmap(weights), Readout("prediction", y)

    The explorer is shown under the cell and hangs on the function, which stays the plain function, as
    ``kernel_regression.explorer``. Numbers are torch's, rounded as `attn_helpers.views` says.

    Args:
        controls: one per argument of the function, by the grammar of `ipywidgets.interact`: a tuple
            ``(min, max[, step])`` is a slider, a list or a dict a choice, a bool a checkbox; ipywidgets' own controls
            and ``ipywidgets.fixed(value)`` work too. Free text, free numbers, ranges and multiple selection cannot
            be swept.

    Returns:
        The decorator. The function returns a view or a tuple of views: the same kinds for every setting.

    Raises:
        TypeError, ValueError: a control that cannot be read or swept; a result that is no view; a setting for which
            the function raises (named); more than 20,000 settings (before anything runs); more than 150 kB of
            compressed results (with what to reduce).
    """
    if misplaced:
        raise TypeError(
            f"explore takes controls by name, as in @explore(x=(0.0, 5.0, 0.1)), "
            f"got {_validate.describe(misplaced[0])}"
        )

    def decorate(function: Callable) -> Callable:
        if not inspect.isfunction(function):  # others have no name, or nothing can hang on them
            raise TypeError(
                "explore decorates a function made by def or lambda, "
                f"got {_validate.describe(function)}"
            )
        function.explorer = _build(function, controls)
        _replace(function.explorer)
        if is_static():
            if get_ipython() is not None:
                display({"text/html": function.explorer.html()}, raw=True)
        elif is_live():
            display(function.explorer)
        return function

    return decorate
