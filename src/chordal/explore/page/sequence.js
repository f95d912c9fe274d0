// One sequence: its tokens or letters with their labels, lattice, best labellings and explanation.

import { h } from "./dom.js";
import { letterCanvas } from "./canvas.js";
import { explanation } from "./explanation.js";
import { lattice } from "./lattice.js";
import { bestLabellings } from "./paths.js";
import { probability } from "./text.js";

function chip(data, colours, label, name) {
  return h(
    "span",
    { class: `chip ${name}`, style: { "--c": `var(--c${colours[label] ?? 7})` } },
    h("bdi", {}, data.labels[label]),
  );
}

function tokens(data, colours, i, position, choose) {
  return h(
    "div",
    { class: "tokens", role: "group", "aria-label": "positions" },
    Array.from({ length: data.list.sizes[i] }, (_, t) => {
      const wrong = data.isWrong(i, t);
      return h(
        "button",
        {
          type: "button",
          class: wrong ? "token wrong" : "token",
          "data-position": t,
          "aria-pressed": String(t === position),
          on: { click: () => choose(t) },
        },
        data.kind === "letters" ? letterCanvas(data, i, t) : h("bdi", { class: "word" }, data.token(i, t)),
        h(
          "span",
          { class: "tags" },
          chip(data, colours, data.predicted(i, t), "found"),
          wrong && [
            h("span", { class: "cross", "aria-label": "wrong; true:" }, "✗"),
            chip(data, colours, data.gold(i, t), "true"),
          ],
        ),
      );
    }),
  );
}

function marginals(data, colours, t, details) {
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

export function sequenceView(data, colours, i, state, details, act) {
  const { position, path } = state;
  return [
    tokens(data, colours, i, position, act.position),
    h(
      "section",
      { class: "part" },
      h("h3", {}, "Lattice"),
      h(
        "p",
        { class: "legend" },
        h("span", { class: "key best" }),
        "predicted",
        data.hasGold && [h("span", { class: "key gold" }), "true"],
        h("span", { class: "key shade" }),
        "probability",
      ),
      lattice(data, i, details, position, path, act.position),
      marginals(data, colours, position, details),
    ),
    bestLabellings(data, i, details, path, act.path, act.position),
    explanation(data, i, position, details, act.lookup),
  ];
}
