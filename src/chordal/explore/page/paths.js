// The best labellings of a sequence or graph, by where they differ from the first.

import { h } from "./dom.js";
import { probability } from "./text.js";

const MOST = 6; // differences that are written out

function differences(data, i, path, best) {
  const out = [];
  path.labels.forEach((label, t) => {
    if (label !== best.labels[t]) out.push([t, label]);
  });
  return out;
}

function isTrue(data, i, path) {
  return data.hasGold && path.labels.every((label, t) => label === data.gold(i, t));
}

export function bestLabellings(data, i, details, chosen, choose, goTo) {
  if (!details.paths.length) return null;
  const rows = details.paths.map((path, k) => {
    const found = differences(data, i, path, details.paths[0]);
    const text =
      k === 0
        ? [h("span", { class: "faint" }, "the best labelling")]
        : found.slice(0, MOST).map(([t, label]) =>
            h(
              "button",
              {
                type: "button",
                class: "link change",
                on: {
                  click: (event) => {
                    event.stopPropagation();
                    goTo(t);
                  },
                },
              },
              h("bdi", {}, data.token(i, t)),
              " ",
              h("b", {}, h("bdi", {}, data.labels[label])),
            ),
          );
    if (found.length > MOST) text.push(h("span", { class: "faint" }, `and ${found.length - MOST} more`));
    return h(
      "li",
      { class: k === chosen ? "path chosen" : "path" },
      h(
        "button",
        {
          type: "button",
          class: "rank",
          "aria-pressed": String(k === chosen),
          title: "show this labelling",
          on: { click: () => choose(k === chosen ? -1 : k) },
        },
        String(k + 1),
      ),
      h("span", { class: "chance" }, probability(path.probability)),
      h("span", { class: "changes" }, text, isTrue(data, i, path) && h("em", {}, "✓ the true labels")),
    );
  });
  return h(
    "section",
    { class: "part", id: "paths" },
    h("h3", {}, "Best labellings"),
    h("ol", { class: "paths" }, rows),
  );
}
