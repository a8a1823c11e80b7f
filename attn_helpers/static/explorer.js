// The explorer's drawing code: one script for the static page and for the live widget.
//
// Python ran the author's function on every setting and rounded what it returned; this script looks the
// results up and draws them. It computes nothing about attention. `attn_helpers.explorer.script()` puts this
// text behind two constants, PALETTE (colours) and WORDS (words.json), inside a function of its own, so that
// running it twice declares nothing twice. Strings reach the page as text only, never as HTML.
//
// In order: numbers and words, looking results up, drawing tools, the views, one explorer, its extras
// ("More"), the link that restores settings, the static page, the live widget.

// --- numbers and words ----------------------------------------------------------------------------------------

// Numbers come as integers, value · 10^digits: what is shown is exactly what Python rounded.
const show = (number, digits) => (number === null ? "–" : (number / 10 ** digits).toFixed(digits));

const fill = (template, parts) => template.replace(/\{(\w+)\}/g, (_, name) => parts[name]);

const clamp = (value, low, high) => Math.min(Math.max(value, low), high);

const range = (count) => Array.from({ length: count }, (_, i) => i);

const labelOf = (labels, i) => (labels ? labels[i] : String(i));

// Position of the first largest entry, the first smallest with sign = -1; missing entries never win.
function extreme(numbers, sign = 1) {
  let best = 0;
  numbers.forEach((number, i) => {
    if (number !== null && (numbers[best] === null || sign * number > sign * numbers[best])) best = i;
  });
  return best;
}

// Width of a text in CSS pixels, in the font of the explorers' labels.
const ruler = document.createElement("canvas").getContext("2d");
const FONT = 12;
function widthOf(text) {
  return ruler.measureText(text).width;
}
const widest = (texts) => [...new Set(texts)].reduce((most, text) => Math.max(most, widthOf(text)), 0);

function shorten(text, width) {
  if (widthOf(text) <= width) return text;
  let end = text.length;
  while (end > 1 && widthOf(text.slice(0, end) + "…") > width) end--;
  return text.slice(0, end) + "…";
}

// --- looking results up ---------------------------------------------------------------------------------------

// Every attribute of a view is {axes, items}: the items of all settings of the controls it depends on, in
// row-major order over their options.
function itemAt(attribute, controls, indices) {
  let at = 0;
  for (const axis of attribute.axes) at = at * controls[axis].values.length + indices[axis];
  return attribute.items[at];
}

// All attributes of a view at one setting. `shown(name, number)` is that number as text, `real` as a float.
function lookUp(view, controls, indices) {
  const found = {};
  for (const name in view.props) found[name] = itemAt(view.props[name], controls, indices);
  found.digits = (name) => view.props[name].digits ?? 0;
  found.shown = (name, number) => show(number, found.digits(name));
  found.real = (name, number = found[name]) => number / 10 ** found.digits(name);
  found.heading = found.title || WORDS.views[view.kind];
  return found;
}

const everyItem = (view, name) => (view.props[name]?.items ?? []).filter((item) => item !== null);

// The widest text an attribute takes, for boxes that keep their size while the settings change.
function longest(texts) {
  const different = [...new Set(texts)].map(String);
  const widths = different.map(widthOf);
  return different[widths.indexOf(Math.max(...widths))] ?? "";
}

// --- drawing tools --------------------------------------------------------------------------------------------

function element(tag, className, parent, text) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  parent?.append(made);
  return made;
}

// A box whose height does not change with its text: an invisible twin holds the longest one (see the CSS).
function steady(box, candidates) {
  box.classList.add("attn-steady");
  box.dataset.longest = longest(candidates);
  const inner = element("span", "", box);
  return (text) => {
    if (inner.textContent !== text) inner.textContent = text;
  };
}

// Draw as if from scratch on every frame; elements of the last frame are reused and only what differs is set.
function pen(parent) {
  const slots = [];
  let next = 0;
  return {
    put(tag, attributes, text) {
      let slot = slots[next];
      if (slot?.tag !== tag) {
        const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
        if (slot) slot.element.replaceWith(made);
        else parent.append(made);
        slot = slots[next] = { tag, element: made, attributes: {}, text: undefined };
      }
      next++;
      for (const name in slot.attributes) {
        if (!(name in attributes)) {
          slot.element.removeAttribute(name);
          delete slot.attributes[name];
        }
      }
      for (const name in attributes) {
        const value = attributes[name];
        if (slot.attributes[name] !== value) {
          slot.element.setAttribute(name, value);
          slot.attributes[name] = value;
        }
      }
      if (text !== slot.text) slot.element.textContent = slot.text = text;
    },
    done() {
      while (slots.length > next) slots.pop().element.remove();
      next = 0;
    },
  };
}

