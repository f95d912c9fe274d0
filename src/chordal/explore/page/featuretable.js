// The columns of one row, as a table: values, and weights for a label.

import { h, replace } from "./dom.js";
import { sortableTable } from "./table.js";
import { count, visible } from "./text.js";
import { Weights } from "./weights.js";

const SHOWN = 200;

async function fill(content, data, i, t, details) {
  const weights = await Weights.of(data);
  details.rows ??= await weights.rows(i);
  const names = weights.parts.node?.names;
  if (!details.rows || !names) return replace(content);
  const found = data.own.weighed?.(data, t) ?? data.predicted(i, t);
  const rows = weights.attributes(details.rows, "node", t).map(([id, value]) => {
    const weight = weights.weight("node", id, found);
    return { cells: [visible(names[id]), value, weight, value * weight] };
  });
  rows.sort((a, b) => Math.abs(b.cells[3]) - Math.abs(a.cells[3]));
  const head = [
    ["column", "text"],
    ["value", "x"],
    ["weight", "x"],
    ["product", "x"],
  ];
  return replace(
    content,
    h("h3", {}, "Features"),
    h(
      "p",
      { class: "note" },
      "Columns that are not zero, with their weights for ",
      h("bdi", {}, data.labels[found]),
      rows.length > SHOWN && `; the first ${SHOWN} of ${count(rows.length)}`,
      ".",
    ),
    sortableTable("row", head, rows.slice(0, SHOWN), 3),
  );
}

export function featureTable(data, i, t, details) {
  const content = h("section", { class: "part", id: "row-features" });
  fill(content, data, i, t, details);
  return content;
}
