// Why a variable of a graph, or a row, has one label and not another: beside its neighbours' labels.

import { cliquesAt } from "./cliques.js";
import { attributesOf } from "./explain.js";

const minus = (a, b) => (a === b ? 0 : a - b); // two labels that are both forbidden do not differ

function softmax(scores) {
  const high = Math.max(...scores);
  const shares = scores.map((s) => Math.exp(s - high));
  const sum = shares.reduce((x, y) => x + y, 0);
  return shares.map((s) => s / sum);
}

function linkName(data, i, others) {
  const plain = (u) => `${data.token(i, u)} = ${data.labels[data.predicted(i, u)]}`;
  return `with ${others.map((u) => data.own.beside?.(data, i, u) ?? plain(u)).join(", ")}`;
}

// `total` is log P(a) − log P(b) given the predicted labels of all others; of rows, there are none.
export function explainNode(data, weights, rows, i, t, a, b, details) {
  const [, first, n] = data.setOf(i, t);
  const at = data.stateOf(i, t);
  const own = Array.from(rows.scores.subarray(at, at + n));
  const items = attributesOf(data, weights, rows, t, a, b);
  const left = items.reduce((rest, item) => rest - item.value, minus(own[a - first], own[b - first]));
  const named = weights.parts.node?.weights.length;
  items.push({ name: named ? "intercept" : "the model's score", kind: "constant", value: left });
  const all = own.slice();
  for (const { clique, place } of cliquesAt(details, t)) {
    const column = rows.links.subarray(clique.cells[place], clique.cells[place] + n);
    const others = clique.members.filter((u) => u !== t);
    items.push({
      name: linkName(data, i, others),
      kind: "message",
      value: minus(column[a - first], column[b - first]),
    });
    column.forEach((score, k) => {
      all[k] += score;
    });
  }
  const chances = softmax(all);
  const total = items.reduce((sum, item) => sum + item.value, 0);
  const given = items.some((item) => item.kind === "message") ? "beside the labels of its neighbours" : "";
  return { items, total, given, probabilities: [chances[a - first], chances[b - first]] };
}
