// Why this label here: contributions to the log-odds of two labels, as bars.

import { h, options, replace } from "./dom.js";
import { heatCanvas } from "./canvas.js";
import { count, decimal, probability, signed } from "./text.js";
import { Weights } from "./weights.js";

const FEW = 14;

// The label that is explained and its rival: a wrong one against the true one, else the second best.
export function rivals(data, i, t, marginals) {
  const found = data.predicted(i, t);
  const gold = data.gold(i, t);
  if (data.isWrong(i, t) && gold < data.nClasses) return [found, gold];
  const second = marginals[t].find(([label]) => label !== found);
  const [, first, n] = data.setOf(i, t);
  return [found, second ? second[0] : found === first ? first + Math.min(1, n - 1) : first];
}

function bars(items, lookup) {
  const most = Math.max(...items.map((item) => Math.abs(item.value)), 1e-9);
  return items.map((item) => {
    const times =
      item.times !== undefined && item.times !== 1 ? ` × ${decimal(item.times, 3)}` : "";
    const name = h("bdi", {}, item.name);
    return h(
      "tr",
      { class: item.kind, "data-value": item.value, "data-kind": item.kind },
      h(
        "th",
        { scope: "row" },
        item.kind === "attribute"
          ? h(
              "button",
              {
                type: "button",
                class: "link",
                title: "all weights of it",
                on: { click: () => lookup(item.raw) },
              },
              name,
            )
          : name,
        times,
        item.about && h("small", {}, item.about),
      ),
      h(
        "td",
        { class: "track" },
        h("span", {
          class: item.value < 0 ? "against" : "for",
          style: { "--share": String(Math.abs(item.value) / most) },
        }),
      ),
      h("td", { class: "n" }, signed(item.value)),
    );
  });
}

function missing(data) {
  const kept = data.summary.explained;
  if (kept === 0) return "This model has no weights of observations to explain by.";
  const by = data.hasGold ? "highest loss" : "lowest confidence";
  return `The page keeps attributes of the ${count(kept)} examples of ${by}; this one is not among them. Write the page with a larger --max-attributes to have all.`;
}

async function explained(data, i, t, a, b, details) {
  const weights = await Weights.of(data);
  details.rows ??= await weights.rows(i);
  if (!details.rows) return null;
  return data.own.explain(data, weights, details.rows, i, t, a, b, details);
}

function heat(data, items) {
  if (!data.summary.width || !items.some((item) => /^x\d+$/.test(item.raw ?? ""))) return null;
  const values = new Array(data.summary.width * data.summary.height).fill(0);
  for (const item of items) if (item.kind === "attribute") values[Number(item.raw.slice(1))] = item.value;
  return h(
    "figure",
    { class: "heat" },
    heatCanvas(data.summary.width, data.summary.height, values),
    h("figcaption", {}, "pixels: blue for, orange against"),
  );
}

export function explanation(data, i, t, details, lookup) {
  let [a, b] = rivals(data, i, t, details.marginals);
  const [, first, n] = data.setOf(i, t);
  let all = false;
  const content = h("div", { class: "why", "aria-live": "polite" });
  const pick = (name, chosen, change) =>
    options(
      h("select", {
        "aria-label": name,
        id: name.replace(" ", "-"),
        on: {
          change: (event) => {
            change(Number(event.target.value));
            draw();
          },
        },
      }),
      Array.from({ length: n }, (_, k) => [first + k, data.labels[first + k]]),
      chosen,
    );

  async function draw() {
    const found = await explained(data, i, t, a, b, details);
    if (!found) return replace(content, h("p", { class: "note" }, missing(data)));
    const items = found.items
      .filter((item) => item.value !== 0)
      .sort((x, y) => Math.abs(y.value) - Math.abs(x.value));
    const shown = all ? items : items.slice(0, FEW);
    const rest = items.slice(shown.length);
    if (rest.length)
      shown.push({
        name: `${count(rest.length)} smaller ones`,
        kind: "rest",
        value: rest.reduce((sum, item) => sum + item.value, 0),
      });
    const [p, q] = found.probabilities;
    return replace(
      content,
      h(
        "p",
        { class: "odds", "data-total": found.total, "data-p": p, "data-q": q },
        h("b", {}, signed(found.total)),
        " log-odds: ",
        `P = ${probability(p)} against ${probability(q)}`,
        found.given && `, ${found.given}`,
      ),
      heat(data, items),
      h("table", { class: "bars" }, h("tbody", {}, bars(shown, lookup))),
      items.length > FEW &&
        h(
          "button",
          {
            type: "button",
            class: "quiet",
            id: "all-contributions",
            on: {
              click: () => {
                all = !all;
                draw();
              },
            },
          },
          all ? "Fewer" : `All ${count(items.length)}`,
        ),
    );
  }

  draw();
  return h(
    "section",
    { class: "part", id: "why" },
    h("h3", {}, "Why"),
    h(
      "p",
      { class: "question" },
      "At ",
      h("bdi", { class: "quoted" }, data.token(i, t)),
      ", why ",
      pick("this label", a, (v) => {
        a = v;
      }),
      " rather than ",
      pick("that label", b, (v) => {
        b = v;
      }),
      "?",
    ),
    content,
  );
}
