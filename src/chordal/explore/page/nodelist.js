// The nodes of a graph as a list: all of them, the wrong ones, or those of which the model is unsure.

import { chips } from "./chip.js";
import { h, options, replace } from "./dom.js";
import { plural, probability, visible } from "./text.js";
import { VirtualList } from "./virtual.js";

const UNSURE = 0.8;

export class NodeList {
  constructor(data, colours, i, details, choose) {
    this.data = data;
    this.i = i;
    this.details = details;
    this.list = new VirtualList({
      label: "nodes",
      prefix: "node",
      rowHeight: 30,
      row: (t) => this.row(t, colours),
      choose,
    });
    const kinds = [["all", "all nodes"], data.hasGold && ["wrong", "wrong nodes"], ["unsure", "least sure first"]];
    this.filter = options(
      h("select", { id: "node-filter", "aria-label": "nodes shown", on: { change: () => this.show() } }),
      kinds.filter(Boolean),
      "all",
    );
    this.total = h("span", { class: "total" });
    this.node = h(
      "section",
      { class: "part nodes" },
      h("h3", {}, "Nodes"),
      h("p", { class: "searching" }, this.filter, this.total),
      this.list.node,
    );
    this.show();
  }

  sure(t) {
    const found = this.data.predicted(this.i, t);
    return this.details.marginals[t].find(([label]) => label === found)?.[1] ?? 0;
  }

  show() {
    const { data, i } = this;
    let items = Array.from({ length: data.list.sizes[i] }, (_, t) => t);
    if (this.filter.value === "wrong") items = items.filter((t) => data.isWrong(i, t));
    if (this.filter.value === "unsure") items.sort((a, b) => this.sure(a) - this.sure(b) || a - b);
    this.items = items;
    const unsure = items.filter((t) => this.sure(t) < UNSURE).length;
    replace(this.total, `${plural(items.length, "node")}, ${unsure} with P below ${UNSURE}`);
    this.list.show(items);
  }

  // Mark a node; what is in sight stays if the node is among it.
  mark(t) {
    const k = this.items.indexOf(t);
    if (k >= 0) this.list.activate(k, false);
  }

  row(t, colours) {
    const { data, i } = this;
    const p = this.sure(t);
    const type = data.summary.types?.length ? visible(data.setOf(i, t)[0]) : null;
    return h(
      "div",
      { class: "noderow" },
      h("bdi", { class: "word" }, data.token(i, t)),
      type && h("bdi", { class: "faint" }, type),
      chips(data, colours, i, t),
      h("span", { class: "bar", style: { "--share": String(p) } }, probability(p)),
    );
  }
}
