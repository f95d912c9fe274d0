// Feature search: attributes by name, with their weights.

import { h, options, replace } from "./dom.js";
import { section } from "./section.js";
import { count, signed, visible } from "./text.js";
import { Weights } from "./weights.js";

const SHOWN = 100;
const LABELS = 6; // of an attribute: those of largest weight

export class Features {
  constructor(data, colours) {
    this.data = data;
    this.colours = colours;
    this.input = h("input", {
      type: "search",
      id: "feature-search",
      placeholder: "Part of a name…",
      "aria-label": "search attributes",
      autocomplete: "off",
      spellcheck: "false",
      on: { input: () => this.draw() },
    });
    this.label = options(
      h("select", { id: "feature-label", "aria-label": "label", on: { change: () => this.draw() } }),
      [[-1, "any label"], ...data.labels.slice(0, data.nClasses).map((name, k) => [k, name])],
      -1,
    );
    this.found = h("p", { class: "total", role: "status" });
    this.results = h("div", { class: "results" });
    this.node = h(
      "div",
      { class: "view", id: "features" },
      section(
        "Weights of attributes",
        "Attributes that occur in the data, and the largest weights of every label.",
        h("div", { class: "searching" }, this.input, this.label),
        this.found,
        this.results,
      ),
    );
  }

  async show(query) {
    if (query !== undefined) {
      this.input.value = query;
      this.label.value = "-1";
    }
    await this.draw();
  }

  async prepare() {
    const weights = await Weights.of(this.data);
    this.own = weights.parts.node;
    if (!this.own || this.small) return;
    this.small = this.own.names.map((name) => name.toLowerCase());
    this.largest = Float64Array.from(this.own.names, (_, k) => {
      let most = 0;
      for (let j = this.own.starts[k]; j < this.own.starts[k + 1]; j++)
        most = Math.max(most, Math.abs(this.own.weights[j]));
      return most;
    });
    this.weights = weights;
  }

  async draw() {
    await this.prepare();
    if (!this.own)
      return replace(
        this.results,
        h("p", { class: "nothing" }, "This model's scores are no sum over named attributes."),
      );
    const query = this.input.value.trim().toLowerCase();
    const label = Number(this.label.value);
    const rank = label < 0 ? (k) => this.largest[k] : (k) => this.weights.weight("node", k, label);
    const found = [];
    this.small.forEach((name, k) => {
      if (name.includes(query)) found.push([k, rank(k)]);
    });
    found.sort((a, b) =>
      a[0] === b[0] ? 0 : this.small[b[0]] === query ? 1 : this.small[a[0]] === query ? -1 : b[1] - a[1],
    );
    replace(
      this.found,
      h("b", {}, count(found.length)),
      found.length === 1 ? " attribute" : " attributes",
      found.length > SHOWN && `, the first ${SHOWN} shown`,
    );
    return replace(
      this.results,
      h(
        "ul",
        { class: "attributes" },
        found.slice(0, SHOWN).map(([k]) => this.attribute(k, label)),
      ),
    );
  }

  attribute(k, label) {
    const own = [];
    for (let j = this.own.starts[k]; j < this.own.starts[k + 1]; j++)
      own.push([this.own.outputs[j], this.own.weights[j]]);
    own.sort((a, b) => (a[0] === label ? -1 : b[0] === label ? 1 : Math.abs(b[1]) - Math.abs(a[1])));
    return h(
      "li",
      {},
      h(
        "code",
        {},
        h("bdi", {}, visible(this.own.names[k])),
        h("small", {}, this.weights.meaning(this.own.names[k])),
      ),
      h(
        "span",
        { class: "chips" },
        own
          .slice(0, LABELS)
          .map(([output, w]) =>
            h(
              "span",
              {
                class: w < 0 ? "chip against" : "chip",
                style: { "--c": `var(--c${this.colours[output]})` },
                "data-weight": w,
              },
              h("bdi", {}, this.data.labels[output]),
              h("b", {}, signed(w)),
            ),
          ),
        own.length > LABELS && h("span", { class: "faint" }, `+${own.length - LABELS}`),
      ),
    );
  }
}
