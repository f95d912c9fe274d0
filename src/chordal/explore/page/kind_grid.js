// Grids of pixels.

import { explainGrid } from "./explain.js";
import { gridView } from "./gridview.js";
import { gridLine } from "./line.js";
import { percent } from "./text.js";

export const grid = {
  unit: "pixel",
  rowHeight: 84,
  tables: "Neighbours",
  lossNote: "−log P(true label), per pixel",
  confidenceNote: "P(predicted label), mean of pixels",
  contains: () => null,
  errors: (n, size) => percent(n / size),
  token: () => "this pixel",
  first: ({ list }, i) => Math.floor(list.heights[i] / 2) * list.widths[i] + Math.floor(list.widths[i] / 2),
  line: gridLine,
  view: gridView,
  explain: explainGrid,
};
