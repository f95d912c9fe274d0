// Sequences of small images.

import { explainChain } from "./explain.js";
import { lettersLine } from "./line.js";
import { sequenceView } from "./sequence.js";

export const letters = {
  unit: "letter",
  rowHeight: 62,
  tables: "Transitions",
  lossNote: "−log P(true labels), per example",
  confidenceNote: "P of an example's least sure letter",
  contains: () => null,
  token: (data, i, t) => `letter ${t + 1}`,
  first: () => 0,
  line: lettersLine,
  view: sequenceView,
  explain: explainChain,
};