// Whether white is easier to read than black on a colour: its relative luminance, as WCAG defines it.
function isDark(rgb) {
  const [red, green, blue] = rgb.map((c) => (c / 255 <= 0.04045 ? c / 3294.6 : ((c / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue < 0.179;
}

// A palette as 256 colours, evenly spaced between its stops, each [red, green, blue, dark].
function colourTable(stops) {
  const rgb = stops.map((hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16)));
  return range(256).map((i) => {
    const at = (i / 255) * (rgb.length - 1);
    const low = Math.min(Math.floor(at), rgb.length - 2);
    const colour = rgb[low].map((c, channel) => Math.round(c + (at - low) * (rgb[low + 1][channel] - c)));
    return [...colour, isDark(colour)];
  });
}
const COLOURS = { weights: colourTable(PALETTE.weights), signed: colourTable(PALETTE.signed) };
const MISSING = [221, 221, 221, false];

// Where a number stands on its colour scale, from 0 to 1.
function shade(number, scale, limit) {
  const t = clamp(number / limit, -1, 1);
  if (scale === "signed") return (t + 1) / 2;
  return scale === "sqrt" ? Math.sqrt(Math.max(t, 0)) : Math.max(t, 0);
}

function colourOf(number, scale, limit) {
  if (number === null) return MISSING;
  const table = scale === "signed" ? COLOURS.signed : COLOURS.weights;
  return table[Math.round(255 * shade(number, scale, limit))];
}

// One pixel per number; the browser enlarges them to crisp cells.
function paint(canvas, columns, rows, colour) {
  if (canvas.width !== columns) canvas.width = columns;
  if (canvas.height !== rows) canvas.height = rows;
  const context = canvas.getContext("2d", { willReadFrequently: true }); // few pixels: keep them in main memory
  const image = context.createImageData(columns, rows);
  const { data } = image;
  for (let i = 0; i < rows * columns; i++) {
    [data[4 * i], data[4 * i + 1], data[4 * i + 2]] = colour(i);
    data[4 * i + 3] = 255;
  }
  context.putImageData(image, 0, 0);
}

// As `power_of_ten` in Python.
function powerOfTen(factor, exponent) {
  if (Math.abs(exponent) < 5) return String(+`${factor}e${exponent}`);
  const power = "10" + [...String(exponent)].map((c) => (c === "-" ? "⁻" : "⁰¹²³⁴⁵⁶⁷⁸⁹"[c])).join("");
  return factor > 1 ? `${factor}·${power}` : power;
}

// Axis ticks at 1, 2 or 5 times a power of ten; on a logarithmic axis at powers of ten, or where fewer than two are in
// reach at their double and fivefold, too. In a still narrower range a logarithm has the ticks of other axes.
function ticks(low, high, count, log) {
  if (log) {
    const first = Math.floor(Math.log10(low));
    const powers = range(Math.ceil(Math.log10(high)) - first + 1);
    for (const factors of [[1], [1, 2, 5]]) {
      const found = powers
        .flatMap((i) => factors.map((factor) => [factor * 10 ** (first + i), powerOfTen(factor, first + i)]))
        .filter(([at]) => at >= low && at <= high);
      if (found.length > 1) return found;
    }
  }
  const raw = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].find((m) => m * power >= raw) * power;
  const decimals = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  const first = Math.ceil(low / step - 0.01);
  const last = Math.floor(high / step + 0.01);
  return range(last - first + 1).map((i) => {
    const at = (first + i) * step;
    return [at, (Math.abs(at) < step / 2 ? 0 : at).toFixed(decimals)];
  });
}

// From a value to a position in pixels.
function axis([low, high], from, to, log) {
  const f = log ? Math.log : (value) => value;
  return (value) => from + ((f(value) - f(low)) / (f(high) - f(low))) * (to - from);
}

// Grid, tick labels and axis labels of a plot; returns the two axes.
function drawFrame(put, v, box) {
  const x = axis(v.xlim, box.left, box.right, v.xlog);
  const y = axis(v.ylim, box.bottom, box.top, v.ylog);
  for (const [at, text] of ticks(...v.xlim, (box.right - box.left) / 55, v.xlog)) {
    put("line", { class: "attn-grid", x1: x(at), x2: x(at), y1: box.top, y2: box.bottom });
    put("text", { class: "attn-tick", x: x(at), y: box.bottom + 16, "text-anchor": "middle" }, text);
  }
  for (const [at, text] of ticks(...v.ylim, (box.bottom - box.top) / 45, v.ylog)) {
    put("line", { class: "attn-grid", x1: box.left, x2: box.right, y1: y(at), y2: y(at) });
    put("text", { class: "attn-tick", x: box.left - 6, y: y(at) + 4, "text-anchor": "end" }, text);
  }
  const middle = (box.left + box.right) / 2;
  if (v.xlabel) {
    put("text", { class: "attn-axis", x: middle, y: box.bottom + 34, "text-anchor": "middle" }, v.xlabel);
  }
  if (v.ylabel) put("text", { class: "attn-axis", x: 0, y: 11 }, v.ylabel);
  return { x, y };
}

function frameBox(view, width, height) {
  const limits = everyItem(view, "ylim").flatMap((lim) => ticks(...lim, 5, everyItem(view, "ylog")[0]));
  return {
    left: Math.max(24, widest(limits.map(([, text]) => text)) + 10),
    right: width - 8,
    top: everyItem(view, "ylabel").some(Boolean) ? 24 : 8,
    bottom: height - (everyItem(view, "xlabel").some(Boolean) ? 40 : 22),
    height,
  };
}

// --- the views ------------------------------------------------------------------------------------------------
//
// layout(view, width)   sizes that hold for every setting, so that nothing jumps; from `least` to `most` wide
// draw(v, box, tools)   draws one setting; returns the cells that pointer and arrow keys can visit
// say(v)                the sentence of the text alternative
// table(v)              the numbers shown, as {head, rows}

const largest = (view, name, size) => Math.max(1, ...everyItem(view, name).map(size));

const heatmap = {
  layout(view, width) {
    const rows = largest(view, "values", (m) => m.length);
    const columns = largest(view, "values", (m) => m[0].length);
    const rowTexts = everyItem(view, "queries").flat();
    const columnTexts = everyItem(view, "keys").flat();
    const signed = everyItem(view, "scale")[0] === "signed";
    const rowWidth = Math.min(widest(rowTexts.length ? rowTexts : ["00"]), 0.34 * width, 130);
    const left = Math.ceil(rowWidth) + 8 + (signed ? 0 : 16);
    const space = width - left - 6;
    // Square cells, unless labels need more height than there is width.
    const across = Math.min(48, space / columns, Math.max(480 / rows, 9));
    const down = Math.max(across, rows <= 24 || (rowTexts.length && rows <= 60) ? 13 : 0);
    const flat = columnTexts.length ? widest(columnTexts) + 6 <= across : true;
    const under = flat ? 20 : Math.min(widest(columnTexts), 110) + 12;
    const bottom = 2 + rows * down;
    const bar = bottom + under + (signed ? 6 : 20);
    return {
      left, space, under, bar, signed, rowWidth,
      top: 2, wide: columns * across, tall: rows * down,
      height: bar + 26,
      least: clamp(left + 6.5 * columns, 240, 380),
      most: left + Math.max(48 * columns, 190) + 6,
    };
  },

  draw(v, box, { put, canvas, place }) {
    const rows = v.values.length;
    const columns = v.values[0].length;
    const across = Math.min(48, box.wide / columns);
    const down = Math.min(48, box.tall / rows);
    const { left, top } = box;
    const bottom = top + rows * down;
    const right = left + columns * across;
    const flat = v.values.flat();
    const colour = (number) => colourOf(number, v.scale, v.limit);

    paint(canvas, columns, rows, (i) => colour(flat[i]));
    place(canvas, left, top, columns * across, rows * down);
    put("rect", { class: "attn-edge", x: left, y: top, width: columns * across, height: rows * down });

    // Labels stand on the middle of their cells, all of them or, where they cannot fit, none; the author's
    // own are never thinned out, plain numbers are.
    const middleOf = (i, size, from) => from + (i + 0.5) * size;
    const counted = (count, size) => range(count).filter((i) => i % Math.ceil(22 / size) === 0);
    const rowFont = Math.min(FONT, down * 0.92);
    if (!v.queries || rowFont >= 8) {
      for (const i of v.queries ? range(rows) : counted(rows, down)) {
        put("text", {
          class: "attn-label", x: left - 6, y: middleOf(i, down, top) + rowFont * 0.35,
          "text-anchor": "end", "font-size": v.queries ? rowFont : 11,
        }, shorten(labelOf(v.queries, i), box.rowWidth * (FONT / rowFont)));
      }
    }
    const columnFont = Math.min(FONT, across * 0.92);
    const upright = v.keys && widest(v.keys) + 6 > across;
    if (!v.keys || !upright || columnFont >= 8) {
      for (const j of v.keys ? range(columns) : counted(columns, across)) {
        const x = middleOf(j, across, left);
        const text = shorten(labelOf(v.keys, j), upright ? box.under - 10 : Infinity);
        if (upright) {
          put("text", {
            class: "attn-label", "text-anchor": "end", "font-size": columnFont,
            transform: `translate(${x + columnFont * 0.35} ${bottom + 6}) rotate(-90)`,
          }, text);
        } else {
          put("text", {
            class: "attn-label", x, y: bottom + 16, "text-anchor": "middle", "font-size": v.keys ? FONT : 11,
          }, text);
        }
      }
    }
    if (!box.signed) {
      const middle = top + (rows * down) / 2;
      if (rows * down > 50) {
        put("text", { class: "attn-axis", "text-anchor": "middle", transform: `translate(11 ${middle}) rotate(-90)` }, WORDS.queries);
      }
      put("text", { class: "attn-axis", "text-anchor": "middle", x: (left + right) / 2, y: bottom + box.under + 10 }, WORDS.keys);
    }

    // The numbers themselves, where every one fits its cell.
    const texts = rows * columns <= 150 && down >= 17 ? flat.map((n) => v.shown("values", n)) : [];
    const font = Math.min(FONT, (FONT * (across - 4)) / widest(texts));
    if (font >= 9) {
      texts.forEach((text, i) => put("text", {
        class: colour(flat[i])[3] ? "attn-on-dark" : "attn-on-light", "text-anchor": "middle", "font-size": font,
        x: middleOf(i % columns, across, left), y: middleOf(Math.floor(i / columns), down, top) + 4,
      }, text));
    }
    if (v.mark) {
      const [i, j] = v.mark;
      put("rect", {
        class: "attn-mark", "stroke-width": down < 14 ? 1.5 : 2.5, y: top + i * down, height: down,
        x: left + (j ?? 0) * across, width: (j === null ? columns : 1) * across,
      });
    }

    // The colour bar, with ticks where the scale puts them.
    const limit = v.real("values", v.limit);
    const marks = { signed: [-1, 0, 1], sqrt: [0, 0.1, 0.25, 0.5, 1], linear: [0, 0.5, 1] }[v.scale];
    const length = Math.min(170, Math.max(box.space, 100) - 12);
    for (const m of marks) {
      const x = left + length * shade(m, v.scale, 1);
      put("line", { class: "attn-bar-tick", x1: x, x2: x, y1: box.bar + 8, y2: box.bar + 12 });
      put("text", { class: "attn-tick", x, y: box.bar + 23, "text-anchor": "middle" }, String(+(m * limit).toPrecision(3)));
    }
    put("rect", { class: "attn-edge", x: left, y: box.bar, width: length, height: 8 });

    return {
      rows, columns, bar: [left, box.bar, length, 8],
      box: (i, j) => [left + j * across, top + i * down, across, down],
      find: (x, y) => [Math.floor((y - top) / down), Math.floor((x - left) / across)],
      text: (i, j) => fill(box.signed ? WORDS.cell_signed : WORDS.cell, {
        row: labelOf(v.queries, i), column: labelOf(v.keys, j), value: v.shown("values", v.values[i][j]),
      }),
    };
  },

  say(v) {
    const flat = v.values.flat();
    const columns = v.values[0].length;
    const size = { title: v.heading, rows: v.values.length, columns };
    if (v.scale === "signed") {
      const [low, high] = [-1, 1].map((sign) => v.shown("values", flat[extreme(flat, sign)]));
      const finite = flat.some((number) => number !== null);
      return fill(WORDS.say[finite ? "heatmap_signed" : "heatmap_infinite"], { ...size, low, high });
    }
    const row = v.mark ? v.mark[0] : Math.floor(extreme(flat) / columns);
    return sayLargest(v, "values", row, v.mark ? "heatmap_row" : "heatmap", size);
  },

  table: (v) => weightTable(v, v.values, "values"),
};

function sayLargest(v, name, row, sentence, more) {
  const numbers = v[name][row];
  const column = extreme(numbers);
  const parts = { title: v.heading, row: labelOf(v.queries, row), column: labelOf(v.keys, column), ...more };
  const nothing = sentence.endsWith("_row") ? "nothing" : "zeros";
  return fill(WORDS.say[numbers[column] ? sentence : nothing], { ...parts, value: v.shown(name, numbers[column]) });
}

function weightTable(v, matrix, name) {
  return {
    head: ["", ...range(matrix[0].length).map((j) => labelOf(v.keys, j))],
    rows: matrix.map((row, i) => [labelOf(v.queries, i), ...row.map((n) => v.shown(name, n))]),
  };
}

const bars = {
  layout(view, width) {
    const count = largest(view, "values", (list) => list.length);
    const step = count <= 16 ? 24 : count <= 32 ? 16 : 9;
    const labels = everyItem(view, "labels").flat();
    const digits = view.props.values.digits;
    const numbers = widest(everyItem(view, "values").flat().slice(0, 4000).map((n) => show(n, digits)));
    const gutter = Math.min(widest(labels.length ? labels : [String(count)]), 0.38 * width, 150);
    return {
      step, count, gutter, left: Math.ceil(gutter) + 8, right: width - (step > 9 ? numbers + 8 : 4),
      height: count * step + 24, least: 250, most: 640,
    };
  },

  draw(v, box, { put }) {
    const x = axis(v.xlim, box.left, box.right);
    const zero = clamp(x(0), box.left, box.right);
    const foot = box.count * box.step + 2;
    for (const [at, text] of ticks(...v.xlim, (box.right - box.left) / 70)) {
      put("line", { class: "attn-grid", x1: x(at), x2: x(at), y1: 0, y2: foot });
      put("text", { class: "attn-tick", x: x(at), y: foot + 15, "text-anchor": "middle" }, text);
    }
    v.values.forEach((number, i) => {
      const y = (i + 0.5) * box.step;
      const end = number === null ? zero : clamp(x(v.real("values", number)), box.left, box.right);
      const marked = v.mark === i ? " attn-marked" : "";
      put("rect", {
        class: (number < 0 ? "attn-fill-negative" : "attn-fill") + marked,
        x: Math.min(zero, end), width: Math.abs(end - zero), y: y - box.step * 0.34, height: box.step * 0.68, rx: 1.5,
      });
      if (box.step > 9) {
        const size = Math.min(FONT, box.step * 0.8);
        put("text", { class: "attn-label" + marked, x: box.left - 8, y: y + 4, "text-anchor": "end", "font-size": size },
          shorten(labelOf(v.labels, i), box.gutter));
        put("text", { class: "attn-number" + marked, x: "100%", y: y + 4, "text-anchor": "end", "font-size": size },
          v.shown("values", number));
      }
    });
    put("line", { class: "attn-zero", x1: zero, x2: zero, y1: 0, y2: foot });
    return {
      rows: v.values.length, columns: 1,
      box: (i) => [box.left, i * box.step, box.right - box.left, box.step],
      find: (x, y) => [Math.floor(y / box.step), 0],
      text: (i) => fill(WORDS.named, { label: labelOf(v.labels, i), value: v.shown("values", v.values[i]) }),
    };
  },

  say(v) {
    const entry = (i) => ({ label: labelOf(v.labels, i), value: v.shown("values", v.values[i]) });
    const parts = { title: v.heading, count: v.values.length };
    if (v.values.length <= 6) {
      const list = v.values.map((_, i) => `${entry(i).label} ${entry(i).value}`).join(", ");
      return fill(WORDS.say.bars, { ...parts, list });
    }
    const low = entry(extreme(v.values, -1));
    return fill(WORDS.say.bars_many, { ...parts, ...entry(extreme(v.values)), low_label: low.label, low: low.value });
  },

  table: (v) => ({
    head: [WORDS.name, WORDS.value],
    rows: v.values.map((n, i) => [labelOf(v.labels, i), v.shown("values", n)]),
  }),
};

// The position in a list that is nearest to a number.
function nearest(numbers, wanted) {
  let best = 0;
  numbers.forEach((number, i) => {
    if (Math.abs(number - wanted) < Math.abs(numbers[best] - wanted)) best = i;
  });
  return best;
}

const curveAt = (v, i) => v.curves
  .map((curve, c) => `${v.names[c]} ${v.shown("curves", curve[i])}`.trim())
  .join(", ");

const curve = {
  legend: (v) => v.names.filter(Boolean),

  layout: (view, width) => ({ ...frameBox(view, width, clamp(0.62 * width, 210, 300)), least: 280, most: 760 }),

  draw(v, box, { put }) {
    const { x, y } = drawFrame(put, v, box);
    const xs = v.x.map((n) => x(v.real("x", n)));
    const inside = (at) => clamp(at, box.top - 2, box.bottom + 2);
    const path = (numbers) => numbers
      .map((n, i) => `${i ? "L" : "M"}${xs[i].toFixed(1)} ${inside(y(v.real("curves", n))).toFixed(1)}`)
      .join("");
    v.px?.forEach((n, i) => {
      const weight = v.weights ? v.real("weights", v.weights[i]) : null;
      put("circle", {
        class: weight === null ? "attn-point" : "attn-point attn-weighted",
        cx: x(v.real("px", n)), cy: y(v.real("py", v.py[i])),
        r: weight === null ? 2.5 : 2.5 + 5 * Math.sqrt(weight),
        "fill-opacity": weight === null ? 0.55 : 0.12 + 0.88 * Math.sqrt(weight),
      });
    });
    v.curves.forEach((numbers, c) => put("path", { class: `attn-curve attn-line-${c % 6}`, d: path(numbers) }));
    if (v.at !== null) {
      const at = x(v.real("at"));
      put("line", { class: "attn-at", x1: at, x2: at, y1: box.top, y2: box.bottom });
    }
    return {
      rows: 1, columns: xs.length,
      box: (i, j) => [xs[j] - 2, box.top, 4, box.bottom - box.top],
      find: (px) => [0, nearest(xs, px)],
      text: (i, j) => fill(WORDS.at, { x: `${v.xlabel || "x"} ${v.shown("x", v.x[j])}`, list: curveAt(v, j) }),
    };
  },

  say(v) {
    if (v.at !== null) {
      const at = v.shown("at", v.at);
      return fill(WORDS.say.curve_at, { title: v.heading, at, list: curveAt(v, nearest(v.x, v.at)) });
    }
    const list = v.curves.map((numbers, c) => {
      const [low, high] = [-1, 1].map((sign) => v.shown("curves", numbers[extreme(numbers, sign)]));
      return fill(WORDS.say.range, { name: v.names[c], low, high }).trim();
    }).join(", ");
    return fill(WORDS.say.curve, { title: v.heading, list });
  },

  table(v) {
    const names = v.curves.map((_, c) => v.names[c] || v.ylabel || WORDS.value);
    const rows = v.x.map((n, i) => [v.shown("x", n), ...v.curves.map((list) => v.shown("curves", list[i]))]);
    return { head: [v.xlabel || "x", ...names], rows, more: v.px ? pointTable(v, v.px, v.py, "px", "py") : null };
  },
};

function pointTable(v, xs, ys, xname, yname) {
  const labelled = v.labels ? [WORDS.name] : [];
  return {
    head: [...labelled, v.xlabel || "x", v.ylabel || "y", ...(v.weights ? [WORDS.weight] : [])],
    rows: xs.map((n, i) => [
      ...(v.labels ? [v.labels[i]] : []), v.shown(xname, n), v.shown(yname, ys[i]),
      ...(v.weights ? [v.shown("weights", v.weights[i])] : []),
    ]),
  };
}

const points = {
  layout: (view, width) => ({ ...frameBox(view, width, clamp(0.8 * width, 240, 360)), least: 270, most: 560 }),

  draw(v, box, { put }) {
    const frame = v.equal ? { ...v, ...equalLimits(v, box) } : v;
    const { x, y } = drawFrame(put, frame, box);
    const xs = v.x.map((n) => x(v.real("x", n)));
    const ys = v.y.map((n) => y(v.real("y", n)));
    const sizes = xs.map((_, i) => (v.weights ? 3 + 8 * Math.sqrt(v.real("weights", v.weights[i])) : 4.5));
    const busy = xs.map((cx, i) => [cx - sizes[i], ys[i] - sizes[i], 2 * sizes[i], 2 * sizes[i]]);
    v.arrows?.[0].forEach((dx, i) => {
      const tip = [x(v.real("x", v.x[i]) + v.real("arrows", dx)), y(v.real("y", v.y[i]) + v.real("arrows", v.arrows[1][i]))];
      put("path", { class: "attn-arrow", d: arrowPath(xs[i], ys[i], ...tip) });
      for (const t of [0.4, 0.6, 0.8, 1]) {
        busy.push([xs[i] + t * (tip[0] - xs[i]) - 3, ys[i] + t * (tip[1] - ys[i]) - 3, 6, 6]);
      }
    });
    xs.forEach((cx, i) => put("circle", {
      class: v.weights ? "attn-point attn-weighted" : "attn-point", cx, cy: ys[i], r: sizes[i],
      "fill-opacity": v.weights ? 0.12 + 0.88 * Math.sqrt(v.real("weights", v.weights[i])) : 0.8,
    }));
    if (v.query) {
      const [qx, qy] = [x(v.real("query", v.query[0])), y(v.real("query", v.query[1]))];
      put("path", { class: "attn-query", d: `M${qx} ${qy - 8}L${qx + 8} ${qy}L${qx} ${qy + 8}L${qx - 8} ${qy}Z` });
      busy.push([qx - 8, qy - 8, 16, 16]);
    }
    if (v.labels) placeLabels(put, v.labels, xs, ys, sizes, busy, box);
    return {
      rows: 1, columns: xs.length,
      box: (i, j) => [xs[j] - 10, ys[j] - 10, 20, 20],
      find: (px, py) => [0, nearest(xs.map((cx, j) => Math.hypot(cx - px, ys[j] - py)), 0)],
      text: (i, j) => fill(WORDS.named, {
        label: labelOf(v.labels, j),
        value: `(${v.shown("x", v.x[j])}, ${v.shown("y", v.y[j])})` +
          (v.weights ? `, ${WORDS.weight} ${v.shown("weights", v.weights[j])}` : ""),
      }),
    };
  },

  say(v) {
    const parts = { title: v.heading, count: v.x.length };
    if (!v.weights) return fill(WORDS.say.points, parts);
    const best = extreme(v.weights);
    return fill(WORDS.say.points_weights, {
      ...parts, label: labelOf(v.labels, best), value: v.shown("weights", v.weights[best]),
    });
  },

  table: (v) => pointTable(v, v.x, v.y, "x", "y"),
};

// One unit as long across as up: the shorter side gets more room around the same middle.
function equalLimits(v, box) {
  const unit = Math.max((v.xlim[1] - v.xlim[0]) / (box.right - box.left), (v.ylim[1] - v.ylim[0]) / (box.bottom - box.top));
  const around = ([low, high], pixels) => [-1, 1].map((side) => (low + high) / 2 + (side * unit * pixels) / 2);
  return { xlim: around(v.xlim, box.right - box.left), ylim: around(v.ylim, box.bottom - box.top) };
}

function arrowPath(x, y, tipX, tipY) {
  const turn = Math.atan2(tipY - y, tipX - x);
  const barb = (by) => `L${tipX - 7 * Math.cos(turn + by)} ${tipY - 7 * Math.sin(turn + by)}`;
  return `M${x} ${y}L${tipX} ${tipY}${barb(0.5)}M${tipX} ${tipY}${barb(-0.5)}`;
}

// Each label goes around its point, right of it first: where it covers least of dots, arrows and other labels, and
// near rather than far: a far one must cover 60 square pixels less, or it looks like nobody's. `busy` holds boxes
// [x, y, width, height]; labels count most, they would be unreadable.
function placeLabels(put, labels, xs, ys, sizes, busy, box) {
  const written = [];
  const overlap = ([x, y, w, h], [ox, oy, ow, oh]) => (
    Math.max(0, Math.min(x + w, ox + ow) - Math.max(x, ox)) * Math.max(0, Math.min(y + h, oy + oh) - Math.max(y, oy))
  );
  const covered = (spot, boxes) => boxes.reduce((sum, other) => sum + overlap(spot, other), 0);
  labels.forEach((label, i) => {
    const w = widthOf(label);
    const spots = [4, 16].flatMap((far) => {
      const gap = sizes[i] + far;
      const [right, left] = [gap, -gap - w];
      return [
        [right, 4], [left, 4], [-w / 2, -gap], [-w / 2, gap + 9],
        [right - 4, -gap + 4], [left + 4, -gap + 4], [right - 4, gap + 6], [left + 4, gap + 6],
      ].map(([dx, dy]) => [
        clamp(xs[i] + dx, box.left, Math.max(box.left, box.right - w)), clamp(ys[i] + dy, box.top + 10, box.bottom) - 10, w, 12,
      ]);
    });
    const others = xs.flatMap((x, j) => (j === i ? [] : [[x - 11, ys[j] - 11, 22, 22]])); // nobody else's name
    const costs = spots.map((spot, k) => 4 * covered(spot, written) + covered(spot, busy) + covered(spot, others) + k + (k < 8 ? 0 : 60));
    const spot = spots[costs.indexOf(Math.min(...costs))];
    written.push(spot);
    put("text", { class: "attn-label attn-halo", x: spot[0], y: spot[1] + 10 }, label);
  });
}

const lines = {
  layout(view, width) {
    const count = largest(view, "weights", (m) => Math.max(m.length, m[0].length));
    const gutter = (name) => Math.min(widest([WORDS[name], ...everyItem(view, name).flat()]), 0.36 * width);
    const [from, to] = [gutter("queries"), gutter("keys")];
    const end = Math.min(width, from + to + 260);
    return {
      from, to, step: 26, left: from + 10, right: end - to - 10, height: 24 + 26 * count,
      least: from + to + 150, most: from + to + 280,
    };
  },

  draw(v, box, { put }) {
    const y = (i) => 24 + (i + 0.5) * box.step;
    put("text", { class: "attn-axis", x: box.from, y: 12, "text-anchor": "end" }, WORDS.queries);
    put("text", { class: "attn-axis", x: box.right + 10, y: 12 }, WORDS.keys);
    const only = v.row ?? null;
    v.weights.forEach((row, i) => row.forEach((n, j) => {
      if (!n || (only !== null && i !== only)) return;
      const w = shade(v.real("weights", n), v.scale, 1);
      put("line", {
        class: "attn-link", x1: box.left, x2: box.right, y1: y(i), y2: y(j),
        "stroke-width": 0.75 + 5 * w, "stroke-opacity": 0.2 + 0.8 * Math.sqrt(w),
      });
    }));
    v.weights.forEach((_, i) => put("text", {
      class: "attn-label" + (i === only ? " attn-marked" : ""), x: box.from, y: y(i) + 4, "text-anchor": "end",
    }, shorten(labelOf(v.queries, i), box.from)));
    v.weights[0].forEach((_, j) => put("text", {
      class: "attn-label", x: box.right + 10, y: y(j) + 4,
    }, shorten(labelOf(v.keys, j), box.to)));
    return {
      rows: v.weights.length, columns: v.weights[0].length,
      box: (i) => [0, y(i) - 11, box.left - 4, 22],
      find(x, py) {
        const i = clamp(Math.round((py - 24) / box.step - 0.5), 0, v.weights.length - 1);
        return [i, extreme(v.weights[i])];
      },
      text: (i, j) => fill(WORDS.cell, {
        row: labelOf(v.queries, i), column: labelOf(v.keys, j), value: v.shown("weights", v.weights[i][j]),
      }),
    };
  },

  say(v) {
    const given = v.row ?? null;
    const row = given ?? extreme(v.weights.map((numbers) => numbers[extreme(numbers)]));
    return sayLargest(v, "weights", row, given === null ? "lines" : "lines_row", {});
  },

  table: (v) => weightTable(v, v.weights, "weights"),
};

// A readout holds a number or, in `text`, a word.
const readoutText = (v) => (v.text ?? v.shown("value", v.value)) + (v.unit ? ` ${v.unit}` : "");

const readout = {
  build(figure, view) {
    const every = (name) => everyItem(view, name);
    const label = steady(element("span", "attn-readout-label", figure), every("label"));
    const numbers = every("value").map((n) => show(n, view.props.value.digits));
    const widestValue = `${longest([...numbers, ...every("text")])} ${longest(every("unit"))}`;
    const value = steady(element("strong", "attn-readout-value", figure), [widestValue]);
    return (v) => {
      label(v.label);
      value(readoutText(v));
    };
  },
  say: (v) => fill(WORDS.say.readout, { label: v.label, value: readoutText(v) }),
  table: (v) => ({ head: [WORDS.name, WORDS.value], rows: [[v.label, readoutText(v)]] }),
};

// A step ends in a number, a word or nothing.
const stepText = (v, i) => v.texts[i] ?? (v.values[i] === null ? "" : v.shown("values", v.values[i]));

const arithmetic = {
  build(figure, view) {
    const table = element("div", "attn-steps", figure);
    const every = (name, i) => everyItem(view, name).map((list) => list[i] ?? "");
    const rows = range(largest(view, "labels", (list) => list.length)).map((i) => {
      const row = element("div", "attn-step", table);
      const numbers = every("values", i).map((n) => (n === "" ? n : show(n, view.props.values.digits)));
      return {
        row,
        label: steady(element("span", "attn-step-label", row), every("labels", i)),
        expression: steady(element("span", "attn-step-expression", row), every("expressions", i)),
        value: steady(element("span", "attn-step-value", row), [...numbers, ...every("texts", i)]),
      };
    });
    return (v) => rows.forEach(({ row, label, expression, value }, i) => {
      const there = i < v.labels.length;
      row.classList.toggle("attn-absent", !there);
      label(there ? v.labels[i] : "");
      expression(there ? v.expressions[i] : "");
      value(there ? stepText(v, i) : "");
    });
  },

  say(v) {
    const known = range(v.labels.length).filter((i) => stepText(v, i) !== "");
    const last = known[known.length - 1];
    return last === undefined ? "" : fill(WORDS.say.arithmetic, { title: v.heading, label: v.labels[last], value: stepText(v, last) });
  },

  table: (v) => ({
    head: [WORDS.step, WORDS.expression, WORDS.value],
    rows: v.labels.map((label, i) => [label, v.expressions[i], stepText(v, i)]),
  }),
};

const VIEWS = { heatmap, bars, curve, points, lines, readout, arithmetic };

// --- one view on the page: caption, plot, and the cell under pointer or arrow keys ------------------------------

function percent(style, whole, values) {
  for (const name in values) style[name] = `${(100 * values[name]) / whole[name]}%`;
}

function captionOf(view, figure) {
  const titles = everyItem(view, "title").filter(Boolean);
  return titles.length ? steady(element("figcaption", "attn-title", figure), titles) : () => {};
}

function plotView(view, figure, choose) {
  const kind = VIEWS[view.kind];
  const caption = captionOf(view, figure);
  const legend = element("div", "attn-legend", kind.legend ? figure : null);
  const plot = element("div", "attn-plot", figure);
  const canvases = view.kind === "heatmap" ? [element("canvas", "", plot), element("canvas", "", plot)] : [];
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const layer = document.createElementNS("http://www.w3.org/2000/svg", "g");
  const cursor = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  const tip = element("div", "attn-tip", plot);
  const { put, done } = pen(layer);
  svg.append(layer, cursor);
  plot.append(svg);
  svg.setAttribute("aria-hidden", "true");
  cursor.setAttribute("class", "attn-cursor");
  plot.tabIndex = 0;
  plot.setAttribute("role", "application");
  tip.setAttribute("role", "status");

  let width = 0;
  let box, v, cells, at, legendText;

  // Canvas and tip are placed in percent of the plot, so that print and zoom scale them with the SVG.
  function place(canvas, x, y, wide, tall) {
    const whole = { left: width, top: box.height, width, height: box.height };
    percent(canvas.style, whole, { left: x, top: y, width: wide, height: tall });
  }

  function point(cell) {
    const inside = cell && cell[0] >= 0 && cell[0] < cells.rows && cell[1] >= 0 && cell[1] < cells.columns;
    at = inside ? cell : null;
    plot.classList.toggle("attn-pointing", Boolean(at));
    if (!at) return void (tip.textContent = "");
    const [x, y, wide, tall] = cells.box(...at);
    for (const [name, value] of Object.entries({ x, y, width: wide, height: tall })) cursor.setAttribute(name, value);
    const text = cells.text(...at);
    if (tip.textContent !== text) tip.textContent = text;
    const left = clamp(x + wide / 2 - (widthOf(text) + 20) / 2, 0, Math.max(0, width - widthOf(text) - 20));
    percent(tip.style, { left: width, top: box.height }, { left, top: y > 40 ? y - 34 : y + tall + 6 });
  }

  function cellUnder(event) {
    const place = svg.getBoundingClientRect();
    const scale = width / place.width;
    return cells.find((event.clientX - place.left) * scale, (event.clientY - place.top) * scale);
  }

  function pick() {
    if (at && v.select) choose(v.select, at);
  }

  const start = () => at ?? [v.mark?.[0] ?? (v.mark || 0), v.mark?.[1] ?? 0];
  plot.addEventListener("pointermove", (event) => point(cellUnder(event)));
  plot.addEventListener("pointerleave", (event) => event.pointerType === "mouse" && point(null));
  plot.addEventListener("click", (event) => {
    point(cellUnder(event));
    pick();
  });
  plot.addEventListener("focus", () => plot.matches(":focus-visible") && point(start()));
  plot.addEventListener("blur", () => point(null));
  plot.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const [i, j] = start();
    const flip = cells.columns === 1 || cells.rows > 1 ? 0 : 1; // a single row is also walked up and down
    const goals = {
      ArrowUp: flip ? [0, j + 1] : [i - 1, j], ArrowDown: flip ? [0, j - 1] : [i + 1, j],
      ArrowLeft: cells.columns === 1 ? [i - 1, 0] : [i, j - 1], ArrowRight: cells.columns === 1 ? [i + 1, 0] : [i, j + 1],
      Home: cells.columns === 1 ? [0, 0] : [i, 0], End: cells.columns === 1 ? [cells.rows - 1, 0] : [i, cells.columns - 1],
    };
    if (event.key in goals) {
      const [row, column] = goals[event.key];
      point([clamp(row, 0, cells.rows - 1), clamp(column, 0, cells.columns - 1)]);
    } else if (event.key === "Enter" || event.key === " ") pick();
    else if (event.key === "Escape" && at) point(null);
    else return;
    event.preventDefault();
    event.stopPropagation(); // a notebook has keys of its own
  });

  return {
    plot,
    resize(newWidth) {
      width = newWidth;
      box = kind.layout(view, width);
      svg.setAttribute("viewBox", `0 0 ${width} ${box.height}`);
      plot.style.aspectRatio = `${width} / ${box.height}`;
      figure.style.maxWidth = `${Math.ceil(box.most)}px`;
      figure.style.flexBasis = `${Math.ceil(Math.min(box.least, box.most))}px`;
    },
    draw(found) {
      v = found;
      caption(v.title || "");
      const names = kind.legend?.(v) ?? [];
      if (legendText !== (legendText = names.join("\n"))) {
        legend.replaceChildren();
        names.forEach((name, c) => element("span", `attn-line-${c % 6}`, legend, name));
      }
      cells = kind.draw(v, box, { put, canvas: canvases[0], place });
      done();
      if (cells.bar) {
        const table = v.scale === "signed" ? COLOURS.signed : COLOURS.weights;
        if (canvases[1].width !== 256) paint(canvases[1], 256, 1, (i) => table[i]);
        place(canvases[1], ...cells.bar);
      }
      plot.classList.toggle("attn-choosing", Boolean(v.select));
      const name = v.select ? fill(WORDS.choose, { title: v.heading }) : fill(WORDS.walk, { title: v.heading });
      if (plot.getAttribute("aria-label") !== name) plot.setAttribute("aria-label", name);
      if (at) point(at); // the value under a resting pointer follows the sliders
    },
  };
}

