// Weights of transitions, or of neighbours: from rows to columns.

import { h } from "./dom.js";
import { section } from "./section.js";
import { signed } from "./text.js";

const TITLES = {
  transitions: "Transitions",
  intercept: "Intercept",
  start: "First position",
  end: "Last position",
  edges: "Neighbours",
};
const NOTES = {
  transitions: "From the label of a row to the label of a column. Blue speaks for it, orange against.",
  edges: "Labels of neighbouring pixels.",
};

function table(data, name, rows, bound) {
  const most = Math.max(...rows.flat().map(Math.abs), 1e-9);
  const square = rows.length > 1;
  const cell = (w, text) =>
    h(
      "td",
      {
        class: `weight ${w < 0 ? "against" : w > 0 ? "for" : "none"}`,
        style: { "--share": String(Math.abs(w) / most) },
        title: `${text}: ${signed(w, 4)}`,
        "data-weight": w,
      },
      w === 0 ? "·" : signed(w, 1),
    );
  return section(
    TITLES[name] ?? name,
    NOTES[name],
    h(
      "div",
      { class: "scroll" },
      h(
        "table",
        { class: "matrix", "data-table": name },
        h(
          "thead",
          {},
          h(
            "tr",
            {},
            square && h("td", {}),
            data.labels
              .slice(0, bound)
              .map((label) => h("th", { scope: "col" }, h("span", {}, h("bdi", {}, label)))),
          ),
        ),
        h(
          "tbody",
          {},
          rows.map((row, a) =>
            h(
              "tr",
              {},
              square && h("th", { scope: "row" }, h("bdi", {}, data.labels[a])),
              row.map((w, b) => cell(w, square ? `${data.labels[a]} → ${data.labels[b]}` : data.labels[b])),
            ),
          ),
        ),
      ),
    ),
  );
}

export function transitionsView(data) {
  const tables = Object.entries(data.tables);
  return h(
    "div",
    { class: "view", id: "transitions" },
    tables.length
      ? tables.map(([name, rows]) => table(data, name, rows, data.nClasses))
      : h("p", { class: "nothing" }, "This model has no weights without observation."),
  );
}
