// Keys, and the window that lists them.

import { h } from "./dom.js";

const KEYS = [
  ["1 2 3 4", "overview, examples, transitions, features"],
  ["/", "search: a word, or an attribute"],
  ["j k or ↓ ↑", "next and previous example"],
  ["← →", "previous and next position"],
  ["w", "wrong examples only"],
  ["c", "clear all filters"],
  ["t", "light, dark, or as the system has it"],
  ["Esc", "back to the list"],
  ["?", "this list"],
];

export function keyHelp() {
  const dialog = h(
    "dialog",
    { id: "keys", "aria-label": "keys" },
    h("h2", {}, "Keys"),
    h(
      "dl",
      {},
      KEYS.flatMap(([key, text]) => [
        h(
          "dt",
          {},
          key.split(" ").map((own) => (own === "or" ? " or " : h("kbd", {}, own))),
        ),
        h("dd", {}, text),
      ]),
    ),
    h("button", { type: "button", on: { click: () => dialog.close() } }, "Close"),
  );
  return dialog;
}

// actions: { key: function }. Keys inside fields are left to them, but for Escape.
export function listen(actions) {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    const inField = event.target.closest("input, select, textarea, dialog");
    if (inField && event.key !== "Escape") return;
    if (inField && event.key === "Escape" && inField.tagName !== "DIALOG") inField.blur();
    const action = actions[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  });
}
