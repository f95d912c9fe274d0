// Attributes, their weights, and the scores that they give to labels.

import { starts } from "./block.js";
import { cellsOf } from "./cliques.js";

export class Weights {
  constructor(data, block) {
    this.data = data;
    this.parts = {};
    this.meanings = block.facts.meanings;
    for (const part of ["node", "edge"]) {
      if (!block.facts[part]) continue;
      this.parts[part] = {
        names: block.facts[part],
        starts: starts(block.columns[`${part}_counts`]),
        outputs: block.columns[`${part}_outputs`],
        weights: block.columns[`${part}_weights`],
        shared: block.facts[`${part}_shared`],
      };
    }
  }

  static async of(data) {
    data.weights ??= new Weights(data, await data.block("weights"));
    return data.weights;
  }

  // What an attribute of a template is about, in words; empty if that is not known.
  meaning(name) {
    return this.meanings[name.slice(0, name.indexOf(":") + 1)] ?? "";
  }

  // The weight of an attribute for an output; 0 if it has none.
  weight(part, attribute, output) {
    const own = this.parts[part];
    for (let k = own.starts[attribute]; k < own.starts[attribute + 1]; k++) {
      if (own.outputs[k] === output) return own.weights[k];
    }
    return 0;
  }

  // Where the rows of an example are, and its attributes; null if the page has none of them.
  async rows(i) {
    const { data } = this;
    if (!data.list.explained[i]) return null;
    const { chunk, first } = data.chunkOf(i);
    const { columns } = await data.block(`rows-${chunk}`);
    const out = { scores: null };
    const n = data.list.sizes[i];
    const links = columns.links && (await data.block(`details-${chunk}`)).columns;
    let [examples, before, steps, states, cells] = [0, 0, 0, 0, 0];
    for (let e = first; e < i; e++) {
      if (!data.list.explained[e]) continue;
      examples += 1;
      before += data.list.sizes[e];
      steps += Math.max(data.list.sizes[e] - 1, 0);
      states += data.statesOf(e);
      if (links) cells += cellsOf(data, links, e, first);
    }
    for (const part of Object.keys(this.parts)) {
      columns[`${part}_starts`] ??= starts(columns[`${part}_counts`]);
      const { shared } = this.parts[part];
      const own = part === "node" ? [before, n] : [steps, Math.max(n - 1, 0)];
      const [begin, size] = shared ? [examples, n] : own;
      out[part] = {
        begin,
        size,
        shared,
        starts: columns[`${part}_starts`],
        ids: columns[`${part}_ids`],
        values: columns[`${part}_values`],
      };
    }
    if (columns.scores) out.scores = columns.scores.subarray(states, states + data.statesOf(i));
    if (links) out.links = columns.links.subarray(cells, cells + cellsOf(data, links, i, first));
    return out;
  }

  // The attributes of row t with their values.
  attributes(rows, part, t) {
    const own = rows[part];
    const out = [];
    if (!own || t >= own.size) return out;
    const row = own.begin + (own.shared ? 0 : t);
    for (let k = own.starts[row]; k < own.starts[row + 1]; k++) {
      out.push([own.ids[k], own.values ? own.values[k] : 1]);
    }
    return out;
  }

  // Add the scores of row t to `out`, by output.
  add(rows, part, t, out, at = 0) {
    const own = this.parts[part];
    for (const [id, value] of this.attributes(rows, part, t)) {
      for (let k = own.starts[id]; k < own.starts[id + 1]; k++)
        out[at + own.outputs[k]] += value * own.weights[k];
    }
  }
}
