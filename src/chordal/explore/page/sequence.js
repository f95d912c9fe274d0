// One sequence: its tokens or letters with their labels, lattice, best labellings and explanation.

import { h } from "./dom.js";
import { letterCanvas } from "./canvas.js";
import { chips, marginalsList } from "./chip.js";
import { explanation } from "./explanation.js";
import { lattice } from "./lattice.js";
import { bestLabellings } from "./paths.js";

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
        chips(data, colours, i, t),
      );
    }),
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
      marginalsList(data, colours, position, details),
    ),
    bestLabellings(data, i, details, path, act.path, act.position),
    explanation(data, i, position, details, act.lookup),
  ];
}
