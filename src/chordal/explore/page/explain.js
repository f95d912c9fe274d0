// Why one label rather than another: the log-odds of two labels as a sum of contributions.

import { messages } from "./chain.js";
import { visible } from "./text.js";

// Scores of an example: labels at positions, steps, messages.
function scored(data, weights, rows, i) {
  const n = data.nClasses;
  const size = data.list.sizes[i];
  const node = new Float64Array(size * n);
  const { intercept, start, end, transitions } = data.tables;
  for (let t = 0; t < size; t++) {
    if (rows.scores) {
      for (let a = 0; a < n; a++) node[t * n + a] = rows.scores[t * n + a];
      continue;
    }
    weights.add(rows, "node", t, node, t * n);
    for (let a = 0; a < n; a++) {
      node[t * n + a] +=
        (intercept?.[0][a] ?? 0) +
        (t === 0 ? (start?.[0][a] ?? 0) : 0) +
        (t === size - 1 ? (end?.[0][a] ?? 0) : 0);
    }
  }
  const plain = Float64Array.from(transitions.flat());
  const pair = (t) => {
    if (!rows.edge) return plain;
    const table = plain.slice();
    weights.add(rows, "edge", t, table);
    return table;
  };
  return { node, ...messages(node, pair, size, n) };
}

function observed(data, weights, rows, t, a, b) {
  if (!rows.scores) return attributesOf(data, weights, rows, t, a, b);
  const at = t * data.nClasses;
  return [
    {
      name: "the model's score of this position",
      kind: "score",
      value: rows.scores[at + a] - rows.scores[at + b],
    },
  ];
}

// What each attribute of a variable adds to the log-odds of two labels.
export function attributesOf(data, weights, rows, t, a, b) {
  const out = [];
  for (const [id, value] of weights.attributes(rows, "node", t)) {
    const by = value * (weights.weight("node", id, a) - weights.weight("node", id, b));
    out.push({
      name: visible(weights.parts.node.names[id]),
      raw: weights.parts.node.names[id],
      about: weights.meaning(weights.parts.node.names[id]),
      kind: "attribute",
      times: value,
      value: by,
    });
  }
  return out;
}

function constants(data, t, size, a, b) {
  const { intercept, start, end } = data.tables;
  const found = [
    [intercept, "intercept", true],
    [start, "first position", t === 0],
    [end, "last position", t === size - 1],
  ];
  return found
    .filter(([table, , here]) => table && here)
    .map(([table, name]) => ({ name, kind: "constant", value: table[0][a] - table[0][b] }));
}

// { items: [{ name, kind, value }], total, exact }: `total` is log P(a) − log P(b) at position t.
export function explainChain(data, weights, rows, i, t, a, b) {
  const n = data.nClasses;
  const size = data.list.sizes[i];
  rows.scored ??= scored(data, weights, rows, i);
  const { left, right, node, logZ } = rows.scored;
  const items = observed(data, weights, rows, t, a, b);
  if (!rows.scores) items.push(...constants(data, t, size, a, b));
  const at = t * n;
  if (t > 0)
    items.push({
      name: "labels before (incoming message)",
      kind: "message",
      value: left[at + a] - left[at + b],
    });
  if (t < size - 1)
    items.push({
      name: "labels after (outgoing message)",
      kind: "message",
      value: right[at + a] - right[at + b],
    });
  const probability = (k) => Math.exp(node[at + k] + left[at + k] + right[at + k] - logZ);
  const total = items.reduce((sum, item) => sum + item.value, 0);
  return { items, total, probabilities: [probability(a), probability(b)] };
}

// On a grid, what features do not explain comes from the neighbours.
export function explainGrid(data, weights, rows, i, t, a, b, { marginals }) {
  const items = observed(data, weights, rows, t, a, b);
  items.push(...constants(data, -1, 0, a, b));
  const chance = new Map(marginals[t]);
  const total = Math.log(chance.get(a)) - Math.log(chance.get(b));
  const own = items.reduce((sum, item) => sum + item.value, 0);
  items.push({ name: "neighbours", kind: "message", value: total - own });
  return { items, total, probabilities: [chance.get(a), chance.get(b)] };
}