// Texts and tables need no plot: their `build` returns the function that draws them.
function textView(view, figure) {
  const caption = captionOf(view, figure);
  const draw = VIEWS[view.kind].build(figure, view);
  return {
    draw(found) {
      caption(found.title || "");
      draw(found);
    },
  };
}

// All views of an explorer in one parent; used for the picture and once more for a pinned one.
function picture(parent, payload, choose) {
  const views = payload.views.map((view, i) => {
    const before = payload.views[i - 1]?.kind;
    const group = view.kind === "readout" && before === "readout" ? parent.lastChild
      : view.kind === "readout" ? element("div", "attn-readouts", parent) : parent;
    const figure = element("figure", `attn-view attn-view-${view.kind}`, group);
    return VIEWS[view.kind].layout ? plotView(view, figure, choose) : textView(view, figure);
  });
  let last;
  const draw = (indices) => {
    last = indices;
    payload.views.forEach((view, i) => views[i].draw(lookUp(view, payload.controls, indices)));
  };
  const plots = views.filter((view) => view.plot);
  const widths = new Map();
  function fit() {
    let changed = false;
    for (const view of plots) {
      const width = view.plot.clientWidth || 300; // none while it is not shown: drawn again when it is
      if (widths.get(view) === width) continue;
      widths.set(view, width);
      view.resize(width);
      changed = true;
    }
    return changed;
  }
  fit();
  fit(); // the first one set how wide each figure may be
  const observer = new ResizeObserver(() => fit() && last && draw(last));
  for (const view of plots) observer.observe(view.plot);
  return { draw, remove: () => observer.disconnect() };
}

