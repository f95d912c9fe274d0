// The overview: figures, a table of classes, confusion, calibration.

import { h, svg } from "./dom.js";
import { count, nats, percent, plural, visible } from "./text.js";
import { confusionTable } from "./confusion.js";
import { section } from "./section.js";
import { sortableTable } from "./table.js";

function tile(value, name, note) {
  return h("div", { class: "tile" }, h("b", {}, value), h("span", {}, name), note && h("small", {}, note));
}

function tiles(data) {
  const f = data.summary.figures;
  const { unit, single, lossNote, confidenceNote } = data.own;
  const out = [
    tile(
      count(f.n_examples),
      f.n_examples === 1 ? "example" : "examples",
      !single && plural(f.n_variables, unit),
    ),
  ];
  if (data.hasGold) {
    const n = f.n_observed || 1;
    out.push(
      tile(percent(f.n_right / n, 2), `of ${unit}s right`, `${count(f.n_observed - f.n_right)} wrong`),
    );
    if (f.chunks) out.push(tile(percent(f.chunks.f1, 2), "F1 of spans", "by conlleval's rules"));
    if (!single)
      out.push(
        tile(
          percent(f.n_right_examples / f.n_examples),
          "of examples all right",
          plural(f.n_examples - f.n_right_examples, "example with errors", "examples with errors"),
        ),
      );
    // The mean of finite losses alone would hide the worst examples.
    const note = f.n_infinite ? `; ∞ for ${plural(f.n_infinite, "example")}` : "";
    if (f.mean_loss !== null)
      out.push(tile(nats(f.mean_loss), note ? "mean finite loss" : "mean loss", lossNote + note));
    else if (note) out.push(tile("∞", "mean loss", lossNote + note));
  }
  out.push(tile(percent(f.mean_confidence), "mean confidence", confidenceNote));
  return h("div", { class: "tiles" }, out);
}

function starters(data, go) {
  const button = (text, filters) =>
    h("button", { type: "button", class: "starter", on: { click: () => go(filters) } }, text);
  return h(
    "div",
    { class: "starters" },
    data.hasGold && button("Worst predictions", { sort: "loss", wrong: true }),
    data.hasGold &&
      button("Sure and wrong: check the labels", { sort: "confidence", reversed: true, wrong: true }),
    button("What to label next", { sort: "margin" }),
    button("All examples", {}),
  );
}

function classes(data, go) {
  const f = data.summary.figures;
  const head = [
    ["label", "text"],
    ["true", "n"],
    ["predicted", "n"],
    ["right", "n"],
    ["precision", "%"],
    ["recall", "%"],
    ["F1", "bar"],
  ];
  const rows = f.classes
    .map((row, k) => ({ cells: [data.labels[k], ...row], pick: () => go({ gold: k, wrong: true }), k }))
    .filter((row) => (row.cells[1] || row.cells[2]) && (data.own.listed?.(row.k) ?? true));
  const unknown = data.labels
    .slice(data.nClasses)
    .flatMap((name, k) => [k ? ", " : " The model does not know: ", h("bdi", {}, name)]);
  return section(
    "Labels",
    ["Click a label to see where it was missed.", ...unknown],
    sortableTable("labels", head, rows, 1),
  );
}

function spans(data) {
  const { chunks } = data.summary.figures;
  if (!chunks) return null;
  const head = [
    ["type", "text"],
    ["true", "n"],
    ["found", "n"],
    ["right", "n"],
    ["precision", "%"],
    ["recall", "%"],
    ["F1", "bar"],
  ];
  return section(
    "Spans",
    "Whole spans, by type.",
    sortableTable(
      "spans",
      head,
      chunks.types.map((row) => ({ cells: [visible(row[0]), ...row.slice(1)] })),
      1,
    ),
  );
}

function predictedOnly(data, go) {
  const f = data.summary.figures;
  const rows = f.predicted
    .map((n, k) => ({ cells: [data.labels[k], n, n / f.n_variables], pick: () => go({ predicted: k }) }))
    .filter((row) => row.cells[1]);
  return section(
    "Predicted labels",
    "The data have no true labels.",
    sortableTable(
      "labels",
      [
        ["label", "text"],
        ["predicted", "n"],
        ["share", "bar"],
      ],
      rows,
      1,
    ),
  );
}

function calibration(data) {
  const bins = data.summary.figures.calibration;
  const [size, left, bottom] = [180, 34, 26];
  const x = (v) => left + v * size;
  const y = (v) => 8 + (1 - v) * size;
  const most = Math.max(...bins.map((bin) => bin[0]), 1);
  const ticks = [0, 0.5, 1].flatMap((v) => [
    svg("text", { x: x(v), y: y(0) + 16, class: "tick", "text-anchor": "middle" }, String(v)),
    svg("text", { x: left - 6, y: y(v) + 4, class: "tick", "text-anchor": "end" }, String(v)),
  ]);
  const points = bins
    .filter((bin) => bin[0])
    .map(([n, mean, right]) =>
      svg(
        "circle",
        { cx: x(mean), cy: y(right), r: 3 + 6 * Math.sqrt(n / most), class: "point" },
        svg("title", {}, `${count(n)} with P near ${mean.toFixed(2)}: ${percent(right)} right`),
      ),
    );
  return section(
    "Calibration",
    "Across: P of predicted labels. Up: share that is right. On the line, both agree; large dots stand for many labels.",
    svg(
      "svg",
      {
        viewBox: `0 0 ${left + size + 14} ${size + bottom + 12}`,
        class: "calibration",
        role: "img",
        "aria-label": "calibration",
      },
      svg("rect", { x: left, y: 8, width: size, height: size, class: "frame" }),
      svg("line", { x1: x(0), y1: y(0), x2: x(1), y2: y(1), class: "diagonal" }),
      ticks,
      points,
    ),
  );
}

export function overview(data, go) {
  return h(
    "div",
    { class: "view", id: "overview" },
    tiles(data),
    starters(data, go),
    h(
      "div",
      { class: "columns" },
      h("div", {}, data.hasGold ? [spans(data), classes(data, go)] : predictedOnly(data, go)),
      data.hasGold && h("div", {}, confusionTable(data, go), calibration(data)),
    ),
    h(
      "p",
      { class: "foot" },
      `${data.summary.model}, chordal ${data.summary.version}. The data are inside this file; nothing is sent anywhere.`,
    ),
  );
}
