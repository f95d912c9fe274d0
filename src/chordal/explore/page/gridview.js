// One grid: image, true and predicted labels, errors and doubt; a click asks about a pixel.

import { h } from "./dom.js";
import { errorCanvas, imageCanvas, labelCanvas, sureCanvas } from "./canvas.js";
import { legend } from "./chip.js";
import { explanation } from "./explanation.js";
import { probability } from "./text.js";

function figure(data, i, state, act, name, canvas) {
  const [width, height] = [data.list.widths[i], data.list.heights[i]];
  const mark = h("span", {
    class: "pin",
    style: {
      left: `${(100 * ((state.position % width) + 0.5)) / width}%`,
      top: `${(100 * (Math.floor(state.position / width) + 0.5)) / height}%`,
    },
  });
  const pick = (event) => {
    const box = event.currentTarget.getBoundingClientRect();
    const column = Math.min(width - 1, Math.floor(((event.clientX - box.left) / box.width) * width));
    const row = Math.min(height - 1, Math.floor(((event.clientY - box.top) / box.height) * height));
    act.position(row * width + column);
  };
  return h(
    "figure",
    { class: "grid" },
    h("div", { class: "plate", "data-picture": name, on: { click: pick } }, canvas, mark),
    h("figcaption", {}, name),
  );
}

export function gridView(data, colours, i, state, details, act) {
  const { position } = state;
  const own = details.marginals[position] ?? [];
  const width = data.list.widths[i];
  const draw = (name, canvas) => figure(data, i, state, act, name, canvas);
  return [
    h(
      "div",
      { class: "grids" },
      details.pixels && draw("image", imageCanvas(data, i, details.pixels)),
      data.hasGold && draw("true", labelCanvas(data, colours, i, data.list.gold)),
      draw("predicted", labelCanvas(data, colours, i, data.list.predicted)),
      data.hasGold && draw("errors", errorCanvas(data, i)),
      draw("doubt", sureCanvas(data, i, details.marginals)),
    ),
    legend(data, colours, i),
    h(
      "section",
      { class: "part" },
      h("h3", {}, `Pixel at row ${Math.floor(position / width) + 1}, column ${(position % width) + 1}`),
      h(
        "ul",
        { class: "marginals" },
        own
          .slice(0, 6)
          .map(([label, p]) =>
            h(
              "li",
              {},
              h(
                "span",
                { class: "chip", style: { "--c": `var(--c${colours[label]})` } },
                h("bdi", {}, data.labels[label]),
              ),
              h("span", { class: "bar", style: { "--share": String(p) } }, probability(p)),
            ),
          ),
        data.isWrong(i, position) && h("li", {}, `true: ${data.labels[data.gold(i, position)]}`),
      ),
    ),
    explanation(data, i, position, details, act.lookup),
  ];
}