// --- one explorer ---------------------------------------------------------------------------------------------

// `host.apply(control, option)` moves a control; the host answers by calling `changed` with the new indices.
function createExplorer({ root, view, text }, payload, host) {
  const { controls } = payload;
  let indices = controls.map((control) => control.index);
  let frame = 0;
  let quiet = 0;
  const followers = [];
  root.setAttribute("role", "group");
  root.setAttribute("aria-label", payload.name.replaceAll("_", " "));
  const { fontFamily, letterSpacing, wordSpacing } = getComputedStyle(root);
  Object.assign(ruler, { font: `${FONT}px ${fontFamily}`, letterSpacing, wordSpacing }); // a reader may set these wider

  const sentences = (at) => payload.views.map((one) => VIEWS[one.kind].say(lookUp(one, controls, at)))
    .filter(Boolean).join(" ");
  const settings = (at = indices) => Object.fromEntries(controls.map((c, i) => [c.name, c.values[at[i]]]));
  const choose = (names, cell) => names.forEach((name, side) => {
    const i = controls.findIndex((control) => control.name === name);
    if (i >= 0) host.apply(i, clamp(cell[side], 0, controls[i].values.length - 1));
  });

  // The widest of a few hundred texts, and a little more, stands for the widest of all: the paragraph keeps that height.
  const variants = controls.flatMap((control, i) => range(control.values.length)
    .map((option) => controls.map((c, k) => (k === i ? option : c.index))));
  const step = Math.ceil(variants.length / 200);
  text.replaceChildren();
  const write = steady(text, [...variants.filter((_, k) => k % step === 0), indices].map((at) => `${sentences(at)} 0000`));
  text.setAttribute("role", "status");

  view.replaceChildren();
  const drawing = picture(view, payload, choose);

  function draw() {
    frame = 0;
    drawing.draw(indices);
    write(sentences(indices));
    view.dataset.settings = JSON.stringify(settings());
    followers.forEach((follow) => follow());
  }

  const explorer = {
    payload,
    settings,
    choose,
    get indices() { return indices; },
    texts: (at = indices) => controls.map((c, i) => `${c.label} ${c.texts[at[i]]}`).join(", "),
    views: () => payload.views.map((one) => ({ kind: one.kind, found: lookUp(one, controls, indices) })),
    follow: (follower) => followers.push(follower),
    reset: () => controls.forEach((control, i) => host.apply(i, control.index)),
    // However many events arrive, the next frame draws the newest setting once.
    changed(next) {
      if (next.every((option, i) => option === indices[i])) return;
      indices = next;
      // While a slider moves, assistive technology waits; it then reads the last sentence.
      text.setAttribute("aria-busy", "true");
      clearTimeout(quiet);
      quiet = setTimeout(() => text.removeAttribute("aria-busy"), 400);
      frame ||= requestAnimationFrame(draw);
    },
    remove() {
      cancelAnimationFrame(frame);
      clearTimeout(quiet);
      drawing.remove();
    },
  };
  draw();
  root.attnExplorer = explorer;
  return explorer;
}

