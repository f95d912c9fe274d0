// The data set: a summary first, then the list of all examples, and details when they are asked for.

import { unpack } from "./block.js";
import { visible } from "./text.js";

export function starts(counts) {
  const out = new Uint32Array(counts.length + 1);
  for (let i = 0; i < counts.length; i++) out[i + 1] = out[i] + counts[i];
  return out;
}

export class Data {
  constructor(summary) {
    this.summary = summary;
    this.labels = summary.labels.map(visible);
    this.nClasses = summary.n_classes;
    this.kind = summary.kind;
    this.kept = new Map();
    this.list = null;
  }

  static async open() {
    return new Data((await unpack("summary")).facts);
  }

  async openList() {
    const { facts, columns } = await unpack("list");
    this.list = columns;
    this.raw = facts.names;
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
    if (this.kind === "text") return this.names[this.list.tokens[this.offsets[i] + t]];
    return this.kind === "letters" ? `letter ${t + 1}` : "this pixel";
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
    return { marginals, paths: this.paths(columns, i, first), pixels: this.pixels(columns, i, first) };
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
