// A titled part of a view.

import { h } from "./dom.js";

export function section(title, note, ...content) {
  return h(
    "section",
    { class: "card" },
    h("h2", {}, title),
    note && h("p", { class: "note" }, note),
    content,
  );
}