// --- its extras: reset, link, and what a demanding reader looks for under "More" ----------------------------------

function button(parent, text, action) {
  const made = element("button", "", parent, text);
  made.type = "button";
  made.addEventListener("click", action);
  return made;
}

// Where the clipboard is closed to pages, the old way; what fails says so.
async function copy(text, status) {
  try {
    await navigator.clipboard.writeText(text);
    status.textContent = WORDS.copied;
  } catch {
    const area = element("textarea", "attn-offscreen", document.body);
    area.value = text;
    area.select();
    status.textContent = document.execCommand("copy") ? WORDS.copied : WORDS.copy_failed;
    area.remove();
  }
  setTimeout(() => (status.textContent = ""), 3000);
}

// The Python call that makes the picture shown.
function pythonCall({ payload, indices }) {
  const literal = (control, option) => {
    const value = control.values[option];
    if (control.python) return control.python[option];
    if (typeof value === "boolean") return value ? "True" : "False";
    if (typeof value !== "number") return value === null ? "None" : JSON.stringify(value);
    const text = control.texts[option]; // "1.0" keeps the point that JavaScript's 1 has lost
    return text.trim() !== "" && Number(text) === value ? text : String(value);
  };
  const given = payload.controls.map((c, i) => `${c.name}=${literal(c, indices[i])}`);
  return `${payload.name}(${[...given, ...(payload.fixed ?? [])].join(", ")})`;
}

