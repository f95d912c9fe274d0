// Labels as chips, their probabilities, and the colours that stand for them.

import { h } from "./dom.js";
import { probability } from "./text.js";

export function chip(data, colours, label, name) {
  return h(
    "span",
    { class: `chip ${name}`, style: { "--c": `var(--c${colours[label] ?? 7})` } },
    h("bdi", {}, data.labels[label]),
  );
}

// The predicted label, and the true one beside it if it differs.
export function chips(data, colours, i, t) {
  return h(
    "span",
    { class: "tags" },
    chip(data, colours, data.predicted(i, t), "found"),
    data.isWrong(i, t) && [
      h("span", { class: "cross", "aria-label": "wrong; true:" }, "✗"),
      chip(data, colours, data.gold(i, t), "true"),
    ],
  );
}

// Probabilities of the labels of one variable.
export function marginalsList(data, colours, t, details) {
  const own = details.marginals[t].filter(([, p]) => p >= data.summary.least);
  const rest = 1 - own.reduce((sum, [, p]) => sum + p, 0);
  return h(
    "ul",
    { class: "marginals" },
    own.map(([label, p]) =>
      h(
        "li",
        {},
        chip(data, colours, label, "found"),
        h("span", { class: "bar", style: { "--share": String(p) } }, probability(p)),
      ),
    ),
    rest > 0.0005 && h("li", { class: "faint" }, `others ${probability(rest)}`),
  );
}

// The colours of the labels that an example has.
export function legend(data, colours, i) {
  const used = new Set(data.list.predicted.subarray(data.offsets[i], data.offsets[i + 1]));
  if (data.hasGold)
    for (const label of data.list.gold.subarray(data.offsets[i], data.offsets[i + 1])) used.add(label);
  used.delete(data.unobserved);
  return h(
    "ul",
    { class: "labels" },
    [...used]
      .sort((a, b) => a - b)
      .map((label) =>
        h(
          "li",
          {},
          h("span", { class: "swatch", style: { "--c": `var(--g${colours[label]})` } }),
          h("bdi", {}, data.labels[label]),
        ),
      ),
  );
}
