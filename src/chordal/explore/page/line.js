// The line of an example in the list.

import { h } from "./dom.js";
import { labelCanvas, letterCanvas } from "./canvas.js";
import { chips } from "./chip.js";
import { decimal, visible } from "./text.js";

const TOKENS = 60; // of a line
const BEFORE = 3; // tokens before the one of interest

function piece(data, i, t, text) {
  return data.isWrong(i, t) ? h("mark", {}, h("bdi", {}, text)) : h("bdi", {}, text);
}

// Where a line begins: a few tokens before what the filters point at, or the first error.
function firstShown(data, i, place = -1) {
  for (let t = 0; place < 0 && data.errors[i] && t < data.list.sizes[i]; t++)
    if (data.isWrong(i, t)) place = t;
  return place > BEFORE + 2 ? place - BEFORE : 0;
}

// Pieces from about the first one of interest on; text(t) is what stands for variable t.
function piecesLine(data, i, place, text) {
  const size = data.list.sizes[i];
  const from = firstShown(data, i, place);
  const pieces = from > 0 ? [h("span", { class: "faint" }, "… ")] : [];
  const end = Math.min(size, from + TOKENS);
  for (let t = from; t < end; t++) pieces.push(piece(data, i, t, text(t)), " ");
  return h("div", { class: "line" }, pieces, size === 0 && h("span", { class: "faint" }, "empty"));
}

export function wordsLine(data, colours, i, place) {
  return piecesLine(data, i, place, (t) => data.token(i, t));
}

// Names of nodes; of nodes without names, their labels.
export function graphLine(data, colours, i, place) {
  const { numbered } = data.summary;
  return piecesLine(data, i, place, (t) => (numbered ? data.shortLabel(i, t) : data.token(i, t)));
}

export function lettersLine(data, colours, i) {
  const all = Array.from({ length: Math.min(data.list.sizes[i], TOKENS) }, (_, t) => t);
  return h(
    "div",
    { class: "line word-images" },
    all.map((t) => letterCanvas(data, i, t)),
    h(
      "span",
      { class: "read" },
      all.map((t) => piece(data, i, t, data.labels[data.predicted(i, t)])),
    ),
  );
}

export function gridLine(data, colours, i) {
  return h(
    "div",
    { class: "line thumbs" },
    data.hasGold && labelCanvas(data, colours, i, data.list.gold),
    labelCanvas(data, colours, i, data.list.predicted),
  );
}

// What a row has: its text, the columns that are not zero, or the first columns.
function said(data, i) {
  const { texts, features, peek } = data.facts;
  if (data.summary.width && !texts) return "";
  if (texts) return h("bdi", {}, visible(texts[i].slice(0, 200)));
  if (features)
    return [...data.featuresOf(i)].slice(0, TOKENS).flatMap((id) => [h("bdi", {}, visible(features[id])), " "]);
  if (!peek) return "";
  const values = data.list.peek.subarray(i * peek.length, (i + 1) * peek.length);
  return peek.flatMap((name, k) => [
    h("bdi", { class: "faint" }, visible(name)),
    ` ${decimal(values[k], 3)}  `,
  ]);
}

export function rowLine(data, colours, i) {
  return h(
    "div",
    { class: "line rowline" },
    data.summary.width && letterCanvas(data, i, 0),
    chips(data, colours, i, 0),
    h("span", { class: "said" }, said(data, i)),
  );
}

// The labels that are predicted, those that are missing, and what the row has.
export function labelsLine(data, colours, i) {
  const pieces = [];
  for (let t = 0; t < data.list.sizes[i]; t++) {
    const present = data.own.present(data, i, t);
    const wrong = data.isWrong(i, t);
    if (!present && !wrong) continue;
    const name = h("bdi", {}, data.token(i, t));
    pieces.push(wrong ? h("mark", {}, present ? "+" : "−", name) : name, " ");
  }
  return h(
    "div",
    { class: "line rowline" },
    data.summary.width && letterCanvas(data, i, 0),
    pieces.length ? h("span", {}, pieces) : h("span", { class: "faint" }, "no label"),
    h("span", { class: "said faint" }, said(data, i)),
  );
}
