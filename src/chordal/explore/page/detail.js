// The example that is open.

import { h, replace } from "./dom.js";
import { reveal } from "./lattice.js";
import { count, nats, plural, probability } from "./text.js";

export class Detail {
  constructor(data, colours, act) {
    this.data = data;
    this.colours = colours;
    this.act = act;
    this.example = -1;
    this.node = h("article", { class: "detail", "aria-label": "example", tabindex: "-1" });
    this.empty();
  }

  empty() {
    this.example = -1;
    replace(this.node, h("p", { class: "nothing" }, "Choose an example from the list."));
  }

  async open(i, position) {
    const { data } = this;
    this.example = i;
    if (position === undefined || position < 0) position = this.firstPlace(i);
    this.state = { position, path: -1 };
    this.details = await data.details(i);
    if (this.example !== i) return;
    this.draw();
    this.node.scrollTop = 0;
    this.showPosition();
  }

  // The first error, else what the kind of example puts first.
  firstPlace(i) {
    const { data } = this;
    const size = data.list.sizes[i];
    for (let t = 0; t < size; t++) if (data.isWrong(i, t)) return t;
    return data.own.first(data, i);
  }

  step(by) {
    if (this.example < 0 || !this.details) return;
    const size = this.data.list.sizes[this.example];
    this.choose(Math.min(Math.max(this.state.position + by, 0), size - 1));
  }

  choose(position) {
    this.state.position = position;
    this.draw();
    this.showPosition();
  }

  showPosition() {
    const lattice = this.node.querySelector(".lattice");
    if (lattice) reveal(lattice, this.state.position);
  }

  figures() {
    const { data, example: i } = this;
    const { list } = data;
    const out = [];
    if (data.hasGold) {
      const n = data.errors[i];
      out.push(
        [
          data.own.single ? "prediction" : "errors",
          data.own.errors?.(n, list.sizes[i]) ?? `${count(n)} of ${count(list.sizes[i])}`,
          n > 0,
        ],
        ["loss", nats(list.loss[i])],
      );
    }
    out.push(["confidence", probability(list.confidence[i])], ["margin", probability(list.margin[i])]);
    return h(
      "dl",
      { class: "facts" },
      out.map(([name, value, bad]) =>
        h("div", { class: bad ? "bad" : "" }, h("dt", {}, name), h("dd", {}, value)),
      ),
    );
  }

  draw() {
    const { data, example: i, state, act } = this;
    const scrolled = this.node.querySelector(".lattice")?.scrollLeft ?? 0;
    const focused = document.activeElement;
    const own = {
      position: (t) => this.choose(t),
      path: (k) => {
        state.path = k;
        this.draw();
      },
      lookup: act.lookup,
    };
    const view =
      data.list.sizes[i] === 0
        ? [h("p", { class: "nothing" }, "This example is empty.")]
        : data.own.view(data, this.colours, i, state, this.details, own);
    const button = (name, text, listener) =>
      h("button", { type: "button", class: `quiet ${name}`, on: { click: listener } }, text);
    replace(
      this.node,
      h(
        "div",
        { class: "bar-top" },
        button("back", "‹ List", act.back),
        h(
          "h2",
          {},
          `Example ${count(i + 1)}`,
          !data.own.single && h("small", {}, ` ${plural(data.list.sizes[i], data.own.unit)}`),
        ),
        button("previous", "‹ Previous", () => act.move(-1)),
        button("next", "Next ›", () => act.move(1)),
      ),
      this.figures(),
      view,
    );
    const lattice = this.node.querySelector(".lattice");
    if (lattice) lattice.scrollLeft = scrolled;
    if (focused !== document.activeElement && this.node.contains(focused)) focused.focus();
  }
}
