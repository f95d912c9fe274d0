// Graphs of nodes.

import { wordFinder } from "./contains.js";
import { explainNode } from "./explainnode.js";
import { graphView } from "./graphview.js";
import { graphLine } from "./line.js";

export const graph = {
  unit: "node",
  rowHeight: 62,
  tables: "Neighbours",
  lossNote: "−log P(true label), mean of nodes",
  confidenceNote: "P(predicted label), mean of nodes",
  contains: ({ summary }) => (summary.numbered ? null : "Contains node…"),
  finder: wordFinder,
  token: (data, i, t) => data.names[data.list.tokens[data.offsets[i] + t]],
  // Sets of labels follow each other, and each node has a label of its own set.
  set: (data, i, t) => {
    const label = data.predicted(i, t);
    return data.summary.sets.findLastIndex(([, first]) => first <= label);
  },
  first: () => 0,
  line: graphLine,
  view: graphView,
  explain: explainNode,
};
