// One row with its labels: how probable each is, why one is present or absent, and its columns.

import { h } from "./dom.js";
import { explanation } from "./explanation.js";
import { featureTable } from "./featuretable.js";
import { rowHead } from "./rowview.js";
import { probability } from "./text.js";

function chanceOf(data, i, t, details) {
  const label = data.summary.sets[t][1] + 1;
  return details.marginals[t].find(([own]) => own === label)?.[1] ?? 0;
}

function button(data, i, t, p, position, choose) {
  const wrong = data.isWrong(i, t);
  const present = data.own.present(data, i, t);
  return h(
    "button",
    {
      type: "button",
      class: `token labelled ${present ? "present" : ""} ${wrong ? "wrong" : ""}`,
      "data-position": t,
      "aria-pressed": String(t === position),
      on: { click: () => choose(t) },
    },
    h("bdi", { class: "word" }, data.token(i, t)),
    h("span", { class: "bar", style: { "--share": String(p) } }, probability(p)),
    wrong && h("span", { class: "cross" }, present ? "✗ not true" : "✗ missed"),
  );
}

export function labelsView(data, colours, i, state, details, act) {
  const { position } = state;
  const all = Array.from({ length: data.list.sizes[i] }, (_, t) => [t, chanceOf(data, i, t, details)]);
  all.sort((a, b) => b[1] - a[1] || a[0] - b[0]);
  return [
    ...rowHead(data, i),
    h("p", { class: "note" }, "Predicted labels have a frame. The number is the probability of the label."),
    h(
      "div",
      { class: "tokens", role: "group", "aria-label": "labels" },
      all.map(([t, p]) => button(data, i, t, p, position, act.position)),
    ),
    explanation(data, i, position, details, act.lookup),
    featureTable(data, i, position, details),
  ];
}
