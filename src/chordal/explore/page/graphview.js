// One graph: its drawing, its nodes, and the node that is chosen with its neighbours.

import { chips, legend, marginalsList } from "./chip.js";
import { neighboursOf } from "./cliques.js";
import { h } from "./dom.js";
import { explanation } from "./explanation.js";
import { drawing } from "./graphdrawing.js";
import { NodeList } from "./nodelist.js";
import { bestLabellings } from "./paths.js";
import { count, visible } from "./text.js";

const SHOWN = 40; // neighbours

function neighbours(data, colours, i, t, details, choose) {
  const found = neighboursOf(details, t);
  return h(
    "div",
    { class: "neighbours", role: "group", "aria-label": "neighbours" },
    found.slice(0, SHOWN).map((u) =>
      h(
        "button",
        { type: "button", "data-neighbour": u, on: { click: () => choose(u) } },
        h("bdi", {}, data.token(i, u)),
        chips(data, colours, i, u),
      ),
    ),
    found.length > SHOWN && h("span", { class: "faint" }, `and ${count(found.length - SHOWN)} more`),
    !found.length && h("span", { class: "faint" }, "no neighbours"),
  );
}

function chosen(data, colours, i, t, details, choose) {
  const type = data.summary.types?.length ? `, ${visible(data.setOf(i, t)[0])}` : "";
  return h(
    "section",
    { class: "part", id: "node" },
    h("h3", {}, h("bdi", {}, data.token(i, t)), type),
    marginalsList(data, colours, t, details),
    data.isWrong(i, t) && h("p", { class: "bad" }, "true: ", h("bdi", {}, data.labels[data.gold(i, t)])),
    h("h3", {}, "Neighbours"),
    neighbours(data, colours, i, t, details, choose),
  );
}

export function graphView(data, colours, i, state, details, act) {
  const { position } = state;
  details.nodeList ??= new NodeList(data, colours, i, details, (t) => act.position(t));
  const picture = drawing(data, colours, i, state, details, act.position);
  queueMicrotask(() => details.nodeList.mark(position));
  return [
    picture ?? h("p", { class: "note" }, "This graph is too large to draw without positions of its nodes."),
    legend(data, colours, i),
    h(
      "div",
      { class: "beside" },
      details.nodeList.node,
      chosen(data, colours, i, position, details, act.position),
    ),
    explanation(data, i, position, details, act.lookup),
    bestLabellings(data, i, details, state.path, act.path, act.position),
  ];
}
