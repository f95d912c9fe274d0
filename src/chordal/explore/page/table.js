// Tables that a click on a heading sorts.

import { h, replace } from "./dom.js";
import { count, decimal, percent } from "./text.js";

function cell(kind, value) {
  if (kind === "text") return h("td", { class: "name" }, h("bdi", {}, value));
  if (kind === "n") return h("td", { class: "n" }, count(value));
  if (kind === "x") return h("td", { class: "n" }, decimal(value));
  if (kind === "%") return h("td", { class: "n" }, percent(value));
  return h(
    "td",
    { class: "n" },
    h("span", { class: "bar", style: { "--share": String(value) } }, percent(value)),
  );
}

// head: [[name, kind]], rows: [{ cells, pick }].
export function sortableTable(name, head, rows, by) {
  let [column, down] = [by, true];
  const body = h("tbody");
  const headings = head.map(([text, kind], k) =>
    h(
      "th",
      { scope: "col", class: kind === "text" ? "name" : "n" },
      h(
        "button",
        {
          type: "button",
          on: {
            click: () => {
              [column, down] = [k, k === column ? !down : head[k][1] !== "text"];
              draw();
            },
          },
        },
        text,
      ),
    ),
  );

  function draw() {
    const sorted = [...rows].sort((a, b) => {
      const [x, y] = [a.cells[column], b.cells[column]];
      return (x < y ? -1 : x > y ? 1 : 0) * (down ? -1 : 1);
    });
    headings.forEach((node, k) =>
      k === column
        ? node.setAttribute("aria-sort", down ? "descending" : "ascending")
        : node.removeAttribute("aria-sort"),
    );
    replace(
      body,
      sorted.map(({ cells, pick }) => {
        const first = pick
          ? h(
              "td",
              { class: "name" },
              h("button", { type: "button", class: "link", on: { click: pick } }, h("bdi", {}, cells[0])),
            )
          : cell("text", cells[0]);
        return h(
          "tr",
          {},
          first,
          cells.slice(1).map((value, k) => cell(head[k + 1][1], value)),
        );
      }),
    );
  }

  draw();
  return h(
    "div",
    { class: "scroll" },
    h("table", { class: "figures", id: `table-${name}` }, h("thead", {}, h("tr", {}, headings)), body),
  );
}
