// Confusion: true labels down, predicted ones across; each cell leads to its examples.

import { h } from "./dom.js";
import { section } from "./section.js";
import { count, isShort } from "./text.js";

const MOST = 48; // labels of a matrix; of more, the pairs alone are listed
const PAIRS = 12;

function pairs(data, wrong, go) {
  return h(
    "ol",
    { class: "pairs" },
    wrong
      .slice(0, PAIRS)
      .map(([gold, found, n]) =>
        h(
          "li",
          {},
          h(
            "button",
            { type: "button", class: "pair", on: { click: () => go({ gold, predicted: found }) } },
            h("bdi", {}, data.labels[gold]),
            h("span", { class: "arrow" }, " taken for "),
            h("bdi", {}, data.labels[found]),
            h("b", {}, count(n)),
          ),
        ),
      ),
  );
}

function matrix(data, cells, go) {
  const used = [...new Set(cells.flatMap(([gold, found]) => [gold, found]))].sort((a, b) => a - b);
  if (used.length > MOST) return null;
  const place = new Map(used.map((label, k) => [label, k]));
  const counts = new Map(cells.map(([gold, found, n]) => [gold * data.labels.length + found, n]));
  const most = Math.max(...cells.filter(([gold, found]) => gold !== found).map(([, , n]) => n), 1);
  const heading = (label) => h("th", { scope: "col" }, h("span", {}, h("bdi", {}, data.labels[label])));
  const cell = (gold, found) => {
    const n = counts.get(gold * data.labels.length + found) ?? 0;
    if (!n) return h("td", {});
    const share = gold === found ? 0 : 0.12 + 0.88 * Math.sqrt(n / most);
    const text = `${data.labels[gold]} taken for ${data.labels[found]}: ${count(n)}`;
    return h(
      "td",
      { class: gold === found ? "right" : "", style: { "--share": String(share) } },
      h(
        "button",
        {
          type: "button",
          title: text,
          "aria-label": text,
          "data-pair": `${place.get(gold)} ${place.get(found)}`,
          on: { click: () => go({ gold, predicted: found }) },
        },
        n > 9999 ? `${Math.round(n / 1000)}k` : String(n),
      ),
    );
  };
  return h(
    "div",
    { class: "scroll" },
    h(
      "table",
      { class: isShort(used.map((label) => data.labels[label])) ? "confusion short" : "confusion" },
      h("thead", {}, h("tr", {}, h("td", {}), used.map(heading))),
      h(
        "tbody",
        {},
        used.map((gold) =>
          h(
            "tr",
            {},
            h("th", { scope: "row" }, h("bdi", {}, data.labels[gold])),
            used.map((found) => cell(gold, found)),
          ),
        ),
      ),
    ),
  );
}

export function confusionTable(data, go) {
  const cells = data.summary.figures.confusion;
  const wrong = cells.filter(([gold, found]) => gold !== found).sort((a, b) => b[2] - a[2]);
  return section(
    "Confusion",
    wrong.length
      ? "True labels down, predicted ones across. Click a cell to see its examples."
      : "No label is wrong.",
    pairs(data, wrong, go),
    matrix(data, cells, go),
  );
}
