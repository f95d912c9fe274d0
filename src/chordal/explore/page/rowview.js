// One row: its text or image, the probabilities of its label, why, and its columns.

import { letterCanvas } from "./canvas.js";
import { chips, marginalsList } from "./chip.js";
import { h } from "./dom.js";
import { explanation } from "./explanation.js";
import { featureTable } from "./featuretable.js";
import { visible } from "./text.js";

// The text and the image of a row, where there are any.
export function rowHead(data, i) {
  const text = data.facts.texts?.[i];
  return [
    data.summary.width && h("div", { class: "rowimage" }, letterCanvas(data, i, 0)),
    text !== undefined && h("blockquote", { class: "rowtext" }, h("bdi", {}, visible(text))),
  ];
}

export function rowView(data, colours, i, state, details, act) {
  return [
    ...rowHead(data, i),
    h(
      "section",
      { class: "part" },
      h("h3", {}, "Label"),
      chips(data, colours, i, 0),
      marginalsList(data, colours, 0, details),
    ),
    explanation(data, i, 0, details, act.lookup),
    featureTable(data, i, 0, details),
  ];
}
