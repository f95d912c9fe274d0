// The list of examples with its filters, and the example that is open.

import { h, options, replace } from "./dom.js";
import { Detail } from "./detail.js";
import { NONE, SORTS, select } from "./filters.js";
import { count, nats, plural, probability } from "./text.js";
import { VirtualList } from "./virtual.js";

export class Examples {
  constructor(data, colours, lookup) {
    this.data = data;
    this.colours = colours;
    this.filters = { ...NONE };
    this.places = new Map();
    this.list = new VirtualList({
      label: "examples",
      rowHeight: data.own.rowHeight,
      row: (i) => this.row(i),
      choose: (i) => this.open(i),
    });
    this.detail = new Detail(data, colours, {
      back: () => this.close(),
      move: (step) => this.list.move(step),
      lookup,
    });
    this.total = h("p", { class: "total", role: "status" });
    this.controls = this.makeControls();
    this.node = h(
      "div",
      { class: "view browse", id: "examples" },
      h("div", { class: "side" }, this.makeFilters(), this.total, this.list.node),
      this.detail.node,
    );
  }

  makeControls() {
    const { data } = this;
    const labels = [[-1, "any"], ...data.labels.map((label, k) => [k, label])];
    const input = (name, props, event, read) =>
      h("input", {
        id: `filter-${name}`,
        ...props,
        on: { [event]: (e) => this.set({ [name]: read(e.target) }) },
      });
    const choose = (name, pairs, read) =>
      options(
        h("select", {
          id: `filter-${name}`,
          on: { change: (e) => this.set({ [name]: read(e.target.value) }) },
        }),
        pairs,
        pairs[0][0],
      );
    const sorts = Object.entries(SORTS)
      .filter(([key]) => data.hasGold || !["loss", "errors"].includes(key))
      .filter(([key]) => !data.own.single || !["errors", "length"].includes(key))
      .map(([key, [text]]) => [key, text]);
    const placeholder = data.own.contains(data);
    return {
      contains:
        placeholder &&
        input(
          "contains",
          {
            type: "search",
            placeholder,
            "aria-label": placeholder.replace("…", "").toLowerCase(),
            autocomplete: "off",
            spellcheck: "false",
          },
          "input",
          (e) => e.value,
        ),
      wrong: data.hasGold && input("wrong", { type: "checkbox" }, "change", (e) => e.checked),
      confidence: input("confidence", { type: "range", min: 0, max: 1, step: 0.01, value: 1 }, "input", (e) =>
        Number(e.value),
      ),
      gold: data.hasGold && choose("gold", labels, Number),
      predicted: choose("predicted", labels, Number),
      sort: choose("sort", sorts, String),
      reversed: h(
        "button",
        {
          type: "button",
          id: "filter-reversed",
          class: "quiet",
          "aria-pressed": "false",
          title: "turn the order round",
          "aria-label": "turn the order round",
          on: { click: () => this.set({ reversed: !this.filters.reversed }) },
        },
        "⇅",
      ),
    };
  }

  makeFilters() {
    const c = this.controls;
    this.limit = h("output", { for: "filter-confidence" });
    const field = (text, control, ...more) =>
      control && h("label", { class: "field" }, h("span", {}, text), control, more);
    this.more = h(
      "details",
      { class: "more", open: window.matchMedia("(min-width: 60rem)").matches },
      h("summary", {}, "Filters"),
      h(
        "div",
        { class: "fields" },
        c.wrong && h("label", { class: "check" }, c.wrong, "wrong only"),
        h("label", { class: "field wide" }, h("span", {}, "confidence at most"), c.confidence, this.limit),
        field("true label", c.gold),
        field("predicted label", c.predicted),
      ),
    );
    return h(
      "form",
      { class: "filters", on: { submit: (event) => event.preventDefault() } },
      c.contains,
      h(
        "div",
        { class: "sorting" },
        field("sort by", c.sort),
        c.reversed,
        h(
          "button",
          { type: "button", id: "clear", class: "quiet", on: { click: () => this.set({ ...NONE }) } },
          "Clear",
        ),
      ),
      this.more,
    );
  }

  set(change) {
    this.filters = { ...this.filters, ...change };
    const { filters: f, controls: c } = this;
    if (c.contains && c.contains.value !== f.contains) c.contains.value = f.contains;
    if (c.wrong) c.wrong.checked = f.wrong;
    c.confidence.value = String(f.confidence);
    if (c.gold) c.gold.value = String(f.gold);
    c.predicted.value = String(f.predicted);
    c.sort.value = f.sort;
    c.reversed.setAttribute("aria-pressed", String(f.reversed));
    this.limit.textContent = f.confidence.toFixed(2);
    this.refresh();
  }

  refresh() {
    const { items, places } = select(this.data, this.filters);
    const all = plural(this.data.n, "example");
    this.places = places;
    this.items = items;
    replace(
      this.total,
      h("b", {}, count(items.length)),
      items.length === this.data.n ? all.slice(count(items.length).length) : ` of ${all}`,
    );
    this.list.show(items);
    const k = items.indexOf(this.detail.example);
    if (k >= 0) this.list.activate(k, false);
  }

  row(i) {
    const { data } = this;
    const facts = [`#${count(i + 1)}`];
    if (data.hasGold)
      facts.push(
        data.errors[i]
          ? h("span", { class: "bad" }, data.own.single ? "✗" : `✗ ${count(data.errors[i])}`)
          : "✓",
        `loss ${nats(data.list.loss[i])}`,
      );
    facts.push(`conf. ${probability(data.list.confidence[i])}`, `margin ${probability(data.list.margin[i])}`);
    return [
      data.own.line(data, this.colours, i, this.places.get(i)),
      h(
        "div",
        { class: "meta" },
        facts.map((own) => h("span", {}, own)),
      ),
    ];
  }

  open(i) {
    document.body.classList.add("reading");
    return this.detail.open(i, this.places.get(i));
  }

  close() {
    document.body.classList.remove("reading");
    this.list.node.focus();
  }

  focusSearch() {
    (this.controls.contains || this.controls.sort).focus();
  }
}
