// Rows of a table or documents, each with one label.

import { rowFinder } from "./contains.js";
import { explainNode } from "./explainnode.js";
import { rowLine } from "./line.js";
import { rowView } from "./rowview.js";

export const row = {
  unit: "row",
  single: true,
  rowHeight: 62,
  tables: "Intercept",
  lossNote: "−log P(true label)",
  confidenceNote: "P(predicted label)",
  errors: (n) => (n ? "wrong" : "right"),
  contains: ({ facts }) => (facts.texts ? "Contains word…" : facts.features ? "Contains feature…" : null),
  finder: rowFinder,
  token: () => "this row",
  weighed: (data) => (data.nClasses === 2 ? 1 : null), // of two classes, the second has the weights
  first: () => 0,
  line: rowLine,
  view: rowView,
  explain: explainNode,
};
