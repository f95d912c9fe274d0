// Sequences of words.

import { wordFinder } from "./contains.js";
import { explainChain } from "./explain.js";
import { wordsLine } from "./line.js";
import { sequenceView } from "./sequence.js";

export const words = {
  unit: "token",
  rowHeight: 62,
  tables: "Transitions",
  lossNote: "−log P(true labels), per example",
  confidenceNote: "P of an example's least sure token",
  contains: () => "Contains word…",
  finder: wordFinder,
  token: (data, i, t) => data.names[data.list.tokens[data.offsets[i] + t]],
  first: () => 0,
  line: wordsLine,
  view: sequenceView,
  explain: explainChain,
};
