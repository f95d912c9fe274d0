// Weights of transitions, or of neighbours: from rows to columns.

import { h } from "./dom.js";
import { section } from "./section.js";
import { isShort, signed, visible } from "./text.js";

const TITLES = {
  transitions: "Transitions",
  intercept: "Intercept",
  start: "First position",
  end: "Last position",
  nodes: "Nodes",
  edges: "Neighbours",
  together: "Labels that occur together",
};
const NOTES = {
  transitions: "From the label of a row to the label of a column. Blue speaks for it, orange against.",
  edges: "Labels of neighbours.",
  together: "How much two joined labels speak for each other.",
};

// Names of the rows and columns of a table; by default all labels of the model.
function axesOf(data, name) {
  const labels = data.labels.slice(0, data.nClasses);
  return data.summary.axes[name]?.map((own) => own.map(visible)) ?? [labels, labels];
}

function table(data, name, rows) {
  const [down, across] = axesOf(data, name);
  const most = Math.max(...rows.flat().map(Math.abs), 1e-9);
  const square = rows.length > 1 || (name in data.summary.axes && down.length > 0);
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
        { class: isShort(across) ? "matrix short" : "matrix", "data-table": name },
        h(
          "thead",
          {},
          h(
            "tr",
            {},
            square && h("td", {}),
            across.map((label) => h("th", { scope: "col" }, h("span", {}, h("bdi", {}, label)))),
          ),
        ),
        h(
          "tbody",
          {},
          rows.map((row, a) =>
            h(
              "tr",
              {},
              square && h("th", { scope: "row" }, h("bdi", {}, down[a])),
              row.map((w, b) => cell(w, square ? `${down[a]} → ${across[b]}` : across[b])),
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
      ? tables.map(([name, rows]) => table(data, name, rows))
      : h("p", { class: "nothing" }, "This model has no weights without observation."),
  );
}
