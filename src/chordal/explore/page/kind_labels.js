// Rows of a table or documents, each with any number of labels.

import { rowFinder } from "./contains.js";
import { explainNode } from "./explainnode.js";
import { labelsView } from "./labelsview.js";
import { labelsLine } from "./line.js";
import { visible } from "./text.js";

export const labels = {
  unit: "label",
  rowHeight: 62,
  tables: "Together",
  lossNote: "−log P(present or absent), mean of labels",
  confidenceNote: "P of a row's least sure label",
  contains: ({ facts }) => (facts.texts ? "Contains word…" : facts.features ? "Contains feature…" : null),
  finder: rowFinder,
  token: (data, i, t) => visible(data.summary.sets[t][0]),
  set: (data, i, t) => t,
  weighed: (data, t) => data.summary.sets[t][1] + 1, // weights are for presence
  beside: (data, i, t) => data.labels[data.predicted(i, t)],
  present: (data, i, t) => data.predicted(i, t) % 2 === 1,
  listed: (label) => label % 2 === 1, // in the table of labels: those that are present
  colours: (names) => names.map((_, k) => (k % 2 ? (k >> 1) % 7 : 7)),
  first: (data, i) => {
    for (let t = 0; t < data.list.sizes[i]; t++) if (data.predicted(i, t) % 2) return t;
    return 0;
  },
  line: labelsLine,
  view: labelsView,
  explain: explainNode,
};
