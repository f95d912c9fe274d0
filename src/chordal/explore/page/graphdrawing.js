// A graph drawn: nodes in the colours of their labels, paler where the model is less sure.

import { h, svg } from "./dom.js";
import { layout } from "./layout.js";

const SIZE = 320;
const ARRANGED = 200; // nodes that the page arranges
const DRAWN = 4000; // nodes whose positions the data give
const NAMED = 30; // nodes that have their names beside them
const JOINED = 6; // members of cliques that are drawn as lines

function edgesOf(details) {
  return details.cliques.flatMap(({ members }) => {
    if (members.length < 2 || members.length > JOINED) return [];
    if (members.length === 2) return [members];
    return members.map((t, k) => [t, members[(k + 1) % members.length]]);
  });
}

// Points of the nodes, and edges; null for graphs that are too large to draw.
function placed(data, i, details) {
  const n = data.list.sizes[i];
  if (n > (details.positions ? DRAWN : ARRANGED)) return null;
  const edges = edgesOf(details);
  return { edges, points: layout(n, edges, details.positions, SIZE) };
}

// path: which of the best labellings is drawn instead of the predicted one, or −1.
export function drawing(data, colours, i, { position, path }, details, choose) {
  if (details.placed === undefined) details.placed = placed(data, i, details);
  if (!details.placed) return null;
  const { points, edges } = details.placed;
  const radius = Math.max(2.5, Math.min(11, (0.32 * SIZE) / Math.sqrt(points.length)));
  const picture = (name, labelOf, shadeOf) => {
    const lines = edges.map(([a, b]) =>
      svg("line", { x1: points[a][0], y1: points[a][1], x2: points[b][0], y2: points[b][1], class: "edge" }),
    );
    const nodes = points.map(([x, y], t) => {
      const label = labelOf(t);
      const known = label !== data.unobserved;
      return svg(
        "g",
        { class: "node", "data-node": t, on: { click: () => choose(t) } },
        svg("circle", { cx: x, cy: y, r: radius, class: "under" }),
        svg("circle", {
          cx: x,
          cy: y,
          r: radius,
          class: `${data.isWrong(i, t) ? "wrong" : ""} ${t === position ? "here" : ""}`,
          style: { fill: known ? `var(--g${colours[label]})` : "transparent" },
          "fill-opacity": shadeOf(t).toFixed(3),
        }),
        svg("title", {}, `${data.token(i, t)}: ${known ? data.labels[label] : "not known"}`),
      );
    });
    const names = points.map(([x, y], t) =>
      svg("text", { x: x + radius + 2, y: y + 4 }, [...data.token(i, t)].slice(0, 12).join("")),
    );
    const margin = radius + 8; // of the largest ring around a node
    const room = points.length <= NAMED ? 70 : margin;
    return h(
      "figure",
      { class: radius < 5 ? "graph tiny" : "graph" },
      svg(
        "svg",
        {
          viewBox: `${-margin} ${-margin} ${SIZE + margin + room} ${SIZE + 2 * margin}`,
          role: "img",
          "aria-label": `${name} labels`,
          "data-picture": name,
        },
        lines,
        nodes,
        points.length <= NAMED && names,
      ),
      h("figcaption", {}, name),
    );
  };
  const sure = (t) => {
    const found = details.marginals[t].find(([label]) => label === data.predicted(i, t));
    return 0.12 + 0.88 * (found ? found[1] : 0);
  };
  return h(
    "div",
    { class: "graphs" },
    path < 0
      ? picture("predicted", (t) => data.predicted(i, t), sure)
      : picture(
          `labelling ${path + 1}`,
          (t) => details.paths[path].labels[t],
          () => 1,
        ),
    data.hasGold &&
      picture(
        "true",
        (t) => data.gold(i, t),
        () => 1,
      ),
  );
}