// Every number of the picture as tables; single results share one.
function tablesOf(explorer) {
  const tables = [];
  let results;
  for (const { kind, found } of explorer.views()) {
    const { head, rows, more } = VIEWS[kind].table(found);
    if (kind === "readout" && results) results.rows.push(...rows);
    else tables.push({ kind, title: kind === "readout" ? WORDS.views.readout : found.heading, head, rows });
    if (kind === "readout") results ??= tables[tables.length - 1];
    if (more) tables.push({ kind, title: `${found.heading}: ${WORDS.views.points}`, ...more });
  }
  return tables;
}

function toCsv({ head, rows }) {
  const cell = (text) => (/[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  return [head, ...rows].map((row) => row.map(String).map(cell).join(",") + "\r\n").join("");
}

function download(name, text) {
  const link = element("a", "", document.body);
  link.href = URL.createObjectURL(new Blob(["\ufeff", text], { type: "text/csv;charset=utf-8" }));
  link.download = name;
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

function drawTables(parent, explorer) {
  parent.replaceChildren();
  for (const table of tablesOf(explorer)) {
    const scroll = element("div", "attn-scroll", parent);
    scroll.tabIndex = 0;
    scroll.setAttribute("role", "group");
    scroll.setAttribute("aria-label", table.title);
    const made = element("table", "", scroll);
    element("caption", "", made, table.title);
    const head = element("tr", "", element("thead", "", made));
    for (const text of table.head) element(text ? "th" : "td", "", head, text);
    const body = element("tbody", "", made);
    for (const row of table.rows) {
      const line = element("tr", "", body);
      row.forEach((text, i) => element(i ? "td" : "th", Number.isNaN(Number(text)) ? "attn-words" : "", line, text));
    }
    button(parent, WORDS.csv, () => {
      const name = `${explorer.payload.name} ${table.title}`.replace(/[^\p{L}\p{N}]+/gu, "-").toLowerCase();
      download(`${name}.csv`, toCsv(table));
    }).setAttribute("aria-label", `${WORDS.csv}: ${table.title}`);
  }
}

// Keep a copy of the picture at this setting beside the one that moves on.
function pinning(explorer, view, actions) {
  const stage = element("div", "attn-stage");
  view.before(stage);
  const side = element("div", "attn-side", stage);
  const now = element("p", "attn-stage-title", side);
  side.append(view);
  const held = element("div", "attn-side attn-pinned");
  held.setAttribute("role", "group");
  let drawing = null;
  const caption = () => {
    if (drawing) now.textContent = fill(WORDS.now, { settings: explorer.texts() });
  };
  const toggle = button(actions, WORDS.pin, () => {
    stage.classList.toggle("attn-comparing", !drawing);
    if (drawing) {
      drawing.remove();
      drawing = null;
      held.remove();
    } else {
      held.replaceChildren();
      const settings = fill(WORDS.pinned, { settings: explorer.texts() });
      element("p", "attn-stage-title", held, settings);
      held.setAttribute("aria-label", settings);
      stage.append(held);
      drawing = picture(element("div", "attn-pinned-view", held), explorer.payload, explorer.choose);
      drawing.draw([...explorer.indices]);
    }
    toggle.textContent = drawing ? WORDS.unpin : WORDS.pin;
    caption();
  });
  explorer.follow(caption);
  return () => drawing?.remove();
}

// `link(explorer)` is the address that restores the settings, where there is one; `binder(explorer)` likewise.
function addExtras(explorer, { root, view }, { link, binder }) {
  const tools = element("div", "attn-explorer-tools", root);
  button(tools, WORDS.reset, explorer.reset);
  const status = element("span", "attn-status");
  status.setAttribute("role", "status");
  if (link) button(tools, WORDS.link, () => copy(link(), status));
  tools.append(status);

  const more = element("details", "attn-explorer-more", tools);
  element("summary", "", more, WORDS.more);
  const body = element("div", "attn-more-body", more);
  const actions = element("div", "attn-actions", body);
  const unpin = pinning(explorer, view, actions);
  const binderLink = binder ? element("a", "attn-binder", actions, WORDS.binder) : null;
  const call = element("div", "attn-call", body);
  element("span", "", call, WORDS.call);
  const code = element("code", "", call);
  button(call, WORDS.copy, () => copy(code.textContent, status)).setAttribute("aria-label", WORDS.copy_call);
  const numbers = element("details", "attn-numbers", body);
  element("summary", "", numbers, WORDS.numbers);
  const tables = element("div", "attn-tables", numbers);

  // Nothing under "More" costs a frame: closed it is not filled, open it follows when the slider rests.
  let waiting = 0;
  function refresh() {
    waiting = 0;
    if (!more.open) return;
    code.textContent = pythonCall(explorer);
    if (binderLink) binderLink.href = binder();
    if (numbers.open) drawTables(tables, explorer);
    else tables.replaceChildren();
  }
  more.addEventListener("toggle", refresh);
  numbers.addEventListener("toggle", refresh);
  explorer.follow(() => {
    clearTimeout(waiting);
    if (more.open) waiting = setTimeout(refresh, 150);
  });
  return () => {
    clearTimeout(waiting);
    unpin();
  };
}

// --- settings in an address: #name?x=1.5&kernel=gaussian ----------------------------------------------------------

function addressOf(key, { payload, indices }) {
  const query = new URLSearchParams(payload.controls.map((c, i) => [c.name, String(c.values[indices[i]])]));
  return `${encodeURIComponent(key)}?${query}`;
}

// Anything that is not one of the options falls to the nearest number, or to the default.
function optionOf(control, wanted) {
  const exact = control.values.findIndex((value) => String(value) === wanted);
  if (exact >= 0 || wanted === null) return exact >= 0 ? exact : control.index;
  const number = wanted.trim() === "" ? NaN : Number(wanted);
  const numeric = control.values.every((value) => typeof value === "number");
  return numeric && Number.isFinite(number) ? nearest(control.values, number) : control.index;
}

// The indices that an address asks of the explorer called `key`, or null.
function indicesFrom(address, key, controls) {
  const [name, query] = address.split(/\?(.*)/s);
  if (query === undefined) return null;
  try {
    if (decodeURIComponent(name) !== key) return null;
  } catch {
    return null; // a broken % sequence
  }
  const wanted = new URLSearchParams(query);
  return controls.map((control) => optionOf(control, wanted.get(control.name)));
}

// --- the static page ------------------------------------------------------------------------------------------

// A native input for each control; returns functions that show an option.
function buildControls(parent, key, controls, onInput) {
  return controls.map((control, c) => {
    const id = `attn-${key}-${control.name}`;
    const listen = (input, option) => {
      input.autocomplete = "off"; // the address restores settings, not the browser's memory of forms
      for (const type of ["input", "change"]) input.addEventListener(type, () => onInput(c, option()));
    };
    const box = element("div", `attn-control attn-control-${control.kind}`, parent);

    if (control.kind === "checkbox") {
      const label = element("label", "", box);
      const input = element("input", "", label);
      input.type = "checkbox";
      element("span", "", label, control.label);
      listen(input, () => control.values.indexOf(input.checked));
      return (option) => (input.checked = control.values[option]);
    }
    if (control.kind === "radio" || control.kind === "toggle") {
      box.setAttribute("role", "radiogroup");
      box.setAttribute("aria-labelledby", id);
      element("span", "attn-control-name", box, control.label).id = id;
      const group = element("span", "attn-options", box);
      const inputs = control.texts.map((text, option) => {
        const label = element("label", "", group);
        const input = element("input", "", label);
        input.type = "radio";
        input.name = `${id}-options`;
        element("span", "", label, text);
        listen(input, () => (input.checked ? option : inputs.findIndex((other) => other.checked)));
        return input;
      });
      return (option) => (inputs[option].checked = true);
    }
    const label = element("label", "attn-control-name", box, control.label);
    label.htmlFor = id;
    if (control.kind === "select") {
      const input = element("select", "", box);
      box.classList.toggle("attn-control-long", control.texts.some((text) => text.length > 24));
      input.id = id;
      for (const text of control.texts) element("option", "", input, text);
      listen(input, () => input.selectedIndex);
      return (option) => (input.selectedIndex = option);
    }
    const value = steady(element("span", "attn-control-value", box), control.texts);
    const input = element("input", "", box);
    input.type = "range";
    input.id = id;
    input.min = 0;
    input.max = control.values.length - 1;
    input.step = 1;
    listen(input, () => Number(input.value));
    return (option) => {
      input.value = option;
      input.setAttribute("aria-valuetext", control.texts[option]);
      value(control.texts[option]);
    };
  });
}

function startStatic(root, key) {
  const part = (name) => root.querySelector(`.attn-explorer-${name}`);
  const parts = { root, view: part("view"), text: part("text") };
  const payload = JSON.parse(part("data").textContent);
  const { controls } = payload;
  let saving = 0;

  const showOption = buildControls(part("controls"), key, controls, move);
  function move(control, option) {
    const next = explorer.indices.map((old, i) => (i === control ? option : old));
    showOption[control](option);
    explorer.changed(next);
    // Browsers limit how often an address may change: once the hand rests is enough.
    clearTimeout(saving);
    saving = setTimeout(save, 350);
  }
  function save() {
    try {
      history.replaceState(history.state, "", `#${addressOf(key, explorer)}`);
    } catch {
      // An address that may not change (a sandboxed frame) costs the reader nothing else.
    }
  }
  function restore(scroll) {
    const wanted = indicesFrom(location.hash.slice(1), key, controls);
    if (!wanted) return;
    wanted.forEach((option, i) => showOption[i](option));
    explorer.changed(wanted);
    if (scroll) root.scrollIntoView({ block: scroll });
  }

  const explorer = createExplorer(parts, payload, { apply: move });
  controls.forEach((control, i) => showOption[i](control.index));
  const launch = document.querySelector('a[href*="urlpath="]');
  addExtras(explorer, parts, {
    link: () => `${location.href.split("#")[0]}#${addressOf(key, explorer)}`,
    binder: launch && (() => binderAddress(launch.href, addressOf(key, explorer))),
  });
  // A link leads to its explorer; a reload stays where the reader was.
  restore(performance.getEntriesByType("navigation")[0]?.type === "navigate" && "start");
  addEventListener("hashchange", () => restore("nearest"));
}

// The page's own launch button, with the settings as `?attn=` of the notebook's address (read by the live widget).
function binderAddress(href, address) {
  const url = new URL(href);
  url.searchParams.set("urlpath", `${url.searchParams.get("urlpath")}?attn=${encodeURIComponent(address)}`);
  return url.href;
}

function start() {
  const seen = {};
  for (const root of document.querySelectorAll(".attn-explorer")) {
    const data = root.querySelector(".attn-explorer-data");
    if (!data) continue;
    const name = root.dataset.name;
    seen[name] = (seen[name] ?? 0) + 1;
    if (root.attnExplorer) continue; // the script ran before
    try {
      startStatic(root, seen[name] > 1 ? `${name}-${seen[name]}` : name);
    } catch (error) {
      console.error(error); // the picture that Python drew stays, the other explorers start
    }
  }
}

// --- the live widget: the same drawing between ipywidgets' own controls -------------------------------------------

// Sliders and checkboxes tell their value, selections their index; a value set from Python may lie off the grid.
function optionOfModel(control, model) {
  const index = model.get("index");
  if (typeof index === "number") return clamp(index, 0, control.values.length - 1);
  const value = model.get("value");
  return typeof value === "number" ? nearest(control.values, value) : Math.max(0, control.values.indexOf(value));
}

async function render({ model, el }) {
  const payload = model.get("payload");
  const { controls } = payload;
  const manager = model.widget_manager;
  const references = model.get("controls"); // argument → "IPY_MODEL_…"
  const models = await Promise.all(controls.map(({ name }) => manager.get_model(references[name].replace("IPY_MODEL_", ""))));

  el.classList.add("attn-explorer");
  el.dataset.name = payload.name;
  const box = element("div", "attn-explorer-controls", el);
  const parts = { root: el, view: element("div", "attn-explorer-view", el), text: element("p", "attn-explorer-text", el) };
  const views = await Promise.all(models.map((one) => manager.create_view(one)));
  for (const view of views) {
    box.append(view.el);
    view.trigger("displayed");
  }

  const explorer = createExplorer(parts, payload, { apply });
  function apply(i, option) {
    const selects = models[i].get("index") !== undefined;
    models[i].set(selects ? "index" : "value", selects ? option : controls[i].values[option]);
    models[i].save_changes();
  }
  const follow = () => explorer.changed(controls.map((control, i) => optionOfModel(control, models[i])));
  for (const one of models) one.on("change:value change:index", follow);
  const removeExtras = addExtras(explorer, parts, {});
  const removeKeys = keepKeys(el);
  follow();
  settingsFromLaunch(payload.name, controls)?.forEach((option, i) => apply(i, option));

  return () => {
    for (const one of models) one.off("change:value change:index", follow);
    for (const view of views) view.remove();
    removeKeys();
    removeExtras();
    explorer.remove();
    el.replaceChildren();
  };
}

// JupyterLab and Notebook take arrow keys as their own, to go from cell to cell, even in a list of options. Those that
// move a control belong to it, and so do the letters that find an option: there "dd" would delete a cell. All others
// (run the cell, save) stay theirs. On the window, to come before them.
function keepKeys(el) {
  const mark = (event) => {
    const { target } = event;
    if (!el.contains(target)) return;
    const moves = !event.shiftKey && /^(Arrow.*|Page.*|Home|End| )$/.test(event.key);
    const finds = target.matches("select") && event.key.length === 1;
    const command = event.ctrlKey || event.metaKey || event.altKey;
    target.toggleAttribute("data-lm-suppress-shortcuts", !command && (moves || finds));
  };
  addEventListener("keydown", mark, true);
  return () => removeEventListener("keydown", mark, true);
}

// Settings handed over by "Open in Binder at this setting": `?attn=name?x=1.5` in the address that the notebook was
// opened with. JupyterLab tidies the address bar; the browser's record of the navigation keeps it. Used once, so that
// running the cell again starts from the author's default.
function settingsFromLaunch(name, controls) {
  const opened = performance.getEntriesByType("navigation")[0]?.name ?? location.href;
  const wanted = new URL(opened).searchParams.get("attn");
  const indices = wanted && !window.attnLaunched ? indicesFrom(wanted, name, controls) : null;
  if (indices) window.attnLaunched = true;
  return indices;
}

// `tables(root)` is what an explorer shows, as text: for tests, and for whoever wants the numbers.
window.attnExplorers = { render, tables: (root) => tablesOf(root.attnExplorer) };
if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
else start();
