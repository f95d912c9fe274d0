// The data set: a summary first, then the list of all examples, and details when they are asked for.

import { starts, unpack } from "./block.js";
import { cliquesOf } from "./cliques.js";
import { KINDS } from "./kinds.js";
import { visible } from "./text.js";

export class Data {
  constructor(summary) {
    this.summary = summary;
    this.labels = summary.labels.map(visible);
    this.nClasses = summary.n_classes;
    this.kind = summary.kind;
    this.own = KINDS[summary.kind];
    this.kept = new Map();
    this.list = null;
  }

  static async open() {
    return new Data((await unpack("summary")).facts);
  }

  async openList() {
    const { facts, columns } = await unpack("list");
    this.list = columns;
    this.facts = facts;
    if (columns.feature_counts) this.featureStarts = starts(columns.feature_counts);
    this.names = facts.names.map(visible);
    this.small = facts.names.map((name) => name.toLowerCase());
    this.offsets = starts(columns.sizes);
    this.n = columns.sizes.length;
    this.unobserved = this.labels.length;
    this.errors = new Uint32Array(this.n);
    if (!this.hasGold) return;
    const { gold, predicted } = columns;
    for (let i = 0; i < this.n; i++) {
      for (let v = this.offsets[i]; v < this.offsets[i + 1]; v++) {
        if (gold[v] !== predicted[v] && gold[v] !== this.unobserved) this.errors[i]++;
      }
    }
  }

  get hasGold() {
    return this.summary.figures.confusion !== undefined;
  }

  // The tables without observation: transitions [n][n], intercept, start, end, edges.
  get tables() {
    return this.summary.tables;
  }

  token(i, t) {
    return this.own.token(this, i, t);
  }

  gold(i, t) {
    return this.hasGold ? this.list.gold[this.offsets[i] + t] : this.unobserved;
  }

  predicted(i, t) {
    return this.list.predicted[this.offsets[i] + t];
  }

  isWrong(i, t) {
    const gold = this.gold(i, t);
    return gold !== this.unobserved && gold !== this.predicted(i, t);
  }

  // The labels that a variable may have: [title, first, number of them].
  setOf(i, t) {
    return this.summary.sets[this.own.set ? this.own.set(this, i, t) : 0];
  }

  // The predicted label, without the title of its set.
  shortLabel(i, t) {
    const title = this.setOf(i, t)[0];
    const label = this.summary.labels[this.predicted(i, t)];
    return visible(title ? label.slice(title.length + 2) : label);
  }

  // How many labels the variables of an example have in all, and where those of variable t begin.
  statesOf(i) {
    return this.stateOf(i, this.list.sizes[i]);
  }

  stateOf(i, t) {
    if (this.summary.sets.length === 1) return t * this.nClasses;
    let sum = 0;
    for (let u = 0; u < t; u++) sum += this.setOf(i, u)[2];
    return sum;
  }

  // Of a row, the columns that are not zero, by their places among the names of features.
  featuresOf(i) {
    if (!this.featureStarts) return [];
    return this.list.feature_ids.subarray(this.featureStarts[i], this.featureStarts[i + 1]);
  }

  block(name) {
    if (!this.kept.has(name)) this.kept.set(name, unpack(name));
    return this.kept.get(name);
  }

  chunkOf(i) {
    const firsts = this.summary.chunks;
    let low = 0;
    let high = firsts.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (firsts[middle] <= i) low = middle;
      else high = middle - 1;
    }
    return { chunk: low, first: firsts[low] };
  }

  // Marginals (pairs [label, probability] by position), best labellings, pixels.
  async details(i) {
    const { chunk, first } = this.chunkOf(i);
    const { columns } = await this.block(`details-${chunk}`);
    columns.starts ??= starts(columns.counts);
    const begin = this.offsets[i] - this.offsets[first];
    const size = this.list.sizes[i];
    const marginals = [];
    for (let t = 0; t < size; t++) {
      const own = [];
      for (let k = columns.starts[begin + t]; k < columns.starts[begin + t + 1]; k++) {
        own.push([columns.labels[k], Math.exp(-columns.costs[k] / this.summary.cost)]);
      }
      marginals.push(own.sort((a, b) => b[1] - a[1]));
    }
    return {
      marginals,
      paths: this.paths(columns, i, first),
      pixels: this.pixels(columns, i, first),
      cliques: cliquesOf(this, columns, i, first),
      positions: this.positions(columns, i, first),
    };
  }

  // Where the data say that nodes are: [[x, y]], or null.
  positions(columns, i, first) {
    if (!columns.positions) return null;
    const begin = this.offsets[i] - this.offsets[first];
    return Array.from({ length: this.list.sizes[i] }, (_, t) => [
      columns.positions[2 * (begin + t)],
      columns.positions[2 * (begin + t) + 1],
    ]);
  }

  paths(columns, i, first) {
    let path = 0;
    let place = 0;
    for (let e = first; e < i; e++) {
      path += columns.k[e - first];
      place += columns.k[e - first] * this.list.sizes[e];
    }
    const size = this.list.sizes[i];
    return Array.from({ length: columns.k[i - first] ?? 0 }, (_, k) => ({
      labels: columns.paths.subarray(place + k * size, place + (k + 1) * size),
      probability: Math.exp(columns.chances[path + k]),
    }));
  }

  pixels(columns, i, first) {
    const channels = this.summary.channels;
    if (this.kind !== "grid" || !channels) return null;
    const begin = this.offsets[i] - this.offsets[first];
    return columns.pixels.subarray(begin * channels, (begin + this.list.sizes[i]) * channels);
  }

  letter(i, t) {
    const area = this.summary.height * this.summary.width;
    const begin = (this.offsets[i] + t) * area;
    return this.list.pixels.subarray(begin, begin + area);
  }
}
