// The lattice of one sequence: a column per position, a row per label, shaded by its probability.

import { h, svg } from "./dom.js";
import { probability } from "./text.js";

const [WIDTH, HEIGHT, TOP] = [62, 24, 22];

// Scroll sideways, so that a position is in the middle.
export function reveal(node, position) {
  const gutter = node.firstElementChild.clientWidth;
  node.scrollLeft = position * WIDTH - (node.clientWidth - gutter - WIDTH) / 2;
}

const SHOWN = 0.05;

function labelsOf(data, i, details) {
  const used = new Set();
  details.marginals.forEach((own, t) => {
    for (const [label, p] of own) if (p >= SHOWN) used.add(label);
    used.add(data.predicted(i, t));
    const gold = data.gold(i, t);
    if (gold !== data.unobserved) used.add(gold);
  });
  for (const path of details.paths) for (const label of path.labels) used.add(label);
  return [...used].sort((a, b) => a - b);
}

// path: which of the best labellings is drawn beside the predicted one, or −1.
export function lattice(data, i, details, position, path, choose) {
  const labels = labelsOf(data, i, details);
  const row = new Map(labels.map((label, k) => [label, k]));
  const size = data.list.sizes[i];
  const x = (t) => t * WIDTH + WIDTH / 2;
  const y = (label) => TOP + row.get(label) * HEIGHT + HEIGHT / 2;
  const height = TOP + labels.length * HEIGHT + 4;
  const line = (get, name) => {
    const points = [];
    for (let t = 0; t < size; t++) if (row.has(get(t))) points.push(`${x(t)},${y(get(t))}`);
    return svg("polyline", { points: points.join(" "), class: `path ${name}` });
  };
  const cells = details.marginals.flatMap((own, t) =>
    own
      .filter(([label]) => row.has(label))
      .map(([label, p]) =>
        svg(
          "g",
          {},
          svg("rect", {
            x: t * WIDTH + 2,
            y: y(label) - HEIGHT / 2 + 2,
            width: WIDTH - 4,
            height: HEIGHT - 4,
            rx: 4,
            class: "ground",
          }),
          svg("rect", {
            x: t * WIDTH + 2,
            y: y(label) - HEIGHT / 2 + 2,
            width: WIDTH - 4,
            height: HEIGHT - 4,
            rx: 4,
            class: "cell",
            "fill-opacity": Math.max(p, 0.03).toFixed(3),
          }),
          p >= 0.005 &&
            svg(
              "text",
              { x: x(t), y: y(label) + 4, class: p > 0.72 ? "p on" : "p", "text-anchor": "middle" },
              p >= 0.995 ? "1" : p.toFixed(2).slice(1),
            ),
          svg("title", {}, `${data.labels[label]}: ${probability(p)}`),
        ),
      ),
  );
  const marks = [];
  for (let t = 0; t < size; t++) {
    marks.push(
      svg("rect", {
        x: t * WIDTH + 2,
        y: y(data.predicted(i, t)) - HEIGHT / 2 + 2,
        width: WIDTH - 4,
        height: HEIGHT - 4,
        rx: 4,
        class: "best",
      }),
    );
    if (data.isWrong(i, t))
      marks.push(
        svg("rect", {
          x: t * WIDTH + 2,
          y: y(data.gold(i, t)) - HEIGHT / 2 + 2,
          width: WIDTH - 4,
          height: HEIGHT - 4,
          rx: 4,
          class: "gold",
        }),
      );
  }
  const heads = Array.from({ length: size }, (_, t) => {
    const token = data.token(i, t);
    const short = [...token].length > 8 ? `${[...token].slice(0, 7).join("")}…` : token;
    return svg(
      "text",
      { x: x(t), y: 14, class: data.isWrong(i, t) ? "head wrong" : "head", "text-anchor": "middle" },
      data.kind === "letters" ? String(t + 1) : short,
      svg("title", {}, token),
    );
  });
  const hits = Array.from({ length: size }, (_, t) =>
    svg(
      "rect",
      {
        x: t * WIDTH,
        y: 0,
        width: WIDTH,
        height,
        class: t === position ? "hit here" : "hit",
        "data-position": t,
        on: { click: () => choose(t) },
      },
      svg("title", {}, data.token(i, t)),
    ),
  );
  return h(
    "div",
    { class: "lattice", tabindex: "0", role: "group", "aria-label": "lattice" },
    h(
      "div",
      { class: "gutter" },
      labels.map((label) => h("bdi", {}, data.labels[label])),
    ),
    svg(
      "svg",
      { width: size * WIDTH, height, viewBox: `0 0 ${size * WIDTH} ${height}` },
      hits.filter((_, t) => t === position),
      data.hasGold && line((t) => data.gold(i, t), "true"),
      line((t) => data.predicted(i, t), "found"),
      path >= 0 && details.paths[path] && line((t) => details.paths[path].labels[t], "other"),
      cells,
      marks,
      heads,
      hits.filter((_, t) => t !== position),
    ),
  );
}
